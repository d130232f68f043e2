/** Tokens of identity providers: which are accepted, which are not, and what the bridge asks of whom meanwhile. */
import { createHmac, createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CompactEncrypt, type JWK } from 'jose'
import t, { type Test } from 'tap'
import type { IssuerSettings } from '../../src/oauth/server/settings.js'
import { Verifier } from '../../src/oauth/server/verifier.js'
import { Fault } from '../../src/protocol/fault.js'
import { TokenIssuer } from '../support/token-issuer.js'

const HERE = 'https://bridge.example/github/mcp'
const AT = new Set([HERE, 'https://bridge.example/github/sse'])
const ELSEWHERE = new Set(['https://bridge.example/stock/mcp'])

type Json = Record<string, unknown>

const settingsOf = (issuer: string, more: Partial<IssuerSettings> = {}): IssuerSettings => ({
  issuer,
  algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
  claims: {},
  map: {},
  ...more,
})

function setUp(issuer: TokenIssuer, more: Partial<IssuerSettings> = {}) {
  let ahead = 0
  const verifier = new Verifier({ issuers: [settingsOf(issuer.url, more)], now: () => Date.now() + ahead })
  return {
    verify: async (token: string, at = AT) => verifier.verify(token, at),
    later: (ms: number) => {
      ahead += ms
    },
  }
}

/** An address that a token may name. Nobody may ask it anything. */
async function trap(t: Test): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const server = createServer(({ url = '' }, response) => {
    asked.push(url)
    response.end('{"keys":[]}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

t.test('a right token is accepted, whatever form of its claims its issuer prefers', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, {
    audience: ['api://bridge'],
    groups: 'realm_access.roles',
    map: { admins: ['write'] },
  })
  const rows: [name: string, claims: Json, header: Json, scopes: string[]][] = [
    ['aud as a text', { aud: HERE }, {}, []],
    ['aud as a list', { aud: ['x', HERE] }, {}, []],
    ['aud that is configured', { aud: 'api://bridge' }, {}, []],
    ['the address of another transport', { aud: 'https://bridge.example/github/sse' }, {}, []],
    ['scope as a text', { aud: HERE, scope: 'a b' }, {}, ['a', 'b']],
    ['scope as a list', { aud: HERE, scope: ['a', 'b'] }, {}, ['a', 'b']],
    ['scp as a text', { aud: HERE, scp: 'a b' }, {}, ['a', 'b']],
    ['scp as a list', { aud: HERE, scp: ['a'], scope: 'b' }, {}, ['a', 'b']],
    ['groups', { aud: HERE, realm_access: { roles: ['admins', 'others', 'constructor'] } }, {}, ['write']],
    ['typ JWT', { aud: HERE }, { typ: 'JWT' }, []],
    ['no typ', { aud: HERE }, { typ: undefined }, []],
    ['no kid', { aud: HERE }, { kid: undefined }, []],
    ['a clock that is 50 s ahead', { aud: HERE, nbf: Date.now() / 1_000 + 50, iat: Date.now() / 1_000 + 50 }, {}, []],
    ['a clock that is 50 s behind', { aud: HERE, exp: Date.now() / 1_000 - 50 }, {}, []],
    ['keys of its own, which nobody reads', { aud: HERE }, { jku: 'https://x.example', x5u: 'https://x.example' }, []],
  ]
  for (const [name, claims, header, scopes] of rows) {
    const verified = await verify(await issuer.token(claims, header))
    t.match(verified?.principal, /^j:[0-9a-f]{32}$/, name)
    t.same([...(verified?.grant.scopes ?? ['none'])].sort(), scopes, name)
  }
  t.same(issuer.asked, ['/.well-known/oauth-authorization-server', '/jwks'])
})

t.test('A31: a wrong token is not accepted, and no address that it names is asked', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const foreign = await trap(t)
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { verify } = setUp(issuer)
  const now = Math.floor(Date.now() / 1_000)
  const good: Json = { aud: HERE }
  const all = { iss: issuer.url, sub: 'alice', aud: HERE, iat: now, exp: now + 600 }
  const right = await issuer.token(good)
  const [head = '', body = '', signature = ''] = right.split('.')
  const pem = issuer.publicKey.export({ format: 'pem', type: 'spki' })
  const jwk = JSON.stringify(issuer.publicKey.export({ format: 'jwk' }))
  const hmac = (key: string | Buffer, alg = 'HS256') => {
    const text = `${part({ alg, kid: 'k1', typ: 'at+jwt' })}.${part(all)}`
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const own = other.publicKey.export({ format: 'jwk' }) as JWK
  const encrypted = await new CompactEncrypt(Buffer.from(JSON.stringify(all)))
    .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: 'k1' })
    .encrypt(issuer.publicKey)
  const weak = createPrivateKey(
    generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'pem', type: 'pkcs8' }),
  )
  const claims = (more: Json, header: Json = {}) => issuer.token({ ...good, ...more }, header)
  const rows: [name: string, token: string | Promise<string>][] = [
    // The signature.
    ['alg none', issuer.raw({ alg: 'none' }, all, '')],
    ['alg None', issuer.raw({ alg: 'None' }, all, 'x')],
    ['alg none with the signature', `${part({ alg: 'none' })}.${body}.${signature}`],
    ['no alg', issuer.raw({ kid: 'k1' }, all)],
    ['HS256 by the public key as PEM', hmac(pem)],
    ['HS256 by the public key as JWK', hmac(jwk)],
    ['HS256 by nothing', hmac('')],
    ['an alg that is not configured', claims({}, { alg: 'RS512' })],
    ['RS256 in lower case', issuer.raw({ alg: 'rs256', kid: 'k1' }, all, signature)],
    ['no signature', `${head}.${body}.`],
    ['without the last part', `${head}.${body}`],
    ['the signature of another token', `${head}.${part({ ...all, sub: 'root' })}.${signature}`],
    ['a signature that is cut off', right.slice(0, -4)],
    ['a signature with a changed end', `${right.slice(0, -6)}AAAAAA`],
    ['another key with the kid', issuer.token(good, {}, other.privateKey)],
    ['another key without kid', issuer.token(good, { kid: undefined }, weak)],
    ['another kind of key', issuer.token(good, { alg: 'ES256' }, elliptic.privateKey)],
    ['a kid that is unknown', issuer.token(good, { kid: 'k2' }, other.privateKey)],
    ['a kid that is a path', issuer.token(good, { kid: '../../etc/passwd' }, other.privateKey)],
    ['a kid that every object has', issuer.token(good, { kid: '__proto__' }, other.privateKey)],
    ['a key in the header', issuer.token(good, { jwk: own, kid: undefined }, other.privateKey)],
    ['jku', issuer.token(good, { jku: `${foreign.url}/jwks` }, other.privateKey)],
    ['x5u', issuer.token(good, { x5u: `${foreign.url}/x5u` }, other.privateKey)],
    ['x5c', issuer.token(good, { x5c: ['AAAA'] }, other.privateKey)],
    ['crit', claims({}, { crit: ['exp'], exp: now })],
    ['crit that is known', claims({}, { crit: ['b64'], b64: true })],
    ['crit that is empty', issuer.raw({ alg: 'RS256', kid: 'k1', crit: [] }, all, signature)],
    // The form.
    ['a JWE', encrypted],
    ['text that is no token', 'not-a-token'],
    ['three parts that are no JSON', 'aaaa.bbbb.cccc'],
    ['claims that are a list', issuer.raw({ alg: 'RS256', kid: 'k1' }, '[]')],
    ['claims that are null', issuer.raw({ alg: 'RS256', kid: 'k1' }, 'null')],
    ['padding', `${right}=`],
    ['a space within', `${head}. ${body}.${signature}`],
    ['four parts', `${right}.x`],
    ['more than 16 KiB', claims({ x: 'x'.repeat(17_000) })],
    // What kind of token it is.
    ['typ of a DPoP proof', claims({}, { typ: 'dpop+jwt' })],
    ['typ of a logout token', claims({}, { typ: 'logout+jwt' })],
    ['typ that is no text', issuer.raw({ alg: 'RS256', kid: 'k1', typ: 1 }, all, signature)],
    ['an ID token by its nonce', claims({ nonce: 'n' })],
    ['an ID token by at_hash', claims({ at_hash: 'x' })],
    ['an ID token by c_hash', claims({ c_hash: 'x' })],
    ['an ID token of Keycloak', claims({ typ: 'ID' })],
    ['a refresh token of Keycloak', claims({ typ: 'Refresh' })],
    ['an ID token of Cognito', claims({ token_use: 'id' })],
    ['bound to a key', claims({ cnf: { jkt: 'x' } })],
    // The issuer.
    ['no iss', issuer.token({ ...good, iss: undefined })],
    ['iss of another', claims({ iss: foreign.url })],
    ['iss with a slash', claims({ iss: `${issuer.url}/` })],
    ['iss in upper case', claims({ iss: issuer.url.toUpperCase() })],
    ['iss as a list', claims({ iss: [issuer.url] })],
    ['iss that begins like it', claims({ iss: `${issuer.url}.evil.example` })],
    // The audience.
    ['no aud', issuer.token({})],
    ['an empty aud', claims({ aud: '' })],
    ['an empty list', claims({ aud: [] })],
    ['aud of another mount', claims({ aud: 'https://bridge.example/stock/mcp' })],
    ['the beginning of aud', claims({ aud: 'https://bridge.example/github' })],
    ['the origin alone', claims({ aud: 'https://bridge.example' })],
    ['aud with more behind it', claims({ aud: `${HERE}/more` })],
    ['aud with a slash', claims({ aud: `${HERE}/` })],
    ['aud in other case', claims({ aud: HERE.replace('github', 'GitHub') })],
    ['aud of another scheme', claims({ aud: HERE.replace('https', 'http') })],
    ['aud with a port', claims({ aud: HERE.replace('example', 'example:443') })],
    ['aud as an object', claims({ aud: { [HERE]: true } })],
    ['aud with a number in the list', claims({ aud: [HERE, 1] })],
    // The time.
    ['expired', claims({ exp: now - 61 })],
    ['no exp', issuer.token({ ...good, exp: undefined })],
    ['exp as a text', claims({ exp: String(now + 600) })],
    ['nbf in the future', claims({ nbf: now + 120 })],
    ['iat in the future', claims({ iat: now + 120 })],
    // Whose it is.
    ['no sub', issuer.token({ ...good, sub: undefined })],
    ['an empty sub', claims({ sub: '' })],
    ['sub as a number', claims({ sub: 1 })],
    ['an endless sub', claims({ sub: 's'.repeat(1_025) })],
  ]
  t.ok(rows.length >= 60, `${rows.length} wrong tokens`)
  for (const [name, token] of rows) t.equal(await verify(await token), undefined, name)
  t.same(foreign.asked, [], 'nobody asked an address of theirs')
  t.ok(issuer.asked.filter((path) => path === '/jwks').length <= 2, issuer.asked.join())
  t.ok(await verify(right), 'and the right one is accepted all the same')
})

t.test('A32: a token for one endpoint is not taken by another, unless its audience is configured', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const plain = setUp(issuer)
  const own = await issuer.token({ aud: HERE })
  t.ok(await plain.verify(own))
  t.equal(await plain.verify(own, ELSEWHERE), undefined, 'also when it is known')
  const shared = setUp(issuer, { audience: ['api://bridge'] })
  const common = await issuer.token({ aud: 'api://bridge' })
  t.ok(await shared.verify(common))
  t.ok(await shared.verify(common, ELSEWHERE))
})

t.test('required claims take the place of a missing audience, and not of a wrong one', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, { claims: { client_id: ['bridge', 'cli'], token_use: ['access'] } })
  const rows: [name: string, claims: Json, accepted: boolean][] = [
    ['both', { client_id: 'bridge', token_use: 'access' }, true],
    ['the other client', { client_id: 'cli', token_use: 'access' }, true],
    ['with an audience, too', { client_id: 'cli', token_use: 'access', aud: HERE }, true],
    ['another client', { client_id: 'evil', token_use: 'access' }, false],
    ['no client', { token_use: 'access' }, false],
    ['only one of them', { client_id: 'bridge' }, false],
    ['a wrong audience', { client_id: 'bridge', token_use: 'access', aud: 'https://other.example' }, false],
  ]
  for (const [name, claims, accepted] of rows)
    t.equal((await verify(await issuer.token(claims))) !== undefined, accepted, name)
})

t.test('groups that a token leaves out are an error that names them, never no groups', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, { groups: 'groups', map: { admins: ['write'] } })
  const overage = {
    aud: HERE,
    _claim_names: { groups: 'src1' },
    _claim_sources: { src1: { endpoint: 'https://x.example' } },
  }
  const refused = await verify(await issuer.token(overage)).catch((error: unknown) => error)
  t.ok(refused instanceof Fault && refused.fault === 'groupsUnknown' && /_claim_names/.test(refused.message))
  t.same([...((await verify(await issuer.token({ aud: HERE })))?.grant.scopes ?? ['none'])], [])
})

t.test('a person is the issuer and the subject: neither alone, and no mix of both', async (t) => {
  const issuers = [await TokenIssuer.start(t), await TokenIssuer.start(t)]
  const verifier = new Verifier({ issuers: issuers.map(({ url }) => settingsOf(url)) })
  const tokens = await Promise.all(
    issuers.flatMap((issuer) => ['alice', 'bob'].map((sub) => issuer.token({ aud: HERE, sub }))),
  )
  const verified = await Promise.all(tokens.map(async (token) => verifier.verify(token, AT)))
  t.equal(new Set(verified.map((one) => one?.principal)).size, 4)
  const again = await verifier.verify((await issuers[0]?.token({ aud: HERE, sub: 'alice' })) as string, AT)
  t.equal(again?.principal, verified[0]?.principal)
})

t.test(
  'A36: while the issuer is away, known keys count for a day, and unknown tokens are neither let in nor refused',
  async (t) => {
    const issuer = await TokenIssuer.start(t)
    const { verify, later } = setUp(issuer)
    const lasting = { aud: HERE, exp: Date.now() / 1_000 + 200_000 }
    issuer.instead = (_path, response) => void response.writeHead(503).end()
    const faultOf = (token: string) =>
      verify(token).then(
        (verified) => verified,
        (error: unknown) => (error instanceof Fault ? [error.fault, error.status, error.retryAfter] : error),
      )
    t.same(await faultOf(await issuer.token(lasting)), ['authUnavailable', 503, 5])
    const asked = issuer.asked.length
    for (let i = 0; i < 20; i++) await faultOf(await issuer.token(lasting))
    t.equal(issuer.asked.length, asked, 'it is not asked again for each')
    issuer.instead = undefined
    later(6_000)
    t.ok(await verify(await issuer.token(lasting)))
    issuer.instead = (_path, response) => void response.destroy()
    later(23 * 3_600_000)
    t.ok(await verify(await issuer.token(lasting)), 'within a day')
    t.same(await faultOf(await issuer.token(lasting, { kid: 'new' })), ['authUnavailable', 503, 5], 'a new key')
    later(3_600_000)
    t.same(await faultOf(await issuer.token(lasting)), ['authUnavailable', 503, 5], 'after a day')
  },
)

t.test('a new key of the issuer is found when a token has it', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer)
  t.ok(await verify(await issuer.token({ aud: HERE })))
  const next = generateKeyPairSync('rsa', { modulusLength: 2048 })
  issuer.keys.push({ ...next.publicKey.export({ format: 'jwk' }), kid: 'k2', use: 'sig', alg: 'RS256' } as JWK)
  later(31_000)
  t.ok(await verify(await issuer.token({ aud: HERE, exp: Date.now() / 1_000 + 200 }, { kid: 'k2' }, next.privateKey)))
})

t.test('A38: 10,000 made-up kids and 10,000 opaque tokens take a few requests, and little memory', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } })
  const [, body = '', signature = ''] = (await issuer.token({ aud: HERE })).split('.')
  for (let i = 0; i < 10_000; i++) {
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: `made-up-${i}` })).toString('base64url')
    if ((await verify(`${header}.${body}.${signature}`)) !== undefined) t.fail(`${i} was accepted`)
  }
  t.ok(issuer.asked.length <= 3, `${issuer.asked.length} requests for keys`)
  issuer.instead = (_path, response) =>
    void setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"active":false}'), 10)
  const all = Array.from({ length: 10_000 }, (_, i) =>
    verify(`opaque-${i}`).then(
      () => 'refused',
      (error: unknown) => (error instanceof Fault ? error.fault : String(error)),
    ),
  )
  const ends = await Promise.all(all)
  t.same([...new Set(ends)].sort(), ['authUnavailable', 'refused'])
  const refused = ends.filter((one) => one === 'refused').length
  t.ok(refused <= 32, `${refused} were asked about at once`)
})

t.test('a token that is no JWT is asked about once, and not again for a while', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } })
  const active = { active: true, sub: 'alice', aud: HERE, exp: Date.now() / 1_000 + 600, scope: 'a', client_id: 'app' }
  const tokens: [token: string, known: Json, accepted: boolean][] = [
    ['good', active, true],
    ['inactive', { ...active, active: false }, false],
    ['active as a text', { ...active, active: 'true' }, false],
    ['for another', { ...active, aud: 'https://other.example' }, false],
    ['without aud', { ...active, aud: undefined }, false],
    ['without sub', { ...active, sub: undefined }, false],
    ['without exp', { ...active, exp: undefined }, false],
    ['of another issuer', { ...active, iss: 'https://other.example' }, false],
    ['bound to a key', { ...active, cnf: { jkt: 'x' } }, false],
    ['with a proof', { ...active, token_type: 'DPoP' }, false],
  ]
  for (const [token, known, accepted] of tokens) {
    issuer.opaque.set(token.replaceAll(' ', '-'), known)
    const verified = await verify(token.replaceAll(' ', '-')).catch((error: unknown) => String(error))
    if (accepted) t.match(verified, { grant: { subject: 'alice', application: 'app' } }, token)
    else t.notMatch(verified, { principal: /./ }, token)
  }
  const asked = () => issuer.asked.filter((path) => path === '/introspect').length
  const before = asked()
  await Promise.all(Array.from({ length: 20 }, () => verify('good')))
  await verify('inactive')
  t.equal(asked(), before, 'what is known is not asked again')
  later(31_000)
  await Promise.all(Array.from({ length: 20 }, () => verify('good')))
  t.equal(asked(), before + 1, 'and then once for all')
})
