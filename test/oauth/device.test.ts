/** Signing in on any device (RFC 8628), at a real authorization server and at one that follows a script. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Oidc, type OidcOptions } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { plant } from '../support/secrets.js'
import { bearer, Protected, reasonOf, signingIn } from '../support/signing-in.js'

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const never = new AbortController().signal
const settings = { grant: 'device' as const }
/** The person submits each form that they are shown. */
const elsewhere = (address: string) => visit(address, { types: {} })

const wantedBy = (server: Protected) => server.challenge(', scope="mcp:read"')

/** A clock that a test can set ahead, so that nobody waits for the interval between two questions. */
function clock() {
  const own = { ahead: 0, now: () => Date.now() + own.ahead }
  return own
}

async function behind(t: Test, options: OidcOptions = {}) {
  const oidc = await Oidc.start(t, options)
  return { oidc, server: await Protected.start(t, oidc.issuer) }
}

t.test('a person signs in on another device, and nothing comes back to this machine', async (t) => {
  const { oidc, server } = await behind(t)
  const time = clock()
  const { account, unauthorized, shown, codes, visits, logged } = signingIn(t, { server, settings, now: time.now })
  const wanted = wantedBy(server)
  t.match(await reasonOf(unauthorized(undefined, wanted)), { reason: 'sign_in_pending', message: /mcp-bridge login/ })
  const [address = ''] = shown
  const [code = ''] = codes
  t.equal(new URL(address).searchParams.get('user_code')?.replace(/\W/g, ''), code.replace(/\W/g, ''))
  plant({ code, address })
  t.notOk((await account.status()).signedIn)
  t.ok((await account.status()).pending)
  const waiting = unauthorized(undefined, wanted)
  t.match(await elsewhere(address), { status: 200 })
  time.ahead += 5_000
  const header = await waiting
  t.match(await oidc.introspect(bearer(header)), { active: true, aud: server.url, scope: 'mcp:read' })
  t.equal(visits.length, 0, 'no browser was opened here')
  const [registered] = oidc.of('/reg')
  t.equal(oidc.of('/reg').length, 1)
  t.ok(registered)
  t.equal(oidc.of('/device/auth')[0]?.params.get('resource'), server.url)
  t.notMatch(logged.join('\n'), code)
  t.notMatch(logged.join('\n'), 'user_code=')

  time.ahead += 3_700_000
  const renewed = await account.authorization(never)
  t.not(renewed, header)
  t.equal(oidc.grants('refresh_token').length, 1, 'its token is renewed without the person')
  t.match(await account.logout(), { found: true, revoked: true })
})

t.test('processes that share a store show one code, and only one of them asks at a time', async (t) => {
  const { oidc, server } = await behind(t)
  const time = clock()
  const folder = join(temporaryFolder(t), 'tokens')
  const several = [1, 2, 3].map(() => signingIn(t, { server, settings, folder, now: time.now }))
  for (const { unauthorized } of several)
    t.match(await reasonOf(unauthorized(undefined, wantedBy(server))), { reason: 'sign_in_pending' })
  t.equal(oidc.of('/device/auth').length, 1)
  t.equal(new Set(several.flatMap(({ shown }) => shown)).size, 1)
  for (let asked = 1; asked <= 3; asked++) {
    time.ahead += 5_000
    await until(() => oidc.grants(DEVICE_CODE).length >= asked)
  }
  const waiting = several.map(({ unauthorized }) => unauthorized(undefined, wantedBy(server)))
  await elsewhere(several[0]?.shown[0] ?? '')
  time.ahead += 5_000
  const headers = await Promise.all(waiting)
  t.equal(new Set(headers).size, 1)
  t.equal(oidc.grants(DEVICE_CODE).length, 4, 'once in each interval')
})

t.test('a process that ends leaves its sign-in to the others', async (t) => {
  const { oidc, server } = await behind(t)
  const time = clock()
  const folder = join(temporaryFolder(t), 'tokens')
  const first = signingIn(t, { server, settings, folder, now: time.now })
  await reasonOf(first.unauthorized(undefined, wantedBy(server)))
  first.account.close()
  const second = signingIn(t, { server, settings, folder, now: time.now })
  await reasonOf(second.unauthorized(undefined, wantedBy(server)))
  t.same(second.shown, first.shown)
  const waiting = second.unauthorized(undefined, wantedBy(server))
  await elsewhere(first.shown[0] ?? '')
  time.ahead += 5_000
  t.match(await oidc.introspect(bearer(await waiting)), { active: true })
})

t.test('a sign-in that is declined, forgotten or cancelled ends, and says how', async (t) => {
  const { oidc, server } = await behind(t)
  for (const [name, done, reason, message] of [
    [
      'declined',
      async (address: string) => {
        oidc.options.declines = true
        // They are asked for another code, and have none.
        await elsewhere(address).catch(() => {})
        oidc.options.declines = false
      },
      'sign_in_refused',
      /declined .*\(access_denied\)/,
    ],
    [
      'forgotten',
      async (_address: string, time: { ahead: number }) => {
        time.ahead += 3_600_000
      },
      'sign_in_required',
      /not finished in time/,
    ],
    [
      'cancelled',
      async (_address: string, _time: object, logout: () => Promise<unknown>) => {
        await logout()
      },
      'sign_in_required',
      /was cancelled/,
    ],
  ] as const) {
    const time = clock()
    const { account, unauthorized, shown } = signingIn(t, { server, settings, now: time.now })
    await reasonOf(unauthorized(undefined, wantedBy(server)))
    const waiting = unauthorized(undefined, wantedBy(server))
    waiting.catch(() => {})
    await done(shown[0] ?? '', time, () => account.logout())
    time.ahead += 5_000
    t.match(await reasonOf(waiting), { reason, message }, name)
  }
})

t.test('login begins a new sign-in, with all of its time', async (t) => {
  const { server } = await behind(t)
  const time = clock()
  const { account, unauthorized, shown } = signingIn(t, { server, settings, now: time.now })
  await reasonOf(unauthorized(undefined, wantedBy(server)))
  account.close()
  const again = signingIn(t, { server, settings, now: time.now })
  const done = again.account.login([wantedBy(server)], never)
  await until(() => again.shown.length > 0)
  t.not(again.shown[0], shown[0])
  await elsewhere(again.shown[0] ?? '')
  time.ahead += 5_000
  t.match(await done, { signedIn: true, renewable: true })
})

t.test('an authorization server without the grant is named, with what to do instead', async (t) => {
  const { server } = await behind(t, { devices: false })
  const { unauthorized, shown } = signingIn(t, { server, settings })
  t.match(await reasonOf(unauthorized(undefined, wantedBy(server))), {
    reason: 'auth_failed',
    message: /no device authorization endpoint/,
  })
  t.equal(shown.length, 0)
})

t.test('the address of a hostile authorization server is not shown', async (t) => {
  const { oidc, server } = await behind(t)
  for (const address of ['file:///etc/passwd', 'javascript:alert(1)', 'http://example.com/device', '-e', '']) {
    oidc.instead.set('/device/auth', (_request, response) => {
      const answer = { device_code: 'd', user_code: 'AB\u001b[2J', verification_uri: address, expires_in: 600 }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer))
    })
    const { unauthorized, shown } = signingIn(t, { server, settings })
    t.match(await reasonOf(unauthorized(undefined, wantedBy(server))), { reason: 'auth_failed' }, address)
    t.same(shown, [], address)
  }
})

t.test('asks less often where it is told to, or nobody answers', async (t) => {
  const { oidc, server } = await behind(t)
  const time = clock()
  const { unauthorized, shown, store, account } = signingIn(t, { server, settings, now: time.now })
  await reasonOf(unauthorized(undefined, wantedBy(server)))
  const every = async () => (await store.read(account.key))?.device?.every
  t.equal(await every(), 5_000)
  oidc.instead.set('/token', (_request, response) => {
    response.statusCode = 400
    response.setHeader('content-type', 'application/json').end('{"error":"slow_down"}')
  })
  time.ahead += 5_000
  while ((await every()) === 5_000) await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(await every(), 10_000)
  oidc.instead.delete('/token')
  const waiting = unauthorized(undefined, wantedBy(server))
  await elsewhere(shown[0] ?? '')
  time.ahead += 10_000
  t.match(await oidc.introspect(bearer(await waiting)), { active: true })
})
