/** A replica shuts down: sessions of legacy clients with a modern server go on at the others. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { openStream } from '../support/events.js'
import { until } from '../support/eventually.js'
import { besideTheQuestion, LegacyClient } from '../support/legacy-client.js'
import { changed } from '../support/listening.js'
import { send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

type Json = Record<string, unknown>

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)
const TOKENS = { alice: 'alice-alice-alice-alice', bob: 'bob-bob-bob-bob-bob' }
const ALICE = { authorization: `Bearer ${TOKENS.alice}` }
const LEVEL = 'io.modelcontextprotocol/logLevel'

/** Replicas that wait as long for calls as nobody waits for a test. */
async function start(t: Test, count: number, { timeout = 30_000, drainTimeout = 3_600_000 } = {}) {
  const redis = await RedisServer.start(t)
  const server = await ModernHttp.start(t)
  const settings = {
    redis: { url: redis.url, timeout },
    stateKeys: ['a secret that all the replicas know of'],
    auth: { tokens: TOKENS },
    timeouts: { drainTimeout },
  }
  const replicas = []
  for (let at = 0; at < count; at++) replicas.push(await startBridge(t, { url: server.url }, settings))
  return { redis, server, replicas }
}

/** What a client sends to any replica, with the headers of its session. */
function sender({ headers }: LegacyClient) {
  let id = 100
  return {
    request: (url: string, method: string, params: Json = {}, more: Json = {}) =>
      send('POST', url, JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }), { ...headers, ...more } as never),
    say: (url: string, message: Json) =>
      send('POST', url, JSON.stringify({ jsonrpc: '2.0', ...message }), headers as never),
    listen: (url: string, lastEventId?: string) =>
      openStream('GET', url, {
        ...headers,
        accept: 'text/event-stream',
        'content-type': undefined,
        'last-event-id': lastEventId,
      }),
    end: (url: string) => send('DELETE', url, undefined, { ...headers, 'content-type': undefined } as never),
  }
}

test('a session goes on at any replica while its own drains and when that is gone, with all that it was told', async (t) => {
  const { server, replicas } = await start(t, 3)
  const [one, two, three] = replicas as [(typeof replicas)[0], (typeof replicas)[0], (typeof replicas)[0]]
  const client = await LegacyClient.open(one.url, { headers: ALICE, capabilities: { elicitation: {} } })
  const { request, say, listen, end } = sender(client)
  await request(one.url, 'logging/setLevel', { level: 'notice' })
  await request(one.url, 'resources/subscribe', { uri: 'test://static' })
  const stream = await listen(one.url)
  const hasAll = (body: string) => body.includes('test://static') && body.includes('ListChanged')
  await until(() => server.of('subscriptions/listen').some(({ body }) => hasAll(body)), 'both subscriptions')
  const asked = await client.stream('tools/call', { name: 'ask-name', arguments: {} }, { id: 'asks' })
  await until(() => asked.messages.some(({ method }) => method === 'elicitation/create'), 'the question')
  const question = asked.messages.find(({ method }) => method === 'elicitation/create')

  const closing = one.bridge.close()
  await stream.ended()
  t.equal((await request(one.url, 'tools/call', { name: 'echo', arguments: {} })).status, 200, 'who still sends there')
  t.equal((await request(two.url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  t.equal((await request(three.url, 'tools/call', { name: 'echo', arguments: {} })).status, 200)
  const levels = server.of('tools/call').map(({ message }) => (message?.['params'] as { _meta: Json })._meta[LEVEL])
  t.same(new Set(levels), new Set(['notice']), 'the level of its log')

  const again = await listen(three.url, stream.ids.at(-1))
  t.equal(again.status, 200, 'a stream goes on elsewhere')
  await again.has(2)
  t.match(
    again.messages.map(({ method }) => method).sort(),
    [
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
      'notifications/resources/updated',
      changed('tools').method,
    ],
    'what may have changed meanwhile',
  )
  const before = again.messages.length
  server.touch({ uris: ['test://static'] })
  await again.has(before + 1)
  t.match(again.messages.at(-1), { params: { uri: 'test://static' } }, 'what it has subscribed to')

  const said = { id: question?.['id'], result: { action: 'accept', content: { name: 'Ada' } } }
  t.equal((await say(three.url, said)).status, 202)
  await until(() => asked.answer('asks') !== undefined, 'the answer to the call that was in flight')
  t.match(asked.answer('asks'), { result: { content: Array } })
  await closing
  t.equal((await request(three.url, 'tools/list')).status, 200, 'by way of a replica that does not have it')
  t.equal((await end(three.url)).status, 200)
  await until(async () => (await request(two.url, 'tools/list')).status === 404, 'the end of the session')
  t.equal((await request(three.url, 'tools/list')).status, 404)
  t.same(besideTheQuestion(server.violations()), [])
})

test('the last answer of a replica before it listens no more tells its client to come again', async (t) => {
  const { replicas } = await start(t, 2, { drainTimeout: 100 })
  const [one, two] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
  const clients = await Promise.all([one, two].map(({ url }) => LegacyClient.open(url, { headers: ALICE })))
  const [own, other] = clients.map(sender) as [ReturnType<typeof sender>, ReturnType<typeof sender>]
  t.equal((await other.request(one.url, 'tools/list')).status, 200, 'the replicas know each other')
  const closing = one.bridge.close()
  /** What comes last until nobody listens. */
  const last = async (ask: () => Promise<{ status: number; headers: Json; leave?(): void }>) => {
    let before: { status: number; headers: Json } | undefined
    for (;;) {
      const answer = await ask().catch(() => undefined)
      if (!answer)
        return (
          before && {
            status: before.status,
            why: before.headers['mcp-bridge-error'],
            again: before.headers['retry-after'],
          }
        )
      answer.leave?.()
      before = answer
    }
  }
  const told = { status: 503, why: 'draining', again: '1' }
  const endings = {
    'its own session': last(() => own.request(one.url, 'tools/list')),
    'a session of another': last(() => other.request(one.url, 'tools/list')),
    'a stream': last(() => own.listen(one.url)),
  }
  for (const [what, ending] of Object.entries(endings)) t.same(await ending, told, what)
  await closing
  t.equal((await own.request(two.url, 'tools/list')).status, 200, 'at the other one')
})

test('of many who ask for a session that was left, all are answered, and one replica has it', async (t) => {
  const { server, replicas } = await start(t, 3)
  const [one, ...others] = replicas
  const client = await LegacyClient.open(String(one?.url), { headers: ALICE })
  const { request } = sender(client)
  await one?.bridge.close()
  const urls = Array.from({ length: 20 }, (_, at) => String(others[at % 2]?.url))
  const answers = await Promise.all(urls.map((url) => request(url, 'tools/call', { name: 'act', arguments: {} })))
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(server.executed, 20)
  const continued = replicas.flatMap(({ log }) => log.filter(({ event }) => event === 'session_continued'))
  t.equal(continued.length, 1)
})

test('nobody else gets a session that was left', async (t) => {
  const { replicas } = await start(t, 2)
  const [one, two] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
  const client = await LegacyClient.open(one.url, { headers: ALICE })
  const { request } = sender(client)
  await one.bridge.close()
  const bob = { authorization: `Bearer ${TOKENS.bob}` }
  t.equal((await request(two.url, 'tools/list', {}, bob)).status, 404)
  t.equal((await request(two.url, 'tools/list')).status, 200, 'it is still there for its client')
})

test('a session that was left while Redis was unreachable is over, and the replica ends all the same', async (t) => {
  const { redis, replicas } = await start(t, 2, { timeout: 1_000 })
  const [one, two] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
  const client = await LegacyClient.open(one.url, { headers: ALICE })
  const { request } = sender(client)
  t.equal((await request(two.url, 'tools/list')).status, 200, 'the replicas know each other')
  await redis.stop()
  await one.bridge.close()
  const after = await request(two.url, 'tools/list')
  t.equal(after.status, 503)
  t.match(after.message.error, { data: { reason: 'store_unavailable' } })
})
