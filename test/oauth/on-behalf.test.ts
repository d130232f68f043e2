/** Servers that are called on behalf of callers: with tokens that their own are exchanged for. */
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { parseListen } from '../../src/config/settings.js'
import { ShownToken } from '../../src/mcp/protocol/shown-token.js'
import { MemoryStore } from '../../src/services/oauth/store/memory.js'
import { createBridge } from '../support/bridge.js'
import { Delegate, type DelegateOptions, EXCHANGE, JWT_BEARER } from '../support/delegate.js'
import { freePort } from '../support/free-port.js'
import { Guarded } from '../support/guarded.js'
import { LegacyClient } from '../support/legacy-client.js'
import { call } from '../support/modern.js'
import { startSdkV1 } from '../support/sdk-v1.js'
import { personParts } from '../support/sign-in-parts.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'
import { TokenIssuer } from '../support/token-issuer.js'

t.setTimeout(600_000)

type Json = Record<string, unknown>

const never = new AbortController().signal
const greeting = { content: [{ type: 'text' as const, text: 'Hello' }] }
const secret = 'CANARY-bridge-secret'

interface Setting extends DelegateOptions {
  oauth?: Json | ((delegate: Delegate, idp: Delegate) => Json)
  more?: Json
}

/** A bridge whose callers come with tokens of a company, in front of a server that takes only those of another issuer. */
async function start(t: Test, grant: 'token-exchange' | 'id-jag', { oauth = {}, more = {}, ...given }: Setting = {}) {
  const company = await TokenIssuer.start(t)
  const trusted = { issuer: company.url, keys: company.keys }
  const idp = await Delegate.start(t, { trusts: [trusted] })
  const delegate = await Delegate.start(t, { trusts: [grant === 'id-jag' ? idp : trusted], ...given })
  const target = await startSdkV1(t, (one) => {
    one.registerTool('greet', { description: 'Greets.' }, () => greeting)
  })
  const server = await Guarded.start(t, delegate, target)
  const client = { clientId: 'bridge', clientSecret: secret }
  const own = {
    'token-exchange': { issuer: delegate.issuer },
    'id-jag': { idp: { issuer: idp.issuer, ...client } },
  }[grant]
  const entry = {
    url: server.url,
    oauth: { grant, ...client, ...own, ...(typeof oauth === 'function' ? oauth(delegate, idp) : oauth) },
  }
  const origin = `http://127.0.0.1:${await freePort()}`
  const settings = { publicUrl: origin, auth: { issuers: [{ issuer: company.url, introspection: client }] }, ...more }
  const { bridge, log } = createBridge(t, entry, settings, { signIn: personParts(t, { person: 'none' }).signIn })
  const listen = parseListen(`${origin}/mcp`)
  if (listen.kind !== 'http') throw new TypeError('not HTTP')
  await bridge.listen(listen)
  const url = `${origin}/mcp`
  const bearer = async (claims: Json = {}) => ({
    authorization: `Bearer ${await company.token({ aud: url, ...claims })}`,
  })
  return { url, company, idp, delegate, server, log, bearer, bridge }
}

const greet = (url: string, headers: Record<string, string>) =>
  call(url, 'tools/call', { name: 'greet', arguments: {} }, { headers })

for (const grant of ['token-exchange', 'id-jag'] as const) {
  t.test(`${grant}: a server gets a token for itself, and nothing of the caller's`, async (t) => {
    const { url, delegate, idp, server, bearer } = await start(t, grant)
    const headers = await bearer()
    t.match((await greet(url, headers)).message, { result: greeting })
    const { params } = (grant === 'id-jag' ? idp : delegate).grants(EXCHANGE)[0] ?? { params: new URLSearchParams() }
    t.match(Object.fromEntries(params), {
      subject_token: headers.authorization.slice(7),
      subject_token_type: /access_token$/,
      requested_token_type: grant === 'id-jag' ? /id-jag$/ : /access_token$/,
      resource: server.url,
    })
    if (grant === 'id-jag') {
      t.equal(params.get('audience'), delegate.issuer, 'the assertion is for the authorization server of the server')
      t.equal(delegate.grants(EXCHANGE).length, 0)
      t.equal(delegate.grants(JWT_BEARER).length, 1)
    }
    const sent = server.seen.flatMap(({ authorization }) => authorization ?? [])
    t.ok(sent.length > 0)
    t.notOk(sent.includes(headers.authorization), 'A33')
    const token = await delegate.introspect(sent[0]?.slice(7) ?? '')
    t.match(token, { active: true, sub: 'alice', aud: server.url })
    await greet(url, headers)
    t.equal((grant === 'id-jag' ? idp : delegate).requests.length, 1, 'it is kept')
  })
}

for (const grant of ['token-exchange', 'id-jag'] as const) {
  t.test(`${grant}: 50 calls at once cost one exchange, also when the token is renewed`, async (t) => {
    const { url, delegate, server, bearer } = await start(t, grant)
    const headers = await bearer()
    const all = () => Promise.all(Array.from({ length: 50 }, () => greet(url, headers)))
    for (const { message } of await all()) t.match(message, { result: greeting })
    t.equal(delegate.requests.length, 1)
    server.revoked.add(server.seen.at(-1)?.authorization?.slice(7) ?? '')
    for (const { message } of await all()) t.match(message, { result: greeting })
    t.equal(delegate.requests.length, 2)
  })

  t.test(`${grant}: tokens of two callers, and two tokens of one, never mix`, async (t) => {
    const { url, delegate, server, bearer } = await start(t, grant)
    const callers = await Promise.all([
      bearer({ sub: 'alice', scope: 'read' }),
      bearer({ sub: 'alice', scope: 'read write' }),
      bearer({ sub: 'bob' }),
    ])
    const calls = Array.from({ length: 60 }, (_, nth) => nth % callers.length)
    const answers = await Promise.all(calls.map((nth) => greet(url, callers[nth] ?? { authorization: '' })))
    for (const { message } of answers) t.match(message, { result: greeting })
    t.equal(delegate.requests.length, 3, 'each token has its own')
    const subjects = await Promise.all(
      server.seen
        .filter(({ status, message }) => status === 200 && message.method === 'tools/call')
        .map(async ({ authorization = '' }) => (await delegate.introspect(authorization.slice(7))).sub),
    )
    t.equal(subjects.filter((one) => one === 'alice').length, 40)
    t.equal(subjects.filter((one) => one === 'bob').length, 20)
  })

  t.test(`${grant}: a token that is over is not shown around`, async (t) => {
    const { url, delegate, idp, server, bearer } = await start(t, grant)
    // The clocks of others may be late, so the bridge accepts it for a while. Their authorization server would refuse it.
    const { status, message } = await greet(url, await bearer({ exp: Math.floor(Date.now() / 1_000) - 5 }))
    t.equal(status, 200, 'no 401, or the client would renew its token again and again')
    const text = /token of the caller has expired.*client has to renew/
    t.match(message, { result: { isError: true, content: [{ text }] } })
    t.same([delegate.requests, idp.requests], [[], []])
    t.match((await greet(url, await bearer())).message, { result: greeting }, 'the next token works')
    t.ok(server.seen.length > 0)
  })
}

t.test('what a token was exchanged for ends with it, and is in no file', async (t) => {
  const company = await TokenIssuer.start(t)
  const delegate = await Delegate.start(t, { trusts: [{ issuer: company.url, keys: company.keys }], lifetime: 3_600 })
  const server = await Protected.start(t, delegate.issuer)
  let ahead = 0
  const now = () => Date.now() + ahead
  const shown = new ShownToken(await company.token(), 'digest', Date.now() + 300_000)
  const settings = { grant: 'token-exchange', clientId: 'bridge', clientSecret: secret } as const
  const store = new MemoryStore()
  const { account, unauthorized } = signingIn(t, { server, settings, shown, store, now })
  const header = await unauthorized()
  t.match(await delegate.introspect(bearer(header)), { active: true, sub: 'alice' })
  const { token } = (await store.read(account.key)) ?? {}
  t.equal(token?.expires, shown.expires)
  t.equal(token?.refresh, undefined, 'nothing with which it could be renewed')
  ahead = 290_000
  t.equal(await account.authorization(never), header, 'another exchange would not make it last longer')
  ahead = 300_001
  t.equal(await account.authorization(never), undefined)
  t.match(await reasonOf(unauthorized(header)), { reason: 'auth_failed', message: /token of the caller has expired/ })
  t.equal(delegate.requests.length, 1)
})

t.test('where no issuer says when a token ends, what it was exchanged for is kept all the same', async (t) => {
  const { url, company, delegate, server } = await start(t, 'token-exchange')
  company.opaque.set('opaque', { active: true, sub: 'alice', aud: url })
  const access_token = await delegate.sign({ sub: 'alice', aud: server.url })
  delegate.instead = (_request, response) => {
    const answer = {
      access_token,
      token_type: 'Bearer',
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    return true
  }
  for (let times = 0; times < 3; times++)
    t.match((await greet(url, { authorization: 'Bearer opaque' })).message, { result: greeting })
  t.equal(delegate.requests.length, 1)
})

t.test('callers without a token of an identity provider are told that there is nothing to exchange', async (t) => {
  const tokens = { ci: 'ci-token-0123456789' }
  const company = await TokenIssuer.start(t)
  const { url, delegate, server, log } = await start(t, 'token-exchange', {
    more: { auth: { tokens, issuers: [{ issuer: company.url }] } },
  })
  const { status, message } = await greet(url, { authorization: `Bearer ${tokens.ci}` })
  t.equal(status, 200)
  t.match(message, {
    result: {
      isError: true,
      content: [{ text: /on behalf of its callers: only callers with a token of an identity provider/ }],
      _meta: { 'io.github.mcp-bridge/auth_failed': {} },
    },
  })
  t.equal(delegate.requests.length, 0)
  t.notOk(server.seen.some(({ authorization }) => authorization))
  t.notMatch(JSON.stringify(log), tokens.ci)
})

const refusals: readonly [what: string, answer: Json, status: number, text: RegExp][] = [
  [
    'the token is refused',
    { error: 'invalid_grant' },
    400,
    /did not exchange the token of the caller \(invalid_grant\): it does/,
  ],
  ['the server is unknown', { error: 'invalid_target' }, 400, /\(invalid_target\): it gives no tokens for this server/],
  ['the client may not', { error: 'unauthorized_client' }, 400, /\(unauthorized_client\): this client may not/],
  ['it is no OAuth error', { error: 'something_else' }, 400, /\(something_else\)/],
  [
    'a refresh token comes',
    {
      access_token: 'CANARY-other',
      issued_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
      token_type: 'N_A',
    },
    200,
    /a token of another kind/,
  ],
  ['no access token comes', { access_token: 'CANARY-other', token_type: 'N_A' }, 200, /cannot be sent/],
  ['nothing comes', {}, 200, /invalid OAuth answer/],
]

for (const [what, answer, status, text] of refusals)
  t.test(`where ${what}, the caller is told what happened, and the issuer is asked once for many calls`, async (t) => {
    const { url, delegate, bearer } = await start(t, 'token-exchange')
    delegate.instead = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error_description: 'CANARY-description', ...answer }))
      return true
    }
    const headers = await bearer()
    for (let nth = 0; nth < 5; nth++) {
      const { status, message } = await greet(url, headers)
      t.equal(status, 200, 'A29')
      t.match(message, {
        result: { isError: true, content: [{ text }], _meta: { 'io.github.mcp-bridge/auth_failed': {} } },
      })
      t.notMatch(JSON.stringify(message), /CANARY/)
    }
    t.equal(delegate.requests.length, 1)
  })

t.test('an authorization server that is away is no refusal: the next call asks again', async (t) => {
  const { url, delegate, bearer } = await start(t, 'token-exchange')
  t.match((await greet(url, await bearer())).message, { result: greeting })
  let away = true
  delegate.instead = (_request, response) => {
    if (away) response.writeHead(503).end()
    return away
  }
  const headers = await bearer()
  const { message } = await greet(url, headers)
  t.match(message, { error: { data: { reason: 'upstream_unavailable', outcome: 'not_executed' } } })
  away = false
  t.match((await greet(url, headers)).message, { result: greeting })
})

t.test('a session goes on with the next token of its caller, at a legacy server, too', async (t) => {
  const { url, delegate, server, bearer } = await start(t, 'token-exchange')
  const client = await LegacyClient.open(url, { headers: await bearer() })
  t.match((await client.call('greet')).message, { result: greeting })
  const headers = await bearer({ scope: 'more' })
  t.match((await client.call('greet', {}, { headers })).message, { result: greeting })
  t.equal(delegate.requests.length, 2)
  const calls = server.seen.filter(({ message, status }) => message.method === 'tools/call' && status === 200)
  t.equal(new Set(calls.map(({ authorization }) => authorization)).size, 2, 'each call with what it was shown with')
  const opened = server.seen.filter(({ message, status }) => message.method === 'initialize' && status === 200)
  t.equal(opened.length, 1, 'one session at the server')
})

t.test(
  'a legacy client has a session of the server itself, in which each message goes with its own token',
  async (t) => {
    const { url, server, bearer } = await start(t, 'token-exchange')
    const [first, second] = [await bearer(), await bearer({ scope: 'more' })]
    const client = await LegacyClient.open(url, { headers: first })
    const sentWith = (method: string) =>
      server.seen.filter(({ message }) => message.method === method).at(-1)?.authorization
    await client.call('greet', {}, { headers: second })
    const [one, other] = [sentWith('notifications/initialized'), sentWith('tools/call')]
    t.not(one, other)
    const answer = { jsonrpc: '2.0', id: 'nobody-asked', result: {} }
    for (const [headers, token] of [
      [first, one],
      [second, other],
    ] as const) {
      await client.post({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' }, headers)
      t.equal(sentWith('notifications/roots/list_changed'), token)
      await client.post(answer, headers)
      t.equal(server.seen.at(-1)?.authorization, token)
    }
    // The first one takes the stream that the bridge has opened.
    const streams = [await client.listen(undefined, first), await client.listen(undefined, second)]
    t.equal(server.seen.filter(({ method }) => method === 'GET').at(-1)?.authorization, other)
    for (const stream of streams) stream.leave()
    t.equal((await client.request('vendor/unknown', {}, { headers: first })).message.error?.['code'], -32601)
    t.equal(sentWith('vendor/unknown'), one)
  },
)

t.test('nothing of one caller is kept for another, or for another token of the same one', async (t) => {
  const { url, server, bearer } = await start(t, 'token-exchange')
  const callers = [await bearer(), await bearer({ scope: 'more' }), await bearer({ sub: 'bob' })]
  for (let times = 0; times < 2; times++)
    for (const headers of callers) t.ok((await call(url, 'tools/list', {}, { headers })).message.result)
  const lists = server.seen.filter(({ message, status }) => message.method === 'tools/list' && status === 200)
  t.equal(new Set(lists.map(({ authorization }) => authorization)).size, 3)
})

t.test('before anybody calls, nothing is exchanged, and the server is not taken for unavailable', async (t) => {
  const { url, bridge, delegate, server, bearer, log } = await start(t, 'token-exchange')
  const reports: unknown[] = []
  await bridge.warmUp((...reported) => reports.push(...reported))
  t.ok(server.refused.length > 0, 'it was asked what it speaks')
  t.notOk(reports.some((one) => one instanceof Fault))
  t.equal(delegate.requests.length, 0)
  t.notMatch(JSON.stringify(log), /unavailable/)
  t.match((await greet(url, await bearer())).message, { result: greeting })
})
