/** What the bridge says of its configuration, its certificates and its Redis: in metrics, and at /readyz. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { createBridge } from '../support/bridge.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { readSeries } from '../support/prometheus.js'
import { askRedis, noRedis, RedisServer } from '../support/redis.js'
import { makeCa } from '../support/tls.js'

const RELOADED = 'mcp_bridge_config_last_reload_successful'
const RELOADED_AT = 'mcp_bridge_config_last_reload_success_timestamp_seconds'
const REDIS_UP = 'mcp_bridge_redis_up'
const EXPIRY = 'mcp_bridge_certificate_expiry_timestamp_seconds'

const scrape = async (admin: string) => readSeries(await (await fetch(new URL('/metrics', admin))).text())

/** A bridge with an address for operators. */
async function start(t: Test, settings: object, server?: object) {
  const { url } = await LegacyHttp.start(t)
  const metrics = new Metrics({ version: '1' })
  const more = { admin: 'http://127.0.0.1:0', ...settings }
  const { bridge } = createBridge(t, { url, ...server }, more, { metrics })
  await bridge.listen()
  return { bridge, admin: bridge.adminUrl as string }
}

t.test('metrics show whether the last change of the configuration is in use, and since when', async (t) => {
  const { url } = await LegacyHttp.start(t)
  const file = temporaryFile(t, 'mcp.json', '')
  const write = (more: object) => writeFileSync(file, JSON.stringify({ mcpServers: { a: { url } }, ...more }))
  write({})
  const addresses = ['--listen', 'http://127.0.0.1:0/mcp', '--admin', 'http://127.0.0.1:0']
  const running = startProgram(t, ['--config', file, '--log-format', 'json', ...addresses])
  const [, admin = ''] = await says(running, /"event":"admin_listening","url":"([^"]+)"/)
  const first = await scrape(admin)
  t.equal(first[RELOADED], 1, 'the one at the start is')
  write({ limits: { calls: 'many' } })
  await until(async () => (await scrape(admin))[RELOADED] === 0, 'an invalid one is not')
  t.equal((await scrape(admin))[RELOADED_AT], first[RELOADED_AT], 'the time is that of the one in use')
  write({ limits: { calls: 100 } })
  await until(async () => (await scrape(admin))[RELOADED] === 1, 'the next valid one is')
  t.ok(Number((await scrape(admin))[RELOADED_AT]) > Number(first[RELOADED_AT]))
})

t.test('metrics show the expiry of the certificates in use, by their earliest part', async (t) => {
  const ca = await makeCa()
  const at = (hours: number) => new Date(Math.floor(Date.now() / 1000) * 1000 + hours * 3_600_000)
  const [soon, later, last] = [at(2), at(5), at(9)]
  const folder = temporaryFolder(t)
  const pair = async (name: string, notAfter: Date, chain = '') => {
    const { cert, key } = await ca.serverOptions([name, '127.0.0.1'], { notAfter })
    const paths = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) }
    writeFileSync(paths.key, key)
    writeFileSync(paths.cert, `${cert}\n${chain}`)
    return paths
  }
  const intermediate = (await ca.serverOptions(['intermediate'], { notAfter: soon })).cert
  const tls = await pair('own', later, intermediate)
  const settings = { listen: 'https://127.0.0.1:0/mcp', tls }
  const { admin } = await start(t, settings, { url: 'https://127.0.0.1:9/mcp', ...(await pair('client', last)) })
  const own = `${EXPIRY}{use="listen",server=""}`
  const series = await scrape(admin)
  t.equal(series[own], soon.getTime() / 1000)
  t.equal(series[`${EXPIRY}{use="server",server="test"}`], last.getTime() / 1000)
  await pair('own', last)
  await until(async () => (await scrape(admin))[own] === last.getTime() / 1000, 'the renewed certificate')
  writeFileSync(tls.cert, 'nonsense')
  t.equal((await scrape(admin))[own], last.getTime() / 1000, 'an unusable file is not in use')
})

t.test('metrics and /readyz show whether Redis is usable', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const { admin } = await start(t, { redis: { url: redis.url }, stateKeys: ['k'.repeat(32)] })
  const seen = async () => {
    const ready = await fetch(new URL('/readyz', admin))
    const { redis } = (await ready.json()) as { redis?: string }
    return `${redis} ${(await scrape(admin))[REDIS_UP]}`
  }
  await until(async () => (await seen()) === 'up 1', 'the connection')
  await redis.stop()
  await until(async () => (await seen()) === 'down 0', 'the loss')
  await until(async () => (await fetch(new URL('/readyz', admin))).status === 200, 'it serves what needs no Redis')
  await redis.start()
  await until(async () => (await seen()) === 'up 1', 'the return')
  askRedis(redis.port, '', 'CONFIG', 'SET', 'maxmemory', '1')
  await until(async () => (await seen()) === 'down 0', 'a Redis that answers and refuses')
  askRedis(redis.port, '', 'CONFIG', 'SET', 'maxmemory', '0')
  await until(async () => (await seen()) === 'up 1', 'one that does not refuse any more')
})

t.test('a metric shows whether Redis may evict records, with any policy that does', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  for (const [policy, value] of [
    ['volatile-ttl', 1],
    ['allkeys-lru', 1],
    ['noeviction', 0],
  ] as const) {
    askRedis(redis.port, '', 'CONFIG', 'SET', 'maxmemory-policy', policy)
    const { admin } = await start(t, { redis: { url: redis.url }, stateKeys: ['k'.repeat(32)] })
    await until(async () => (await scrape(admin))['mcp_bridge_redis_may_evict'] === value, policy)
  }
})

t.test('check says that Redis may evict records, and that it cannot be used', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const settings = { redis: { url: redis.url }, stateKeys: ['k'.repeat(32)], listen: 'http://127.0.0.1:0/mcp' }
  const file = temporaryFile(
    t,
    'mcp.json',
    JSON.stringify({ mcpServers: { a: { url: 'https://a.example/mcp' } }, ...settings }),
  )
  const said = async (...more: string[]) => {
    const { code, stdout } = await run(t, ['check', '--config', file, ...more])
    t.equal(code, 0)
    return stdout
  }
  t.notMatch(await said(), /redis/)
  for (const policy of ['volatile-lru', 'allkeys-lfu']) {
    askRedis(redis.port, '', 'CONFIG', 'SET', 'maxmemory-policy', policy)
    t.match(await said(), new RegExp(`redis may evict records .* instead of ${policy}`))
  }
  await redis.stop()
  t.match(await said(), /redis cannot be used now: .*ECONNREFUSED/)
  t.notMatch(await said('--offline'), /redis/)
})

t.test('a bridge without Redis and certificates has no metrics of them', async (t) => {
  const { admin } = await start(t, {})
  const series = Object.keys(await scrape(admin))
  t.ok(series.includes(RELOADED))
  t.notOk(series.some((name) => name.startsWith(REDIS_UP) || name.startsWith(EXPIRY)))
  t.notMatch(await (await fetch(new URL('/readyz', admin))).text(), 'redis')
})
