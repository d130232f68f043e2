/** Tool limits that replicas share, in a real Redis. */
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { LegacyClient } from '../support/legacy-client.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'

const TOKENS = { alice: 'token-of-alice-0123456789', bob: 'token-of-bob-0123456789' }
const of = (name: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[name]}` })
const ECHO = { name: 'echo', arguments: {} }

t.test(
  'three replicas count the calls of a principal together, and tell when to call again',
  { skip: noRedis },
  async (t) => {
    const redis = await RedisServer.start(t)
    const { server } = legacyStdio(t)
    const settings = {
      redis: { url: redis.url, timeout: 30_000 },
      stateKeys: ['a secret that all the replicas know of'],
      auth: { tokens: TOKENS },
      limits: { tools: [{ tools: '*__echo', per: 'principal', max: 4, every: '1h' }] },
    }
    const replicas = await Promise.all(Array.from({ length: 3 }, () => startBridge(t, server, settings)))
    const ask = (nth: number, name: keyof typeof TOKENS) =>
      call(replicas[nth % 3]?.url ?? '', 'tools/call', ECHO, { headers: of(name) })
    const answers = await Promise.all(Array.from({ length: 9 }, (_, nth) => ask(nth, 'alice')))
    t.same(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 429, 429, 429, 429, 429])
    const [refused] = answers.filter(({ status }) => status === 429)
    const seconds = Number(refused?.headers['retry-after'])
    t.ok(seconds > 3_500 && seconds <= 3_600, `${seconds} s`)
    t.equal((await ask(1, 'bob')).status, 200, 'another principal has an own count')
    const legacy = await LegacyClient.open(replicas[2]?.url ?? '', { headers: of('alice') })
    t.match((await legacy.call('echo', {}, { headers: of('alice') })).message, { result: { isError: true } })
    t.equal((await call(replicas[0]?.url ?? '', 'tools/list', {}, { headers: of('alice') })).status, 200)
  },
)
