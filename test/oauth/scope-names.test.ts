/** Scopes that an identity provider is asked for by other names than its tokens have, as Entra does. */
import t, { type Test } from 'tap'
import { settingsOf } from '../support/bridge.js'
import { Entra } from '../support/entra.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { call, send } from '../support/modern.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>

const api = (scope: string) => `api://${Entra.id}/${scope}`
const scopeNames = { mcp: api('mcp'), write: api('write') }

/** A bridge with a facade in front of Entra, whose person is in no group. */
async function start(t: Test, facade: Json, settings: Json = {}) {
  const entra = await Entra.start(t, [CALLBACK], 2, [])
  const issuer = { issuer: entra.issuer, audience: [Entra.id], scopeNames, ...settings }
  const client = { clientId: Entra.id, clientSecret: Entra.secret }
  const auth = { issuers: [{ ...issuer, facade: { ...client, ...facade } }], scopes: ['mcp'] }
  const { url } = await startGuarded(t, { auth }, { scopes: { write: ['write'] } })
  const asked = () =>
    entra.asked.filter(({ path }) => path.endsWith('/authorize')).map(({ params }) => params.get('scope'))
  return { url, origin: new URL(url).origin, asked }
}

for (const [kit, make] of Object.entries(kits))
  for (const [name, facade] of Object.entries({
    'with scopes of its own': { scopes: [api('mcp'), 'offline_access'] },
    'with those of clients': {},
  }))
    t.test(`${kit} gets a further scope through a facade ${name}, and calls`, async (t) => {
      const { url, asked } = await start(t, facade)
      const person = provider()
      const client = await signedIn(t, make, url, person)
      t.match(await client.callTool({ name: 'read', arguments: {} }), { content: [{ text: 'read' }] })
      t.match(JSON.stringify(await client.listTools()), /"write"/, 'it could get the scope')
      // With a refresh token, v1 renews the token in place of asking for more.
      delete (person.kept['tokens'] as Json)['refresh_token']
      await t.rejects(client.callTool({ name: 'write', arguments: {} }), 'the person signs in again')
      const { client: next, transport } = make()
      const opening = transport(url, person.provider)
      await (opening.finishAuth as (code: string, iss?: string) => Promise<void>)(
        person.code ?? '',
        person.kept['iss'] as string,
      )
      await next.connect(opening as never)
      t.teardown(() => next.close())
      t.match(await next.callTool({ name: 'write', arguments: {} }), { content: [{ text: 'written' }] })
      const [first, second, ...more] = asked()
      t.same(more, [], 'nobody signs in a third time')
      t.notMatch(first, api('write'))
      t.match([first, second], [api('mcp'), new RegExp(`${api('mcp')}.*${api('write')}`)])
    })

t.test('a facade takes both names, and drops scopes that it does not know', async (t) => {
  const ask = async (origin: string, scope: string) => {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: Entra.id,
      redirect_uri: CALLBACK,
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
      scope,
    })
    const { headers } = await fetch(`${origin}/oauth/authorize?${query}`, { redirect: 'manual' })
    return new URL(headers.get('location') ?? '').searchParams.get('scope')
  }
  const fixed = await start(t, { scopes: [api('mcp'), 'offline_access'] })
  const always = `${api('mcp')} offline_access`
  for (const [scope, sent] of [
    ['', always],
    ['mcp', always],
    ['openid constructor', always],
    ['mcp write', `${always} ${api('write')}`],
    [`${api('write')} x`, `${always} ${api('write')}`],
  ] as const)
    t.equal(await ask(fixed.origin, scope), sent, scope)
  const { origin } = await start(t, {})
  t.equal(await ask(origin, `mcp ${api('write')} openid`), `${api('mcp')} ${api('write')} openid`)
})

t.test('a scope that a facade never requests is no reason to sign in again', async (t) => {
  const { url, asked } = await start(t, { scopes: [api('mcp')] }, { scopeNames: { mcp: api('mcp') } })
  for (const make of Object.values(kits)) {
    const person = provider()
    const before = asked().length
    const client = await signedIn(t, make, url, person)
    t.notMatch(JSON.stringify(await client.listTools()), /"write"/, 'as for callers who cannot get a scope')
    const answer = await client.callTool({ name: 'write', arguments: {} }).catch((error: unknown) => ({ error }))
    t.match(JSON.stringify(answer), /without the scope write/)
    t.equal(asked().length, before + 1)
  }
})

t.test('metadata and challenges have the names by which scopes are requested', async (t) => {
  const [first, second] = [await TokenIssuer.start(t), await TokenIssuer.start(t)]
  const auth = { issuers: [{ issuer: first.url, scopeNames }, { issuer: second.url }], scopes: ['mcp', 'other'] }
  const { url } = await startGuarded(t, { auth }, { scopes: { write: ['write'] } })
  const metadata = url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')
  const names = `${api('mcp')} other`
  t.same((await send('GET', metadata, undefined, {})).message['scopes_supported'], names.split(' '))
  const challenge = async (token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await call(url, 'tools/call', { name: 'write' }, { headers })
    return [answer.status, answer.headers['www-authenticate']]
  }
  const lacking = (scope: string) => [
    403,
    `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${metadata}"`,
  ]
  t.same(await challenge(), [401, `Bearer resource_metadata="${metadata}", scope="${names}"`])
  const token = (issuer: TokenIssuer, scope: string) => issuer.token({ aud: url, scope })
  t.same(await challenge(await token(first, 'other')), lacking(`other ${api('mcp')}`), 'of every token')
  t.same(await challenge(await token(first, 'mcp other')), lacking(`${names} ${api('write')}`), 'of a tool')
  t.same(await challenge(await token(second, 'mcp other')), lacking('mcp other write'), 'of another issuer')
  t.same((await challenge(await token(first, 'mcp other write')))[0], 200)
  t.same((await challenge(await token(first, `${names} ${api('write')}`)))[0], 403, 'the second name is no scope')
})

t.test('metadata and challenges have a name of several scopes once', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const all = api('.default')
  const auth = { issuers: [{ issuer: issuer.url, scopeNames: { mcp: all, write: all } }], scopes: ['mcp', 'write'] }
  const { url } = await startGuarded(t, { auth })
  const metadata = url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')
  t.same((await send('GET', metadata, undefined, {})).message['scopes_supported'], [all])
  const headers = { authorization: `Bearer ${await issuer.token({ aud: url, scope: 'mcp' })}` }
  const challenge = (await call(url, 'tools/list', {}, { headers })).headers['www-authenticate']
  t.match(challenge, `scope="${all}"`)
})

t.test('refuses a required scope by the name that only requests have', async (t) => {
  const auth = { issuers: [{ issuer: 'https://login.example', scopeNames }], scopes: [api('mcp')] }
  t.throws(() => settingsOf({ publicUrl: 'https://b.example', mcpServers: { test: { command: 'x' } }, auth }), {
    message: /auth\.scopes.*write "mcp"/,
  })
})
