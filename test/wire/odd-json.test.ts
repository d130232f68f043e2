/** JSON as some servers and clients write it: unusual, and with the usual meaning. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { BOTH, initialize } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, envelope, headersFor, post } from '../support/modern.js'
import { openPipe } from '../support/pipe.js'
import { askOn, type Spelling, shakeHands, spelledLanes } from '../support/spelled.js'

const ECHO = { name: 'echo', arguments: { x: 1 } }
const ECHOED = { structuredContent: { x: 1 } }

t.test('ids and progress tokens that a server writes as 1.0, 1e0 or 10E-1 are the same', async (t) => {
  const spellings: Spelling[] = [
    ['"(id|progressToken)":(\\d+)', '"$1":$2.0'],
    ['"(id|progressToken)":(\\d+)', '"$1":$2e0'],
    ['"(id|progressToken)":(\\d+)', '"$1":$20E-1'],
  ]
  for (const spelling of spellings)
    for (const { name, ask } of await spelledLanes(t, [spelling])) {
      const { result, error } = await ask('tools/call', ECHO)
      t.match({ result, error }, { result: ECHOED, error: undefined }, `${name}, ${spelling[1]}`)
    }
})

t.test('a client gets its id as it wrote it, and may cancel in another spelling', async (t) => {
  const program = legacyStdio(t)
  const pipe = openPipe(t, program.server)
  const params = (more: object) => JSON.stringify({ ...more, _meta: envelope() })
  pipe.line(`{"jsonrpc":"2.0","id":7.0,"method":"tools/call","params":${params(ECHO)}}`)
  await until(() => pipe.lines().length === 1, 'an answer')
  t.match(pipe.lines()[0], '"id":7.0,')
  const wait = { name: 'wait', arguments: { ms: 600_000 } }
  pipe.line(`{"jsonrpc":"2.0","id":80e-1,"method":"tools/call","params":${params(wait)}}`)
  const sent = (method: string) => program.messages().filter((message) => message['method'] === method).length
  await until(() => sent('tools/call') === 2, 'the call')
  pipe.line('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}')
  await until(() => sent('notifications/cancelled') === 1, 'the cancellation')
})

const MARK = '\ufeff'

t.test('ignores a byte order mark before a message of a server', async (t) => {
  for (const { name, ask } of await spelledLanes(t, [['^', MARK]], 'not within unchanged events')) {
    const { result, error } = await ask('tools/call', ECHO)
    t.match({ result, error }, { result: ECHOED, error: undefined }, name)
    const large = { x: 'y'.repeat(100_000) }
    const echoed = await ask('tools/call', { ...ECHO, arguments: large })
    t.match(echoed, { result: { structuredContent: large } }, `${name}, large`)
  }
})

t.test('ignores a byte order mark on a line of its own, silently', async (t) => {
  const { url, log } = await startBridge(t, legacyStdio(t, { banner: MARK }).server)
  t.match((await call(url, 'tools/call', ECHO)).message.result, ECHOED)
  t.same(
    log.filter(({ event }) => event === 'message_skipped' || event === 'message_repaired'),
    [],
  )
})

t.test('ignores a byte order mark before a message of a client', async (t) => {
  const { server } = legacyStdio(t)
  const { url } = await startBridge(t, server)
  const request = (id: number) =>
    `${MARK}${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...ECHO, _meta: envelope() } })}`
  t.match((await post(url, request(1), headersFor('tools/call', ECHO))).message, { id: 1, result: ECHOED })
  t.match((await post(url, `${MARK}${initialize('2025-11-25')}`, BOTH)).message.result, { capabilities: {} })
  const pipe = openPipe(t, server)
  pipe.line(request(2))
  await until(() => pipe.messages().length === 1, 'an answer')
  t.match(pipe.messages()[0], { id: 2, result: ECHOED })
  const legacy = openPipe(t, server)
  legacy.line(MARK)
  t.match(await shakeHands(legacy), { result: { protocolVersion: '2025-11-25' } })
})

t.test('ignores a byte order mark before the JSON of a refusal', async (t) => {
  const http = await LegacyHttp.start(t, {
    override: ({ message }, response) => {
      if (message['method'] !== 'tools/call') return false
      const error = { code: 4711, message: 'no' }
      const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], error })
      response.writeHead(400, { 'content-type': 'application/json' }).end(`${MARK}${text}`)
      return true
    },
  })
  const { url } = await startBridge(t, { url: http.url })
  t.match((await call(url, 'tools/call', ECHO)).message.error, { code: 4711, message: 'no' })
})

t.test('a member that is null counts as absent in every lane', async (t) => {
  const spellings: [name: string, spelling: Spelling, answer: object][] = [
    ['a result without an error', ['"result":', '"error":null,"method":null,"params":null,"result":'], ECHOED],
    ['a result, then no error', ['\\}$', ',"error":null}'], ECHOED],
    ['notifications without an id', ['"method":"notifications/', '"id":null,"method":"notifications/'], ECHOED],
  ]
  for (const [what, spelling, answer] of spellings)
    for (const { name, ask } of await spelledLanes(t, [spelling])) {
      const { result, error } = await ask('tools/call', ECHO)
      t.match({ result, error: error ?? undefined }, { result: answer, error: undefined }, `${what}: ${name}`)
    }
  for (const { name, ask } of await spelledLanes(t, [['"error":\\{', '"result":null,"error":{']])) {
    const { error } = await ask('tools/call', { name: 'fail', arguments: { error: { code: 4711, message: 'no' } } })
    t.match(error, { code: 4711, message: 'no' }, `an error without a result: ${name}`)
  }
})

t.test('delivers notifications of a server although their id is null', async (t) => {
  const replace = [['"method":"notifications/', '"id":null,"method":"notifications/']]
  const { url } = await startBridge(t, legacyStdio(t, { replace }).server)
  const params = { name: 'progress', arguments: {} }
  const { messages } = await call(url, 'tools/call', params, { meta: { progressToken: 'p' } })
  t.match(messages[0], { method: 'notifications/progress', params: { progressToken: 'p' } })
})

t.test('null written by a client counts as absent on every front', async (t) => {
  const program = legacyStdio(t)
  const pipe = openPipe(t, program.server)
  await shakeHands(pipe)
  const sent = (method: string) => program.messages().filter((message) => message['method'] === method)
  pipe.line('{"jsonrpc":"2.0","id":null,"method":"notifications/roots/list_changed","params":null}')
  await until(() => sent('notifications/roots/list_changed').length === 1, 'the notification')
  t.match(await askOn(pipe, 'tools/call', ECHO), { result: ECHOED })
  pipe.line('{"jsonrpc":"2.0","id":"x","method":"tools/list","params":null,"result":null,"error":null}')
  await until(() => pipe.messages().some(({ id }) => id === 'x'), 'the tools')
  t.match(
    pipe.messages().find(({ id }) => id === 'x'),
    { result: { tools: [] } },
  )
  t.same(
    pipe.messages().filter(({ error }) => error),
    [],
  )

  const { url } = await startBridge(t, program.server)
  const opened = await post(url, initialize('2025-11-25'), BOTH)
  const headers = { ...BOTH, 'mcp-session-id': opened.headers['mcp-session-id'] }
  const note = '{"jsonrpc":"2.0","id":null,"method":"notifications/initialized","params":null}'
  t.equal((await post(url, note, headers)).status, 202)
  const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}'
  t.match((await post(url, list, headers)).message.result, { tools: [] })
  const refused = await post(url, '{"jsonrpc":"2.0","id":null,"method":"tools/list"}', headers)
  t.match({ status: refused.status, error: refused.message.error }, { status: 400, error: { code: -32600 } })
})

const FILL = 'a'.repeat(17_000)
/** Strings that are no JSON, in messages that are too large for a scan of every character. */
const INVALID = {
  'a key of a notification': `{"jsonrpc":"2.0","method":"notifications/progress","params":{"\\q":1,"progressToken":1,"x":"${FILL}"}}`,
  'a key of its _meta': `{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"\\q":1},"x":"${FILL}"}}`,
  'a URI': `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"\\q","x":"${FILL}"}}`,
  'the id of a request': `{"jsonrpc":"2.0","id":"\\q","method":"roots/list","params":{"x":"${FILL}"}}`,
  'the id of an answer': `{"jsonrpc":"2.0","id":"\\q","result":{"x":"${FILL}"}}`,
}

for (const [where, line] of Object.entries(INVALID))
  t.test(`a program that writes an invalid string as ${where} disturbs nobody`, async (t) => {
    const { server } = legacyStdio(t, { prompt: `${line}\n` })
    const { url } = await startBridge(t, server)
    t.match(await call(url, 'tools/call', ECHO), { message: { result: ECHOED } })
  })
