/** `mcp-bridge login`, `logout`, `auth status` and `probe`, as people run them, with a real authorization server. */
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { Guarded } from '../support/guarded.js'
import { Oidc } from '../support/oidc.js'
import { visit } from '../support/person.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const willing = `${execPath} ${fileURLToPath(new URL('../fixtures/willing-browser.mjs', import.meta.url))}`

async function behind(t: Test) {
  const oidc = await Oidc.start(t)
  const legacy = await startSdkV1(t, (server) => {
    server.registerTool('greet', { description: 'Greets.' }, () => ({ content: [{ type: 'text', text: 'Hello' }] }))
  })
  const server = await Guarded.start(t, oidc, legacy)
  const folder = join(temporaryFolder(t), 'tokens')
  const config = join(temporaryFolder(t), 'config.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { stock: { url: server.url } } }))
  return { oidc, server, folder, config, store: ['--token-store', folder] }
}

t.test('login, accounts, probe and logout work one after the other', async (t) => {
  const { oidc, server, folder, store } = await behind(t)
  const before = await run(t, ['probe', server.url, ...store])
  t.equal(before.code, 0, before.stderr)
  t.match(before.stdout, /requires you to sign in/)
  t.match(before.stdout, new RegExp(`issuer +${oidc.issuer}`))
  t.match(before.stdout, /client +dynamic registration/)
  t.match(before.stdout, /scopes +mcp:read/)
  t.match(before.stdout, new RegExp(`next +mcp-bridge login ${server.url}`))
  t.equal(oidc.of('/reg').length, 0, 'nobody was registered for that')

  const login = await run(t, ['login', server.url, ...store, '--browser', willing])
  t.equal(login.code, 0, login.stderr)
  t.match(
    login.stdout,
    /Signed in to[\s\S]*account +local: signed in[\s\S]*renewed automatically[\s\S]*scopes +mcp:read/,
  )
  t.equal(readdirSync(folder).filter((name) => name.endsWith('.json')).length, 1)

  const status = await run(t, ['auth', 'status', ...store])
  t.match(status.stdout, new RegExp(`^${server.url}\n +account +local: signed in`))
  const told = JSON.parse((await run(t, ['auth', 'status', '--json', ...store])).stdout) as { accounts: object[] }
  t.match(told.accounts, [
    { endpoint: server.url, account: 'local', signedIn: true, issuer: oidc.issuer, client: 'registered' },
  ])
  t.notMatch(JSON.stringify(told), /access|refresh":|verifier/, 'nothing secret')

  const after = await run(t, ['probe', server.url, ...store])
  t.match(after.stdout, /greet +Greets/)

  const logout = await run(t, ['logout', server.url, ...store])
  t.equal(logout.code, 0, logout.stderr)
  t.match(logout.stdout, /Signed out[\s\S]*revoked/)
  t.equal(oidc.of('/token/revocation').length > 0, true)
  t.match((await run(t, ['auth', 'status', ...store])).stdout, /Signed in to no server/)
  t.equal((await run(t, ['logout', server.url, ...store])).code, 1)
})

t.test('discover says how to sign in to a server, and shows its tools afterwards', async (t) => {
  const { oidc, server, config, store } = await behind(t)
  const here = ['--discover-loopback', ...store]
  const trust = ['--trust-store', join(temporaryFolder(t), 'trust.json')]
  const probed = await run(t, ['probe', server.url, ...store])
  const rowsOf = (text: string) =>
    text.match(/^ +(?:issuer|resource|client|scopes) .*$/gm)?.map((row) => row.split(/ {2,}/))
  const found = await run(t, ['discover', server.url, ...here, ...trust])
  t.equal(found.code, 1, 'no server can be used yet')
  t.same(rowsOf(found.stdout), rowsOf(probed.stdout), 'in the words of probe')
  t.match(found.stdout, new RegExp(`^  next +mcp-bridge login ${server.url}$`, 'm'))
  const json = JSON.parse((await run(t, ['discover', server.url, '--json', ...here, ...trust])).stdout) as object
  const { signIn } = JSON.parse((await run(t, ['probe', server.url, '--json', ...store])).stdout) as { signIn: object }
  t.match(signIn, { issuer: oidc.issuer, resource: server.url, scopes: ['mcp:read'], client: 'registered' })
  t.match(json, { servers: [{ usable: false, signIn, failure: { phase: 'handshake', reason: 'sign-in' } }] })
  const inFile = await run(t, ['discover', config, ...here, ...trust])
  t.match(inFile.stdout, `mcp-bridge login stock --config ${config}`, 'an entry has its own options for a sign-in')
  t.same(
    oidc.requests.filter(({ path }) => path === '/reg' || path === '/auth' || path === '/token'),
    [],
    'nobody was registered or asked for that',
  )

  t.equal((await run(t, ['login', 'stock', '--config', config, ...store, '--browser', willing])).code, 0)
  for (const where of [server.url, config]) {
    const after = await run(t, ['discover', where, ...here, ...trust])
    t.equal(after.code, 0, after.stdout)
    t.match(after.stdout, /tools +greet +Greets/)
    t.notMatch(after.stdout, /^ +issuer/m)
  }
  const other = await run(t, ['discover', server.url, '--account', 'work', ...here, ...trust])
  t.match(other.stdout, /^ +issuer/m, 'another account is not signed in')
  const approved = await run(t, ['trust', 'approve', server.url, '--discover-loopback', ...trust])
  t.not(approved.code, 0)
  t.notOk(
    server.seen.some(({ authorization, status }) => authorization !== undefined && status === 401),
    'only tokens of this server were sent',
  )
})

t.test('without a browser, prints the address, and accepts a pasted callback', async (t) => {
  const { config, store } = await behind(t)
  const program = startProgram(t, [
    'login',
    'stock',
    '--config',
    config,
    '--no-browser',
    '--log-format',
    'pretty',
    ...store,
  ])
  const [address = ''] = await says(program, /http:\/\/127\.0\.0\.1:\d+\/auth\?\S+/)
  t.match(program.stderr(), /paste here the address/)
  const { callback } = await visit(address, { back: false })
  program.child.stdin.write('nonsense\n')
  await says(program, /does not belong to this sign-in/)
  program.child.stdin.write(`${callback?.href}\n`)
  t.equal(await program.ended, 0, program.stderr())
  t.match(program.stdout(), /Signed in to stock/)
})

t.test('a running bridge uses what a command obtained, and loses it at logout', async (t) => {
  const { server, store } = await behind(t)
  const bridge = startProgram(t, [
    '--listen',
    'http://127.0.0.1:0/mcp',
    '--upstream',
    server.url,
    '--no-browser',
    '--log-format',
    'json',
    ...store,
  ])
  const [line] = await says(bridge, /^.*"event":"listening".*$/m)
  const { url } = JSON.parse(line) as { url: string }
  await says(bridge, /"event":"sign_in_required"/)
  const list = async () => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
    const envelope = body.replace('{}', JSON.stringify({ _meta: META }))
    const more = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' }
    return (await fetch(url, { method: 'POST', headers: { ...headers, ...more }, body: envelope })).text()
  }
  t.match(await list(), /mcp_bridge_sign_in/)
  t.equal((await run(t, ['login', server.url, ...store, '--browser', willing])).code, 0)
  await until(async () => (await list()).includes('"greet"'), 'the bridge has the token')
  t.equal((await run(t, ['logout', server.url, ...store])).code, 0)
  await until(async () => (await list()).includes('mcp_bridge_sign_in'), 'A24 the bridge has lost the token')
  t.notMatch(bridge.stderr(), /state=|code_challenge|Bearer [A-Za-z0-9]/, 'A23 nothing secret in its log')
})

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

t.test('a command that cannot work gives the reason', async (t) => {
  const { config, server, store } = await behind(t)
  const cases: [args: string[], code: number, why: RegExp][] = [
    [['login'], 2, /login needs a server/],
    [['login', 'stock'], 2, /"stock" is not an address: give one with https/],
    [['login', 'other', '--config', config], 2, /the configuration file has no server "other"/],
    [['auth'], 2, /"mcp-bridge auth" needs a command: status/],
    [['login', server.url, '--client-secret', 'literal'], 2, /--client-secret needs a variable/],
    [['login', server.url, '-H', 'Authorization: Bearer x'], 1, /does not sign in/],
    [['--upstream', server.url, '--callback-port', 'x'], 2, /--callback-port needs a number/],
  ]
  await Promise.all(
    cases.map(async ([args, code, why]) => {
      const ended = await run(t, [...args, ...store])
      t.equal(ended.code, code, args.join(' '))
      t.match(ended.stderr, why)
    }),
  )
})
