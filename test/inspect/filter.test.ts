/** Mistakes in filters: what is said about words that are valid, and match nothing, or not what was meant. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { helpOf } from '../../src/command/help.js'
import { FIELDS, readFilter } from '../../src/inspector/filter.js'
import { VALUES } from '../../src/inspector/filter-hints.js'
import { type CallView, Views } from '../../src/inspector/views.js'
import { eventsIn, tellCall, tickingRing } from '../support/sights.js'

const HINTS: readonly (readonly [filter: string, hint: RegExp])[] = [
  ['status:eror', /^status:eror matches nothing: did you mean "error"\?; values are open, ok, tool_error, asks, error/],
  ['status:failed', /^status:failed matches nothing; values are open, .*, fault$/],
  ['-status:ok,okay', /^status:okay matches nothing/],
  ['era:modrn', /^era:modrn matches nothing: did you mean "modern"\?/],
  ['blame:server', /^blame:server matches nothing; values are caller, upstream, bridge$/],
  ['status=error', /^"status=error" is searched as text: write status:error$/],
  ['Era=legacy', /: write era:legacy$/],
  ['duration>500', /^"duration>500" is searched as text: only times are compared, as in ms>500$/],
  ['ms > 500', /^">" is searched as text: write no space around >, as in ms>500$/],
  ['ms >500', /write no space around >/],
  ['tol:book', /^tol: is no field/],
]

const FINE = [
  'status:error,fault',
  'STATUS:OK',
  'status:-32602',
  'status:404',
  'era:modern>legacy',
  'era:2025',
  'era:11-25',
  'blame:upstream',
  'ms>=500',
  'ms=5',
  'MS<5',
  'a=b',
  'key=value',
  'a text',
  'file:///notes',
  'server:Orders',
  '-',
]

t.test('gives a hint for a word that cannot match, or is searched as text', async (t) => {
  for (const [filter, hint] of HINTS) {
    t.match(readFilter(filter).hint, hint, filter)
    t.equal(readFilter(filter).problem, undefined, filter)
  }
  for (const filter of FINE) t.equal(readFilter(filter).hint, undefined, filter)
})

t.test('reads names of fields regardless of case', async (t) => {
  const ring = tickingRing()
  tellCall(ring.record, { id: 1, outcome: 'tool_error' })
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  const call = views.call('c1') as CallView
  for (const filter of ['Status:tool_error', 'TOOL:Book', '-Status:ok', 'MS>1', 'client:http', '-client:cursor'])
    t.ok(readFilter(filter).matches(call), filter)
  for (const filter of ['Status:ok', 'Server:billing', 'Ms>1000']) t.notOk(readFilter(filter).matches(call), filter)
})

t.test('searches the texts of messages, by a word or by text: only', async (t) => {
  const ring = tickingRing({ payloads: 'all' })
  tellCall(ring.record, { id: 1, texts: { request: '{"city":"Zürich"}', result: '{"snow":"BOOK"}' } })
  tellCall(ring.record, { id: 2, texts: { request: '{}', result: '{}' } })
  const views = new Views()
  for (const seen of eventsIn(ring)) views.add(seen)
  const found = (filter: string) => [...views.calls.values()].filter(readFilter(filter).matches).map(({ id }) => id)
  t.same(found('zürich'), ['c1'])
  t.same(found('text:ZÜRICH'), ['c1'])
  t.same(found('-zürich'), ['c2'])
  t.same(found('text:oslo,snow'), ['c1'])
  t.same(found('book'), ['c1', 'c2'], 'the name of the tool')
  t.same(found('text:book'), ['c1'], 'not the name of the tool')
  t.same(found('text:zürich tool:other'), [])
  t.match(readFilter('text:').problem, /needs a value/)
  const { texts, isByText } = readFilter('Zürich server:a -text:b,C zürich')
  t.same([texts, isByText], [['zürich', 'b', 'c'], true])
  t.equal(readFilter('zürich').isByText, false)
  const given = readFilter('far', (call, part) => call.id === 'c2' && part === 'far')
  t.same(
    [...views.calls.values()].filter(given.matches).map(({ id }) => id),
    ['c2'],
  )
})

t.test('documents all fields and their fixed values', async (t) => {
  const texts = {
    'docs/inspect.md': readFileSync(new URL('../../docs/inspect.md', import.meta.url), 'utf8'),
    'tail --help': helpOf(['tail']),
  }
  const short = VALUES.era.filter((value) => /^\w+$/.test(value))
  for (const [name, text] of Object.entries(texts)) {
    for (const field of Object.keys(FIELDS)) t.match(text, new RegExp(`\\b${field}:`), `${name}: ${field}`)
    for (const value of [...VALUES.status, ...VALUES.blame, ...short])
      t.match(text, new RegExp(`\\b${value}\\b`), `${name}: ${value}`)
  }
})
