/** Strangers at the endpoints that need no token, and with made-up tokens: what of it reaches the identity provider. */
import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { Entra } from '../support/entra.js'
import { until } from '../support/eventually.js'
import { startGuarded } from '../support/guarded-bridge.js'
import { type Answer, call, post } from '../support/modern.js'
import { noRedis, RedisServer } from '../support/redis.js'
import { CALLBACK, kits, provider, signedIn } from '../support/sdk-sign-in.js'
import { TokenIssuer } from '../support/token-issuer.js'

type Json = Record<string, unknown>
const ID = Entra.id

const verifier = () => randomBytes(32).toString('base64url')
const challengeOf = (text: string) => createHash('sha256').update(text).digest('base64url')

/** Requests to the facade at an origin, from any address. */
function facadeAt(origin: string) {
  const token = (form: Record<string, string>, from = '192.0.2.1'): Promise<Answer> =>
    post(`${origin}/oauth/token`, new URLSearchParams({ client_id: ID, ...form }).toString(), {
      'content-type': 'application/x-www-form-urlencoded',
      'x-forwarded-for': from,
    })
  const begin = async (proof: string) => {
    const query = new URLSearchParams({
      ...{ response_type: 'code', client_id: ID, redirect_uri: CALLBACK, state: 's' },
      ...{ code_challenge: challengeOf(proof), code_challenge_method: 'S256' },
    })
    return (await fetch(`${origin}/oauth/authorize?${query}`, { redirect: 'manual' })).headers.get('location') ?? ''
  }
  return { token, begin }
}

const PROXY = { trustedProxies: ['127.0.0.1', '::1'] }

async function behindEntra(t: Test) {
  const entra = await Entra.start(t, [CALLBACK])
  const facade = { clientId: ID, clientSecret: Entra.secret, scopes: [`api://${ID}/mcp`, 'offline_access'] }
  const auth = { issuers: [{ issuer: entra.issuer, audience: ID, facade }], scopes: ['mcp'] }
  const { url } = await startGuarded(t, { auth, ...PROXY })
  const asked = () => entra.asked.filter(({ path }) => path.endsWith('/token'))
  return { entra, asked, url, ...facadeAt(new URL(url).origin) }
}

t.test('a refresh token that is not from the facade never reaches the provider', async (t) => {
  const { token, asked, url } = await behindEntra(t)
  const person = provider()
  await signedIn(t, kits['SDK v1'], url, person)
  const { refresh_token: own = '' } = person.kept['tokens'] as { refresh_token?: string }
  const plain = own.split('.').slice(2).join('.')
  const before = asked().length
  const guesses = [
    ...[
      plain,
      `${own}x`,
      own.slice(0, -1),
      own.slice(1),
      `x.y.${plain}`,
      `..${plain}`,
      ` ${own}`,
      own.toUpperCase(),
      '.',
      '..',
      '...',
    ],
    ...Array.from({ length: 40 }, () => `refresh-${verifier()}`),
    ...Array.from({ length: 40 }, () => own.replace(plain, verifier())),
  ]
  for (const guess of guesses) {
    const { status, message } = await token({ grant_type: 'refresh_token', refresh_token: guess })
    t.match([status, message], [400, { error: 'invalid_grant' }], guess)
  }
  t.match((await token({ grant_type: 'refresh_token' })).message, { error: 'invalid_request' })
  t.equal(asked().length, before)
  const renewed = await token({ grant_type: 'refresh_token', refresh_token: own })
  t.equal(renewed.status, 200)
  t.equal(asked().at(-1)?.params.get('refresh_token'), plain, 'the provider gets its own token')
  const again = await token({ grant_type: 'refresh_token', refresh_token: String(renewed.message['refresh_token']) })
  t.equal(again.status, 200)
})

t.test('a code reaches the provider only with the verifier of a sign-in that has begun at the facade', async (t) => {
  const { token, begin, asked } = await behindEntra(t)
  const proof = verifier()
  const location = await begin(proof)
  const back = new URL((await fetch(location, { redirect: 'manual' })).headers.get('location') ?? '')
  const code = back.searchParams.get('code') ?? ''
  const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }
  const wrong: [name: string, form: Record<string, string>, error: string][] = [
    ['no verifier', form, 'invalid_request'],
    ['an empty one', { ...form, code_verifier: '' }, 'invalid_request'],
    ['no code', { ...form, code: '', code_verifier: proof }, 'invalid_request'],
    ['a short one', { ...form, code_verifier: 'x' }, 'invalid_grant'],
    ['the challenge', { ...form, code_verifier: challengeOf(proof) }, 'invalid_grant'],
    ['another one', { ...form, code_verifier: verifier() }, 'invalid_grant'],
    ['characters that none has', { ...form, code_verifier: `${proof}+` }, 'invalid_grant'],
  ]
  for (const [name, one, error] of wrong) {
    const { status, message } = await token(one)
    t.match([status, message], [400, { error }], name)
  }
  t.equal(asked().length, 0)
  t.equal((await token({ ...form, code_verifier: proof })).status, 200)
  for (let i = 0; i < 10; i++) await token({ ...form, code: `guess-${i}`, code_verifier: proof })
  t.ok(asked().length <= 4, 'one sign-in is no leave to guess codes')
})

t.test(
  'with replicas, a code reaches the provider only with the verifier of a sign-in that began at one of them',
  { skip: noRedis },
  async (t) => {
    const redis = await RedisServer.start(t)
    const shared = {
      redis: { url: redis.url, timeout: 30_000 },
      stateKeys: ['a secret that all the replicas know of'],
    }
    const entra = await Entra.start(t, [CALLBACK])
    const facade = { clientId: ID, clientSecret: Entra.secret, scopes: [`api://${ID}/mcp`, 'offline_access'] }
    const auth = { issuers: [{ issuer: entra.issuer, audience: ID, facade }], scopes: ['mcp'] }
    const start = async () => facadeAt(new URL((await startGuarded(t, { auth, ...PROXY, ...shared })).url).origin)
    const [one, other] = await Promise.all([start(), start()])
    const asked = () => entra.asked.filter(({ path }) => path.endsWith('/token')).length
    const proof = verifier()
    const back = await fetch(await one.begin(proof), { redirect: 'manual' })
    const code = new URL(back.headers.get('location') ?? '').searchParams.get('code') ?? ''
    const form = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK }
    for (let i = 0; i < 40; i++) {
      const guess = { ...form, code: `guess-${i}`, code_verifier: verifier() }
      t.match((await other.token(guess)).message, { error: 'invalid_grant' })
    }
    t.equal(asked(), 0)
    t.equal((await other.token({ ...form, code_verifier: proof })).status, 200, 'begun at the other replica')
    for (let i = 0; i < 10; i++) await other.token({ ...form, code: `guess-${i}`, code_verifier: proof })
    t.ok(asked() <= 4, 'one sign-in is no leave to guess codes')
    await redis.stop()
    const late = await other.token({ ...form, code_verifier: verifier() })
    t.match(late.message, { error: 'invalid_grant' }, 'the provider decides where nobody can know')
    t.ok(asked() > 0)
  },
)

/** An issuer that holds its answers at a path until it is released. */
async function holding(t: Test, path: string) {
  const issuer = await TokenIssuer.start(t)
  const held: ServerResponse[] = []
  const bodies: string[] = []
  const json = (response: ServerResponse, value: unknown) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
  let answer: ((body: string) => Json) | undefined
  issuer.instead = (at, response) => {
    if (at !== path) {
      json(response, {
        issuer: issuer.url,
        jwks_uri: `${issuer.url}/jwks`,
        authorization_endpoint: `${issuer.url}/authorize`,
        introspection_endpoint: `${issuer.url}/introspect`,
        token_endpoint: `${issuer.url}/token`,
      })
      return
    }
    const body = issuer.received.at(-1)?.text.split('\n\n')[1] ?? ''
    bodies.push(body)
    const known = answer?.(body)
    if (known) json(response, known)
    else held.push(response)
  }
  return { issuer, held, bodies, answerBy: (by: typeof answer) => (answer = by) }
}

t.test('people sign in while strangers hold requests at the facade, also at the address of the person', async (t) => {
  const { issuer, held, answerBy } = await holding(t, '/token')
  const facade = { clientId: ID, clientSecret: Entra.secret }
  const auth = { issuers: [{ issuer: issuer.url, audience: ID, facade }] }
  const { url } = await startGuarded(t, { auth, ...PROXY })
  const { token, begin } = facadeAt(new URL(url).origin)
  const [own, strange] = [verifier(), verifier()]
  await begin(own)
  await begin(strange)
  answerBy((body) => (body.includes(own) ? { access_token: 'a', token_type: 'Bearer' } : undefined) as Json)
  const form = { grant_type: 'authorization_code', code: 'c', redirect_uri: CALLBACK }
  for (let i = 0; i < 200; i++) {
    token({ ...form, code_verifier: strange }, `198.51.100.${i % 100}`).catch(() => {})
    token({ ...form, code_verifier: verifier() }, '192.0.2.1').catch(() => {})
    token({ grant_type: 'refresh_token', refresh_token: verifier() }, '192.0.2.1').catch(() => {})
  }
  await until(() => held.length > 0, 'requests of strangers')
  for (const from of ['192.0.2.1', '192.0.2.2'])
    t.match((await token({ ...form, code_verifier: own }, from)).message, { access_token: 'a' })
})

t.test(
  'people are served while strangers have made-up tokens introspected, also at the address of a person',
  async (t) => {
    const { issuer, held, bodies, answerBy } = await holding(t, '/introspect')
    const introspection = { clientId: 'b', clientSecret: 's' }
    const { url } = await startGuarded(t, { auth: { issuers: [{ issuer: issuer.url, introspection }] }, ...PROXY })
    const active = { active: true, sub: 'alice', aud: url, exp: Math.floor(Date.now() / 1_000) + 2, client_id: 'app' }
    answerBy((body) => (/own/.test(body) ? active : undefined) as Json)
    const ask = async (opaque: string, from: string) => {
      const headers = { authorization: `Bearer ${opaque}`, 'x-forwarded-for': from }
      return (await call(url, 'tools/list', {}, { headers })).status
    }
    t.equal(await ask('own-token', '192.0.2.1'), 200)
    for (let i = 0; i < 200; i++) {
      ask(`made-up-${i}`, `198.51.100.${i % 4}`).catch(() => {})
      ask(`made-up-too-${i}`, '192.0.2.1').catch(() => {})
    }
    await until(() => held.length > 10, 'requests of strangers')
    t.equal(await ask('own-token-that-is-new', '192.0.2.2'), 200, 'another address')
    active.exp += 600
    const before = bodies.length
    await until(async () => {
      t.equal(await ask('own-token', '192.0.2.1'), 200, 'a token that was active before')
      return bodies.slice(before).some((body) => body.includes('own-token'))
    }, 'the token is introspected again')
  },
)
