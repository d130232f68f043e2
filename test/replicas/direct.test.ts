/** Replicas that look at calls: a legacy client has a session of its own with a legacy server, whichever replica it asks. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { BOTH, LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { send } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

type Json = Record<string, unknown>

t.test('a session goes on at any replica, and is that of the server, byte for byte', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const server = await LegacyHttp.start(t, { sessions: true, asks: true })
  const settings = {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    auth: { tokens: { alice: 'alice-alice-alice-alice', bob: 'bob-bob-bob-bob-bob' } },
  }
  const entry = { url: server.url, tools: { deny: ['nothing_of_this_name'] } }
  const [one, two] = [await startBridge(t, entry, settings), await startBridge(t, entry, settings)]
  const as = (name: string) => ({
    authorization: `Bearer ${Array.from({ length: name === 'bob' ? 5 : 4 }, () => name).join('-')}`,
  })
  const client = await LegacyClient.open(one.url, { headers: as('alice'), capabilities: { elicitation: {} } })
  const headers = client.headers as Record<string, string>
  const post = (url: string, body: string, more: Json = {}) =>
    send('POST', url, body, { ...BOTH, ...headers, ...more } as never)
  const echo = '{"id":"e" ,"jsonrpc":"2.0","params":{"name":"echo","arguments":{"n":1.0}},"method":"tools/call"}'
  for (const { url } of [one, two]) {
    t.match((await post(url, echo)).message, { id: 'e', result: { structuredContent: { n: 1 } } })
    t.equal(server.of('tools/call').at(-1)?.body, echo)
  }
  t.equal((await post(two.url, echo, as('bob'))).status, 404, 'nobody else has it')

  const question = { id: 'q', method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } }
  const elsewhere = Object.assign(Object.create(client) as LegacyClient, { url: two.url })
  const asking = await elsewhere.stream(
    'tools/call',
    { name: 'steps', arguments: { steps: [{ ask: [question] }] } },
    { id: 'a' },
  )
  await until(() => asking.messages.some(({ id }) => id === 'q'), 'the question, under the id of the server')
  const answer = '{"result":{"action":"accept","content":{}} ,"id":"q","jsonrpc":"2.0"}'
  t.equal((await post(one.url, answer)).status, 202)
  await asking.ended()
  t.match(asking.answer('a'), { result: {} })
  t.ok(server.received.some(({ body }) => body === answer))

  await one.bridge.close()
  t.match((await post(two.url, echo)).message, { id: 'e', result: {} })
  t.equal(server.of('initialize').length, 1)
  const calls = server.received.filter(({ message }) => message['id'] === 'e')
  t.equal(new Set(calls.map((call) => call.headers['mcp-session-id'])).size, 1)
  t.notOk(server.received.some(({ method }) => method === 'DELETE'))
  t.equal((await send('DELETE', two.url, undefined, { ...headers, 'content-type': undefined } as never)).status, 200)
  await until(() => server.received.some(({ method }) => method === 'DELETE'), 'the end at the server')
})
