/** Replicas that share a Redis with Sentinels: they work, and go on after the primary is killed. */
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call, post } from '../support/modern.js'
import { noRedis, RedisServer, startSentinels } from '../support/redis.js'

const PASSWORD = 'a-password'

/** Two bridges; what one of them owns is asked for at the other. */
async function replicas(t: Test, redis: object) {
  const { server } = legacyStdio(t)
  const settings = {
    redis: { timeout: 2_000, ...redis },
    stateKeys: ['k'.repeat(32)],
    limits: { requestsPerMinute: 100_000 },
  }
  const one = await startBridge(t, server, settings)
  const other = await startBridge(t, server, settings)
  let id = 100
  const isForwarded = async () => {
    const client = await LegacyClient.open(one.url)
    const text = client.text('tools/call', { name: 'echo', arguments: {} }, { id: ++id })
    const answer = await post(other.url, text, client.headers)
    return answer.message.result !== undefined
  }
  return { one, other, isForwarded }
}

t.test(
  'replicas find the primary through Sentinels, and the next one after it is killed',
  { skip: noRedis },
  async (t) => {
    const auth = ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
    const primary = await RedisServer.start(t, ...auth)
    await RedisServer.start(t, ...auth, '--replicaof', `127.0.0.1 ${primary.port}`)
    const sentinels = await startSentinels(t, primary, PASSWORD)
    const { one, isForwarded } = await replicas(t, { url: `redis://:${PASSWORD}@bridge`, sentinels })
    await until(isForwarded, 'a forwarded call')
    await primary.stop()
    t.equal((await call(one.url, 'tools/call', { name: 'echo', arguments: {} })).status, 200, 'without another replica')
    await until(isForwarded, 'a forwarded call after the failover')
    t.notMatch(JSON.stringify(one.log), new RegExp(PASSWORD))
  },
)
