/** Every line of the log has an event; code, table and docs/reference/log-events.md have the same events. */
import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { LOG_EVENTS } from '../../src/base/log/events.js'
import { createLog } from '../../src/base/log/log.js'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const TABLE = 'base/log/events.ts'
const sources = readdirSync(new URL('../../src/', import.meta.url), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && name !== TABLE)
  .map((name) => [name, read(`src/${name}`)] as const)
const LOGGED = /\.(debug|info|warn|error)\(\s*\{\s*event: '([a-z_]+)'/g
const logs = read('docs/reference/log-events.md')
/** `| event | level | meaning | fields |` */
const documented = [...logs.matchAll(/^\| `([a-z_]+)` \| ([a-z, ]+) \| (.*?) \| .*\|$/gm)].map(
  ([, event = '', levels = '', meaning = '']) => ({ event, levels: levels.split(', '), meaning }),
)

t.test('names of events are in snake_case', async (t) => {
  for (const event of Object.keys(LOG_EVENTS)) t.match(event, /^[a-z]+(?:_[a-z]+)*$/)
})

t.test('every event of the table is logged somewhere', async (t) => {
  for (const event of Object.keys(LOG_EVENTS))
    t.ok(
      sources.some(([, text]) => text.includes(`'${event}'`)),
      event,
    )
})

t.test('the documentation lists the events of the table, with the same meanings, and no others', async (t) => {
  t.same(
    documented.map(({ event, meaning }) => [event, meaning]),
    Object.entries(LOG_EVENTS),
  )
})

t.test('the documentation names the levels at which an event is logged', async (t) => {
  const found = new Map<string, Set<string>>()
  for (const [, text] of sources)
    for (const [, level = '', event = ''] of text.matchAll(LOGGED))
      found.set(event, (found.get(event) ?? new Set()).add(level))
  t.ok(found.size > 50)
  for (const { event, levels } of documented) {
    // What ends the process is logged by one line of main.ts for several events.
    const known = levels.filter((level) => level !== 'fatal')
    if (found.has(event)) t.same([...(found.get(event) ?? [])].sort(), known.sort(), event)
  }
})

t.test('no room declares a log of its own, which could accept a line without an event', async (t) => {
  // The log of a program that embeds the bridge has its own type, which is public.
  for (const [name, text] of sources.filter(([name]) => name !== 'app/embed/options.ts'))
    t.notMatch(
      text,
      /\b(?:debug|info|warn|error|fatal)\??(?:\(|: \()\w+\??: (?!LogFields)\w+, \w+: string\)(?:: void| => void)/,
      name,
    )
})

t.test('the type of the log requires an event of the table', async (t) => {
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json' }, { terminal: false, write: (line) => lines.push(line) })
  log.info({ event: 'listening' }, 'listening')
  // `npm run check` fails where one of these is accepted.
  // @ts-expect-error No event.
  log.info({}, 'x')
  // @ts-expect-error Not in the table.
  log.info({ event: 'unheard_of' }, 'x')
  // @ts-expect-error Only a message.
  log.info('x')
  // @ts-expect-error Not in the table either, in the log of a server.
  log.child({ server: 'a' }).warn({ event: 'unheard_of' }, 'x')
  t.match(JSON.parse(lines[0] ?? ''), { event: 'listening' })
})

t.test('a terminal shows the message in place of the event', async (t) => {
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'pretty' }, { terminal: false, write: (line) => lines.push(line) })
  log.info({ event: 'server_ready', server: 'files' }, 'server ready')
  t.match(lines[0], /^\S+ INFO {2}server ready server=files\n$/)
})
