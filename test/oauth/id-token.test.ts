/** The ID token in place of the access token, for servers that verify who calls by it. */
import { createLocalJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { until } from '../support/eventually.js'
import { Oidc } from '../support/oidc.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'

const never = new AbortController().signal
const HOUR = 3_600_000
const settings = { bearer: 'id_token' as const }

t.test('the server is shown the ID token, which is renewed before it ends', async (t) => {
  // The access token lasts much longer.
  const oidc = await Oidc.start(t, { lifetime: 36_000 })
  const server = await Protected.start(t, oidc.issuer)
  const time = { ahead: 0 }
  const signing = { server, settings, now: () => Date.now() + time.ahead }
  const { account, unauthorized, store } = signingIn(t, signing)
  const header = await unauthorized(undefined, server.challenge(', scope="mcp:read"'))
  const { payload } = await jwtVerify(bearer(header), createLocalJWKSet(await oidc.keys()), { issuer: oidc.issuer })
  const record = await store.read(account.key)
  t.match(payload, { sub: 'person', aud: record?.client?.id })
  t.equal(record?.token?.expires, (payload.exp ?? 0) * 1_000)
  t.same(record?.token?.asked, ['mcp:read', 'offline_access', 'openid'])
  // Two of one second would be equal. Within a minute of its end, it is renewed.
  await until(() => Date.now() >= ((payload.iat ?? 0) + 1) * 1_000)
  time.ahead = HOUR - 30_000
  const renewed = await account.authorization(never)
  t.not(renewed, header)
  t.match((await jwtVerify(bearer(renewed), createLocalJWKSet(await oidc.keys()))).payload, { sub: 'person' })

  const usual = signingIn(t, { ...signing, settings: {}, store })
  t.not(usual.account.key, account.key, 'an access token is stored apart')
})

t.test('an ID token of somebody else is not shown to the server, and its absence is named', async (t) => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [issued, ends] = [Math.floor(Date.now() / 1_000), Math.floor(Date.now() / 1_000) + 600]
  const as = await ScriptedAs.start(t)
  const right = { iss: as.issuer, sub: 'person', iat: issued, exp: ends }
  const cases: [name: string, token: (client: string) => string | undefined, message: RegExp][] = [
    ['none', () => undefined, /gave no ID token: the scope "openid"/],
    [
      'of another client',
      () => `${part({ alg: 'RS256' })}.${part({ ...right, aud: 'other' })}.x`,
      /invalid OAuth answer/,
    ],
    [
      'of another issuer',
      (aud) => `${part({ alg: 'RS256' })}.${part({ ...right, aud, iss: 'https://x' })}.x`,
      /invalid/,
    ],
    ['expired', (aud) => `${part({ alg: 'RS256' })}.${part({ ...right, aud, exp: issued - 600 })}.x`, /invalid/],
    ['unsigned', (aud) => `${part({ alg: 'none' })}.${part({ ...right, aud })}.`, /invalid/],
    ['no JWT', () => 'opaque', /invalid/],
  ]
  for (const [name, token, message] of cases) {
    const server = await Protected.start(t, as.issuer)
    as.script = {
      token: ({ params }) => {
        const id_token = token(params.get('client_id') ?? '')
        return [200, { access_token: 'access', token_type: 'Bearer', ...(id_token !== undefined && { id_token }) }]
      },
    }
    const { unauthorized } = signingIn(t, { server, settings })
    t.match(await reasonOf(unauthorized()), { reason: 'auth_failed', message }, name)
  }
})

t.test('a refresh that brings no ID token ends the sign-in, so that a person can begin another one', async (t) => {
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  const time = { ahead: 0 }
  const { account, unauthorized, visits } = signingIn(t, { server, settings, now: () => Date.now() + time.ahead })
  await unauthorized()
  oidc.instead.set('/token', (_request, response) => {
    response.setHeader('content-type', 'application/json').end('{"access_token":"a","token_type":"Bearer"}')
  })
  time.ahead = HOUR
  t.equal(await account.authorization(never), undefined)
  oidc.instead.clear()
  t.ok(await unauthorized())
  t.equal(visits.length, 2)
})
