/** Proxies that sign what they say of a person, each as it does: Cloudflare Access, Google IAP, AWS load balancers, Pomerium. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { SignJWT } from 'jose'
import t, { type Test } from 'tap'
import { reachOf } from '../../src/services/oauth/reach.js'
import { PemKeys } from '../../src/services/oauth/server/pem-keys.js'
import { settingsOf } from '../support/bridge.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { call, send } from '../support/modern.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>

const ARN = 'arn:aws:elasticloadbalancing:eu-west-1:123456789012:loadbalancer/app/mcp/0123456789abcdef'
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const time = () => Math.floor(Date.now() / 1_000)

/** As AWS load balancers write it: with padding, and with claims of their own in the header. */
function ofBalancer(header: Json, claims: Json, key: KeyObject = ec.privateKey): string {
  const part = (bytes: Buffer) => bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_')
  const signed = [header, claims].map((one) => part(Buffer.from(JSON.stringify(one)))).join('.')
  return `${signed}.${part(sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' }))}`
}

/** A proxy: its settings, and an assertion about a person with changed claims. */
interface Proxy {
  header: string
  settings(at: string): Json
  assertion(claims?: Json): Promise<string> | string
  wrong: Json
}

const signed = (claims: Json, alg = 'ES256') =>
  new SignJWT({ iat: time(), exp: time() + 60, ...claims })
    .setProtectedHeader({ alg, kid: 'e1', typ: 'JWT' })
    .sign(ec.privateKey)

const PROXIES: Record<string, Proxy> = {
  'Cloudflare Access': {
    header: 'Cf-Access-Jwt-Assertion',
    settings: (at) => ({
      issuer: 'https://team.cloudflareaccess.com',
      audience: 'aud-tag',
      jwksUri: `${at}/cdn-cgi/access/certs`,
    }),
    assertion: (claims) =>
      signed({
        iss: 'https://team.cloudflareaccess.com',
        aud: ['aud-tag'],
        sub: '7335d417-61da',
        email: 'alice@example.com',
        type: 'app',
        identity_nonce: '6ei69kawdKzMIAPF',
        nbf: time(),
        ...claims,
      }),
    wrong: { aud: ['another'] },
  },
  'Google IAP': {
    header: 'X-Goog-IAP-JWT-Assertion',
    settings: (at) => ({
      issuer: 'https://cloud.google.com/iap',
      audience: '/projects/1/global/backendServices/2',
      jwksUri: `${at}/iap/verify/public_key-jwk`,
    }),
    assertion: (claims) =>
      signed({
        iss: 'https://cloud.google.com/iap',
        aud: '/projects/1/global/backendServices/2',
        sub: 'accounts.google.com:1234',
        email: 'alice@example.com',
        ...claims,
      }),
    wrong: { iss: 'https://accounts.google.com' },
  },
  Pomerium: {
    header: 'X-Pomerium-Jwt-Assertion',
    settings: (at) => ({
      issuer: 'mcp.example.com',
      audience: 'mcp.example.com',
      jwksUri: `${at}/.well-known/pomerium/jwks.json`,
    }),
    assertion: (claims) =>
      signed({ iss: 'mcp.example.com', aud: 'mcp.example.com', sub: 'google/1', user: 'google/1', ...claims }),
    wrong: { exp: 1 },
  },
  'an AWS load balancer': {
    header: 'X-Amzn-Oidc-Data',
    settings: (at) => ({
      issuer: 'https://idp.example.com',
      claims: { signer: ARN },
      jwksUri: `${at}/{kid}`,
    }),
    assertion: ({ signer = ARN, ...claims }: Json = {}) =>
      ofBalancer(
        { alg: 'ES256', typ: 'JWT', kid: 'e1', signer, iss: 'https://idp.example.com', client: 'c', exp: time() + 60 },
        // Whoever has another load balancer has an identity provider, too, which may say anything.
        { sub: 'alice', email: 'alice@example.com', signer: ARN, ...claims },
      ),
    wrong: { signer: `${ARN}0` },
  },
}

async function start(t: Test, { header, settings }: Proxy, more: Json = {}) {
  const keys = await TokenIssuer.start(t)
  keys.instead = (path, response) => {
    const found = path === '/e1' || /certs|jwk/.test(path)
    const jwk = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'e1', alg: 'ES256', use: 'sig' }
    const text = path === '/e1' ? ec.publicKey.export({ format: 'pem', type: 'spki' }) : JSON.stringify({ keys: [jwk] })
    response.writeHead(found ? 200 : 404).end(found ? text : '')
  }
  const issuer = { ...settings(keys.url), header, groups: 'groups', map: { admins: ['write'] } }
  const behind = await startGuarded(
    t,
    { publicUrl: undefined, auth: { issuers: [issuer] }, oauth: { allow: ['127.0.0.1'] }, ...more },
    { scopes: { write: ['write'] } },
  )
  const ask = (headers: Record<string, string | string[]>, name = 'read') =>
    call(behind.url, 'tools/call', { name }, { headers })
  return { ...behind, keys, ask }
}

for (const [name, proxy] of Object.entries(PROXIES))
  t.test(`knows a person by what ${name} has signed, in its header alone`, async (t) => {
    const { ask, url, seen, log, keys } = await start(t, proxy)
    const header = proxy.header.toLowerCase()
    const assertion = await proxy.assertion()
    t.equal((await ask({ [header]: assertion })).status, 200)
    t.match((await ask({ [header]: assertion }, 'write')).text, /insufficient_scope/)
    t.match((await ask({ [header]: await proxy.assertion({ groups: ['admins'] }) }, 'write')).text, /written/)
    const rows: [name: string, headers: Record<string, string | string[]>][] = [
      ['nothing', {}],
      ['as a token', { authorization: `Bearer ${assertion}` }],
      ['twice', { [header]: [assertion, assertion] }],
      ['for something else', { [header]: await proxy.assertion(proxy.wrong) }],
      ['with another signature', { [header]: `${assertion.slice(0, -10)}AAAAAAAA${assertion.slice(-2)}` }],
      ['no JWT', { [header]: 'opaque-0123456789' }],
      ['in another header', { 'x-other-assertion': assertion }],
      ['in Authorization', { authorization: `Bearer ${assertion}` }],
    ]
    for (const [name, headers] of rows) {
      const answer = await ask(headers)
      t.equal(answer.status, 401, name)
      t.notMatch(answer.headers['www-authenticate'], /resource_metadata/, 'clients cannot sign in by themselves')
    }
    const metadata = url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')
    t.equal((await send('GET', metadata, undefined, {})).status, 404)
    const said = JSON.stringify([seen, log])
    t.notMatch(said, assertion.split('.')[2], 'nobody gets to see it')
    t.notMatch(JSON.stringify(seen), new RegExp(header, 'i'))
    t.ok(keys.asked.length <= 2, 'keys are fetched once')
  })

t.test('keys that are published one by one are asked for by safe names only', async (t) => {
  const balancer = PROXIES['an AWS load balancer'] as Proxy
  const { ask, keys } = await start(t, balancer, { limits: { wrongTokensPerMinute: 1_000 } })
  const about = { alg: 'ES256', typ: 'JWT', signer: ARN, iss: 'https://idp.example.com', exp: time() + 60 }
  const status = async (kid: unknown) =>
    (await ask({ 'x-amzn-oidc-data': ofBalancer({ ...about, kid }, { sub: 'alice' }) })).status
  for (const kid of ['../e1', 'e1?x', 'a/b', '', 7, undefined]) t.equal(await status(kid), 401, String(kid))
  t.same(keys.asked, [])
})

t.test('keys that are published one by one are asked for a bounded number of times', async (t) => {
  const issuer = await TokenIssuer.start(t)
  const reach = reachOf(issuer.url, {})
  const keys = new PemKeys({ issuer: 'x', place: `${issuer.url}/x/{kid}`, reach, now: () => 0 })
  const find = await keys.known()
  const ask = async (kid: string) => find({ alg: 'ES256', kid }, {} as never)
  for (let i = 0; i < 10; i++) await t.rejects(ask(`unknown-${i}`), { code: 'ERR_JWKS_NO_MATCHING_KEY' })
  await t.rejects(ask('unknown-0'), { code: 'ERR_JWKS_NO_MATCHING_KEY' }, 'known to be unknown')
  const late = await ask('unknown-10').catch((error: unknown) => error)
  t.match(late, { fault: 'authUnavailable', retryAfter: 5 })
  t.equal(issuer.asked.length, 10)
})

t.test('people sign in at identity providers beside a proxy that signs', async (t) => {
  const proxy = PROXIES['Google IAP'] as Proxy
  const issuer = await TokenIssuer.start(t)
  const keys = await TokenIssuer.start(t)
  keys.instead = (_path, response) => {
    const jwk = { ...ec.publicKey.export({ format: 'jwk' }), kid: 'e1', alg: 'ES256' }
    response.writeHead(200).end(JSON.stringify({ keys: [jwk] }))
  }
  const issuers = [{ ...proxy.settings(keys.url), header: proxy.header }, { issuer: issuer.url }]
  const { url } = await startGuarded(t, { auth: { issuers, scopes: ['mcp'] }, oauth: { allow: ['127.0.0.1'] } })
  const ask = (headers: Record<string, string>) => call(url, 'tools/call', { name: 'read' }, { headers })
  const token = await issuer.token({ aud: url, scope: 'mcp' })
  t.equal((await ask({ authorization: `Bearer ${token}` })).status, 200)
  t.equal((await ask({ [proxy.header]: token })).status, 401, 'a token is no assertion')
  const assertion = await proxy.assertion({ scope: 'mcp' })
  t.equal((await ask({ [proxy.header]: assertion })).status, 200)
  for (const words of [assertion, `${proxy.header} ${assertion}`, `${proxy.header.toLowerCase()} ${assertion}`])
    t.equal((await ask({ authorization: `Bearer ${words}` })).status, 401, 'an assertion is no token')
  const lacking = await ask({ [proxy.header]: await proxy.assertion() })
  t.equal(lacking.status, 403, 'required scopes are required of everybody')
  t.notOk(lacking.headers['www-authenticate'])
  const metadata = url.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')
  t.same((await send('GET', metadata, undefined, {})).message['authorization_servers'], [issuer.url])
})

t.test('refuses settings of a proxy that cannot work or are not safe', async (t) => {
  const base = { issuer: 'https://idp.example', header: 'X-A', audience: 'a' }
  const rows: [issuer: Json, auth: Json, message: RegExp][] = [
    [{ ...base, audience: undefined }, {}, /issuers\.0\.header.*"audience"/],
    [{ ...base, facade: { clientId: 'a' } }, {}, /issuers\.0\.header.*"facade"/],
    [{ ...base, header: 'Authorization' }, {}, /issuers\.0\.header.*leave it out/],
    [{ ...base, issuer: 'idp.example' }, {}, /issuers\.0\.jwksUri.*no address/],
    [{ ...base, jwksUri: 'https://keys.example/{kid}' }, {}, /issuers\.0\.claims.*"signer"/],
    [{ issuer: 'idp.example' }, {}, /issuers\.0\.issuer.*https:\/\/idp\.example/],
    [base, { forwarded: { user: 'x-a', secretHeader: 'b', secret: 'x'.repeat(32) } }, /auth\.forwarded/],
  ]
  for (const [issuer, more, message] of rows)
    t.throws(
      () => settingsOf({ mcpServers: { test: { command: 'x' } }, auth: { issuers: [issuer], ...more } }),
      { message },
      JSON.stringify(issuer),
    )
})
