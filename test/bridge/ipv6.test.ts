/** Bridges with addresses of IPv6, as in clusters of IPv6 or of both families. */
import { networkInterfaces } from 'node:os'
import { env } from 'node:process'
import t, { type Test } from 'tap'
import { ADA, all, NAME, startAsker, talk } from '../support/asking.js'
import { createBridge, startBridge } from '../support/bridge.js'
import { call, send } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'
import { noRedis, RedisServer } from '../support/redis.js'

const OURS = Object.values(networkInterfaces()).flatMap((all) => all ?? [])
const hasIpv6 = OURS.some(({ address }) => address === '::1')
const OWN = OURS.find(({ address, family, internal }) => family === 'IPv6' && !internal && !address.startsWith('fe80:'))

/** A bridge that listens where its settings say. */
async function listening(t: Test, server: string, settings: object) {
  const { bridge } = createBridge(t, { url: server }, settings)
  return { bridge, url: String((await bridge.listen()).get('test')) }
}

const test = (name: string, skip: string | false, body: (t: Test) => Promise<void>) =>
  t.test(name, { skip: hasIpv6 ? skip : 'no IPv6 on this machine' }, body)

test(
  '[::] is all addresses of this machine, at the address for clients and the one for operators',
  false,
  async (t) => {
    const modern = await ModernHttp.start(t)
    const settings = { listen: 'http://[::]:0/mcp', admin: 'http://[::]:0', allowUnauthenticated: true }
    const { url, bridge } = await listening(t, modern.url, settings)
    const portOf = (address: string | undefined) => new URL(String(address)).port
    // As the system asks whether a container is well: at its address.
    for (const host of ['127.0.0.1', '[::1]', ...(OWN ? [`[${OWN.address}]`] : [])])
      t.equal((await send('GET', `http://${host}:${portOf(bridge.adminUrl)}/healthz`, undefined, {})).status, 200, host)
    for (const host of ['127.0.0.1', '[::1]'])
      t.equal((await call(`http://${host}:${portOf(url)}/mcp`, 'tools/list')).status, 200, host)
    t.equal((await call(url, 'tools/list', {}, { headers: { host: `[::]:${portOf(url)}` } })).status, 200)
    t.equal((await call(url, 'tools/list', {}, { headers: { host: `[fd00::99]:${portOf(url)}` } })).status, 403)
  },
)

test(
  'a bridge at an address of IPv6 is reached under it',
  OWN ? false : 'no address of IPv6 but the loopback',
  async (t) => {
    const modern = await ModernHttp.start(t)
    const settings = { listen: `http://[${OWN?.address}]:0/mcp`, allowUnauthenticated: true }
    const { url } = await listening(t, modern.url, settings)
    t.match(url, /^http:\/\/\[/)
    t.equal((await call(url, 'tools/list')).status, 200)
  },
)

test('replicas find each other by an address of IPv6 from the environment', noRedis, async (t) => {
  env['POD_IP_OF_TEST'] = '::1'
  t.teardown(() => Reflect.deleteProperty(env, 'POD_IP_OF_TEST'))
  const redis = await RedisServer.start(t)
  const asker = await startAsker(t, 'over stdio')
  const settings = {
    redis: { url: redis.url, timeout: 30_000 },
    stateKeys: ['a secret that all the replicas know of'],
    replicas: { address: 'http://${POD_IP_OF_TEST}:0' },
  }
  const [here, there] = [await startBridge(t, asker.server, settings), await startBridge(t, asker.server, settings)]
  const client = talk(here.url, asker)
  const asked = await client.steps([{ ask: [NAME] }])
  const again = { ...client.paramsOf(asked), inputResponses: all(asked, ADA), requestState: asked.state }
  t.same((await talk(there.url, asker).call('tools/call', again)).said, [ADA])
})
