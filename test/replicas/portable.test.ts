/** A tool that one replica has listed is called at another one, by its portable name and arguments. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { askedIn, CALLS, INTRICATE } from '../support/intricate.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

t.test('names and arguments of one replica are those of another', { skip: noRedis }, async (t) => {
  const redis = await RedisServer.start(t)
  const settings = { redis: { url: redis.url }, stateKeys: ['a secret that all the replicas know of'] }
  const entry = { ...INTRICATE, schemas: 'portable' }
  const [one, other] = [await startBridge(t, entry, settings), await startBridge(t, entry, settings)]
  const { result } = (await call(one.url, 'tools/list', {})).message
  const tools = result?.['tools'] as { name: string }[]
  for (const [pattern, args, server] of CALLS) {
    const name = tools.find((tool) => pattern.test(tool.name))?.name
    const { message } = await call(other.url, 'tools/call', { name, arguments: args })
    t.same(askedIn(message.result), server)
  }
})
