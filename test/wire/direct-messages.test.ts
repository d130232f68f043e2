/** Messages that pass in a legacy client's own session with a legacy server over HTTP, whatever looks at them: the odd ones. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { BOTH, initialize, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Received } from '../support/legacy-http.js'
import { post } from '../support/modern.js'
import { sendText } from '../support/plain-http.js'

const HIDES = { tools: { deny: ['wait'] } }

/** A client in front of a server that answers such messages in this way. */
async function start(
  t: Test,
  like: RegExp,
  answer: (response: ServerResponse, received: Received) => unknown,
  settings = {},
) {
  const legacy = await LegacyHttp.start(t, {
    sessions: true,
    override: (received, response) => {
      if (!like.test(received.body)) return false
      answer(response, received)
      return true
    },
  })
  const { url } = await startBridge(t, { url: legacy.url, ...HIDES }, settings)
  const client = await LegacyClient.open(url)
  return { client, sent: () => legacy.received.filter(({ body }) => like.test(body)).map(({ body }) => body) }
}

const UNREADABLE = [`"${'x'.repeat(300)}"`, '1.5', 'true', '{}', '[1]', '1e400', '9'.repeat(70)]

t.test('an id that the bridge cannot read is a matter of client and server', async (t) => {
  let [type, body] = ['', '']
  const { client, sent } = await start(t, /tools\/call/, (response) =>
    response.writeHead(200, { 'content-type': type }).end(body),
  )
  for (const id of UNREADABLE) {
    const about = id.slice(0, 10)
    const request = `{"jsonrpc":"2.0","id":${id}, "method":"tools/call","params":{"name":"echo"}}`
    ;[type, body] = ['application/json', `{"jsonrpc":"2.0", "id":${id},"result":{"n":1.0}}`]
    const { status, text } = await client.post(request)
    t.same([status, text], [200, body], about)
    t.equal(sent().at(-1), request, about)
    ;[type, body] = ['text/event-stream', `data: ${body}\n\n`]
    t.equal((await client.post(request)).text, body, `${about}, as an event`)
    ;[type, body] = ['text/html', '<p>OK</p>']
    t.match(
      (await client.post(request)).message,
      { error: { data: { reason: 'upstream_protocol' } } },
      `${about}, a page`,
    )
  }
})

t.test('a call with such an id is judged as any other', async (t) => {
  const { client, sent } = await start(t, /tools\/call/, (response) => sendText(response, '{}'))
  for (const id of [...UNREADABLE, 'null']) {
    const request = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"wait"}}`
    t.match((await client.post(request)).message, { error: { code: -32602 } }, id.slice(0, 10))
  }
  t.same(sent(), [])
})

t.test('what is no message at all is refused', async (t) => {
  const { client, sent } = await start(t, /odd/, (response) => sendText(response, '{}'))
  for (const odd of ['"odd"', '{"odd":1}', '{"id":1,"method":"odd"}', '{"jsonrpc":"2.0","id":{},"odd":1}'])
    t.match(await client.post(odd), { status: 400, message: { error: { code: -32600 } } }, odd)
  t.same(sent(), [])
})

t.test('asks once more for a list if the connection was closed, and calls no tool again', async (t) => {
  for (const [method, times, count] of [
    ['tools/list', 1, 2],
    ['tools/list', 100, 2],
    ['tools/call', 1, 1],
  ] as const) {
    let left = times
    const { client, sent } = await start(t, /"tools\/(?:list|call)","params":{"name/, (response, { message }) => {
      if (left-- > 0) response.destroy()
      else sendText(response, `{"jsonrpc":"2.0","id":${message['id']},"result":{"tools":[]}}`)
    })
    const { message } = await client.request(method, { name: 'echo' })
    if (times === 1 && count === 2) t.match(message, { result: { tools: [] } })
    else t.match(message, { error: { data: { reason: 'upstream_closed', outcome: 'unknown' } } })
    t.equal(sent().length, count, method)
  }
})

t.test('a stream that answers a notification may stay open without a message', async (t) => {
  const late = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
  let open: ServerResponse | undefined
  const settings = { timeouts: { commitAfter: 50 } }
  const opens = (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hello\n\n')
    open = response
  }
  const { client } = await start(t, /roots\/list_changed/, opens, settings)
  const body = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
  const stream = await openStream('POST', client.url, client.headers, body)
  await until(() => open !== undefined)
  open?.end(`data: ${late}\n\n`)
  await stream.ended()
  t.equal(stream.status, 200)
  t.match(stream.text, `data: ${late}\n\n`)
})

t.test("the server's own refusal of a session passes as it is, also when its era is not known yet", async (t) => {
  const refusals: [status: number, body: string][] = [
    [400, '{"jsonrpc":"2.0", "id":null,"error":{"code":-32099,"message":"no"}}'],
    [500, '{"jsonrpc":"2.0", "id":"hello","error":{"code":-32099,"message":"no"}}'],
    [200, '{"jsonrpc":"2.0", "id":"hello","error":{"code":-32099,"message":"no"}}'],
  ]
  for (const [status, body] of refusals)
    for (const isKnown of [true, false]) {
      const legacy = await LegacyHttp.start(t, {
        override: ({ message }, response) => {
          if (message['method'] !== 'initialize') return false
          sendText(response, body, { 'x-vendor': 'v' }, status)
          return true
        },
      })
      const { url, bridge } = await startBridge(t, { url: legacy.url, ...HIDES })
      if (isKnown) await bridge.server.warmUp()
      const refused = await post(url, initialize('2025-06-18'), BOTH)
      t.same([refused.status, refused.text, refused.headers['x-vendor']], [status, body, 'v'])
      t.notOk('mcp-session-id' in refused.headers)
      t.equal(legacy.of('initialize').length, 1)
    }
})
