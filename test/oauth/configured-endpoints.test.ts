/** Authorization servers that publish no metadata: their endpoints are configured, and nothing is looked for. */
import t, { type Test } from 'tap'
import { check } from '../support/check.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { Oidc } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { PlainHttp } from '../support/plain-http.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'

const never = new AbortController().signal
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'

async function behind(t: Test) {
  const common = { client_id: 'bridge', client_secret: 'CANARY-secret', scope: 'mcp:read offline_access' }
  const registered = {
    ...common,
    redirect_uris: ['http://localhost/callback'],
    application_type: 'native',
    response_types: ['code'],
    grant_types: ['authorization_code', 'refresh_token', 'client_credentials', DEVICE_CODE],
    token_endpoint_auth_method: 'client_secret_basic',
  }
  const oidc = await Oidc.start(t, { clients: [registered], registration: false })
  const server = await Protected.start(t)
  const looked = () => [
    ...oidc.requests.filter(({ path }) => path.startsWith('/.well-known')).map(({ path }) => path),
    ...server.asked,
  ]
  const client = { clientId: 'bridge', clientSecret: 'CANARY-secret', scopes: ['mcp:read'] }
  return { oidc, server, looked, client, wanted: 'Bearer scope="mcp:read"' }
}

t.test('tokens without a person take the token endpoint alone', async (t) => {
  const { oidc, server, looked, client, wanted } = await behind(t)
  const endpoints = { token: `${oidc.address}/token` }
  const settings = { ...client, grant: 'client_credentials' as const, endpoints }
  const { unauthorized } = signingIn(t, { server, settings, mayAsk: false })
  t.match(await oidc.introspect(bearer(await unauthorized(undefined, wanted))), { active: true, aud: server.url })
  const bare = signingIn(t, { server, settings: { ...settings, resource: false as const }, mayAsk: false })
  await bare.unauthorized(undefined, wanted)
  t.same(
    oidc.grants('client_credentials').map(({ params }) => params.get('resource')),
    [server.url, null],
  )
  t.same(looked(), [])
})

t.test(
  'a person signs in at configured endpoints, here and on another device, and tokens are renewed there',
  async (t) => {
    const { oidc, server, looked, client, wanted } = await behind(t)
    const at = oidc.address
    const endpoints = { token: `${at}/token`, authorization: `${at}/auth`, device: `${at}/device/auth` }
    for (const grant of ['code', 'device'] as const) {
      const time = { ahead: 0 }
      const own = {
        server,
        settings: {
          ...client,
          scopes: ['mcp:read', 'offline_access'],
          grant,
          endpoints,
          params: { prompt: 'consent' },
        },
      }
      const { account, unauthorized, shown } = signingIn(t, { ...own, now: () => Date.now() + time.ahead })
      const waiting =
        grant === 'code'
          ? unauthorized(undefined, wanted)
          : account.login([wanted], never).then(() => account.authorization(never))
      if (grant === 'device') {
        await until(() => shown.length > 0)
        await visit(shown[0] ?? '', { types: {} })
        time.ahead += 5_000
      }
      const header = await waiting
      t.match(await oidc.introspect(bearer(header)), { active: true, client_id: 'bridge' }, grant)
      time.ahead += 3_700_000
      t.not(await account.authorization(never), header, `${grant}: renewed`)
    }
    t.same(looked(), [])
  },
)

t.test('the address of the token endpoint decides who gets the secrets', async (t) => {
  const { oidc, server, client, wanted } = await behind(t)
  const elsewhere = await PlainHttp.start(t, (_request, response) => response.end('{}'))
  const settings = { ...client, grant: 'client_credentials' as const }
  const here = signingIn(t, { server, settings: { ...settings, endpoints: { token: `${oidc.address}/token` } } })
  const header = await here.unauthorized(undefined, wanted)
  t.ok(header)
  const token = `http://127.0.0.1:${new URL(elsewhere.origin).port}/token`
  const { store } = here
  const there = signingIn(t, { server, store, settings: { ...settings, endpoints: { token } } })
  t.match(await reasonOf(there.unauthorized(header, wanted)), { reason: 'client_needed' })
  t.equal(elsewhere.received.length, 0)
})

t.test('check names what configured endpoints need', async (t) => {
  const token = 'https://as.example/token'
  const cases: [oauth: object, said: RegExp][] = [
    [{ endpoints: { token } }, /oauth\.clientId is required with "endpoints"/],
    [{ endpoints: { token }, clientId: 'a' }, /oauth\.endpoints\.authorization is required for the grant "code"/],
    [{ endpoints: { token }, clientId: 'a', grant: 'device' }, /endpoints\.device is required for the grant "device"/],
    [{ endpoints: { token: 'x' }, clientId: 'a' }, /endpoints\.token has to be an http/],
    [
      { endpoints: { token }, clientId: 'a', grant: 'client_credentials', authServerMetadataUrl: token },
      /oauth\.endpoints cannot be combined with "authServerMetadataUrl"/,
    ],
  ]
  for (const [oauth, said] of cases) {
    const servers = { mcpServers: { a: { url: 'https://a.example/mcp', oauth } } }
    t.match(check(temporaryFile(t, 'mcp.json', JSON.stringify(servers))).said, said)
  }
})

t.test('the browser goes to a page of the operator after a sign-in, without anything secret', async (t) => {
  const asked: string[] = []
  const page = await PlainHttp.start(t, ({ path }, response) => {
    asked.push(path)
    response.end('Welcome back')
  })
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  const successUrl = new URL('/done', page.origin).href
  const { unauthorized, visits } = signingIn(t, { server, settings: { successUrl } })
  t.ok(await unauthorized(undefined, server.challenge(', scope="mcp:read"')))
  t.match(await visits[0], { status: 200, page: 'Welcome back' })
  t.same(asked, ['/done'])
  oidc.options.declines = true
  const other = signingIn(t, { server, settings: { successUrl } })
  t.match(await reasonOf(other.unauthorized()), { reason: 'sign_in_refused' })
  t.match(await other.visits[0], { status: 400, page: /Not signed in/ })
  t.equal(asked.length, 1, 'only after a success')
})
