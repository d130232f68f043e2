/** Limits of requests by principal, and of wrong tokens by address. */
import t, { type Test } from 'tap'
import { parseSettings } from '../../src/config/settings.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { type Answer, call, post, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { SseClient } from '../support/sse-client.js'

const TOKENS = { alice: 'alice-0123456789abcdef', bob: 'bob-0123456789abcdef' }
const tokens = { auth: { tokens: TOKENS } }
const as = (token: string, more: object = {}) => ({ headers: { authorization: `Bearer ${token}`, ...more } })
const wrong = (n: number, more: object = {}) => as(`wrong-0123456789-${n}`, more)

const shared = ({ url }: RedisServer) => ({ ...tokens, redis: { url, timeout: 30_000 }, stateKeys: ['k'.repeat(32)] })

/** Whether it is the answer for those that are over their limit. */
function isLimited(t: Test, { status, headers, message }: Answer, about: RegExp, name: string): void {
  t.equal(status, 429, name)
  t.match(message, { jsonrpc: '2.0', error: { code: -32603, message: about } }, name)
  t.match(message.error?.data, { reason: 'rate_limited', outcome: 'not_executed' }, name)
  t.equal(headers['mcp-bridge-error'], 'rate_limited', name)
  const seconds = Number(headers['retry-after'])
  t.ok(Number.isInteger(seconds) && seconds >= 1 && seconds <= 60, `${name}: ${headers['retry-after']}`)
}

t.test('a principal over limits.requestsPerMinute gets 429, and others are served', async (t) => {
  const modern = await ModernHttp.start(t)
  const metrics = new Metrics({ version: '0' })
  const limits = { requestsPerMinute: 3 }
  const { url, log } = await startBridge(t, { url: modern.url }, { ...tokens, limits }, { metrics })
  for (let i = 0; i < 3; i++) t.equal((await call(url, 'tools/list', {}, as(TOKENS.alice))).status, 200)
  const before = modern.received.length
  isLimited(
    t,
    await call(url, 'tools/list', {}, as(TOKENS.alice)),
    /Too many requests of this caller \(at most 3/,
    'POST',
  )
  isLimited(t, await send('GET', url, undefined, as(TOKENS.alice).headers), /Too many requests/, 'GET')
  isLimited(t, await send('DELETE', url, undefined, as(TOKENS.alice).headers), /Too many requests/, 'DELETE')
  t.equal(modern.received.length, before, 'the server got nothing of them')
  t.equal((await call(url, 'tools/list', {}, as(TOKENS.bob))).status, 200)
  t.match(
    log.filter(({ event }) => event === 'request_refused'),
    [{ fault: 'rateLimited', status: 429, principal: 'alice', from: '127.0.0.1' }, {}, {}],
  )
  t.match(await metrics.text([]), /refusals_total\{server="test",reason="rateLimited"\} 3/)
})

t.test('requests of legacy clients count, too, over Streamable HTTP and over HTTP+SSE', async (t) => {
  const legacy = await LegacyHttp.start(t)
  const settings = { ...tokens, limits: { requestsPerMinute: 4 } }
  const streamable = await startBridge(t, { url: legacy.url }, settings)
  const client = await LegacyClient.open(streamable.url, as(TOKENS.alice))
  t.equal((await client.call('echo')).status, 200)
  t.equal((await client.call('echo')).status, 200)
  isLimited(t, await client.call('echo'), /Too many requests/, 'Streamable HTTP')

  const old = await startBridge(t, { url: legacy.url }, settings)
  const sse = await SseClient.connect(old.url, as(TOKENS.alice).headers)
  const post = () => sse.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
  for (let i = 0; i < 3; i++) t.equal((await post()).status, 202)
  isLimited(t, await post(), /Too many requests/, 'HTTP+SSE')
})

t.test('callers without a principal count by their address, as trusted proxies report it', async (t) => {
  const modern = await ModernHttp.start(t)
  const limits = { requestsPerMinute: 2 }
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const rows: [trustedProxies: string[], statuses: number[]][] = [
    [['127.0.0.0/8'], [200, 200, 429, 200]],
    [[], [200, 200, 429, 429]],
  ]
  for (const [trustedProxies, statuses] of rows) {
    const settings = { limits, trustedProxies, auth: { passthrough: true } }
    const { url, log } = await startBridge(t, { url: modern.url, era: 'modern' }, settings)
    const found: number[] = []
    for (const address of ['192.0.2.1', '192.0.2.1', '192.0.2.1', '2001:db8::1'])
      found.push((await call(url, 'tools/list', {}, from(address))).status)
    t.same(found, statuses, trustedProxies.join())
    t.match(
      log.find(({ event }) => event === 'request_refused'),
      { from: statuses[3] === 200 ? '192.0.2.1' : '127.0.0.1' },
    )
  }
})

t.test(
  'an address with too many wrong tokens gets 429 for more of them, and its valid tokens are accepted',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const settings = { ...tokens, trustedProxies: ['127.0.0.1'], limits: { wrongTokensPerMinute: 3 } }
    const { url } = await startBridge(t, { url: modern.url }, settings)
    const near = { 'x-forwarded-for': '2001:db8::1' }
    for (let i = 0; i < 3; i++) t.equal((await call(url, 'tools/list', {}, wrong(i, near))).status, 401)
    const limited = await call(url, 'tools/list', {}, wrong(3, near))
    isLimited(t, limited, /Too many wrong tokens from this address \(at most 3/, 'the same address')
    t.equal(limited.headers['www-authenticate'], undefined)
    const same = await call(url, 'tools/list', {}, wrong(4, { 'x-forwarded-for': '2001:db8::2' }))
    isLimited(t, same, /Too many wrong tokens/, 'the same network of IPv6')
    t.equal((await call(url, 'tools/list', {}, as(TOKENS.alice, near))).status, 200)
    t.equal((await call(url, 'tools/list', {}, wrong(5, { 'x-forwarded-for': '192.0.2.1' }))).status, 401)
    for (let i = 0; i < 5; i++) t.equal((await call(url, 'tools/list', {}, { headers: near })).status, 401, 'no token')
  },
)

t.test('counts nothing without limits, and never limits health', async (t) => {
  const modern = await ModernHttp.start(t)
  const open = await startBridge(t, { url: modern.url })
  for (let i = 0; i < 100; i++) t.equal((await call(open.url, 'tools/list')).status, 200)
  const { url } = await startBridge(t, { url: modern.url }, { ...tokens, limits: { requestsPerMinute: 1 } })
  for (let i = 0; i < 5; i++) t.equal((await fetch(new URL('/healthz', url))).status, 200)
})

t.test('a reload keeps the counts', async (t) => {
  const modern = await ModernHttp.start(t)
  const settings = (requestsPerMinute: number) => ({ ...tokens, limits: { requestsPerMinute } })
  const { url, bridge } = await startBridge(t, { url: modern.url }, settings(2))
  for (let i = 0; i < 2; i++) t.equal((await call(url, 'tools/list', {}, as(TOKENS.alice))).status, 200)
  const changes = await bridge.reload(
    parseSettings(
      { mcpServers: { test: { url: modern.url } }, listen: url, timeouts: { drainTimeout: 100 }, ...settings(3) },
      { env: {}, read: () => '' },
    ),
  )
  t.match(changes, { added: [], changed: [], removed: [] }, 'the server stays')
  t.equal((await call(url, 'tools/list', {}, as(TOKENS.alice))).status, 200)
  t.equal((await call(url, 'tools/list', {}, as(TOKENS.alice))).status, 429)
})

t.test('replicas count together, and each for itself without Redis', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const legacy = await LegacyHttp.start(t)
  const settings = { ...shared(redis), limits: { requestsPerMinute: 6 } }
  const one = await startBridge(t, { url: legacy.url }, settings)
  const other = await startBridge(t, { url: legacy.url }, settings)
  for (let i = 0; i < 3; i++) {
    t.equal((await call(one.url, 'tools/list', {}, as(TOKENS.alice))).status, 200)
    t.equal((await call(other.url, 'tools/list', {}, as(TOKENS.alice))).status, 200)
  }
  isLimited(t, await call(one.url, 'tools/list', {}, as(TOKENS.alice)), /Too many requests/, 'one')
  isLimited(t, await call(other.url, 'tools/list', {}, as(TOKENS.alice)), /Too many requests/, 'the other')

  await redis.stop()
  const statuses: number[] = []
  for (let i = 0; i < 7; i++) statuses.push((await call(one.url, 'tools/list', {}, as(TOKENS.alice))).status)
  t.same(statuses, [200, 200, 200, 200, 200, 200, 429])
})

t.test('a request that another replica answers counts once', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const { server } = legacyStdio(t)
  const settings = { ...shared(redis), limits: { requestsPerMinute: 5 } }
  const one = await startBridge(t, server, settings)
  const other = await startBridge(t, server, settings)
  const client = await LegacyClient.open(one.url, as(TOKENS.alice))
  const text = (id: number) => client.text('tools/call', { name: 'echo', arguments: {} }, { id })
  for (let id = 11; id <= 13; id++)
    t.match((await post(other.url, text(id), client.headers)).message, { id, result: {} })
  isLimited(t, await post(other.url, text(14), client.headers), /Too many requests/, 'the sixth')
})
