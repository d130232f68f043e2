/**
 * Modern calls over HTTP to a modern server over HTTP pass unchanged, whatever policies look at them: where one edits a
 * name, only that differs.
 */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { temporaryFolder } from '../support/folder.js'
import { call, envelope, headersFor, LOG_LEVEL, post } from '../support/modern.js'
import { type Arrival, PlainHttp, sendText } from '../support/plain-http.js'

const ODD = '{"n":12345678901234567890,"one":1.0,"b":1,"2":2,"e":"\\u00e9","dup":1,"dup":2}'
const META = JSON.stringify(envelope({ progressToken: 'p' }))
const LARGE = 'y'.repeat(300_000)
const DISCOVERED =
  '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}'

/** A bridge before a modern server that answers calls of tools so. */
async function start(
  t: Test,
  answer: (arrival: Arrival, response: ServerResponse) => void,
  { entry = {}, settings = {}, path = '/mcp' }: { entry?: object; settings?: object; path?: string } = {},
) {
  const server = await PlainHttp.start(t, (arrival, response) => {
    const { message } = arrival
    const id = JSON.stringify(message?.['id'])
    if (message?.['method'] === 'server/discover')
      return sendText(response, `{"jsonrpc":"2.0","id":${id},"result":${DISCOVERED}}`)
    if (message?.['method'] === 'tools/call') return answer(arrival, response)
    const tools = '[{"name":"x","inputSchema":{"type":"object"}}]'
    sendText(response, `{"jsonrpc":"2.0","id":${id},"result":{"resultType":"complete","tools":${tools}}}`)
  })
  const { url, bridge } = await startBridge(t, { url: server.url, ...entry }, settings)
  await bridge.server.warmUp()
  return { server, url: new URL(path, url).href, last: () => server.of('tools/call').at(-1) as Arrival }
}

const LANES: Record<string, (t: Test) => { entry?: object; settings?: object; path?: string }> = {
  'nothing configured': () => ({}),
  'an audit log': (t) => ({ settings: { audit: { file: join(temporaryFolder(t), 'audit.log') } } }),
  'a choice of all tools': () => ({ entry: { tools: ['*'] } }),
  'a limit': () => ({ settings: { limits: { tools: [{ tools: '*', per: 'principal', max: 1_000, every: '1h' }] } } }),
  'a cache': () => ({ entry: { cache: 'hints' } }),
  'scopes that nobody lacks': () => ({ entry: { scopes: { other: ['unused'] } } }),
}

for (const [lane, of] of Object.entries(LANES))
  t.test(`a request and its answer pass byte for byte with ${lane}`, async (t) => {
    const told = `{"method" : "notifications/progress","x":1.0,"params":{"progressToken":"p","progress":1.0},"jsonrpc":"2.0"}`
    let answer = ''
    let isStream = false
    const { url, last } = await start(
      t,
      (_arrival, response) =>
        isStream
          ? sendText(response, `data: ${told}\n\ndata: ${answer}\n\n`, { 'content-type': 'text/event-stream' })
          : sendText(response, answer, { 'x-vendor': 'v' }),
      of(t),
    )
    const body = `{"jsonrpc":"2.0","id":"a\\u0041",\n\t"method" : "tools/call","vendor":1, "params":{"name":"x","arguments":${ODD},"_meta":${META}}}`
    for (const result of [
      `"result":{"structuredContent":${ODD},"resultType":"complete"} ,\n"vendor":1.0`,
      `"result":{"content":[{"type":"text","text":"${LARGE}"}],"_meta":{"a":1}}`,
      `"error":{"code":-32099,"message":"m","data":${ODD},"vendor":1}`,
    ])
      for (isStream of [false, true]) {
        answer = `{"id":"aA", ${result},"jsonrpc":"2.0"}`
        const flat = answer.replace('\n', isStream ? '' : '\n')
        answer = flat
        const came = await post(url, body, headersFor('tools/call', { name: 'x' }))
        t.ok(last().bytes.equals(Buffer.from(body)), 'the request')
        const events = came.text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []))
        t.ok(isStream ? events.at(-1) === flat : came.text === flat, `the answer: ${came.text.slice(0, 200)}`)
        if (isStream) t.equal(events[0], told)
        else t.equal(came.headers['x-vendor'], 'v')
      }
  })

t.test('where a group edits the name of a tool, only that differs', async (t) => {
  const text = `{"jsonrpc":"2.0","id":1.0,"result":{"structuredContent":${ODD},"resultType":"complete"} }`
  const { url, last } = await start(t, (_arrival, response) => sendText(response, text), {
    settings: { groups: { all: {} } },
    path: '/all/mcp',
  })
  const body = `{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"test__x","arguments":${ODD},"_meta":${META}}}`
  const came = await post(url, body, headersFor('tools/call', { name: 'test__x' }))
  t.ok(came.text.includes(`"id":1.0`) && came.text.includes(ODD), 'the answer')
  const { bytes, message } = last()
  t.ok(bytes.includes(ODD), 'the request')
  t.match(message, { id: 1, params: { name: 'x', _meta: { progressToken: 'p' } } })
})

t.test('the trace context goes on in headers, also when another header is repeated', async (t) => {
  const { url, last } = await start(t, (_arrival, response) =>
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'),
  )
  const context = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: 'a=1' }
  const headers = { ...context, baggage: ['b=1', 'c=2'], 'x-other': ['1', '2'] }
  t.equal((await call(url, 'tools/call', { name: 'x' }, { headers })).status, 200)
  t.match(last().headers, { ...context, baggage: 'b=1, c=2' })
})

t.test('members that some parsers take for others do not pass', async (t) => {
  const { url, last } = await start(t, (_arrival, response) =>
    sendText(response, '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'),
  )
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":${META}},"Params":{"name":"y"},"METHOD":"tools/list"}`
  t.equal((await post(url, body, headersFor('tools/call', { name: 'x' }))).status, 200)
  t.same(Object.keys(last().message ?? {}).sort(), ['id', 'jsonrpc', 'method', 'params'])
})

t.test('keys of the bridge do not pass from a server, in answers of any size and in notifications', async (t) => {
  const forged = '"_meta":{"kept":1,"io.github.mcp-bridge/unavailable":[],"io.github.mcp\\u002dbridge/quarantined":{}}'
  const said = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x",${forged}}}`
  let result = ''
  const { url } = await start(t, (_arrival, response) =>
    sendText(response, `data: ${said}\n\ndata: {"jsonrpc":"2.0","id":1,"result":${result}}\n\n`, {
      'content-type': 'text/event-stream',
    }),
  )
  for (const text of ['small', LARGE])
    for (const key of ['_meta', '\\u005fmeta']) {
      result = `{"content":[{"type":"text","text":"${text}"}],${forged.replace('_meta', key)}}`
      const { messages, message } = await call(url, 'tools/call', { name: 'x' }, { meta: { [LOG_LEVEL]: 'debug' } })
      t.equal(messages.length, 2)
      t.notMatch(JSON.stringify(messages), /mcp-bridge/)
      t.match(message, { result: { _meta: { kept: 1 } } })
    }
})

t.test(
  'a client gets the answer under its own id, also if the server has rounded it or made it a string',
  async (t) => {
    let id = ''
    const { url, last } = await start(t, (_arrival, response) =>
      sendText(response, `{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`),
    )
    for (const [sent, said] of [
      ['90071992547409931234', '90071992547409930000'],
      ['7', '"7"'],
      ['"7"', '7'],
      ['1.0', '1'],
    ] as const) {
      id = said
      const body = `{"jsonrpc":"2.0","id":${sent},"method":"tools/call","params":{"name":"x","_meta":${META}}}`
      const { text } = await post(url, body, headersFor('tools/call', { name: 'x' }))
      t.ok(text.includes(`"result"`), text)
      t.ok(text.includes(`"id":${sent === '1.0' ? said : sent},`), text)
      t.ok(last().bytes.equals(Buffer.from(body)))
    }
    for (const other of ['8', '"x"']) {
      id = other
      t.match((await call(url, 'tools/call', { name: 'x' }, { id: 7 })).message, { id: 7, error: {} }, 'another id')
    }
  },
)
