/** Tokens of identity providers: which are accepted, which are not, and what the bridge asks of whom meanwhile. */
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { JWK } from 'jose'
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import type { IssuerSettings } from '../../src/services/oauth/server/settings.js'
import { Verifier } from '../../src/services/oauth/server/verifier.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { rsaKeys } from '../support/rsa-keys.js'
import { TokenIssuer } from '../support/token-issuer.js'
import { wrongTokens } from '../support/wrong-tokens.js'

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

function setUp(issuer: TokenIssuer, more: Partial<IssuerSettings> = {}, clock = Date.now) {
  let ahead = 0
  const verifier = new Verifier({ issuers: [settingsOf(issuer.url, more)], now: () => clock() + ahead })
  return {
    verifier,
    verify: async (token: string, at = AT) => {
      const verified = await verifier.verify(token, at)
      return 'why' in verified ? undefined : verified
    },
    later: (ms: number) => {
      ahead += ms
    },
  }
}

/** A clock that stands still, for what holds for a while. */
function stopped(): () => number {
  const now = Date.now()
  return () => now
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

t.test('accepts a valid token, in any form of claims that issuers use', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const clock = stopped()
  const more = {
    audience: ['api://bridge'],
    groups: 'realm_access.roles',
    map: { admins: ['write'] },
  }
  const { verify } = setUp(issuer, more, clock)
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
    ['a clock that is 50 s ahead', { aud: HERE, nbf: clock() / 1_000 + 50, iat: clock() / 1_000 + 50 }, {}, []],
    ['a clock that is 50 s behind', { aud: HERE, exp: clock() / 1_000 - 50 }, {}, []],
    ['keys of its own, which nobody reads', { aud: HERE }, { jku: 'https://x.example', x5u: 'https://x.example' }, []],
  ]
  for (const [name, claims, header, scopes] of rows) {
    const verified = await verify(await issuer.token(claims, header))
    t.match(verified?.principal, /^j:[0-9a-f]{32}$/, name)
    t.same([...(verified?.grant.scopes ?? ['none'])].sort(), scopes, name)
  }
  t.same(issuer.asked, ['/.well-known/oauth-authorization-server', '/jwks'])
})

t.test('refuses a wrong token, and requests no address that it names', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const foreign = await trap(t)
  const { verify, verifier } = setUp(issuer)
  const right = await issuer.token({ aud: HERE })
  const rows = await wrongTokens(issuer, HERE, foreign.url)
  t.ok(rows.length >= 60, `${rows.length} wrong tokens`)
  for (const [name, token] of rows) {
    t.equal(await verify(token), undefined, name)
    const said = JSON.stringify(await verifier.verify(token, AT))
    t.match(said, /^\{"why":"/, said)
    for (const part of token.split('.'))
      if (part.length > 20) t.notOk(said.includes(part), `${name}: nothing of it is said`)
  }
  t.same(foreign.asked, [], 'nobody asked an address of theirs')
  // One for the first token, and one for each key that is unknown.
  t.ok(issuer.asked.filter((path) => path === '/jwks').length <= 5, issuer.asked.join())
  t.ok(await verify(right), 'and the right one is accepted all the same')
})

t.test('the log has what was expected of a token, and what it contained', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const now = Math.floor(Date.now() / 1_000)
  const settings = settingsOf(issuer.url, { audience: ['api://bridge'], claims: { client_id: ['app', 'cli'] } })
  const verifier = new Verifier({ issuers: [settings], now: () => now * 1_000 })
  const { url } = issuer
  const good = { aud: HERE, client_id: 'app' }
  const other = rsaKeys()
  const [streams] = [...AT].slice(1)
  const rows: [token: string | Promise<string>, why: string][] = [
    [
      issuer.token({ ...good, aud: `${HERE}/` }),
      `expected aud to be "${HERE}" or "${streams}" or "api://bridge", got ["${HERE}/"]`,
    ],
    [
      issuer.token({ ...good, aud: ['a', 'b'] }),
      `expected aud to be "${HERE}" or "${streams}" or "api://bridge", got ["a","b"]`,
    ],
    [issuer.token({ ...good, iss: `${url}/` }), `expected iss to be "${url}", got "${url}/"`],
    [issuer.token({ ...good, iss: undefined }), `expected iss to be "${url}", got none`],
    [issuer.token({ ...good, exp: now - 3_600 }), 'it has expired 3600 s ago'],
    [issuer.token({ ...good, nbf: now + 3_600 }), 'its nbf is 3600 s in the future: do the clocks differ?'],
    [issuer.token({ ...good, client_id: 'x' }), 'expected client_id to be "app" or "cli", got "x"'],
    [issuer.token({ ...good, client_id: undefined }), 'expected client_id to be "app" or "cli", got none'],
    [
      issuer.token({ ...good, nonce: 'n' }, { typ: 'JWT' }),
      'expected an access token, got one with nonce, which ID tokens have',
    ],
    [
      issuer.token({ ...good, cnf: {} }),
      'expected an access token, got one with cnf, which only counts with a proof of a key',
    ],
    [issuer.token({ ...good, typ: 'ID' }), 'expected an access token, got one with typ "ID"'],
    [issuer.token(good, { typ: 'logout+jwt' }), 'expected typ to be "at+jwt" or "JWT", got "logout+jwt"'],
    [issuer.token(good, { alg: 'RS384' }), 'expected alg to be "RS256" or "PS256" or "ES256" or "EdDSA", got "RS384"'],
    [issuer.token(good, {}, other.privateKey), `its signature is not one of "${url}"`],
    [issuer.token(good, { kid: 'k9' }, other.privateKey), `none of the keys of "${url}" has its kid and kind`],
    ['opaque', 'it is no JWT, and no issuer of "auth.issuers" has "introspection"'],
  ]
  const strict = new Verifier({ issuers: [settingsOf(issuer.url)], now: () => now * 1_000 })
  const noAudience = 'it has no aud: name values that other claims must have in "claims" of its issuer'
  t.same(await strict.verify(await issuer.token(), AT), { why: noAudience })
  for (const [token, why] of rows) t.same(await verifier.verify(await token, AT), { why })
})

t.test('an endpoint refuses a token for another one, unless its audience is configured', async (t) => {
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

t.test('required claims replace a missing audience, and not a wrong one', async (t) => {
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

t.test('required claims can be truth values and numbers', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, { claims: { email_verified: ['true'], tenant: ['7', '8'] } })
  const good = { aud: HERE, email_verified: true, tenant: 7 }
  t.ok(await verify(await issuer.token(good)))
  t.ok(await verify(await issuer.token({ ...good, email_verified: 'true', tenant: [1, 8] })))
  for (const wrong of [{ email_verified: false }, { email_verified: null }, { email_verified: {} }, { tenant: 70 }])
    t.notOk(await verify(await issuer.token({ ...good, ...wrong })), JSON.stringify(wrong))
})

t.test('a token that leaves out its groups is an error that names them, not a token without groups', async (t) => {
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

t.test('a principal is issuer and subject: neither alone, and no mix of both', async (t) => {
  const issuers = [await TokenIssuer.start(t), await TokenIssuer.start(t)]
  const verifier = new Verifier({ issuers: issuers.map(({ url }) => settingsOf(url)) })
  const tokens = await Promise.all(
    issuers.flatMap((issuer) => ['alice', 'bob'].map((sub) => issuer.token({ aud: HERE, sub }))),
  )
  const principalOf = async (token = '') => {
    const verified = await verifier.verify(token, AT)
    return 'why' in verified ? verified : verified.principal
  }
  const principals = await Promise.all(tokens.map(principalOf))
  t.equal(new Set(principals).size, 4)
  t.equal(await principalOf(await issuers[0]?.token({ aud: HERE, sub: 'alice' })), principals[0])
})

t.test(
  'while the issuer is unreachable, known keys count for a day, and unknown tokens are neither accepted nor refused',
  async (t) => {
    const issuer = await TokenIssuer.start(t)
    const clock = stopped()
    const { verify, later } = setUp(issuer, {}, clock)
    const lasting = { aud: HERE, iat: clock() / 1_000, exp: clock() / 1_000 + 200_000 }
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
    later(3_600_001)
    t.same(await faultOf(await issuer.token(lasting)), ['authUnavailable', 503, 5], 'after a day')
  },
)

t.test('finds a new key of the issuer when a token names it', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer)
  t.ok(await verify(await issuer.token({ aud: HERE })))
  const next = nextKey()
  issuer.keys.push(next.jwk)
  later(31_000)
  t.ok(await verify(await issuer.token({ aud: HERE, exp: Date.now() / 1_000 + 200 }, { kid: 'k2' }, next.privateKey)))
})

/** A key that the issuer has not published yet. */
function nextKey(kid = 'k2') {
  const pair = rsaKeys()
  return { ...pair, jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } as JWK }
}

t.test('a key that was rotated a moment ago is never a wrong token', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, {}, stopped())
  t.ok(await verify(await issuer.token({ aud: HERE })))
  const { jwk, privateKey } = nextKey()
  issuer.keys = [jwk]
  t.ok(await verify(await issuer.token({ aud: HERE }, { kid: 'k2' }, privateKey)), 'at once')

  const third = nextKey('k3')
  const outcome = async () =>
    verify(await issuer.token({ aud: HERE }, { kid: 'k3' }, third.privateKey)).then(
      (verified) => (verified ? 'accepted' : 'refused'),
      (error: Fault) => `${error.fault} ${error.retryAfter}`,
    )
  const strangers = Array.from({ length: 20 }, (_, i) => `made-up-${i}`)
  for (const kid of strangers)
    await verify(await issuer.token({ aud: HERE }, { kid }, third.privateKey)).catch(() => {})
  issuer.keys = [jwk, third.jwk]
  t.equal(await outcome(), 'authUnavailable 10', 'strangers have used all fetches')
  later(10_001)
  t.equal(await outcome(), 'accepted', 'and then it is found')
})

t.test('a key that comes in place of another one is used, with the same id or without', async (t) => {
  for (const kid of ['k1', undefined]) {
    const issuer = await TokenIssuer.start(t)
    const named = (jwk: JWK | undefined) => ({ ...jwk, ...(kid === undefined && { kid: undefined }) }) as JWK
    issuer.keys = issuer.keys.map(named)
    const { verify, later } = setUp(issuer, {}, stopped())
    t.ok(await verify(await issuer.token({ aud: HERE }, { kid })))
    const { jwk, privateKey } = nextKey('k1')
    issuer.keys = [named(jwk)]
    later(30_001)
    t.ok(await verify(await issuer.token({ aud: HERE }, { kid }, privateKey)), `${kid} with the next key`)
    t.equal(await verify(await issuer.token({ aud: HERE }, { kid })), undefined, `${kid} with the former key`)
  }
})

t.test('a token without the id of its key fits the key that comes, beside others', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, {}, stopped())
  issuer.keys = [...issuer.keys, nextKey('other').jwk]
  t.ok(await verify(await issuer.token({ aud: HERE }, { kid: undefined })))
  const { jwk, privateKey } = nextKey('k2')
  issuer.keys = [...issuer.keys, jwk]
  later(30_001)
  t.ok(await verify(await issuer.token({ aud: HERE }, { kid: undefined }, privateKey)))
})

t.test('wrong signatures take few fetches of keys, and stay wrong', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, {}, stopped())
  t.ok(await verify(await issuer.token({ aud: HERE })))
  const { privateKey } = nextKey()
  later(30_001)
  for (let n = 0; n < 50; n++) t.equal(await verify(await issuer.token({ aud: HERE }, {}, privateKey)), undefined)
  t.ok(issuer.asked.filter((path) => path === '/jwks').length <= 2)
})

t.test('a key that comes while the keys are being fetched is looked for again', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, {}, stopped())
  t.ok(await verify(await issuer.token({ aud: HERE })))
  const { jwk, privateKey } = nextKey()
  const old = JSON.stringify({ keys: issuer.keys })
  const held: ServerResponse[] = []
  issuer.instead = (_path, response) => void held.push(response)
  const stranger = verify(await issuer.token({ aud: HERE }, { kid: 'made-up' }, privateKey))
  await until(() => held.length === 1)
  issuer.keys = [jwk]
  issuer.instead = undefined
  const verified = verify(await issuer.token({ aud: HERE }, { kid: 'k2' }, privateKey))
  held[0]?.setHeader('content-type', 'application/json').end(old)
  t.equal(await stranger, undefined)
  t.ok(await verified)
})

t.test('uses keys however many there are and however they are sent', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const x5c = ['A'.repeat(3_000)]
  const others = Array.from({ length: 60 }, (_, i) => ({ ...issuer.keys[0], kid: `other-${i}`, x5c }) as JWK)
  const forEncryption = Array.from({ length: 300 }, (_, i) => ({ ...issuer.keys[0], kid: `e-${i}`, use: 'enc' }) as JWK)
  const keys = [...forEncryption, ...others, ...issuer.keys]
  for (const [encoding, pack] of [
    ['identity', (bytes: Buffer) => bytes],
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const) {
    const { verify } = setUp(issuer)
    issuer.instead = (path, response) => {
      const body = path === '/jwks' ? { keys } : { issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` }
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
      response.end(pack(Buffer.from(JSON.stringify(body))))
    }
    t.ok(await verify(await issuer.token({ aud: HERE })), encoding)
  }
})

t.test('keys beyond the bound, and keys that become too long when they are unpacked, are told', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const reported: object[] = []
  const reporting = () =>
    new Verifier({ issuers: [settingsOf(issuer.url)], report: (state) => void reported.push(state) })
  issuer.keys = Array.from({ length: 250 }, (_, i) => ({ ...issuer.keys[0], kid: `k${i}` }) as JWK)
  const verifier = reporting()
  t.teardown(() => verifier.close())
  await verifier.prepare()
  t.match(reported, [{ issuer: issuer.url, state: 'up', leftOut: 50 }])
  issuer.instead = (_path, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(8_000_000, ' ')))
  }
  const other = reporting()
  t.teardown(() => other.close())
  await other.prepare()
  t.match(reported[1], { state: 'down', why: /more than \d+ bytes/ })
})

t.test('says why the keys of an issuer cannot be had, once until they can', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const reported: object[] = []
  const clock = { now: Date.now() }
  const verifier = new Verifier({
    issuers: [settingsOf(issuer.url)],
    report: (state) => void reported.push(state),
    now: () => clock.now,
  })
  t.teardown(() => verifier.close())
  const answers: [name: string, answer: (response: ServerResponse) => void, why: RegExp][] = [
    ['404', (response) => response.writeHead(404).end(), /publishes no metadata/],
    ['503', (response) => response.writeHead(503).end(), /HTTP 503/],
    ['HTML', (response) => response.end('<html>'), /publishes no metadata/],
    ['no answer', (response) => response.destroy(), /ended without an answer/],
  ]
  for (const [name, answer, why] of answers) {
    issuer.instead = (_path, response) => void answer(response)
    clock.now += 31_000
    await verifier.prepare()
    t.match(verifier.states, [{ issuer: issuer.url, state: 'down', why }], name)
  }
  const onlyKeys: [name: string, answer: (response: ServerResponse) => void, why: RegExp][] = [
    ['404', (response) => response.writeHead(404).end(), /has no keys: it answers HTTP 404/],
    ['401', (response) => response.writeHead(401).end(), /has no keys: it answers HTTP 401/],
    ['HTML', (response) => response.end('<html>'), /has no keys: .* no JSON object/],
    ['another document', (response) => response.end('{}'), /has no keys: .* without a list "keys"/],
    ['no keys', (response) => response.end('{"keys":[]}'), /has no keys: its list "keys" is empty/],
    ['others', (response) => response.end('{"keys":[{"kty":"RSA","use":"enc"},null]}'), /none .* is for signatures/],
  ]
  for (const [name, answer, why] of onlyKeys) {
    issuer.instead = (path, response) => {
      if (path === '/jwks') answer(response)
      else response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` }))
    }
    clock.now += 31_000
    await verifier.prepare()
    t.match(verifier.states, [{ state: 'down', why }], name)
  }
  t.equal(reported.length, 1, 'told once')
  issuer.instead = undefined
  clock.now += 31_000
  await verifier.prepare()
  t.match(reported, [{ state: 'down' }, { state: 'up' }])
  t.same(verifier.states, [{ issuer: issuer.url, state: 'up' }])
})

t.test('10,000 invented key ids and 10,000 opaque tokens take few requests, and little memory', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } }, stopped())
  const [, body = '', signature = ''] = (await issuer.token({ aud: HERE })).split('.')
  const answers: unknown[] = []
  for (let i = 0; i < 10_000; i++) {
    const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: `made-up-${i}` })).toString('base64url')
    const verified = await verify(`${header}.${body}.${signature}`).catch((error: unknown) => error)
    answers.push(verified instanceof Fault ? `${verified.fault} ${verified.retryAfter}` : verified)
  }
  t.same(new Set(answers.slice(0, 5)), new Set([undefined]), 'the issuer has no such key')
  t.same(new Set(answers.slice(6)), new Set(['authUnavailable 10']), 'this cannot be known now')
  t.ok(issuer.asked.length <= 7, `${issuer.asked.length} requests for keys`)
  const held: ServerResponse[] = []
  issuer.instead = (_path, response) => void held.push(response)
  const ends: string[] = []
  const all = Array.from({ length: 10_000 }, (_, i) =>
    verify(`opaque-${i}`).then(
      () => ends.push('refused'),
      (error: unknown) => ends.push(error instanceof Fault ? error.fault : String(error)),
    ),
  )
  await until(() => ends.length >= 10_000 - 32, 'the end of all that the issuer is not asked about')
  const answer = (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"active":false}')
  issuer.instead = (_path, response) => void answer(response)
  held.forEach(answer)
  await Promise.all(all)
  t.same([...new Set(ends)].sort(), ['authUnavailable', 'refused'])
  const refused = ends.filter((one) => one === 'refused').length
  t.ok(refused <= 32, `${refused} were asked about at once`)
})

t.test('introspects an opaque token once, and not again for a while', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } }, stopped())
  const active = { active: true, sub: 'alice', aud: HERE, exp: Date.now() / 1_000 + 600, scope: 'a', client_id: 'app' }
  const tokens: [token: string, known: Json, accepted: boolean][] = [
    ['good', active, true],
    ['inactive', { ...active, active: false }, false],
    ['active as a text', { ...active, active: 'true' }, false],
    ['for another', { ...active, aud: 'https://other.example' }, false],
    ['without aud', { ...active, aud: undefined }, false],
    ['without a name of anybody', { ...active, sub: undefined, client_id: undefined }, false],
    ['with a sub that is no text', { ...active, sub: 7 }, false],
    ['with half of a surrogate pair', { ...active, sub: 'alice\ud800' }, false],
    ['with an exp that is no time', { ...active, exp: 'tomorrow' }, false],
    ['with an exp of digits and more', { ...active, exp: '4102444800 ' }, false],
    ['expired', { ...active, exp: Date.now() / 1_000 - 600 }, false],
    ['expired, as a text', { ...active, exp: '1000000000' }, false],
    ['not yet valid, as a text', { ...active, nbf: '4102444800' }, false],
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

t.test('of an introspected token only "active" is required, and who it is of', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } }, stopped())
  const at = { active: true, aud: HERE }
  const none = { sub: null, username: null, client_id: null, exp: null, nbf: null, iat: null, cnf: null, iss: null }
  const rows: [name: string, said: Json, subject: string][] = [
    ['sub', { ...at, sub: 'alice', username: 'bob', client_id: 'app' }, 'alice'],
    ['sub without exp', { ...at, sub: 'alice' }, 'alice'],
    ['nulls', { ...at, ...none, token_type: null, scope: null, sub: 'alice' }, 'alice'],
    ['username', { ...at, ...none, username: 'alice', client_id: 'app' }, 'username:alice'],
    ['client_id', { ...at, ...none, client_id: 'alice' }, 'client_id:alice'],
    ['sub that is like another kind', { ...at, sub: 'username:alice' }, 'username:alice'],
    ['an empty sub', { ...at, sub: '', username: 'alice' }, 'username:alice'],
    ['nonce', { ...at, sub: 'alice', nonce: 'n' }, 'alice'],
    ['token_type of Hydra', { ...at, sub: 'alice', token_type: 'access_token' }, 'alice'],
    ['times as texts', { ...at, sub: 'alice', exp: '4102444800', nbf: '0', iat: '0' }, 'alice'],
  ]
  const principals = new Map<string, string | undefined>()
  for (const [name, said, subject] of rows) {
    const token = name.replaceAll(' ', '-')
    issuer.opaque.set(token, said)
    const verified = await verify(token)
    t.equal(verified?.grant.subject, subject, name)
    principals.set(name, verified?.principal)
  }
  const of = (...names: string[]) => new Set(names.map((name) => principals.get(name))).size
  t.equal(of('sub', 'username', 'client_id', 'sub that is like another kind'), 4, 'two kinds never meet')
  t.equal(of('sub', 'sub without exp', 'nulls', 'nonce'), 1)
  t.equal(of('username', 'an empty sub'), 1)
  issuer.opaque.set('sub-without-exp', { active: false })
  later(31_000)
  t.equal(await verify('sub-without-exp'), undefined, 'a token without exp is asked about again, too')
})

t.test('reads metadata with nulls, and introspects in the way that they say', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const absent = { registration_endpoint: null, revocation_endpoint: '', authorization_endpoint: null }
  issuer.metadata = { ...absent, introspection_endpoint_auth_methods_supported: ['client_secret_post'] }
  const { verify } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 'CANARY-s' } }, stopped())
  issuer.opaque.set('opaque', { active: true, aud: HERE, sub: 'alice' })
  t.equal((await verify('opaque'))?.grant.subject, 'alice')
  const [asked] = issuer.received.filter(({ path }) => path === '/introspect')
  t.match(asked?.text, /client_secret=CANARY-s/)
  t.notMatch(asked?.text, /^authorization$/im)
  t.ok(await verify(await issuer.token({ aud: HERE })), 'a JWT')
})

t.test('accepts what providers put into access tokens', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const groups = 'resource_access.mcp.example.com.roles'
  const { verify } = setUp(issuer, { groups, map: { admins: ['write'] } })
  const roles = { resource_access: { 'mcp.example.com': { roles: ['admins'] } } }
  const rows: [name: string, claims: Json, header: Json, scopes: string[]][] = [
    ['nonce of Keycloak', { nonce: 'n', typ: 'Bearer' }, { typ: 'JWT' }, []],
    ['nonce with scopes', { nonce: 'n', scope: 'a' }, { typ: 'JWT' }, ['a']],
    ['nonce and the type of RFC 9068', { nonce: 'n' }, { typ: 'application/at+jwt' }, []],
    ['nulls', { cnf: null, nbf: null, nonce: null, at_hash: null, scope: null, iat: null }, {}, []],
    ['nbf 0', { nbf: 0 }, {}, []],
    ['groups below a key with dots', roles, {}, ['write']],
    ['groups at a key with dots', { [groups]: 'admins' }, {}, ['write']],
    ['groups at a part with dots', { 'resource_access.mcp': { 'example.com': { roles: ['admins'] } } }, {}, ['write']],
    [
      'groups beside a key that leads nowhere',
      { 'resource_access.mcp': null, resource_access: { mcp: {}, ...roles.resource_access } },
      {},
      ['write'],
    ],
    ['groups of the prototype', { resource_access: { 'mcp.example.com': { constructor: ['admins'] } } }, {}, []],
  ]
  for (const [name, claims, header, scopes] of rows) {
    const verified = await verify(await issuer.token({ aud: HERE, ...claims }, header))
    t.same([...(verified?.grant.scopes ?? ['none'])], scopes, name)
  }
})

t.test('accepts the name that AD FS has in its tokens', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const iss = 'http://adfs.example.com/adfs/services/trust'
  issuer.metadata = { access_token_issuer: iss }
  const { verify } = setUp(issuer)
  t.match(await verify(await issuer.token({ aud: HERE, iss })), { grant: { issuer: issuer.url } })
  t.match(await verify(await issuer.token({ aud: HERE })), { grant: { issuer: issuer.url } })
  t.equal(await verify(await issuer.token({ aud: HERE, iss: `${iss}/` })), undefined)
})

t.test('a name that may be one of an issuer whose metadata cannot be had is not refused', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const iss = `${issuer.url}/adfs/services/trust`
  issuer.metadata = { access_token_issuer: iss }
  issuer.instead = (_path, response) => void response.writeHead(503).end()
  const { verify, later } = setUp(issuer, {}, stopped())
  const refused = await verify(await issuer.token({ aud: HERE, iss })).catch((error: unknown) => error)
  t.match(refused, { fault: 'authUnavailable', retryAfter: 5 })
  t.equal(await verify(await issuer.token({ aud: HERE, iss: 'https://other.example' })), undefined)
  issuer.instead = undefined
  later(5_001)
  t.match(await verify(await issuer.token({ aud: HERE, iss })), { grant: { issuer: issuer.url } })
})

t.test('accepts a token that it has checked at once, without its issuer', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verifier } = setUp(issuer)
  const token = await issuer.token({ aud: HERE })
  const first = await verifier.verify(token, AT)
  issuer.instead = (_path, response) => void response.destroy()
  const again = verifier.verify(token, AT)
  t.notOk(again instanceof Promise, 'not even a promise')
  t.equal(again, first)
})

t.test('without issuers, nothing is loaded that checks tokens', async (t) => {
  for (const [name, without] of [
    ['app/http-service', /oauth\/|node_modules\/(?:jose|oauth4webapi)/],
    ['app/http-app', /oauth\/|node_modules\/(?:jose|oauth4webapi)/],
  ] as const) {
    const { metafile } = await build({
      entryPoints: [fileURLToPath(new URL(`../../src/${name}.ts`, import.meta.url))],
      outdir: temporaryFolder(t),
      bundle: true,
      splitting: true,
      platform: 'node',
      format: 'esm',
      metafile: true,
      logLevel: 'error',
    })
    const [entry = ''] =
      Object.entries(metafile.outputs).find(([, { entryPoint }]) => entryPoint?.endsWith(`${name}.ts`)) ?? []
    const reached = new Set([entry])
    for (const path of reached)
      for (const { path: next, kind } of metafile.outputs[path]?.imports ?? [])
        if (kind === 'import-statement') reached.add(next)
    const inputs = [...reached].flatMap((path) => Object.keys(metafile.outputs[path]?.inputs ?? {}))
    t.ok(inputs.length > 10, `${inputs.length} files`)
    t.same(
      inputs.filter((path) => without.test(path)),
      [],
      name,
    )
  }
})

t.test('what is open with a token ends when another check refuses it, and not when it is checked again', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, { introspection: { clientId: 'b', clientSecret: 's' } }, stopped())
  const active = { active: true, sub: 'alice', aud: HERE, exp: Date.now() / 1_000 + 600 }
  for (const token of ['kept', 'revoked']) issuer.opaque.set(token, active)
  const kept = await verify('kept')
  const revoked = await verify('revoked')
  issuer.opaque.delete('revoked')
  later(31_000)
  t.equal(await verify('revoked'), undefined)
  t.match(revoked?.ends, { aborted: true, reason: { fault: 'tokenEnded' } })
  t.equal((await verify('kept'))?.ends, kept?.ends, 'the same life')
  t.notOk(kept?.ends.aborted)
})

t.test('what is open with a JWT ends when the keys of its issuer have changed', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify, later } = setUp(issuer, {}, stopped())
  const token = await issuer.token({ aud: HERE })
  const verified = await verify(token)
  issuer.keys = []
  later(700_000)
  t.equal(await verify(token), undefined)
  t.ok(verified?.ends.aborted)
})

t.test('a token that has just expired lives for as long as it is accepted', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const { verify } = setUp(issuer)
  const verified = await verify(await issuer.token({ aud: HERE, exp: Math.floor(Date.now() / 1_000) - 56 }))
  t.equal(verified?.ends.aborted, false)
  await new Promise<void>((resolve) => verified?.ends.addEventListener('abort', resolve))
  t.match(verified?.ends, { reason: { message: /has expired/ } })
})
