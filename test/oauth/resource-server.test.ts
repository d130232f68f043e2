/** Clients that sign in at the bridge: with a real authorization server, and through everything that is behind it. */
import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { settingsOf } from '../support/bridge.js'
import { temporaryFile } from '../support/folder.js'
import { startGuarded, text } from '../support/guarded-bridge.js'
import { LegacyClient as Plain } from '../support/legacy-client.js'
import { type Answer, call, post, send } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { SseClient } from '../support/sse-client.js'
import { TokenIssuer } from '../support/token-issuer.js'
import { setTrap } from '../support/trap.js'
import { wrongTokens } from '../support/wrong-tokens.js'

type Json = Record<string, unknown>

for (const [kit, make] of Object.entries(kits))
  for (const path of ['/mcp', '/stock/mcp', '/test/mcp'])
    t.test(`${kit} signs in at ${path} by itself, and calls`, async (t) => {
      const oidc = await Oidc.start(t, { jwt: true, scopes: 'mcp write' })
      const auth = { issuers: [{ issuer: oidc.issuer }], scopes: ['mcp'] }
      const behind = await startGuarded(t, { auth }, {}, ['test', 'stock'])
      const url = new URL(path, behind.url).href
      const person = provider()
      const client = await signedIn(t, make, url, person)
      t.equal(String(new URLSearchParams(person.kept['asked'] as never).get('resource')), url)
      t.match(new URLSearchParams(person.kept['asked'] as never).get('scope'), /^mcp\b/)
      const { tools } = await client.listTools()
      const name = tools.map((tool) => tool.name).find((one) => one.endsWith('read')) ?? ''
      t.match(await client.callTool({ name, arguments: {} }), text('read'))
      const { access_token: token } = person.kept['tokens'] as { access_token: string }
      t.ok(token.split('.').length === 3, 'a JWT')
      t.notMatch(JSON.stringify([behind.log, behind.seen]), token, 'A33')
      t.notMatch(JSON.stringify(behind.seen), /authorization/i, 'A33: nothing of it is sent on')
    })

/** A bridge in front of tools that take scopes, and an issuer that signs what a test wants. */
async function guarded(t: Test, auth: Json = {}, issuerSettings: Json = {}, more: Json = {}) {
  const issuer = await TokenIssuer.start(t)
  const settings = { auth: { issuers: [{ issuer: issuer.url, ...issuerSettings }], ...auth }, ...more }
  const behind = await startGuarded(t, settings, { scopes: { write: ['files:write'] } })
  const token = (claims: Json = {}) => issuer.token({ aud: behind.url, ...claims })
  const bearer = async (claims?: Json) => ({ authorization: `Bearer ${await token(claims)}` })
  return { ...behind, issuer, token, bearer }
}

const challengeIn = ({ status, headers }: Answer) => [status, headers['www-authenticate']]
const at = (url: string) => url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')

t.test('every 401 names the metadata of its path, which are public and identical', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const auth = { issuers: [{ issuer: issuer.url }], scopes: ['mcp'] }
  const { url } = await startGuarded(t, { auth }, {}, ['test', 'stock'])
  const { origin } = new URL(url)
  for (const path of ['/mcp', '/test/mcp', '/stock/mcp', '/sse', '/test/sse', '/stock/sse']) {
    const isStream = path.endsWith('/sse')
    const refused = isStream
      ? await send('GET', origin + path, undefined, { accept: 'text/event-stream' })
      : await call(origin + path, 'tools/list')
    const metadata = `${origin}/.well-known/oauth-protected-resource${path}`
    t.same(challengeIn(refused), [401, `Bearer resource_metadata="${metadata}", scope="mcp"`], path)
    const forged = { host: 'evil.example', 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }
    for (const headers of [{}, forged, { origin: 'https://page.example' }]) {
      const document = await send('GET', metadata, undefined, headers)
      t.same(document.message, {
        resource: origin + path,
        authorization_servers: [issuer.url],
        scopes_supported: ['mcp'],
        bearer_methods_supported: ['header'],
      })
      t.equal(document.headers['access-control-allow-origin'], '*')
      t.equal(document.headers['cache-control'], 'max-age=300')
    }
  }
  const message = await post(`${origin}/message?sessionId=x`, '{}', { 'content-type': 'application/json' })
  t.match(
    message.headers['www-authenticate'],
    `${origin}/.well-known/oauth-protected-resource/sse"`,
    'as clients know it',
  )
})

t.test('distinguishes a wrong token from a missing one, and gives no reason', async (t) => {
  const { url, bearer } = await guarded(t, { scopes: ['mcp'] })
  const wrong = `Bearer resource_metadata="${at(url)}", error="invalid_token"`
  for (const claims of [{ aud: `${url}/` }, { exp: 1 }, { iss: 'https://x.example' }])
    t.same(challengeIn(await call(url, 'tools/list', {}, { headers: await bearer(claims) })), [401, wrong])
  t.same(challengeIn(await call(url, 'tools/list', {}, { headers: { authorization: 'Bearer x' } })), [401, wrong])
})

t.test('answers each wrong token with 401, and requests no address that it names', async (t) => {
  const { url, issuer, log, seen } = await guarded(t, {}, {}, { limits: { wrongTokensPerMinute: 1_000 } })
  const trap = await setTrap(t)
  const endpoint = url.replace('/mcp', '/test/mcp')
  const rows = await wrongTokens(issuer, endpoint, `http://127.0.0.1:${trap.port}`)
  t.ok(rows.length >= 60, `${rows.length} wrong tokens`)
  const own = url.replace('/mcp', '/.well-known/oauth-protected-resource/test/mcp')
  for (const [name, token] of rows) {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await call(endpoint, 'tools/call', { name: 'read' }, { headers })
    // Node.js itself takes no headers of this size.
    if (name === 'more than 16 KiB') t.equal(answer.status, 431, name)
    else t.same(challengeIn(answer), [401, `Bearer resource_metadata="${own}", error="invalid_token"`], name)
  }
  t.same(seen, [], 'no call has reached the server')
  t.same(await trap.caught(), [], 'nobody asked an address of theirs')
  const said = JSON.stringify(log)
  for (const [name, token] of rows)
    for (const part of token.split('.')) if (part.length > 20) t.notOk(said.includes(part), `${name} is in the log`)
})

t.test('the log names what is wrong with a token, also among many requests without one', async (t) => {
  const { url, bearer, log } = await guarded(t)
  for (let i = 0; i < 20; i++) await call(url, 'tools/list')
  const answer = await call(url, 'tools/list', {}, { headers: await bearer({ aud: 'https://other.example/mcp' }) })
  t.notMatch(answer.text, /other\.example|expected/)
  const told = log.filter(({ said }) => said !== undefined)
  t.match(told, [{ event: 'request_refused', fault: 'unauthorized', status: 401, why: 'Unknown token' }])
  t.match(told[0]?.['said'], `expected aud to be "${url}"`)
  t.match(told[0]?.['said'], 'got ["https://other.example/mcp"]')
})

t.test('missing scopes get a challenge with the required ones and those of the caller', async (t) => {
  const { url, bearer } = await guarded(t, { scopes: ['mcp', 'more'] })
  const answer = await call(url, 'tools/list', {}, { headers: await bearer({ scope: 'mcp other' }) })
  t.same(challengeIn(answer), [
    403,
    `Bearer error="insufficient_scope", scope="mcp other more", resource_metadata="${at(url)}"`,
  ])
  t.equal((await call(url, 'tools/list', {}, { headers: await bearer({ scope: 'more mcp' }) })).status, 200)
})

t.test('lists and calls a tool by the scopes of the current request, whatever opened the session', async (t) => {
  const { url, bearer, seen } = await guarded(t)
  const [weak, strong] = [await bearer({ scope: 'a' }), await bearer({ scope: 'a files:write' })]
  const challenge = `Bearer error="insufficient_scope", scope="a files:write", resource_metadata="${at(url)}"`
  const names = (answer: Answer) => (answer.message.result?.['tools'] as { name: string }[]).map(({ name }) => name)

  t.same(names(await call(url, 'tools/list', {}, { headers: weak })), ['read', 'write'])
  t.same(challengeIn(await call(url, 'tools/call', { name: 'write' }, { headers: weak })), [403, challenge])
  t.equal((await call(url, 'tools/call', { name: 'write' }, { headers: strong })).status, 200)
  t.equal(seen.length, 1)

  const session = await Plain.open(url, { headers: strong })
  t.same(names(await session.request('tools/list', {}, { headers: weak })), ['read', 'write'])
  t.same(challengeIn(await session.call('write', {}, { headers: weak })), [403, challenge])
  t.match((await session.call('write', {}, { headers: strong })).message, {
    result: { content: [{ text: 'written' }] },
  })
  t.equal(seen.length, 2)
  const other = await bearer({ sub: 'bob', scope: 'files:write' })
  t.equal((await session.call('write', {}, { headers: other })).status, 404, 'the session of somebody else')

  const batches = await Plain.open(url, { revision: '2025-03-26', headers: strong })
  const batch = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'write' } }))
  const answers = await batches.post(batch, weak)
  t.equal(answers.status, 200)
  t.match(answers.text, /insufficient_scope/)
  t.equal(seen.length, 2, 'no call of a batch either')
})

t.test('a stream of HTTP+SSE does not keep the scopes that opened it, either', async (t) => {
  const { url, issuer, seen } = await guarded(t)
  const stream = url.replace('/mcp', '/sse')
  const bearer = async (scope: string) => ({ authorization: `Bearer ${await issuer.token({ aud: stream, scope })}` })
  const client = await SseClient.open(url, '2025-11-25', {}, await bearer('files:write'))
  const body = (id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'write' } })
  t.equal((await client.post(body(7), await bearer('files:write'))).status, 202)
  t.match(await client.answer(7), { result: { content: [{ text: 'written' }] } })
  t.equal((await client.post(body(8), await bearer('a'))).status, 202)
  t.match(JSON.stringify(await client.answer(8)), /insufficient_scope/)
  t.equal(seen.length, 1)
})

t.test('accepts the user that a proxy names only with the secret, and forwards none of its headers', async (t) => {
  const secret = 'proxy-0123456789-0123456789-0123456789'
  const forwarded = { user: 'X-User', scopes: 'X-Scopes', secretHeader: 'X-Secret', secret }
  const behind = await startGuarded(
    t,
    { publicUrl: undefined, auth: { forwarded } },
    { scopes: { write: ['files:write'] } },
  )
  const ask = (headers: Record<string, string | string[]>, name = 'read') =>
    call(behind.url, 'tools/call', { name }, { headers })
  const good = { 'x-user': 'alice@example.com', 'x-secret': secret }
  const rows: [name: string, headers: Record<string, string | string[]>][] = [
    ['no secret', { 'x-user': 'alice@example.com' }],
    ['an empty secret', { ...good, 'x-secret': '' }],
    ['a wrong secret', { ...good, 'x-secret': `${secret}x` }],
    ['the beginning of the secret', { ...good, 'x-secret': secret.slice(0, -1) }],
    ['the user twice', { ...good, 'x-user': ['alice@example.com', 'root'] }],
    ['the secret twice', { ...good, 'x-secret': [secret, secret] }],
    ['scopes twice', { ...good, 'x-scopes': ['a', 'files:write'] }],
    ['no user', { 'x-secret': secret }],
    ['an empty user', { ...good, 'x-user': ' ' }],
    ['nothing', {}],
    ['a token', { authorization: `Bearer ${secret}` }],
  ]
  for (const [name, headers] of rows) t.equal((await ask(headers)).status, 401, name)
  t.equal((await ask(good)).status, 200)
  t.match((await ask(good, 'write')).text, /insufficient_scope/)
  t.match((await ask({ ...good, 'x-scopes': 'a,files:write' }, 'write')).text, /written/)
  t.notMatch(JSON.stringify([behind.seen, behind.log]), secret)
  t.notMatch(JSON.stringify(behind.seen), /x-user|x-secret|x-scopes/i)
})

t.test('static tokens, identity providers and a proxy work together', async (t) => {
  const secret = 'proxy-0123456789-0123456789-0123456789'
  const { url, bearer } = await guarded(t, {
    tokens: { robot: { token: 'robot-0123456789abcdef', scopes: ['files:write'] } },
    forwarded: { user: 'x-user', secretHeader: 'x-secret', secret },
  })
  const ask = (headers: Record<string, string>) => call(url, 'tools/call', { name: 'write' }, { headers })
  t.match((await ask({ authorization: 'Bearer robot-0123456789abcdef' })).text, /written/)
  t.match((await ask(await bearer({ scope: 'files:write' }))).text, /written/)
  t.match((await ask({ 'x-user': 'alice', 'x-secret': secret })).text, /insufficient_scope/)
  t.equal((await ask({})).status, 401)
})

t.test('refuses configurations that cannot work, naming the option', async (t) => {
  const issuer = { issuer: 'https://login.example' }
  const rows: [settings: Json, message: RegExp][] = [
    [{ auth: { issuers: [issuer] }, publicUrl: undefined }, /publicUrl.*required with "auth\.issuers"/],
    [{ auth: { issuers: [] } }, /auth\.issuers/],
    [{ auth: { issuers: [issuer], passthrough: true } }, /"passthrough"/],
    [{ auth: { scopes: ['mcp'] } }, /auth/],
    [{ auth: { tokens: { a: 'a-0123456789abcdefgh' }, scopes: ['mcp'] } }, /auth\.scopes/],
    [{ auth: { issuers: [issuer, issuer] } }, /auth\.issuers\.1\.issuer.*twice/],
    [{ auth: { issuers: [{ ...issuer, map: { a: ['b'] } }] } }, /auth\.issuers\.0\.map.*"groups"/],
    [{ auth: { issuers: [{ ...issuer, algorithms: ['HS256'] }] } }, /auth\.issuers\.0\.algorithms/],
    [{ auth: { forwarded: { user: 'a', secretHeader: 'A', secret: 'x'.repeat(32) } } }, /different header/],
    [{ auth: { forwarded: { user: 'a', secretHeader: 'b', secret: 'short' } } }, /auth\.forwarded\.secret/],
  ]
  const base = { publicUrl: 'https://b.example', mcpServers: { test: { command: 'x' } } }
  for (const [settings, message] of rows)
    t.throws(() => settingsOf({ ...base, ...settings }), { message }, JSON.stringify(settings))
  t.ok(
    settingsOf({ ...base, listen: 'http://0.0.0.0:8080/mcp', auth: { issuers: [issuer] } }),
    'safe beyond the loopback',
  )
})

t.test('uses a new secret for introspection, from a file, without a restart', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const claims = { active: true, sub: 'alice', aud: 'api://bridge', exp: Math.floor(Date.now() / 1_000) + 600 }
  issuer.opaque.set('first-token-0123456789', claims)
  issuer.opaque.set('second-token-0123456789', claims)
  const file = temporaryFile(t, 'secret', 'CANARY-first')
  const introspection = { clientId: 'bridge', clientSecret: `\${file:${file}}` }
  const auth = { issuers: [{ issuer: issuer.url, audience: 'api://bridge', introspection }] }
  const { url, bridge, settings } = await startGuarded(t, { auth })
  const ask = (token: string) => call(url, 'tools/list', {}, { headers: { authorization: `Bearer ${token}` } })
  t.equal((await ask('first-token-0123456789')).status, 200)
  writeFileSync(file, 'CANARY-second')
  await bridge.reload(settingsOf(settings))
  t.equal((await ask('second-token-0123456789')).status, 200)
  const shown = issuer.received.filter(({ path }) => path === '/introspect').map(({ text }) => text)
  const basic = (secret: string) => Buffer.from(`bridge:${secret}`).toString('base64')
  t.match(shown, [new RegExp(basic('CANARY-first')), new RegExp(basic('CANARY-second'))])
})
