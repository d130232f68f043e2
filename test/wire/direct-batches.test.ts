/** Batches in a legacy client's own session with a legacy server: one array on both wires, in which each call is judged by itself. */
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp, type Received } from '../support/legacy-http.js'
import { sendText } from '../support/plain-http.js'

type Json = Record<string, unknown>

const DENIES = { tools: { deny: ['hidden'] } }
const tool = (id: unknown, name = 'act', more: Json = {}) => ({
  ...{ jsonrpc: '2.0', id, method: 'tools/call' },
  params: { name, arguments: {}, ...more },
})
const result = (id: unknown) => `{ "jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"n":1.0}}`
const notice = (method: string, params?: Json) => ({ jsonrpc: '2.0', method, ...(params && { params }) })
const EVENTS = { 'content-type': 'text/event-stream' }

/** A server that answers arrays in this way, and a client of it through a bridge. */
async function start(
  t: Test,
  answer: (response: ServerResponse, received: Received) => unknown,
  server: object = DENIES,
  settings: object = {},
) {
  const legacy = await LegacyHttp.start(t, {
    sessions: true,
    revision: '2025-03-26',
    override: (received, response) => {
      if (!received.body.trimStart().startsWith('[')) return false
      answer(response, received)
      return true
    },
  })
  const { url } = await startBridge(t, { url: legacy.url, ...server }, settings)
  const client = await LegacyClient.open(url, { revision: '2025-03-26', capabilities: { elicitation: {} } })
  const arrays = () => legacy.received.filter(({ body }) => body.trimStart().startsWith('['))
  return { client, legacy, arrays, last: () => arrays().at(-1)?.body }
}

const idsIn = ({ message }: Received) =>
  (message as unknown as Json[]).flatMap(({ id }) => (id === undefined ? [] : id))
const answers = (response: ServerResponse, received: Received) =>
  sendText(response, ` [ ${idsIn(received).map(result).join(' ,\n')}]`, { 'x-vendor': 'v' })

t.test('an array passes as it came, and so does the array of its answers, whatever looks at its calls', async (t) => {
  const looking: [server: object, settings: object][] = [
    [DENIES, {}],
    [{ scopes: { '*': [] } }, {}],
    [{}, { audit: { file: join(temporaryFolder(t), 'audit.log') } }],
  ]
  for (const [server, settings] of looking) {
    const { client, last } = await start(t, answers, server, settings)
    const batch = `  [ ${JSON.stringify(tool('a'))},\n${JSON.stringify(notice('notifications/roots/list_changed'))} , {"id":9007199254740993,"method":"ping","jsonrpc":"2.0"} ] `
    const { status, text, headers } = await client.post(batch)
    t.same([status, text, headers['x-vendor']], [200, ` [ ${result('a')} ,\n${result(9007199254740992)}]`, 'v'])
    t.equal(last(), batch)
  }
})

t.test('a call that is not allowed stays here, and the server gets the others', async (t) => {
  const { client, last } = await start(t, answers)
  const { message } = await client.post([
    tool(1),
    tool(2, 'hidden'),
    notice('notifications/roots/list_changed'),
    tool(3),
  ])
  t.same((message as unknown as Json[]).map(({ id, error }) => [id, (error as Json | undefined)?.['code']]).sort(), [
    [1, undefined],
    [2, -32602],
    [3, undefined],
  ])
  t.strictSame(JSON.parse(String(last())), [tool(1), notice('notifications/roots/list_changed'), tool(3)])
})

t.test('what is no message is refused here, and the server gets the others', async (t) => {
  const { client, last } = await start(t, answers)
  const { message } = await client.post([tool(1), { jsonrpc: '2.0', id: 'x' }, tool(1), tool(2)])
  const codes = (message as unknown as Json[]).map(({ id, error }) => [id, (error as Json | undefined)?.['code']])
  t.same(
    new Set(codes.map((row) => JSON.stringify(row))),
    new Set(['["x",-32600]', '[1,-32600]', '[1,null]', '[2,null]']),
  )
  t.strictSame(JSON.parse(String(last())), [tool(1), tool(2)])
})

t.test('nothing is sent of an array of which nothing is allowed', async (t) => {
  const { client, arrays } = await start(t, answers)
  t.match(await client.post([tool(1, 'hidden')]), { status: 200, message: [{ id: 1, error: { code: -32602 } }] })
  t.same(arrays(), [])
})

t.test('messages that need no answer go in one array, and the client gets what the server says to them', async (t) => {
  let body = ''
  let status = 202
  const { client, last } = await start(t, (response) => sendText(response, body, {}, status))
  const batch = `[${JSON.stringify(notice('notifications/roots/list_changed'))}, {"jsonrpc":"2.0","id":7,"result":{}}]`
  const silent = await client.post(batch)
  t.same([silent.status, silent.text, last()], [202, '', batch])
  body = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"no"},"id":null}`
  status = 400
  const refused = await client.post(batch)
  t.same([refused.status, refused.text], [400, body])
})

t.test('a refusal of the array is the answer, as the server has written it', async (t) => {
  const body = `{"jsonrpc":"2.0", "error":{"code":-32600,"message":"Too much"},"id":null}`
  let status = 400
  const { client } = await start(t, (response) => sendText(response, body, {}, status))
  const refused = await client.post([tool(1), tool(2)])
  t.same([refused.status, refused.text], [400, body])
  status = 200
  const { message } = await client.post([tool(1), tool(2)])
  t.match(message, [
    { id: 1, error: { code: -32600, message: 'Too much' } },
    { id: 2, error: { code: -32600, message: 'Too much' } },
  ])
})

t.test('what comes before the answers makes them a stream', async (t) => {
  const progress = notice('notifications/progress', { progressToken: 'p', progress: 1 })
  const { client } = await start(t, (response, received) => {
    response.writeHead(200, EVENTS).write(`data: ${JSON.stringify(progress)}\n\n`)
    response.end(
      idsIn(received)
        .map((id) => `data: ${result(id)}\n\n`)
        .join(''),
    )
  })
  const { messages, headers } = await client.post([tool(1, 'act', { _meta: { progressToken: 'p' } }), tool(2)])
  t.match(headers['content-type'], /event-stream/)
  t.match(messages[0], progress)
  t.same(
    messages
      .slice(1)
      .map(({ id }) => id)
      .sort(),
    [1, 2],
  )
})

t.test('a call that is cancelled has no answer in the array, and the last one ends the connection', async (t) => {
  let isLeft = false
  let open: ServerResponse | undefined
  const { client, legacy } = await start(t, (response) => {
    open = response
    response.on('close', () => {
      isLeft = true
    })
  })
  const cancels = (requestId: unknown) => client.notify('notifications/cancelled', { requestId })
  const first = client.post([tool('kept'), tool('taken')])
  await until(() => open !== undefined, 'the array')
  await cancels('taken')
  const cancelled = () => legacy.received.filter(({ body }) => body.includes('notifications/cancelled'))
  await until(() => cancelled().length === 1, 'the cancellation')
  sendText(open as ServerResponse, `[${result('kept')}]`)
  t.match(await first, { status: 200, message: [{ id: 'kept', result: {} }] })
  isLeft = false
  open = undefined
  const second = client.post([tool('a'), tool('b')])
  await until(() => open !== undefined, 'the array')
  await cancels('a')
  await cancels('b')
  t.same((await second).status, 202)
  await until(() => isLeft, 'the end of the connection')
})

t.test('a lost session is told as for one call, and the client opens another', async (t) => {
  const { client } = await start(t, (response) => void response.writeHead(404).end())
  const { status, messages } = await client.post([tool(1), tool(2)])
  t.equal(status, 404)
  t.match(messages.flat(), [
    { id: 1, error: {} },
    { id: 2, error: {} },
  ])
})

t.test('a broken answer on the stream of an array is for the call in the array, not for an equal id', async (t) => {
  const broken = '{"jsonrpc":"2.0","id":1,"result":{"content":[}}'
  let alone: ServerResponse | undefined
  const legacy = await LegacyHttp.start(t, {
    sessions: true,
    revision: '2025-03-26',
    override: ({ body, message }, response) => {
      const isArray = body.startsWith('[')
      if (isArray) response.writeHead(200, EVENTS).end(`data: ${broken}\n\ndata: ${result(5)}\n\n`)
      else if (message['method'] === 'tools/call') alone = response
      return isArray || message['method'] === 'tools/call'
    },
  })
  const { url } = await startBridge(t, { url: legacy.url, ...DENIES })
  const client = await LegacyClient.open(url, { revision: '2025-03-26' })
  const lone = client.call('act', {}, { id: 1 })
  await until(() => alone !== undefined, 'the call at the server')
  const { message } = await client.post([tool(5), tool(1)])
  t.match(
    new Map([message as unknown as Json].flat().map((one) => [one['id'], one])),
    new Map<unknown, Json>([
      [5, { result: { n: 1 } }],
      [1, { error: { data: { outcome: 'unknown' } } }],
    ]),
  )
  if (alone) sendText(alone, result(1))
  t.match((await lone).message, { id: 1, result: { n: 1 } })
})

t.test('an answer that comes on the stream of an array reaches its call elsewhere, whatever its id', async (t) => {
  let alone: ServerResponse | undefined
  let id = 0
  const legacy = await LegacyHttp.start(t, {
    sessions: true,
    revision: '2025-03-26',
    override: ({ body, message }, response) => {
      const isArray = body.startsWith('[')
      if (isArray) response.writeHead(200, EVENTS).end(`data: ${result(id)}\n\ndata: ${result('a')}\n\n`)
      else if (message['method'] === 'tools/call') alone = response
      return isArray || message['method'] === 'tools/call'
    },
  })
  const { url } = await startBridge(t, { url: legacy.url, ...DENIES })
  // One of them is the number that the bridge itself has for the array.
  for (id = 1; id < 9; id++) {
    alone = undefined
    const client = await LegacyClient.open(url, { revision: '2025-03-26' })
    const lone = client.call('act', {}, { id })
    await until(() => alone !== undefined, 'the call at the server')
    t.match([(await client.post([tool('a')])).message].flat(), [{ id: 'a', result: { n: 1 } }])
    t.match((await lone).message, { id, result: { n: 1 } })
  }
})
