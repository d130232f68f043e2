/** The internal address of a replica: it answers other replicas, once each, and nobody else. */
import { Agent, request as httpRequest } from 'node:http'
import t, { type Test } from 'tap'
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { Internal } from '../../src/services/replicas/internal.js'
import { digestOf, PROOF, prove, SKEW } from '../../src/services/replicas/proof.js'
import { ADA, all, NAME, of, startAsker, talk } from '../support/asking.js'
import { startBridge } from '../support/bridge.js'
import { startBridgeProcess } from '../support/bridge-process.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { freePort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { CAPABILITIES, call, send } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const SECRET = 'a secret that all the replicas know of'
const ACT = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'act', arguments: {} } })
/** Milliseconds of silence after which a replica is lost. */
const SILENCE = 5_000

const test = (name: string, body: (t: Test) => Promise<void>) => t.test(name, { skip: noRedis }, body)

/** A replica, a session in it, and how to send what another replica would. */
async function start(t: Test, settings: object = {}) {
  const redis = await RedisServer.start(t)
  const { server, messages } = legacyStdio(t)
  const port = await freePort()
  const { url, log } = await startBridge(t, server, {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: [SECRET],
    replicas: { address: `http://127.0.0.1:${port}` },
    ...settings,
  })
  const client = await LegacyClient.open(url)
  const [id = ''] = client.session.split('.')
  const headers = Object.entries(client.headers).flatMap(([name, value]) => (value === undefined ? [] : [name, value]))
  const host = new URL(url).host
  const sign = ({ body = ACT, secret = SECRET, to = id, path = '/mcp', more = [] as string[] } = {}) => {
    const sealer = new Sealer([keyOf(secret)], 'replica')
    const signed = {
      method: 'POST',
      path,
      headers: ['host', host, ...headers, ...more],
      body: digestOf(Buffer.from(body)),
    }
    return prove(sealer, to, signed)
  }
  const post = (proof: string | undefined, { body = ACT, path = '/mcp', at = port, more = [] as string[] } = {}) =>
    answerOf(at, path, ['host', host, ...headers, ...more, ...(proof === undefined ? [] : [PROOF, proof])], body)
  const calls = () => messages().filter(({ method }) => method === 'tools/call').length
  return { url, port, id, sign, post, calls, log }
}

function answerOf(port: number, path: string, headers: string[], body: string, agent: Agent | false = false) {
  return new Promise<{ status: number | undefined; refused: unknown }>((resolve, reject) => {
    const sent = [...headers, 'content-length', String(Buffer.byteLength(body))]
    const request = httpRequest({ host: '127.0.0.1', port, path, method: 'POST', headers: sent, agent })
    request.on('response', (response) => {
      response.resume()
      resolve({ status: response.statusCode, refused: response.headers['mcp-bridge-refused'] })
    })
    request.on('error', reject)
    request.end(body)
  })
}

test('what a replica has signed is answered once: a second time it is refused', async (t) => {
  const { sign, post, calls } = await start(t)
  const proof = sign()
  t.same(await post(proof), { status: 200, refused: undefined })
  t.same(await post(proof), { status: 401, refused: 'replayed' })
  t.equal(calls(), 1)
  t.same(await post(sign()), { status: 200, refused: undefined }, 'the same with another proof is another request')
  t.equal(calls(), 2)
})

test('what no replica has signed, or what was changed, is refused', async (t) => {
  const { sign, post, calls, log } = await start(t)
  const forged = { status: 401, refused: 'forged' }
  t.same(await post(undefined), forged)
  t.same(await post('x'), forged)
  t.same(await post(sign({ secret: 'another secret of other replicas' })), forged)
  t.same(await post(sign(), { path: '/other' }), forged)
  t.same(await post(sign(), { more: ['authorization', 'Bearer other'] }), forged)
  t.same(await post(sign().replace(/:[^:]*:/, ':1:')), forged)
  t.match(await post(sign(), { body: ACT.replace('act', 'ACT') }), { status: 401 }, 'another body')
  t.equal(calls(), 0)
  t.equal(log.filter(({ event }) => event === 'internal_request_refused').length, 1, 'logged once a minute')
})

test('what was signed too long ago, or for the future, is refused', async (t) => {
  const { sign, post, calls } = await start(t)
  const { now } = Date
  for (const shift of [-SKEW - 1_000, SKEW + 1_000]) {
    const { restore } = t.intercept(Date, 'now', { value: () => now() + shift })
    const proof = sign()
    restore()
    t.same(await post(proof), { status: 401, refused: 'late' })
  }
  t.equal(calls(), 0)
})

test('what is for a replica that had the address before is refused', async (t) => {
  const { sign, post, calls } = await start(t)
  t.same(await post(sign({ to: '0123456789abcdef' })), { status: 421, refused: 'misdirected' })
  t.equal(calls(), 0)
})

test('what is too large is refused, at the head if nobody has signed it', async (t) => {
  const { sign, post, calls } = await start(t, { limits: { bodyBytes: 4_096 } })
  const body = ACT.replace('{}', JSON.stringify({ text: 'x'.repeat(5_000) }))
  t.match(await post(sign({ body }), { body }), { status: 413 })
  t.match(await post(undefined, { body }), { status: 401 })
  const more = ['x-large', 'x'.repeat(40_000)]
  t.match(await post(sign({ more }), { more }), { status: 431 })
  t.equal(calls(), 0)
})

t.test('a replica that ends refuses what comes on a connection that it is about to close', async (t) => {
  const sealer = new Sealer([keyOf(SECRET)], 'replica')
  const refused: string[] = []
  const internal = new Internal({
    id: 'one',
    address: new URL('http://127.0.0.1:0'),
    sealer: () => sealer,
    refused: (why) => refused.push(why),
  })
  internal.use((_request, response) => response.end('{}'))
  const { port, hostname } = new URL(await internal.listen())
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const post = () => {
    const headers = ['host', hostname]
    const proof = prove(sealer, 'one', { method: 'POST', path: '/mcp', headers, body: digestOf(Buffer.from(ACT)) })
    return answerOf(Number(port), '/mcp', [...headers, PROOF, proof], ACT, agent)
  }
  t.equal((await post()).status, 200)
  const closing = internal.close()
  t.same(await post(), { status: 421, refused: 'misdirected' }, 'its sender knows that nothing was done')
  await closing
  t.same(refused, [], 'it is no attack')
})

test('the address for clients takes no request of replicas', async (t) => {
  const { url, sign, post, port } = await start(t, { limits: { requestsPerMinute: 4 } })
  const at = Number(new URL(url).port)
  // The session and its notification were the first two.
  const statuses = [await post(sign(), { at }), await post(sign(), { at }), await post(sign(), { at })]
  t.same(
    statuses.map(({ status }) => status),
    [200, 200, 429],
    'they count as requests of a client',
  )
  t.match(await post(sign()), { status: 200 }, 'what another replica has counted does not count again')
  const asked = await send('HEAD', `http://127.0.0.1:${at}/`, undefined, {})
  t.equal(asked.headers[PROOF], undefined)
  t.notOk(port === at)
})

test('a session and a parked call of a replica that was killed are lost at once', async (t) => {
  const redis = await RedisServer.start(t)
  const asker = await startAsker(t, 'over stdio')
  const shared = { redis: { url: redis.url, timeout: 30_000 }, stateKeys: [SECRET] }
  const here = await startBridge(t, asker.server, shared)
  const owner = await startBridgeProcess(t, {
    ...shared,
    listen: 'http://127.0.0.1:0/mcp',
    mcpServers: { test: asker.server },
  })
  const url = owner.urls['test'] as string
  const client = await LegacyClient.open(url)
  const there = talk(url)
  const parked = await there.steps([{ ask: [NAME] }])
  const retry = { ...there.paramsOf(parked), inputResponses: all(parked, ADA), requestState: parked.state }
  const list = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
  const status = async () => (await send('POST', here.url, list, client.headers as never)).status
  t.equal(await status(), 200)
  const waiting = client.text('tools/call', { name: 'wait', arguments: { ms: 60_000 } }, { id: 9 })
  const called = of(asker, 'tools/call').length
  const cut = send('POST', here.url, waiting, client.headers as never)
  await until(() => of(asker, 'tools/call').length > called, 'the call at the server')
  // Nobody waits for the silence.
  holdTimers(t, SILENCE)
  process.kill(owner.pid, 'SIGKILL')
  t.match((await cut).message, { id: 9, error: { data: { reason: 'replica_lost', outcome: 'unknown' } } })
  t.equal(await status(), 404)
  const meta = { [CAPABILITIES]: { elicitation: {} } }
  const lost = await call(here.url, 'tools/call', retry, { meta })
  t.match(lost.message.error, { data: { reason: 'suspended_call_lost', outcome: 'unknown' } })
})

test('replicas encrypt what they send to https:// addresses', async (t) => {
  const redis = await RedisServer.start(t)
  const { server } = legacyStdio(t)
  const replica = async () =>
    startBridge(t, server, {
      redis: { url: redis.url, timeout: 30_000 },
      stateKeys: [SECRET],
      replicas: { address: 'https://127.0.0.1:0' },
    })
  const [one, two] = [await replica(), await replica()]
  const client = await LegacyClient.open(one.url)
  const answer = await send('POST', two.url, ACT, client.headers as never)
  t.equal(answer.status, 200)
  t.ok(answer.message.result)
})
