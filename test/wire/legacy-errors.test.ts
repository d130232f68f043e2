/** What legacy clients are answered where the bridge itself or the server says no, and what an empty answer is. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import type { Answer } from '../support/modern.js'
import { type Arrived, type HttpPlan, ModernHttp } from '../support/modern-http.js'
import { modernStdio } from '../support/modern-stdio.js'

/** The time limit of a call, which no other timer has. */
const CALL = 1_234_567
const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']

async function start(t: Test, plan: HttpPlan = {}, settings: object = {}) {
  const modern = await ModernHttp.start(t, plan)
  const { url } = await startBridge(t, { url: modern.url }, settings)
  return { modern, url, client: await LegacyClient.open(url) }
}

function isInBand(t: Test, { status, headers, message }: Answer, code: number, name: string) {
  t.equal(status, 200, name)
  t.match(headers['content-type'], /^application\/json/, name)
  t.equal(message.error?.code, code, `${name}: ${JSON.stringify(message)}`)
}

t.test('an empty result is exactly {}', async (t) => {
  const modern = await ModernHttp.start(t)
  const stdio = modernStdio(t)
  for (const server of [{ url: modern.url }, stdio.server]) {
    const { url } = await startBridge(t, server)
    for (const revision of REVISIONS) {
      const client = await LegacyClient.open(url, { revision })
      const rows: [method: string, params?: Record<string, unknown>][] = [
        ['ping'],
        ['ping', { _meta: { 'v/k': 1 } }],
        ['logging/setLevel', { level: 'info' }],
        ['resources/subscribe', { uri: 'test://static' }],
        ['resources/subscribe', { uri: 'test://static' }],
        ['resources/unsubscribe', { uri: 'test://static' }],
        ['resources/unsubscribe', { uri: 'test://never' }],
      ]
      for (const [method, params] of rows) {
        const { text } = await client.request(method, params, { id: 'x' })
        t.equal(text, '{"jsonrpc":"2.0","id":"x","result":{}}', `${revision} ${method}`)
      }
    }
  }
  for (const method of ['ping', 'logging/setLevel', 'resources/subscribe']) t.equal(modern.of(method).length, 0, method)
})

t.test('an unknown level, and an invalid address, are invalid params', async (t) => {
  const { client } = await start(t)
  for (const params of [{ level: 'loud' }, {}, { level: 1 }, { level: 'INFO' }])
    isInBand(t, await client.request('logging/setLevel', params), -32602, JSON.stringify(params))
  for (const params of [{}, { uri: 1 }])
    isInBand(t, await client.request('resources/subscribe', params), -32602, JSON.stringify(params))
})

t.test('methods outside of the revision, or unknown ones, are not found, in-band', async (t) => {
  const { client, modern } = await start(t)
  const before = modern.received.length
  for (const method of ['server/discover', 'subscriptions/listen', 'tasks/update', 'tasks/get', 'tasks/list'])
    isInBand(t, await client.request(method, {}), -32601, method)
  t.equal(modern.received.length, before, 'nothing of it has reached the server')
  isInBand(t, await client.request('nope/x', {}), -32601, 'nope/x')
  t.equal(modern.of('nope/x').length, 1, 'what nobody knows is the server’s to refuse, with 404')
  isInBand(t, await client.request('__proto__', {}), -32601, '__proto__')
  isInBand(t, await client.request('toString', {}), -32601, 'toString')
  t.match((await client.request('vendor/echo', { x: [1] })).message, { result: { received: { x: [1] } } })
})

t.test('a method of a capability that the server lacks is not found, and the server gets nothing', async (t) => {
  const { client, modern } = await start(t, { capabilities: { tools: {} } })
  const before = modern.received.length
  const rows: [method: string, params: Record<string, unknown>][] = [
    ['prompts/list', {}],
    ['prompts/get', { name: 'greet' }],
    ['resources/list', {}],
    ['resources/read', { uri: 'test://static' }],
    ['resources/templates/list', {}],
    ['resources/subscribe', { uri: 'test://static' }],
    ['resources/unsubscribe', { uri: 'test://static' }],
    ['completion/complete', { argument: { name: 'a', value: 'b' } }],
    ['logging/setLevel', { level: 'info' }],
  ]
  for (const [method, params] of rows) isInBand(t, await client.request(method, params), -32601, method)
  t.equal(modern.received.length, before)
  t.equal((await client.request('tools/list')).status, 200)

  const mute = await start(t, { capabilities: { resources: {} } })
  isInBand(t, await mute.client.request('resources/subscribe', { uri: 'test://static' }), -32601, 'no subscriptions')
})

t.test('an unknown resource has the error of the legacy era', async (t) => {
  const { client } = await start(t)
  const missing = await client.request('resources/read', { uri: 'test://missing' })
  t.match(missing, { status: 200, message: { error: { code: -32002, data: { uri: 'test://missing' } } } })

  const says = (error: object): HttpPlan => ({ override: refusing('resources/read', 200, { error }) })
  const rows: [name: string, error: object, code: number][] = [
    ['by its data', { code: -32602, message: 'no', data: { uri: 'test://a' } }, -32002],
    ['by its message', { code: -32602, message: 'Resource test://a not found' }, -32002],
    ['about another', { code: -32602, message: 'no', data: { uri: 'test://b' } }, -32602],
    ['about something else', { code: -32602, message: 'uri is required' }, -32602],
    ['in the words of the legacy era', { code: -32002, message: 'no' }, -32002],
  ]
  for (const [name, error, code] of rows) {
    const { client } = await start(t, says(error))
    const answer = await client.request('resources/read', { uri: 'test://a' })
    isInBand(t, answer, code, name)
    if (code === -32002 && name !== 'in the words of the legacy era')
      t.equal(answer.message.error?.data?.['uri'], 'test://a', name)
  }
})

/** What a modern server answers a call of a tool with, and what the client is told. */
const errors: [name: string, status: number, error: object, told: object][] = [
  [
    'a code of an application',
    200,
    { code: 4711, message: 'm', data: { k: 1 } },
    { code: 4711, message: 'm', data: { k: 1 } },
  ],
  ['a code of a server', 200, { code: -32000, message: 'm' }, { code: -32000, message: 'm' }],
  ['wrong arguments', 200, { code: -32602, message: 'm', data: [1] }, { code: -32602, data: [1] }],
  ['wrong arguments, with 400', 400, { code: -32602, message: 'm' }, { code: -32602, message: 'm' }],
  ['an unknown method', 404, { code: -32601, message: 'm' }, { code: -32601, message: 'm' }],
  ['an internal error', 500, { code: -32603, message: 'm' }, { code: -32603, message: 'm' }],
  [
    'a missing capability',
    400,
    { code: -32021, message: 'm', data: { requiredCapabilities: { sampling: {} } } },
    { code: -32603, message: 'm', data: { requiredCapabilities: { sampling: {} } } },
  ],
  [
    'an envelope that is not whole, which is the bridge’s fault',
    400,
    { code: -32602, message: 'm', data: { missing: ['x'] } },
    { code: -32603, message: 'm' },
  ],
  ['a code that is reserved', 200, { code: -32099, message: 'm' }, { code: -32603, data: { upstreamCode: -32099 } }],
  ['a code of questions', 200, { code: -32042, message: 'm' }, { code: -32603, data: { upstreamCode: -32042 } }],
  ['a code that is none', 200, { code: 'x', message: 'm' }, { code: -32603, message: 'm' }],
  [
    'a version that is supported after all',
    400,
    { code: -32022, message: 'm', data: { supported: ['2026-07-28'] } },
    { code: -32603, data: { supported: ['2026-07-28'] } },
  ],
]

t.test('a JSON-RPC error of the server comes with 200, and with codes of the legacy era', async (t) => {
  for (const [name, status, error, told] of errors) {
    const { client } = await start(t, { override: refusing('tools/call', status, { error }) })
    const answer = await client.call('act')
    t.equal(answer.status, 200, name)
    t.match(answer.message.error, told, `${name}: ${answer.text}`)
    t.equal(answer.message['id'], 1, name)
  }
})

t.test('an error of the server without JSON-RPC is in-band, with its status', async (t) => {
  for (const status of [400, 410, 429, 500, 502, 503, 504]) {
    const { client } = await start(t, { override: refusing('tools/call', status, undefined) })
    const answer = await client.call('act')
    isInBand(t, answer, -32603, `${status}`)
    t.equal(answer.message.error?.data?.['httpStatus'], status)
  }
})

t.test("a server that requires other credentials is reported in-band, unless they are the client's", async (t) => {
  for (const status of [401, 403]) {
    const { client } = await start(t, { override: refusing('tools/call', status, undefined) })
    isInBand(t, await client.call('act'), -32603, `${status}`)
  }
})

t.test('reports an incomplete answer, and requests it once more if it only reads', async (t) => {
  let cuts = 0
  const cut = ({ message }: Arrived, response: ServerResponse) => {
    if (!['tools/call', 'prompts/list'].includes(String(message?.['method'])) || cuts-- <= 0) return false
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    setImmediate(() => response.end())
    return true
  }
  const { client, modern } = await start(t, { override: cut })
  const opened = modern.received.length
  cuts = 1
  t.match((await client.request('prompts/list')).message, { result: { prompts: [{ name: 'greet' }] } })
  t.equal(modern.of('prompts/list').length, 2)
  cuts = 1
  const acted = await client.call('act')
  isInBand(t, acted, -32603, 'a call that may have been acted on')
  t.match(acted.message.error, { message: /may have executed/, data: { outcome: 'unknown' } })
  t.equal(modern.of('tools/call').length, 1)
  const ids = modern.of('prompts/list').map(({ message }) => message?.['id'])
  t.not(ids[0], ids[1], 'under another id')
  const asked = modern.received.slice(opened)
  t.notOk(asked.some(({ method, headers }) => method === 'GET' || 'last-event-id' in headers))
})

t.test('an answer that is not JSON-RPC is an error of the server, in-band', async (t) => {
  const bodies = ['<h1>Hello</h1>', '', '[]', '{"jsonrpc":"2.0","id":99,"result":{}}', '{"jsonrpc":"2.0","id":1}', '{']
  for (const body of bodies) {
    const override = ({ message }: Arrived, response: ServerResponse) => {
      if (message?.['method'] !== 'tools/call') return false
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
      return true
    }
    const { client } = await start(t, { override })
    isInBand(t, await client.call('act'), -32603, body)
  }
})

t.test('results of types unknown to legacy clients are errors', async (t) => {
  for (const result of [{ resultType: 'task', taskId: 'x' }, { resultType: 'vendor' }, { resultType: 7 }, 'text']) {
    const { client } = await start(t, { override: refusing('tools/call', 200, { result }) })
    isInBand(t, await client.call('act'), -32603, JSON.stringify(result))
  }
})

t.test('a failure of a tool stays a result', async (t) => {
  const { client } = await start(t)
  const failed = await client.call('fail')
  t.match(failed, { status: 200, message: { result: { isError: true, content: [{ text: 'It did not work' }] } } })
  const unknown = await client.call('nobody knows it')
  isInBand(t, unknown, -32602, 'an unknown tool')
})

t.test('a failure of the bridge is a result of the tool, too', async (t) => {
  const timeLimit = holdTimers(t, CALL)
  const { client, modern } = await start(t, {}, { limits: { calls: 1 }, timeouts: { call: CALL } })
  const waiting = client.call('wait', { ms: 60_000 })
  await until(() => modern.of('tools/call').length === 1)
  const refused = await client.call('echo')
  isInBand(t, refused, -32603, 'too many calls')
  t.equal(refused.headers['mcp-bridge-error'], 'overloaded')
  timeLimit.pass()
  const late = await waiting
  isInBand(t, late, -32603, 'a call that took too long')
  t.match(late.message.error, { data: { reason: 'upstream_timeout', outcome: 'unknown' } })
  isInBand(t, await client.request('tools/call', undefined), -32602, 'a call of nothing')
  const list = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: [1] })
  isInBand(t, await client.post(list), -32602, 'params that are a list')
})

/** Answers a method in place of the script. */
function refusing(method: string, status: number, said: object | undefined): NonNullable<HttpPlan['override']> {
  return ({ message }, response) => {
    if (message?.['method'] !== method) return false
    const text = said && JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...said })
    response.writeHead(status, text ? { 'content-type': 'application/json' } : {}).end(text)
    return true
  }
}
