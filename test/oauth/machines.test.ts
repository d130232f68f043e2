/** Tokens that no person is needed for: for the bridge itself, and those that somebody else writes into a file. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportJWK, SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { TokenFile } from '../../src/services/oauth/client/token-file.js'
import { says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { call } from '../support/modern.js'
import { Oidc } from '../support/oidc.js'
import { PlainHttp, sendText } from '../support/plain-http.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'

t.setTimeout(600_000)

const never = new AbortController().signal
const HOUR = 3_600_000
const grant = 'client_credentials'
const registered = { redirect_uris: [], response_types: [], grant_types: [grant], scope: 'mcp:read mcp:write' }

t.test('a client with a secret gets tokens, and new ones when they expire', async (t) => {
  const oidc = await Oidc.start(t, {
    clients: [
      {
        ...registered,
        client_id: 'robot',
        client_secret: 'CANARY-secret',
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
  })
  const server = await Protected.start(t, oidc.issuer)
  let ahead = 0
  const { account, unauthorized, visits, store } = signingIn(t, {
    server,
    mayAsk: false,
    settings: { grant, clientId: 'robot', clientSecret: 'CANARY-secret' },
    now: () => Date.now() + ahead,
  })
  t.equal(await account.authorization(never), undefined, 'nothing is asked for before the server wants it')
  t.equal(oidc.requests.length, 0)
  const headers = await Promise.all(
    Array.from({ length: 20 }, () => unauthorized(undefined, server.challenge(', scope="mcp:read"'))),
  )
  t.equal(new Set(headers).size, 1)
  t.match(await oidc.introspect(bearer(headers[0])), {
    active: true,
    client_id: 'robot',
    scope: 'mcp:read',
    aud: server.url,
  })
  ahead = HOUR
  const again = await account.authorization(never)
  t.not(again, headers[0])
  t.equal(oidc.grants(grant).length, 2)
  t.same(
    oidc.grants(grant).map(({ params }) => [params.get('resource'), params.get('scope')]),
    [
      [server.url, 'mcp:read'],
      [server.url, 'mcp:read'],
    ],
  )
  t.equal(visits.length, 0)
  t.notMatch(
    JSON.stringify(await store.read(account.key)),
    /CANARY-secret/,
    'the secret of the configuration is not stored',
  )
})

const keyFiles = async (t: Test) => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const folder = temporaryFolder(t)
  const pem = join(folder, 'key.pem')
  writeFileSync(pem, privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const jwk = join(folder, 'key.json')
  writeFileSync(jwk, JSON.stringify(await exportJWK(privateKey)))
  return {
    folder,
    pem,
    jwk,
    privateKey,
    keys: [{ ...(await exportJWK(publicKey)), use: 'sig', alg: 'ES256', kid: 'one' }],
  }
}

const assertionOf = (key: KeyObject, issuer: string, jti: string) =>
  new SignJWT({ jti })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setIssuer('robot')
    .setSubject('robot')
    .setAudience(issuer)
    .setIssuedAt()
    .setExpirationTime('2m')
    .sign(key)

t.test('a client with a key signs an assertion for the issuer', async (t) => {
  const { pem, jwk, keys } = await keyFiles(t)
  const oidc = await Oidc.start(t, {
    clients: [{ ...registered, client_id: 'robot', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } }],
  })
  const server = await Protected.start(t, oidc.issuer)
  // Some Windows editors write a byte order mark (R4).
  const marked = [pem, jwk].map((path) => temporaryFile(t, 'marked', `\ufeff${readFileSync(path, 'utf8')}`))
  for (const file of [pem, jwk, ...marked]) {
    const { unauthorized } = signingIn(t, {
      server,
      settings: { grant, clientId: 'robot', key: { file, alg: 'ES256', kid: 'one' } },
    })
    t.match(await oidc.introspect(bearer(await unauthorized(undefined, server.challenge(', scope="mcp:read"')))), {
      active: true,
    })
    const assertion = oidc.grants(grant).at(-1)?.params.get('client_assertion') ?? ''
    const claims = JSON.parse(Buffer.from(assertion.split('.')[1] ?? '', 'base64url').toString()) as Record<
      string,
      unknown
    >
    t.match(claims, { aud: oidc.issuer, iss: 'robot', sub: 'robot' })
  }
})

t.test('reads an assertion from its file each time, so it can be rewritten', async (t) => {
  const { folder, privateKey, keys } = await keyFiles(t)
  const oidc = await Oidc.start(t, {
    clients: [{ ...registered, client_id: 'robot', token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } }],
  })
  const server = await Protected.start(t, oidc.issuer)
  const file = join(folder, 'assertion')
  let ahead = 0
  const { account, unauthorized } = signingIn(t, {
    server,
    settings: { grant, clientId: 'robot', clientAssertionFile: file },
    now: () => Date.now() + ahead,
  })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_failed', message: /clientAssertionFile.*ENOENT/ })
  for (const nth of [1, 2]) {
    const assertion = await assertionOf(privateKey, oidc.issuer, `jti-${nth}`)
    writeFileSync(file, `${assertion}\n`)
    const header =
      nth === 1
        ? await unauthorized(undefined, server.challenge(', scope="mcp:read"'))
        : await account.authorization(never)
    t.match(await oidc.introspect(bearer(header)), { active: true })
    t.equal(oidc.grants(grant).at(-1)?.params.get('client_assertion'), assertion)
    ahead += HOUR
  }
})

t.test('an unusable key is a clear failure, and nothing of it is shown', async (t) => {
  const { folder, pem } = await keyFiles(t)
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const broken = join(folder, 'broken.pem')
  writeFileSync(broken, '-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n')
  for (const key of [
    { file: broken, alg: 'ES256' },
    { file: join(folder, 'none'), alg: 'ES256' },
    { file: pem, alg: 'RS256' },
  ]) {
    const { unauthorized } = signingIn(t, { server, settings: { grant, clientId: 'robot', key } })
    const ended = await unauthorized().catch((error: Error) => error)
    t.match(ended, { fault: 'authFailed', message: /oauth\.key/ })
    t.notMatch(`${(ended as Error).message} ${String((ended as Error).cause)}`, /CANARY/)
  }
  t.equal(as.of('/token').length, 0)
})

t.test('a client that gets no token sees the error, and nobody is asked to sign in', async (t) => {
  const as = await ScriptedAs.start(t, { token: () => [401, { error: 'invalid_client', error_description: 'CANARY' }] })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, visits } = signingIn(t, { server, settings: { grant, clientId: 'robot', clientSecret: 'x' } })
  const ended = await reasonOf(unauthorized())
  t.match(ended, { reason: 'auth_failed', message: /invalid_client/ })
  t.notMatch(ended.message, /CANARY/)
  t.equal(visits.length, 0)
  const nameless = signingIn(t, { server, settings: { grant } })
  t.match(await reasonOf(nameless.unauthorized()), { reason: 'client_needed', message: /oauth\.clientId/ })
})

t.test('a client that lacks a scope requests it, too', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, forbidden } = signingIn(t, {
    server,
    settings: { grant, clientId: 'robot', clientSecret: 'x' },
    mayAsk: false,
  })
  const first = await unauthorized(undefined, server.challenge(', scope="a"'))
  const second = await forbidden(first, 'b')
  t.not(second, first)
  t.same(
    as.of('/token').map(({ params }) => params.get('scope')),
    ['a', 'a b'],
  )
  t.match(await reasonOf(forbidden(second, 'b')), { reason: 'scope_refused' })
})

t.test('uses a token from a file, and reads it again when it changes or is refused', async (t) => {
  const file = join(temporaryFolder(t), 'token')
  const account = new TokenFile(file)
  t.throws(() => account.authorization(), { message: /oauth\.tokenFile.*ENOENT/ })
  writeFileSync(file, 'one\n')
  t.equal(account.authorization(), 'Bearer one')
  writeFileSync(file, 'two')
  await until(() => account.authorization() === 'Bearer two')
  t.match(await reasonOf(account.refused({ status: 401, challenges: [], sent: 'Bearer two' })), {
    reason: 'upstream_auth_required',
  })
  writeFileSync(file, 'three')
  t.equal(await account.refused({ status: 401, challenges: [], sent: 'Bearer two' }), 'Bearer three')
  t.match(await reasonOf(account.refused({ status: 403, challenges: [], sent: 'Bearer two' })), {
    reason: 'upstream_auth_required',
  })
  for (const text of ['', 'a b', 'a\nb', 'ä', 'x'.repeat(70_000)]) {
    writeFileSync(file, text)
    t.match(await reasonOf(account.refused({ status: 401, challenges: [], sent: 'Bearer three' })), {
      reason: 'auth_failed',
    })
  }
  rmSync(file)
  t.match(await reasonOf(account.refused({ status: 401, challenges: [], sent: undefined })), { reason: 'auth_failed' })
})

t.test('uses a changed client secret from a file without a restart', async (t) => {
  const secret = 'CANARY-secret-new'
  const as = await ScriptedAs.start(t, {
    metadata: (own) => ({ ...own, token_endpoint_auth_methods_supported: ['client_secret_post'] }),
    token: ({ params }) => (params.get('client_secret') === secret ? undefined : [401, { error: 'invalid_client' }]),
  })
  const server: PlainHttp = await PlainHttp.start(t, ({ message, path, headers }, response) => {
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendText(response, JSON.stringify({ resource: server.url, authorization_servers: [as.issuer] }))
    if (headers.authorization === undefined) return response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
    const discovered = '"supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"'
    const result = `{"resultType":"complete",${discovered},"content":[{"type":"text","text":"Hello"}]}`
    sendText(response, `{"jsonrpc":"2.0","id":${JSON.stringify(message?.['id'])},"result":${result}}`)
  })
  const folder = temporaryFolder(t)
  const file = join(folder, 'secret')
  writeFileSync(file, 'CANARY-secret-old', { mode: 0o600 })
  const oauth = { grant, clientId: 'robot', clientSecret: `\${file:${file}}` }
  const config = join(folder, 'config.json')
  const listen = 'http://127.0.0.1:0/mcp'
  writeFileSync(config, JSON.stringify({ mcpServers: { stock: { url: server.url, oauth } }, listen }), { mode: 0o600 })
  const store = join(folder, 'tokens')
  const bridge = startProgram(t, ['--config', config, '--token-store', store, '--log-format', 'json'])
  const [line] = await says(bridge, /^.*"event":"listening".*$/m)
  const { url } = JSON.parse(line) as { url: string }
  const ask = async () => (await call(url, 'tools/call', { name: 'x' })).text
  t.match(await ask(), /invalid_client/)
  writeFileSync(file, secret, { mode: 0o600 })
  await until(async () => /Hello/.test(await ask()), 'the new secret is used')
})
