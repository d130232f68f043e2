/** Tokens that end, with an authorization server that takes back the whole grant where a refresh token is used twice. */
import t, { type Test } from 'tap'
import { FileStore } from '../../src/services/oauth/store/files.js'
import { until } from '../support/eventually.js'
import { Oidc } from '../support/oidc.js'
import { SigningProcess } from '../support/processes.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'

const never = new AbortController().signal
const HOUR = 3_600_000

/** Somebody who has signed in, and a clock that can be put forward. */
const signedIn = async (t: Test) => {
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  let ahead = 0
  const signing = signingIn(t, { server, now: () => Date.now() + ahead })
  const header = await signing.unauthorized(undefined, server.challenge(', scope="mcp:read"'))
  const forward = (milliseconds: number) => {
    ahead += milliseconds
  }
  return { oidc, server, ...signing, header, forward }
}

t.test('100 concurrent calls with an expired token make one refresh', async (t) => {
  const { oidc, account, header, forward } = await signedIn(t)
  forward(HOUR)
  const headers = await Promise.all(Array.from({ length: 100 }, () => account.authorization(never)))
  t.equal(new Set(headers).size, 1)
  t.not(headers[0], header)
  t.equal(oidc.grants('refresh_token').length, 1)
  t.match(await oidc.introspect(bearer(headers[0])), { active: true, scope: 'mcp:read' })
})

t.test('100 concurrent calls with a refused token make one refresh', async (t) => {
  const { oidc, account, header, unauthorized, visits } = await signedIn(t)
  const headers = await Promise.all(Array.from({ length: 100 }, () => unauthorized(header)))
  t.equal(new Set(headers).size, 1)
  t.not(headers[0], header)
  t.equal(oidc.grants('refresh_token').length, 1)
  t.equal(visits.length, 1)
  t.equal(await account.authorization(never), headers[0])
})

t.test('8 processes make one refresh, and all of them have its token', async (t) => {
  const { oidc, server, folder } = await signedIn(t)
  const options = { url: server.url, folder, challenge: server.challenge(), browser: ['false'], ahead: HOUR }
  const processes = Array.from({ length: 8 }, () => new SigningProcess(t, options))
  await Promise.all(processes.map((one) => one.ready()))
  for (const one of processes) one.tell('authorization')
  const tokens = await Promise.all(processes.map((one) => one.outcome('authorization')))
  t.equal(new Set(tokens).size, 1)
  t.match(tokens[0], /^[0-9a-f]{16}$/)
  t.equal(oidc.grants('refresh_token').length, 1)
})

t.test('a refresh sends the resource and no scope, and keeps a refresh token that is not replaced', async (t) => {
  const as = await ScriptedAs.start(t, {
    token: ({ params }) =>
      params.get('grant_type') === 'refresh_token'
        ? [200, { access_token: `again-${as.tokens}`, token_type: 'Bearer' }]
        : undefined,
  })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, store } = signingIn(t, { server })
  const sent = await unauthorized(undefined, server.challenge(', scope="a"'))
  const refresh = (await store.read(account.key))?.token?.refresh
  await unauthorized(sent)
  const request = as.of('/token').at(-1)
  t.match(Object.fromEntries(request?.params ?? []), { refresh_token: refresh, resource: server.url })
  t.notOk(request?.params.has('scope'))
  t.match(await store.read(account.key), { token: { refresh, asked: ['a'], granted: ['a'] } })
})

t.test('uses a token until a minute before its expiry, or a tenth of its lifetime', async (t) => {
  const { oidc, account, header, forward } = await signedIn(t)
  forward(HOUR - 70_000)
  t.equal(await account.authorization(never), header)
  t.equal(oidc.grants('refresh_token').length, 0)
  forward(11_000)
  t.not(await account.authorization(never), header)
  t.equal(oidc.grants('refresh_token').length, 1)
})

t.test('writes the new refresh token to disk before it uses the new access token', async (t) => {
  const { server, account, folder, forward } = await signedIn(t)
  forward(HOUR)
  const header = await account.authorization(never)
  // Somebody who knows nothing but the files has both.
  const record = await new FileStore({ folder }).read(account.key)
  t.equal(`Bearer ${record?.token?.access}`, header)
  const other = signingIn(t, { server, folder, now: () => Date.now() + 2 * HOUR })
  t.match(await other.account.authorization(never), /^Bearer /)
})

t.test('a process that is killed during a refresh leaves tokens, or one sign-in', async (t) => {
  for (let nth = 0; nth < 10; nth++) {
    const { oidc, server, folder, account } = await signedIn(t)
    const options = { url: server.url, folder, challenge: server.challenge(), browser: ['false'], ahead: HOUR }
    const killed = new SigningProcess(t, options)
    await killed.ready()
    killed.tell('authorization')
    const began = Date.now()
    await until(() => oidc.grants('refresh_token').length > 0 || Date.now() - began > nth * 3)
    killed.kill()
    await until(() => killed.ended)
    const next = signingIn(t, { server, folder, now: () => Date.now() + HOUR })
    const header =
      (await next.account.authorization(never)) ??
      (await next.unauthorized(undefined, server.challenge(', scope="mcp:read"')))
    t.match(await oidc.introspect(bearer(header)), { active: true })
    t.ok(next.visits.length <= 1)
    t.ok((await next.store.read(account.key))?.token)
  }
})

t.test('a refresh that fails on the network opens no browser and loses no token', async (t) => {
  const { oidc, account, store, visits, unauthorized, header, forward } = await signedIn(t)
  const before = await store.read(account.key)
  forward(HOUR)
  for (const answer of [500, 503, 429, 'destroy'] as const) {
    oidc.instead.set('/token', (_request, response) => {
      if (answer === 'destroy') response.destroy()
      else response.writeHead(answer, { 'retry-after': '3' }).end('{"error":"invalid_grant"}')
    })
    t.match(
      await reasonOf(Promise.resolve(account.authorization(never))),
      { reason: 'upstream_unavailable' },
      String(answer),
    )
    t.match(await reasonOf(unauthorized(header)), { reason: 'upstream_unavailable' }, String(answer))
    t.match((await store.read(account.key))?.token, before?.token)
  }
  t.equal(visits.length, 1, 'the one of the beginning')
  oidc.instead.clear()
  t.match(await account.authorization(never), /^Bearer /)
})

t.test('uses a valid token while the authorization server is unreachable', async (t) => {
  const { oidc, account, header, forward } = await signedIn(t)
  oidc.instead.set('/token', (_request, response) => response.writeHead(503).end())
  forward(HOUR - 30_000)
  t.equal(await account.authorization(never), header)
  t.equal(await account.authorization(never), header)
  t.equal(oidc.of('/token').filter(({ status }) => status === 503).length, 1, 'and it is not asked each time')
})

t.test('a revoked grant drops its tokens, and one sign-in restores it', async (t) => {
  const { oidc, server, account, store, header, forward, visits, unauthorized } = await signedIn(t)
  const { token } = (await store.read(account.key)) ?? {}
  await fetch(`${oidc.issuer}/token/revocation`, {
    method: 'POST',
    body: new URLSearchParams({
      token: token?.refresh ?? '',
      client_id: (await store.read(account.key))?.client?.id ?? '',
    }),
  })
  forward(HOUR)
  t.equal(await account.authorization(never), undefined)
  t.notOk((await store.read(account.key))?.token)
  const again = await unauthorized(undefined, server.challenge())
  t.match(await oidc.introspect(bearer(again)), { active: true, scope: 'mcp:read' }, 'with the scopes of before')
  t.not(again, header)
  t.equal(visits.length, 2)
})

for (const error of ['invalid_client', 'unauthorized_client']) {
  t.test(`a forgotten client (${error}) is dropped as well, and another is registered`, async (t) => {
    const as = await ScriptedAs.start(t, {
      token: ({ params }) => (params.get('grant_type') === 'refresh_token' ? [401, { error }] : undefined),
    })
    const server = await Protected.start(t, as.issuer)
    const { unauthorized } = signingIn(t, { server })
    const sent = await unauthorized()
    t.not(await unauthorized(sent), sent)
    t.equal(as.of('/register').length, 2)
  })

  t.test(`a code that is refused because the client is forgotten (${error}) registers another`, async (t) => {
    const as = await ScriptedAs.start(t, { token: (_request, nth) => (nth === 1 ? [400, { error }] : undefined) })
    const { unauthorized } = signingIn(t, { server: await Protected.start(t, as.issuer) })
    t.match(await reasonOf(unauthorized()), { reason: 'auth_failed', message: error })
    t.match(await unauthorized(), /^Bearer /)
    t.equal(as.of('/register').length, 2)
  })

  t.test(`a sign-in that ends with ${error} registers another client`, async (t) => {
    const as = await ScriptedAs.start(t)
    as.script = {
      callback: (params) => {
        if (as.of('/authorize').at(-1)?.params.get('client_id') !== 'client-1') return
        params.delete('code')
        params.set('error', error)
      },
    }
    const { account } = signingIn(t, { server: await Protected.start(t, as.issuer) })
    await t.rejects(account.login(undefined, never), { message: new RegExp(`answered with the error ${error}`) })
    t.match(await account.login(undefined, never), { signedIn: true })
    t.equal(as.of('/register').length, 2)
  })
}

t.test('a configured client stays with its issuer, whatever the error', async (t) => {
  const as = await ScriptedAs.start(t, { token: () => [400, { error: 'unauthorized_client' }] })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, store } = signingIn(t, { server, settings: { clientId: 'own' } })
  t.match(await reasonOf(unauthorized()), { reason: 'auth_failed' })
  t.match((await store.read(account.key))?.client, { id: 'own', issuer: as.issuer })
  t.equal(as.of('/register').length, 0)
})

const DEAD_PAGES: [what: string, page: [status: number, text: string, headers?: Record<string, string>]][] = [
  ['400', [400, 'Client not found.']],
  ['401', [401, 'Error 401']],
  ['404 with the code', [404, '{"error":"invalid_client"}']],
  ['500 with the code', [500, 'unauthorized_client: unknown client']],
  ['a redirect with the code', [302, '', { location: 'https://login.invalid/oops?error=unauthorized_client' }]],
]
for (const [what, page] of DEAD_PAGES)
  t.test(`the next login does not open a page again that does not know the client (${what})`, async (t) => {
    const as = await ScriptedAs.start(t)
    const server = await Protected.start(t, as.issuer)
    as.page = ({ params }) => (params.get('client_id') === 'client-1' ? page : undefined)
    const giveUp = new AbortController()
    const first = signingIn(t, { server })
    const waiting = first.account.login(undefined, giveUp.signal)
    await until(() => first.visits.length === 1, 'the page')
    await first.visits[0]?.catch(() => {})
    giveUp.abort(new Error('interrupted'))
    await t.rejects(waiting)
    first.account.close()
    const { account, visits } = signingIn(t, { server, folder: first.folder })
    t.match(await account.login(undefined, never), { signedIn: true })
    t.equal(visits.length, 1, 'one window')
    t.equal(as.of('/register').length, 2)
  })

t.test('uses a token that another process obtained in place of a refused one', async (t) => {
  const { server, folder, header, unauthorized, oidc } = await signedIn(t)
  const other = signingIn(t, { server, folder })
  const renewed = await other.unauthorized(header)
  t.equal(await unauthorized(header), renewed)
  t.equal(oidc.grants('refresh_token').length, 1)
})

t.test('sends a bounded number of tokens to a server that refuses every one', async (t) => {
  const { oidc, header, unauthorized, visits } = await signedIn(t)
  let sent = header
  for (let nth = 0; nth < 3; nth++) sent = await unauthorized(sent)
  t.match(await reasonOf(unauthorized(sent)), { reason: 'upstream_auth_required' })
  t.equal(oidc.grants('refresh_token').length, 3)
  t.equal(visits.length, 1)
})

t.test("only a client's request asks anybody to sign in", async (t) => {
  const oidc = await Oidc.start(t)
  const server = await Protected.start(t, oidc.issuer)
  const { account, unauthorized, visits, shown, store } = signingIn(t, { server, mayAsk: false })
  for (let nth = 0; nth < 5; nth++) {
    t.match(await reasonOf(unauthorized()), { reason: 'sign_in_required', message: /mcp-bridge login stock/ })
    t.equal(await account.authorization(never), undefined)
  }
  t.same([visits, shown, oidc.requests, server.asked], [[], [], [], []], 'and nothing is looked up')
  t.notOk(await store.read(account.key))
})

t.test('after a logout no process uses the tokens, and the authorization server revokes them', async (t) => {
  const { oidc, server, folder, account, header, store } = await signedIn(t)
  const refresh = (await store.read(account.key))?.token?.refresh ?? ''
  const other = new SigningProcess(t, {
    url: server.url,
    folder,
    challenge: server.challenge(),
    browser: ['false'],
  })
  await other.ready()
  other.tell('authorization')
  t.match(await other.outcome('authorization'), /^[0-9a-f]{16}$/)
  t.same(await account.logout(), { found: true, revoked: true })
  t.equal(await account.authorization(never), undefined)
  let asked = 1
  await until(async () => {
    other.tell('authorization')
    return (await other.outcome('authorization', ++asked)) === null
  }, 'the other process forgot the token')
  t.match(await oidc.introspect(refresh), { active: false })
  t.match(await oidc.introspect(bearer(header)), { active: false })
  t.same(await account.logout(), { found: false, revoked: false })
})

t.test('a refresh that ends after a logout restores nothing', async (t) => {
  const { oidc, account, store, forward } = await signedIn(t)
  forward(HOUR)
  let answer = () => {}
  oidc.instead.set('/token', (_request, response) => {
    answer = () =>
      void response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ access_token: 'late', token_type: 'Bearer', refresh_token: 'late' }))
  })
  const waiting = account.authorization(never)
  await until(() => oidc.grants('refresh_token').length > 0)
  await account.logout()
  answer()
  t.equal(await waiting, undefined)
  t.notOk((await store.read(account.key))?.token)
})
