/** Clients of an identity provider where they cannot register: the bridge stands before it. */
import t, { type Test } from 'tap'
import { Entra } from '../support/entra.js'
import { until } from '../support/eventually.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { post, send } from '../support/modern.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'

type Json = Record<string, unknown>

interface Provided {
  /** Scopes that are requested at the provider. */
  scopes?: string[]
  /** Of the tokens that it issues. */
  version?: 1 | 2
  /** Whether the bridge accepts tokens of version 1, too. */
  acceptsFirst?: boolean
}

async function start(
  t: Test,
  { scopes = [`api://${Entra.id}/mcp`, 'offline_access'], version, acceptsFirst }: Provided = {},
) {
  const entra = await Entra.start(t, [CALLBACK], version)
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes }
  const known = { audience: [Entra.id, `api://${Entra.id}`], groups: 'roles', map: { 'Mcp.Admin': ['write'] } }
  const first = acceptsFirst ? [{ issuer: entra.firstIssuer, ...known }] : []
  const auth = { issuers: [{ issuer: entra.issuer, ...known, facade }, ...first], scopes: ['mcp'] }
  const { url, log } = await startGuarded(t, { auth }, { scopes: { write: ['write'] } })
  return { entra, origin: new URL(url).origin, url, log }
}

for (const [kit, make] of Object.entries(kits))
  t.test(`${kit} signs in at a provider that behaves like Entra, refreshes its token, and calls`, async (t) => {
    const { url, entra, log } = await start(t)
    const person = provider()
    const client = await signedIn(t, make, url, person)
    t.match(await client.callTool({ name: 'write', arguments: {} }), { content: [{ text: 'written' }] })

    const before = person.kept['tokens'] as Json
    person.kept['tokens'] = { ...before, access_token: 'expired' }
    t.match(await client.callTool({ name: 'write', arguments: {} }), { content: [{ text: 'written' }] })
    t.not((person.kept['tokens'] as Json)['refresh_token'], before['refresh_token'], 'renewed')
    t.ok(
      entra.asked.every(({ params }) => !params.has('resource')),
      'without resource',
    )
    t.notMatch(JSON.stringify([log, person.kept]), Entra.secret, 'nobody learns the secret')
  })

for (const [name, scopes] of Object.entries({
  'the scope of the application by default': [`api://${Entra.id}/.default`],
  'a scope by its name': [`api://${Entra.id}/mcp`],
}))
  t.test(`a client that is registered at the provider signs in with ${name}`, async (t) => {
    const { url, entra } = await start(t, { scopes })
    const person = provider({ client: { client_id: Entra.id } })
    const client = await signedIn(t, kits['SDK v1'], url, person)
    t.match(await client.callTool({ name: 'write', arguments: {} }), { content: [{ text: 'written' }] })
    const asked = entra.asked.filter(({ path }) => path.endsWith('/authorize'))
    t.same(
      asked.map(({ params }) => params.get('scope')),
      [scopes.join(' ')],
    )
  })

t.test('tokens of the first version of Entra have another issuer, which the log names', async (t) => {
  const refused = await start(t, { version: 1 })
  await t.rejects(signedIn(t, kits['SDK v1'], refused.url, provider()))
  const said = refused.log.map((line) => line['said']).filter(Boolean)
  t.match(said[0], `expected iss to be "${refused.entra.issuer}", got "${refused.entra.firstIssuer}"`)

  const { url } = await start(t, { version: 1, acceptsFirst: true })
  const client = await signedIn(t, kits['SDK v1'], url, provider())
  t.match(await client.callTool({ name: 'write', arguments: {} }), { content: [{ text: 'written' }] })
})

t.test('metadata have the issuer of their address, and the metadata of each endpoint name it', async (t) => {
  const { origin, url } = await start(t)
  const resource = await send('GET', url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp'), undefined, {})
  t.same(resource.message['authorization_servers'], [`${origin}/oauth`])
  const metadata = await send('GET', `${origin}/.well-known/oauth-authorization-server/oauth`, undefined, {})
  t.match(metadata.message, {
    issuer: `${origin}/oauth`,
    authorization_endpoint: `${origin}/oauth/authorize`,
    token_endpoint: `${origin}/oauth/token`,
    registration_endpoint: `${origin}/oauth/register`,
    code_challenge_methods_supported: ['S256'],
  })
})

t.test('the secret is sent only with codes and refresh tokens of its client', async (t) => {
  const { origin, entra } = await start(t)
  const token = (form: Record<string, string>) =>
    post(`${origin}/oauth/token`, new URLSearchParams(form).toString(), {
      'content-type': 'application/x-www-form-urlencoded',
    })
  await until(() => entra.asked.some(({ path }) => path === '/tenant/keys'), 'the keys, which are fetched at the start')
  const before = entra.asked.length
  const rows: [name: string, form: Record<string, string>, status: number, error: string][] = [
    ['another client', { grant_type: 'authorization_code', client_id: 'x', code: 'c' }, 401, 'invalid_client'],
    ['no client', { grant_type: 'authorization_code', code: 'c' }, 401, 'invalid_client'],
    ['client_credentials', { grant_type: 'client_credentials', client_id: Entra.id }, 400, 'unsupported_grant_type'],
    ['password', { grant_type: 'password', client_id: Entra.id }, 400, 'unsupported_grant_type'],
    ['a name that every object has', { grant_type: 'constructor', client_id: Entra.id }, 400, 'unsupported_grant_type'],
    ['no grant', { client_id: Entra.id }, 400, 'unsupported_grant_type'],
  ]
  for (const [name, form, status, error] of rows) {
    const answer = await token(form)
    t.same([answer.status, answer.message.error], [status, error], name)
  }
  t.equal(entra.asked.length, before, 'the provider is not asked')
  const refused = await token({
    grant_type: 'authorization_code',
    client_id: Entra.id,
    code: 'made-up',
    code_verifier: 'x',
  })
  t.same([refused.status, refused.message.error, refused.headers['cache-control']], [400, 'invalid_grant', 'no-store'])
  const twice = await post(`${origin}/oauth/token`, `grant_type=refresh_token&client_id=${Entra.id}&client_id=x`, {
    'content-type': 'application/x-www-form-urlencoded',
  })
  t.match(twice.message.error, 'invalid_request')
})

t.test('the browser goes only to the provider, and only with PKCE', async (t) => {
  const { origin, entra } = await start(t)
  const ask = (change: Record<string, string | undefined>) => {
    const all = {
      response_type: 'code',
      client_id: Entra.id,
      redirect_uri: 'https://evil.example/callback',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
      state: 's',
      scope: 'mcp',
      resource: `${origin}/mcp`,
      ...change,
    }
    const query = new URLSearchParams(
      Object.entries(all).filter(([, value]) => value !== undefined) as [string, string][],
    )
    return fetch(`${origin}/oauth/authorize?${query}`, { redirect: 'manual' })
  }
  const location = new URL((await ask({})).headers.get('location') ?? '')
  t.equal(location.origin, entra.origin)
  t.equal(location.searchParams.get('scope'), `api://${Entra.id}/mcp offline_access`)
  t.notOk(location.searchParams.has('resource'))
  t.equal((await fetch(location, { redirect: 'manual' })).status, 400, 'the provider checks the redirect address')
  for (const change of [
    { client_id: 'x' },
    { response_type: 'token' },
    { code_challenge: undefined },
    { code_challenge_method: 'plain' },
    { code_challenge_method: undefined },
  ])
    t.ok((await ask(change)).status >= 400, JSON.stringify(change))
})

t.test('a registration returns the same client to everybody, and stores nothing', async (t) => {
  const { origin } = await start(t)
  const register = (body: unknown) =>
    post(`${origin}/oauth/register`, JSON.stringify(body), { 'content-type': 'application/json' })
  const answer = await register({ redirect_uris: [CALLBACK], client_name: 'test' })
  t.same([answer.status, answer.message['client_id']], [201, Entra.id])
  t.notMatch(answer.text, Entra.secret)
  for (const body of [{}, null, [], { redirect_uris: [] }, { redirect_uris: ['no address'] }, { redirect_uris: [1] }])
    t.same((await register(body)).status, 400, JSON.stringify(body))
})
