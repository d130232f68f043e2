/** What a person meets on the way: the browser that is opened, the page that it comes back to, and the answers they give. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { browser, browserAddress, browserCommand } from '../../src/services/oauth/person/browser.js'
import { holderOf, type LoopbackOptions, listen } from '../../src/services/oauth/person/loopback.js'
import { readPasted } from '../../src/services/oauth/person/paste.js'
import { holdTimers } from '../support/clock.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Oidc } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { ScriptedAs } from '../support/scripted-as.js'
import { Protected, reasonOf, signingIn } from '../support/signing-in.js'

/** How long a request waits for a sign-in, which no other timer has. */
const WAIT = 1_234_567
const never = new AbortController().signal

t.test('a browser gets one argument, which is an address and nothing else', async (t) => {
  const folder = temporaryFolder(t)
  const [program, seen] = [join(folder, 'browser'), join(folder, 'seen')]
  writeFileSync(program, `#!/bin/sh\nfor one in "$@"; do echo "$one" >> '${seen}'; done\nenv > '${seen}.env'\n`)
  chmodSync(program, 0o700)
  const env = { PATH: process.env['PATH'], DISPLAY: ':1', MY_TOKEN: 'CANARY', HOME: '/home/x' }
  const open = browser({ command: [program], env, platform: 'linux', exists: () => false })
  const hostile = 'https://as.example/$(id)/`id`/"\'/x;touch${IFS}y|z?a=b&c=--flag&d=<>'
  t.ok(await open(hostile))
  const [line = '', ...more] = readFileSync(seen, 'utf8').trim().split('\n')
  t.same(more, [])
  t.match(line, /^https:\/\/as\.example\/[\w\-.~:/?#[\]@!&*+,=%]*$/)
  t.equal(
    decodeURIComponent(line),
    new URL(hostile).href.replace(/%(?:22|27|3C|3E|60|7B|7D)/g, decodeURIComponent),
    'the same address',
  )
  const given = readFileSync(`${seen}.env`, 'utf8')
  t.match(given, /DISPLAY=:1/)
  t.notMatch(given, /CANARY/, 'nothing of the environment but what a desktop needs')
})

t.test('opens only web addresses in a browser', async (t) => {
  for (const address of [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://as.example/',
    'ftp://as.example/',
    'data:text/html,x',
    '--flag',
    '-a Calculator',
    'https://as.example/ --flag',
    'https://as.example/\n--flag',
    'ms-msdt:/id',
    '',
  ]) {
    t.throws(() => browserAddress(address), address)
    await t.rejects(browser({ command: ['false'], env: {}, platform: 'linux' })(address), address)
  }
  t.equal(browserAddress('http://127.0.0.1:1/a?b=c'), 'http://127.0.0.1:1/a?b=c')
  t.equal(browserAddress('http://localhost:1/'), 'http://localhost:1/')
})

t.test('uses the named browser, or else that of the system, or else none', async (t) => {
  const commandIn = (env: Record<string, string>, platform = 'linux', there: string[] = []) =>
    browserCommand({ env, platform, exists: (path) => there.includes(path) })
  t.same(commandIn({ DISPLAY: ':0' }), ['xdg-open'])
  t.same(commandIn({ WAYLAND_DISPLAY: 'w' }), ['xdg-open'])
  t.same(commandIn({}, 'darwin'), ['open'])
  t.same(commandIn({}, 'win32'), ['rundll32', 'url.dll,FileProtocolHandler'])
  t.same(commandIn({ WSL_DISTRO_NAME: 'u' }), ['wslview'])
  t.equal(commandIn({}), undefined, 'without a display')
  t.equal(commandIn({ DISPLAY: ':0', SSH_CONNECTION: 'x' }), undefined, 'over the network')
  t.equal(commandIn({ DISPLAY: ':0' }, 'linux', ['/.dockerenv']), undefined, 'in a container')
  t.equal(commandIn({ SSH_TTY: '/dev/pts/0' }, 'darwin'), undefined)
  t.same(commandIn({ BROWSER: 'firefox --new-window:chromium', SSH_CONNECTION: 'x' }), ['firefox', '--new-window'])
  t.same(commandIn({ BROWSER: '/opt/my browser' }, 'linux', ['/opt/my browser']), ['/opt/my browser'])
  t.equal(commandIn({ BROWSER: 'none', DISPLAY: ':0' }), undefined)
  t.equal(browserCommand({ command: 'none', env: { DISPLAY: ':0' }, platform: 'linux' }), undefined)
  t.same(browserCommand({ command: ['mine', '%s'], env: {}, platform: 'linux' }), ['mine', '%s'])
})

t.test('a browser that cannot be started counts as none', async (t) => {
  const open = (...command: string[]) =>
    browser({ command, env: { PATH: process.env['PATH'] }, platform: 'linux' })('https://a.example/')
  t.equal(await open('/nowhere/browser'), false)
  t.equal(await open('false'), false)
  t.equal(await open('true'), true)
  t.equal(await open('sh', '-c', 'test "$0" = "https://a.example/"', '%s'), true)
})

const listening = async (t: Test, options: Partial<LoopbackOptions> = {}) => {
  const asked: string[] = []
  const listener = await listen({
    port: 0,
    path: '/callback',
    name: 'own-name',
    onAnswer: async (params) => {
      asked.push(params.toString())
      return 'signedIn'
    },
    ...options,
  })
  if (!listener) throw new Error('no port')
  t.teardown(() => listener.close())
  return { ...listener, asked }
}

const answered = (port: number, path: string, { host = `localhost:${port}`, method = 'GET', at = '127.0.0.1' } = {}) =>
  new Promise<{ status: number | undefined; headers: object; body: string }>((resolve, reject) => {
    get({ port, path, method, host: at, headers: { host } }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, body }))
    }).on('error', reject)
  })

t.test('the listener serves one path, on this machine, and shows nothing of a request', async (t) => {
  const { port, asked } = await listening(t)
  const { status, headers, body } = await answered(port, '/callback?code=CANARY&state=<script>CANARY')
  t.equal(status, 200)
  t.match(body, /Signed in/)
  t.notMatch(body + JSON.stringify(headers), /CANARY|script>/)
  t.match(headers, {
    'content-security-policy': /default-src 'none'.*frame-ancestors 'none'/,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  })
  t.same(asked, ['code=CANARY&state=%3Cscript%3ECANARY'])
  for (const path of ['/', '/callback/', '/callbackx', '/favicon.ico', '//callback', '/.well-known/', 'callback'])
    t.not((await answered(port, path)).status, 200, path)
  for (const method of ['POST', 'HEAD', 'OPTIONS', 'PUT', 'DELETE'])
    t.equal((await answered(port, '/callback?x', { method })).status, 405, method)
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost',
    `localhost:${port + 1}`,
    `localhost.evil.example:${port}`,
  ])
    t.equal((await answered(port, '/callback?x', { host })).status, 421, host)
  t.equal((await answered(port, '/callback?x', { host: `127.0.0.1:${port}` })).status, 200)
  t.equal(asked.length, 2, 'what is refused is not even looked at')
})

t.test('the listener listens on no other address of this machine', async (t) => {
  const { port } = await listening(t)
  const own = Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  const outside = own.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address)
  for (const address of outside) {
    const refused = await new Promise((resolve) => {
      connect(port, address, () => resolve(false)).on('error', () => resolve(true))
    })
    t.ok(refused, address)
  }
  const inside = own.some(({ address }) => address === '::1')
  if (inside) t.equal((await answered(port, '/callback?x', { at: '::1', host: `[::1]:${port}` })).status, 200)
})

t.test('the listener closes, although a browser keeps a connection open', async (t) => {
  const { port, close } = await listening(t)
  const sockets = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')]
  for (const socket of sockets) socket.on('error', () => {})
  await new Promise((resolve) => sockets[1]?.once('connect', resolve))
  sockets[1]?.write('GET /callback HTTP/1.1\r\nhost: ')
  await close()
  await t.rejects(answered(port, '/callback'))
})

t.test('recognizes the owner of a port as a sibling, a stranger or nobody', async (t) => {
  const { port } = await listening(t)
  t.equal(await holderOf(port, 'own-name'), 'sibling')
  t.equal(await holderOf(port, 'other-name'), 'stranger')
  t.equal(await listen({ port, path: '/callback', name: 'own-name', onAnswer: async () => 'unknown' }), undefined)
  const gone = await listening(t)
  await gone.close()
  t.equal(await holderOf(gone.port, 'own-name'), 'nobody')
})

t.test('accepts only a callback address as pasted text', async (t) => {
  for (const text of [
    'http://localhost:33001/callback?code=a&state=b',
    ' ?code=a&state=b\n',
    'code=a&state=b',
    'http://x/?code=a&state=b#z',
  ])
    t.match(Object.fromEntries(readPasted(text) ?? []), { code: 'a', state: 'b' })
  for (const text of [
    '',
    'code',
    'yes please',
    'https://as.example/authorize?state=b',
    'a=b',
    `code=${'x'.repeat(20_000)}&state=b`,
  ])
    t.equal(readPasted(text), undefined, text.slice(0, 20))
})

t.test('does not ask again for a minute after a refusal', async (t) => {
  const oidc = await Oidc.start(t, { declines: true })
  const server = await Protected.start(t, oidc.issuer)
  let ahead = 0
  const { unauthorized, visits, store, account, logged } = signingIn(t, { server, now: () => Date.now() + ahead })
  const declined = await reasonOf(unauthorized())
  t.match(declined, { reason: 'sign_in_refused', message: /access_denied/ })
  t.notMatch(JSON.stringify([declined, logged, (await visits[0])?.page]), /CANARY/)
  t.match(await reasonOf(unauthorized()), { reason: 'sign_in_refused' })
  t.equal(visits.length, 1)
  t.notOk((await store.read(account.key))?.pending)
  ahead = 61_000
  oidc.options = {}
  t.match(await unauthorized(undefined, server.challenge(', scope="mcp:read"')), /^Bearer /)
  t.equal(visits.length, 2)
})

t.test('waits for a slow user, and tells the request where they are', async (t) => {
  const timeLimit = holdTimers(t, WAIT)
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  let come = () => {}
  const coming = new Promise<void>((resolve) => {
    come = resolve
  })
  const { unauthorized, visits, account } = signingIn(t, {
    server,
    settings: { wait: WAIT },
    person: async (address) => coming.then(() => visit(address)),
  })
  const refused = unauthorized().catch((error: unknown) => error)
  await until(() => visits.length === 1, 'the window')
  timeLimit.run()
  const error = await refused
  t.match(error, { fault: 'signInPending', message: /browser window/, signInUrl: `${as.origin}/authorize?` })
  t.notMatch((error as Error).message, /state=|http/, 'the address is for the person alone')
  const again = reasonOf(unauthorized())
  await until(() => timeLimit.waiting > 0, 'another who waits')
  timeLimit.run()
  t.match(await again, { reason: 'sign_in_pending' })
  t.equal(visits.length, 1)
  t.match(await account.status(), { pending: true, signedIn: false })
  come()
  await until(async () => (await account.authorization(never)) !== undefined)
  t.match(await account.status(), { pending: false, signedIn: true, renewable: true, client: 'registered' })
})

t.test('without a browser, prints the address, and accepts a pasted callback', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, shown, logged } = signingIn(t, { server, person: 'none' })
  t.match(await reasonOf(unauthorized()), { reason: 'sign_in_pending', message: /mcp-bridge login stock/ })
  t.equal(shown.length, 1, 'whoever waits is told as soon as the address is there')
  const waiting = unauthorized()
  const { callback } = await visit(shown[0] ?? '', { back: false })
  t.equal(await account.paste('nonsense'), false)
  t.equal(await account.paste(callback?.href.replace(/state=[^&]*/, 'state=x') ?? ''), false)
  t.equal(await account.paste(callback?.href ?? ''), true)
  t.match(await waiting, /^Bearer /)
  t.notMatch(logged.join(), /state=|CANARY/)
})

t.test(
  'without a browser and a terminal, the log and the error name the command that prints the address',
  async (t) => {
    const server = await Protected.start(t, (await ScriptedAs.start(t)).issuer)
    const { unauthorized, shown, logged } = signingIn(t, { server, person: 'none', terminal: false })
    t.match(await reasonOf(unauthorized()), { reason: 'sign_in_pending', message: /mcp-bridge login stock/ })
    t.same(shown, [])
    const lines = logged.filter((line) => line.includes('browser_unavailable'))
    t.equal(lines.length, 1)
    t.match(lines[0], /"next":"mcp-bridge login stock".*no terminal/)
    t.notMatch(logged.join(), /state=|shown|showing|CANARY/)
  },
)

t.test('a command opens the window again, and finishes what a request began', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const lazy = signingIn(t, { server, person: () => new Promise(() => {}) })
  const waiting = lazy.unauthorized()
  await until(() => lazy.visits.length > 0)
  const eager = signingIn(t, { server, folder: lazy.folder })
  t.match(await eager.account.login([server.challenge()], never), { signedIn: true })
  t.match(await waiting, /^Bearer /)
  t.equal(eager.visits.length, 1)
  t.equal(as.of('/register').length, 1)
})

t.test('a sign-in that a logout ended is over for all who waited', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, visits } = signingIn(t, { server, person: () => new Promise(() => {}) })
  const waiting = reasonOf(unauthorized())
  await until(() => visits.length > 0)
  await until(async () => (await account.status()).pending)
  await account.logout()
  t.match(await waiting, { reason: 'sign_in_required', message: /was cancelled/ })
  t.equal(visits.length, 1)
})

t.test('allows at most three authorizations in five minutes, whatever the reason', async (t) => {
  const as = await ScriptedAs.start(t, { token: () => [400, { error: 'invalid_grant' }] })
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, visits, account } = signingIn(t, { server })
  for (let nth = 0; nth < 3; nth++) t.match(await reasonOf(unauthorized()), { reason: 'auth_failed' })
  t.match(await reasonOf(unauthorized()), { reason: 'sign_in_required', message: /3 times.*mcp-bridge login/ })
  t.equal(visits.length, 3)
  as.script = {}
  t.match(await account.login([server.challenge()], never), { signedIn: true }, 'whoever insists may')
})

t.test('a step-up requests the old and the missing scopes, once', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, forbidden, account } = signingIn(t, { server })
  const first = await unauthorized(undefined, server.challenge(', scope="read"'))
  const second = await forbidden(first, 'write')
  t.not(second, first)
  t.same(
    as.of('/authorize').map(({ params }) => params.get('scope')),
    ['read', 'read write'],
  )
  t.equal(await forbidden(first, 'write'), second, 'whoever comes with the old one gets the new one')
  t.match(await reasonOf(forbidden(second, 'write')), { reason: 'scope_refused', message: /"write"/ })
  t.match(await reasonOf(forbidden(second, 'write')), { reason: 'scope_refused' })
  t.match(await reasonOf(forbidden(second, '')), { reason: 'scope_refused', message: /names none/ })
  t.equal(as.of('/authorize').length, 2)
  t.equal(await account.authorization(never), second, 'the token stays')
})

t.test('a server that always requires more gets at most three authorizations', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, forbidden } = signingIn(t, { server })
  let sent = await unauthorized()
  const ended = await (async () => {
    for (let nth = 0; nth < 10; nth++) sent = await forbidden(sent, `scope-${nth}`)
  })().catch((error: unknown) => error)
  t.match(ended, { fault: 'signInRequired' })
  t.equal(as.of('/authorize').length, 3)
})

t.test('a 403 that names no scope asks nobody to sign in', async (t) => {
  const as = await ScriptedAs.start(t)
  const server = await Protected.start(t, as.issuer)
  const { unauthorized, account, visits } = signingIn(t, { server })
  const sent = await unauthorized()
  for (const challenges of [
    [],
    ['Bearer'],
    [server.challenge(', error="invalid_token"')],
    ['Basic error="insufficient_scope"'],
  ])
    t.match(await reasonOf(account.refused({ status: 403, challenges, sent }, never, true)), {
      reason: 'upstream_auth_required',
    })
  t.equal(visits.length, 1)
})
