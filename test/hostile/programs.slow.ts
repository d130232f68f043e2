/** Servers on stdio that behave as programs of users do. Names begin with the number of the finding. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'
import { unkind } from '../support/unkind.js'

type Json = Record<string, unknown>

const tool = (url: string, name: string, args: Json = {}, meta: Json = {}): Promise<Answer> =>
  call(url, 'tools/call', { name, arguments: args }, { meta })
const textOf = ({ message }: Answer) => (message.result?.['content'] as { text: string }[] | undefined)?.[0]?.text
/** Has the server write bytes as they are; `{id}` in them is the id of the call. */
const raw = (url: string, bytes: string) => tool(url, 'raw', { hex: Buffer.from(bytes, 'latin1').toString('hex') })
const progressIn = ({ messages }: Answer) =>
  messages.flatMap(({ method, params }) => (method === 'notifications/progress' ? [params as Json] : []))

const ANSWER = '{"jsonrpc":"2.0","id":{id},"result":{"content":[]'

const broken: [name: string, bytes: string][] = [
  ['NaN', `${ANSWER},"x":NaN}}`],
  ['NUL between tokens', `${ANSWER}\0}}`],
  ['a level too many', `${ANSWER},"x":${'['.repeat(300)}${']'.repeat(300)}}}`],
  ['an end too early', `${ANSWER},"x":`],
  ['no result', '{"jsonrpc":"2.0","id":{id}}'],
  ['the id behind what is broken', '{"result":{"content":[],"x":Infinity},"jsonrpc":"2.0","id":{id}}'],
  ['the id as a string', '{"jsonrpc":"2.0","id":"{id}","result":{"x":NaN}}'],
]

t.test('an unreadable answer fails its call at once, as an error of the server', async (t) => {
  const { url } = await startBridge(t, unkind(t).server)
  for (const [name, bytes] of broken) {
    const answer = await raw(url, `${bytes}\n`)
    t.match(answer.message.error, { data: { reason: 'upstream_protocol_error', outcome: 'unknown' } }, name)
  }
  t.equal(textOf(await tool(url, 'echo')), 'here')
})

t.test('a log line with an id fails no call', async (t) => {
  const { url } = await startBridge(t, unkind(t).server)
  for (const line of ['{"level":"info","id":{id},"msg":"done"}', '{"jsonrpc":"2.0","id":{id},"method":"x","a":NaN}'])
    t.match(await raw(url, `${line}\n${ANSWER}}}\n`), { message: { result: { content: [] } } }, line)
})

t.test('an array of messages counts as its messages, and any other array as noise', async (t) => {
  const stdio = unkind(t)
  const { url } = await startBridge(t, stdio.server)
  const noise = [
    `[${'1,'.repeat(50_000)}1]`,
    `${'['.repeat(255)}${'1,'.repeat(50_000)}1${']'.repeat(255)}`,
    '[]',
    '[[],[[]],{},null,"x"]',
  ]
  for (const array of noise)
    t.match(await raw(url, `${array}\n[${ANSWER}}}]\n`), { message: { result: { content: [] } } }, array.slice(0, 20))
  t.equal(stdio.pids().length, 1)
})

t.test('ids and progress tokens that return as strings match the numbers that were sent', async (t) => {
  const { url } = await startBridge(t, unkind(t, { ids: 'string' }).server)
  // A call that waits for a program to start gets progress about that.
  await tool(url, 'echo')
  const answer = await tool(url, 'progress', { count: 3 }, { progressToken: 'mine' })
  t.equal(textOf(answer), 'done')
  t.same(
    progressIn(answer),
    [1, 2, 3].map((progress) => ({ progress, progressToken: 'mine' })),
  )
  const client = await LegacyClient.open(url)
  t.match((await client.call('echo', { text: 'x' })).message, { result: { content: [{ text: 'x' }] } })
})

t.test('skips printed lines of a tool, and delivers its answer', async (t) => {
  const stdio = unkind(t)
  const { url, log } = await startBridge(t, stdio.server)
  for (const lines of [1, 101, 5_000]) t.equal(textOf(await tool(url, 'print', { lines })), 'printed', String(lines))
  t.equal(stdio.pids().length, 1)
  const said = log.filter(({ event }) => event === 'message_skipped')
  t.match(said[0], { level: 40, skipped: 1 })
  t.ok(said.length < 10, `logged ${said.length} times`)
  t.notMatch(JSON.stringify(log), /line 42/, 'what was printed may be secret')
})

t.test('ends a program that only prints, and starts it again', async (t) => {
  const stdio = unkind(t)
  const { url } = await startBridge(t, stdio.server)
  t.equal(textOf(await tool(url, 'echo')), 'here')
  const answer = await tool(url, 'print', { lines: 300, padding: 'x'.repeat(64 * 1024) })
  t.match(answer.message.error, { data: { reason: 'upstream_protocol_error' } })
  t.equal(textOf(await tool(url, 'echo')), 'here')
  t.equal(stdio.pids().length, 2)
})

t.test('replaces invalid UTF-8 by U+FFFD, and warns once', async (t) => {
  const { url, log } = await startBridge(t, unkind(t).server)
  for (let n = 0; n < 3; n++) {
    const answer = await raw(
      url,
      '{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"caf\xe9"}]}}\n',
    )
    t.equal(textOf(answer), 'caf\ufffd')
  }
  t.equal(log.filter(({ level, what }) => level === 40 && /UTF-8/.test(String(what))).length, 1)
})

t.test('an error under an unknown id answers the probe', async (t) => {
  const stdio = unkind(t, { discover: 'stray' })
  const { bridge, url } = await startBridge(t, stdio.server)
  t.match(await bridge.server.warmUp(), { era: 'legacy', weak: false, why: /error -32603/ })
  t.equal(textOf(await tool(url, 'echo')), 'here')
  t.equal(stdio.pids().length, 1)
})

t.test('starts a slow program once, whatever its era and whoever calls', async (t) => {
  const programs = [
    ['legacy', legacyStdio(t, { slowStart: 2_000 })],
    ['legacy, silent when it is asked', legacyStdio(t, { slowStart: 2_000, discover: 'silent' })],
    ['modern', modernStdio(t, { slowStart: 2_000 })],
  ] as const
  await Promise.all(
    programs.map(async ([name, { server, pids }]) => {
      const { url, bridge } = await startBridge(t, server, { timeouts: { probe: 200 } })
      const [answer, verdict] = await Promise.all([tool(url, 'echo'), bridge.server.warmUp()])
      t.ok(answer.message.result, name)
      t.equal(pids().length, 1, name)
      t.equal(verdict?.era, name.split(',')[0], name)
    }),
  )
})

t.test('a legacy client waits for a slow program in a session of its own', async (t) => {
  const legacy = legacyStdio(t, { slowStart: 4_000 })
  const modern = modernStdio(t, { slowStart: 4_000 })
  await Promise.all(
    [legacy, modern].map(async ({ server, pids }) => {
      const { url, bridge } = await startBridge(t, server, { timeouts: { probe: 2_000 } })
      const [client] = await Promise.all([LegacyClient.open(url), bridge.server.warmUp()])
      t.match((await client.call('echo', { n: 1 })).message, { result: { structuredContent: { n: 1 } } })
      t.equal(pids().length, 1, JSON.stringify([server, pids()]))
    }),
  )
  t.same(
    modern.violations().filter(({ method }) => method !== 'initialize' && method !== undefined),
    [],
  )
})

t.test('clients that wait for a slow program start no others', async (t) => {
  const modern = modernStdio(t, { slowStart: 2_000 })
  const { url } = await startBridge(t, modern.server, { timeouts: { probe: 200 } })
  const capabilities = [{}, { roots: {} }, { sampling: {} }, { elicitation: {} }]
  const answers = await Promise.all(
    capabilities.map((declared) =>
      call(
        url,
        'tools/call',
        { name: 'echo', arguments: {} },
        { meta: { 'io.modelcontextprotocol/clientCapabilities': declared } },
      ),
    ),
  )
  for (const { message } of answers) t.ok(message.result)
  t.equal(modern.pids().length, 1)
})

t.test('a client with a progress token hears that the server is starting', async (t) => {
  for (const { server } of [legacyStdio(t, { slowStart: 4_500 }), modernStdio(t, { slowStart: 4_500 })]) {
    const { url } = await startBridge(t, server, { timeouts: { probe: 200 } })
    const told = await tool(url, 'progress', { values: [1, 2] }, { progressToken: 7 })
    const progress = progressIn(told)
    t.match(progress[0], { progressToken: 7, message: 'The server is starting' })
    const values = progress.map(({ progress }) => Number(progress))
    t.same(values.slice(-2), [1, 2])
    t.same(
      values,
      [...values].sort((a, b) => a - b),
      'progress only grows',
    )
    t.ok(told.message.result)
  }
})

t.test('offers no other revision to a program that refuses initialize and names only modern ones', async (t) => {
  const modern = modernStdio(t, { silentDiscovers: 1 })
  const { url, bridge } = await startBridge(t, modern.server, { timeouts: { probe: 200 } })
  t.ok((await tool(url, 'echo')).message.result)
  t.equal(bridge.server.verdict?.era, 'modern')
  t.equal(modern.messages().filter(({ method }) => method === 'initialize').length, 1)
})
