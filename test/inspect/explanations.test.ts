/** What the inspector says about rules and failures. About failures, it is what the documents say. */
import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { MESSAGES } from '../../src/base/fault/failures.js'
import { faults } from '../../src/base/fault/faults.js'
import { adviceOn } from '../../src/inspector/advice.js'
import { piecesOf, plainOf } from '../../src/inspector/markdown.js'
import { RULES } from '../../src/inspector/recorder/rules.js'
import { RULE_SENTENCES } from '../../src/inspector/rule-sentences.js'

const docs = new URL('../../docs/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, docs), 'utf8')

t.test('each rule has a sentence of its own, and a row of docs/development/translation.md', async (t) => {
  const document = read('development/translation.md')
  t.same(Object.keys(RULE_SENTENCES), [...RULES].toSorted())
  for (const [rule, sentence] of Object.entries(RULE_SENTENCES)) {
    t.ok(document.includes(`<a id="${rule}"></a>`), rule)
    t.match(plainOf(sentence), /^[A-Z][^.:]+: .+\.$/, rule)
  }
})

t.test('the page explains each fault with its row of docs/reference/errors.md', async (t) => {
  // Links are relative to docs/troubleshooting.md.
  const document = read('reference/errors.md').replaceAll('](../troubleshooting.md#', '](#').replaceAll('](../', '](')
  for (const fault of Object.keys(faults)) {
    const { what = '', next = '' } = adviceOn({ fault }) ?? {}
    t.ok(what !== '' && document.includes(`| ${what} | ${next} |`), fault)
  }
})

t.test('explains a failure of a server by its message', async (t) => {
  const next = (fault: string, message?: string) => adviceOn({ outcome: 'fault', fault, message })?.next
  t.match(next('upstreamUnavailable', 'orders is unavailable: Connection refused'), /whether the server is running/)
  t.match(next('upstreamRefused', 'The server answered with HTTP 401'), /requires a credential/)
  t.match(next('upstreamRefused', 'The server answered with HTTP 418'), /\(#a-server-cannot-be-used\)/)
  t.match(next('upstreamClosed', 'The server exited before it received the message'), /in a terminal\.$/)
  const slow = 'No answer to initialize in the 100 ms that the program had to start (timeouts.start)'
  t.match(next('upstreamTimeout', slow), /timeouts\.start/)
  t.match(next('upstreamTimeout', 'No answer to tools/call in 100 ms'), /address or command/)
  t.match(next('upstreamUnavailable', 'something else'), /\(#a-server-cannot-be-used\)/)
  t.match(next('notJson', 'Not JSON: Connection refused'), /message says/, 'a client says nothing about a server')
  t.match(adviceOn({ outcome: 'tool_error' })?.next, /result/)
  t.match(adviceOn({ outcome: 'error' })?.what, /JSON-RPC error/)
  for (const outcome of ['ok', 'asks', 'cancelled', 'open', 'constructor'])
    t.equal(adviceOn({ outcome, fault: outcome, message: 'Connection refused' }), undefined, outcome)
})

t.test('finds code and links in a line, and links only to existing documents', async (t) => {
  t.same(piecesOf('See `a|b` and [access](access.md#x).', 'troubleshooting.md'), [
    { text: 'See ', code: false },
    { text: 'a|b', code: true },
    { text: ' and ', code: false },
    {
      text: 'access',
      code: false,
      href: 'https://github.com/mcp-bridge/mcp-bridge/blob/main/docs/access.md#x',
    },
    { text: '.', code: false },
  ])
  t.equal(plainOf('See `a` in [access](access.md), array[0] and `.'), 'See a in access, array[0] and `.')
  const lines = [
    ...Object.values(faults).map(({ what, next }) => `${what} ${next}`),
    ...Object.values(MESSAGES).map(([what, next]) => `${what} ${next}`),
  ]
  for (const { href, text } of lines.flatMap((line) => piecesOf(line, 'troubleshooting.md')))
    if (href !== undefined) t.ok(existsSync(new URL(new URL(href).pathname.replace(/.*\/docs\//, ''), docs)), text)
})
