/** Keys of an identity provider that cannot be had: the bridge starts, and says so everywhere, with the reason. */
import t from 'tap'
import { ConfigError, parseSettings } from '../../src/config/settings.js'
import { Verifier } from '../../src/services/oauth/server/verifier.js'
import { Metrics } from '../../src/services/telemetry/metrics.js'
import { createBridge } from '../support/bridge.js'
import { run } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { readSeries } from '../support/prometheus.js'
import { TokenIssuer } from '../support/token-issuer.js'

const HERE = 'https://mcp.example.com'

t.test(
  'the log, /readyz and a metric say from the start why keys cannot be had, and that they can be had again',
  async (t) => {
    const issuer = await TokenIssuer.start(t)
    issuer.instead = (_path, response) => void response.writeHead(503).end()
    const { url } = await LegacyHttp.start(t)
    const metrics = new Metrics({ version: '1' })
    const settings = {
      admin: 'http://127.0.0.1:0',
      publicUrl: HERE,
      auth: { issuers: [{ issuer: issuer.url, audience: HERE }] },
    }
    const { bridge, log } = createBridge(t, { url }, settings, { metrics })
    await bridge.listen()
    const seen = async () => {
      const ready = await fetch(new URL('/readyz', bridge.adminUrl))
      const { issuers } = (await ready.json()) as { issuers?: Record<string, { state: string; why?: string }> }
      const series = readSeries(await (await fetch(new URL('/metrics', bridge.adminUrl))).text())
      return { ...issuers?.[issuer.url], metric: series[`mcp_bridge_issuer_up{issuer="${issuer.url}"}`] }
    }
    await until(async () => (await seen()).state === 'down', 'the first look, which no token has caused')
    t.match(await seen(), { state: 'down', why: /HTTP 503/, metric: 0 })
    const lines = () => log.filter(({ event }) => String(event).startsWith('issuer_'))
    t.match(lines(), [{ event: 'issuer_unavailable', level: 40, issuer: issuer.url, why: /HTTP 503/ }])
    t.equal(lines().length, 1)
  },
)

t.test('check warns of keys that cannot be had, and is well all the same', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const config = {
    mcpServers: { a: { url: 'https://a.example/mcp' } },
    publicUrl: HERE,
    auth: { issuers: [{ issuer: issuer.url }] },
  }
  const file = temporaryFile(t, 'mcp.json', JSON.stringify(config))
  const well = await run(t, ['check', '--config', file])
  t.equal(well.code, 0)
  t.notMatch(well.stdout, /has no keys/)
  issuer.instead = (_path, response) => void response.writeHead(404).end()
  const bad = await run(t, ['check', '--config', file])
  t.equal(bad.code, 0)
  t.match(bad.stdout, /auth\.issuers\.0 has no keys that can be had now: .*publishes no metadata/)
  const asked = issuer.asked.length
  t.notMatch((await run(t, ['check', '--offline', '--config', file])).stdout, /has no keys/)
  t.equal(issuer.asked.length, asked, 'offline, nobody is asked')
})

const issueOf = (entry: object, oauth = {}) => {
  try {
    const auth = { issuers: [entry] }
    parseSettings({ mcpServers: { a: { command: 'x' } }, publicUrl: HERE, auth, oauth }, { env: {}, read: () => '' })
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : `crash: ${error}`
  }
}

t.test('an http:// address of an identity provider is refused unless its host is allowed', async (t) => {
  const cluster = { issuer: 'https://login.example.com', jwksUri: 'http://keycloak.auth.svc:8080/keys' }
  t.match(issueOf(cluster), /auth\.issuers\.0\.jwksUri: is an http:\/\/ address.*"keycloak\.auth\.svc"/)
  t.equal(issueOf(cluster, { allow: ['keycloak.auth.svc'] }), '')
  t.match(issueOf(cluster, { allow: ['keycloak'] }), /jwksUri/)
  t.match(issueOf({ issuer: 'http://keycloak.auth.svc/realms/x' }), /issuers\.0\.issuer: is an http/)
  t.match(issueOf({ ...cluster, jwksUri: 'http://10.1.2.3/keys' }), /jwksUri/)
  t.equal(issueOf({ ...cluster, jwksUri: 'http://10.1.2.3/keys' }, { allow: ['10.0.0.0/8'] }), '')
  t.match(issueOf({ ...cluster, jwksUri: 'http://10.1.2.3/keys' }, { allow: ['192.168.0.0/16'] }), /jwksUri/)
  t.equal(issueOf({ ...cluster, jwksUri: 'http://[fd00::1]/keys' }, { allow: ['fd00:0::1'] }), '')
  t.match(issueOf({ ...cluster, jwksUri: 'http://127.0.0.1/keys' }), /jwksUri/)
  const adfs = 'http://adfs.example.com/adfs/services/trust'
  t.match(issueOf({ issuer: adfs }), /give https:\/\/adfs\.example\.com\/adfs$/)
  t.equal(issueOf({ issuer: adfs, jwksUri: 'https://adfs.example.com/adfs/discovery/keys' }), '')
  t.match(issueOf({ issuer: adfs, jwksUri: 'https://a.example/k', facade: { clientId: 'x' } }), /issuer: is an http/)
  t.equal(issueOf({ issuer: 'http://127.0.0.1:9/realms/x' }), '', 'on this machine')
})

t.test('keys are fetched without TLS from a host that is allowed, and from no other one', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { port } = new URL(issuer.url)
  const verify = async (allow: readonly string[]) => {
    const settings = { issuer: 'https://login.example.com', jwksUri: `http://127.0.0.1:${port}/jwks` }
    const verifier = new Verifier({
      issuers: [{ ...settings, algorithms: ['RS256'], claims: {}, map: {} }],
      allow,
    })
    t.teardown(() => verifier.close())
    await verifier.prepare()
    return verifier.states[0]
  }
  t.match(await verify([]), { state: 'down', why: /not contacted|https/ })
  t.same(issuer.asked, [])
  t.match(await verify(['127.0.0.1']), { state: 'up' })
  t.match(await verify(['127.0.0.0/8']), { state: 'up' })
})
