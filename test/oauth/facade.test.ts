/** Clients of an identity provider where they cannot register: the bridge stands before it. */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { parseListen } from '../../src/config/settings.js'
import { createBridge } from '../support/bridge.js'
import { Entra } from '../support/entra.js'
import { freePort } from '../support/free-port.js'
import { post, send } from '../support/modern.js'
import { CALLBACK, kits, provider } from '../support/sdk-sign-in.js'
import { startSdkV1 } from '../support/sdk-v1.js'

type Json = Record<string, unknown>

async function start(t: Test) {
  const entra = await Entra.start(t, [CALLBACK])
  const server = await startSdkV1(t, (one) => {
    one.registerTool('write', { description: 'Writes.' }, () => ({ content: [{ type: 'text', text: 'written' }] }))
  })
  const origin = `http://127.0.0.1:${await freePort()}`
  const facade = { clientId: Entra.id, clientSecret: Entra.secret, scopes: [`api://${Entra.id}/mcp`, 'offline_access'] }
  const issuer = { issuer: entra.issuer, audience: Entra.id, groups: 'roles', map: { 'Mcp.Admin': ['write'] }, facade }
  const { bridge, log } = createBridge(
    t,
    { url: server, scopes: { write: ['write'] } },
    { publicUrl: origin, auth: { issuers: [issuer], scopes: ['mcp'] } },
  )
  const listen = parseListen(`${origin}/mcp`)
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  await bridge.listen(listen)
  return { entra, origin, url: `${origin}/mcp`, log }
}

for (const [kit, make] of Object.entries(kits))
  t.test(`${kit} signs in at a provider that behaves like Entra, refreshes its token, and calls`, async (t) => {
    const { url, entra, log } = await start(t)
    const person = provider()
    const first = make()
    const opening = first.transport(url, person.provider)
    await t.rejects(first.client.connect(opening as Transport), 'nobody is signed in yet')
    await opening.finishAuth(person.code ?? '')
    const { client, transport } = make()
    t.teardown(() => client.close())
    await client.connect(transport(url, person.provider) as Transport)
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
