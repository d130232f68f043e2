/** `mcp-bridge discover` and `mcp-bridge trust` as people run them: what they say, and how they end. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run as runProgram, says, startProgram } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { manifestFor, modernServer, offers } from '../support/found.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { startFixture } from '../support/process.js'
import { makeCa, serveTls } from '../support/tls.js'
import { bytesOf, publisherWith } from '../support/trust.js'

const LOOPBACK = '--discover-loopback'
const notes = (t: Test) => startFixture(t, 'discovery/notes.mjs').then(({ url }) => url)
process.env['PORT'] = '0'

/** The program, with a folder of configurations of its own. */
function ready(t: Test, more: Record<string, string> = {}) {
  const folder = temporaryFolder(t)
  const env = { XDG_CONFIG_HOME: folder, HOME: folder, ...more }
  const run = (...args: string[]) => runProgram(t, args, env)
  return { folder, env, run, store: join(folder, 'mcp-bridge', 'trust.json') }
}

t.test('discover prints what it finds, as text and as JSON', async (t) => {
  const url = await notes(t)
  const { run } = ready(t)
  const text = await run('discover', url, LOOPBACK)
  t.equal(text.code, 0)
  t.match(text.stdout, /^notes {2}http:\/\/127/)
  for (const part of ['from ', 'manifest ', 'signature ', 'handshake ', 'trust ', 'tools ', 'missing ', 'to allow it '])
    t.match(text.stdout, new RegExp(`^  ${part}`, 'm'), part)
  t.match(text.stdout, /read_notes +reads only +Reads all notes/)
  t.match(text.stderr, /locate.* ms/, 'what goes on is said on stderr')
  t.equal(text.stderr.trim().split('\n').length, 5, 'in one line for each phase')

  const json = await run('discover', url, LOOPBACK, '--json')
  t.equal(json.code, 0)
  t.match(JSON.parse(json.stdout), {
    servers: [
      {
        name: 'notes',
        url: `${url}/mcp`,
        source: 'well-known',
        usable: true,
        era: 'modern',
        revision: '2026-07-28',
        server: { name: 'notes', version: '1.0.0' },
        tools: [{ name: 'read_notes', readOnlyHint: true }, { name: 'delete_notes' }],
        manifest: { signed: false, publisher: 'notes.example' },
        steps: [{ step: 'manifest' }, { step: 'signature' }, { step: 'handshake' }, { step: 'trust' }],
        trust: { state: 'quarantined', remedy: `mcp-bridge trust approve ${url}/mcp ${LOOPBACK}` },
      },
    ],
    failures: [],
  })
})

t.test('with an empty HOME, the trust store is not beside the current folder', async (t) => {
  const listed = await runProgram(t, ['trust', 'list'], { HOME: '', XDG_CONFIG_HOME: '' })
  t.match(listed.stdout, /\(\/.*\/mcp-bridge\/trust\.json\)|\d/)
  t.notMatch(listed.stdout, /\(\.config/)
  t.equal(listed.code, 0)
})

t.test('the exit code reports that no server can be used', async (t) => {
  const url = await notes(t)
  const { run, folder } = ready(t)
  const guarded = await run('discover', `${url}/mcp`)
  t.equal(guarded.code, 1)
  t.match(guarded.stdout, /--discover-loopback/, 'it says how this machine can be reached')
  const nobody = await run('discover', 'mcp.nobody.invalid')
  t.equal(nobody.code, 1)
  t.match(nobody.stdout, /No server was found\.[\s\S]*resolve: .*mcp\.nobody\.invalid/)
  const broken = join(folder, 'broken.json')
  writeFileSync(broken, '{')
  t.match(await run('discover', broken, '--json'), { code: 1, stdout: /"phase": "file"/ })
  t.match(await run('discover', 'nothing in particular?'.replaceAll(' ', '')), { code: 1 })
  t.match(await run('discover'), { code: 2, stderr: /discover needs a place to look/ })
  const wrong = await run('discover', url, '--discover-allow', 'not a host')
  t.match(wrong, { code: 78, stderr: /discoverAllow .*neither a host nor an address/ })
})

t.test('commands and files are local to this machine, and credentials are not shown', async (t) => {
  const { run, folder } = ready(t, { SECRET: 'very-secret' })
  const { server } = legacyStdio(t)
  const file = join(folder, 'mcp.json')
  const env = { TOKEN: '${SECRET}' }
  writeFileSync(file, JSON.stringify({ mcpServers: { mine: { ...server, env } } }))
  const found = await run('discover', file, '--json')
  t.equal(found.code, 0)
  t.match(JSON.parse(found.stdout), {
    servers: [{ name: 'mine', source: 'config', era: 'legacy', trust: { state: 'trusted', by: 'configuration' } }],
  })
  t.notMatch(found.stdout + found.stderr, 'SECRET')
  const command = await run(
    'discover',
    `stdio:${[server.command, ...server.args].map((word) => `'${word}'`).join(' ')}`,
  )
  t.match(command, { code: 0, stdout: /legacy 2025-11-25[\s\S]*trusted: it is in the configuration/ })
  mkdirSync(join(folder, '.cursor'))
  writeFileSync(join(folder, '.cursor', 'mcp.json'), JSON.stringify({ mcpServers: { cursors: server } }))
  t.match(await run('discover', 'files:'), { code: 0, stdout: /^cursors /m })
})

t.test('trust approve, list and revoke work one after the other', async (t) => {
  const url = await notes(t)
  const { run, store } = ready(t)
  t.match(await run('trust', 'list'), { code: 0, stdout: /No keys, pins or approvals yet/ })
  const named = await run(
    'trust',
    'approve',
    'notes',
    '--discover',
    url,
    LOOPBACK,
    '--for',
    '8w',
    '--tools',
    'read_*',
    'list_*',
  )
  t.match(named, { code: 0, stdout: /Of its tools, as they are now, read_\* list_\*: approved until/ })
  t.equal(statSync(store).mode & 0o777, 0o600)
  t.match(JSON.parse(readFileSync(store, 'utf8')), {
    approvals: [
      {
        endpoint: `${url}/mcp`,
        name: 'notes',
        bound: 'none',
        tools: ['read_*', 'list_*'],
        list: {
          tools: [
            ['read_notes', /./],
            ['delete_notes', /./],
          ],
        },
      },
    ],
  })
  t.match(await run('trust', 'list'), { stdout: /approved {2}notes[\s\S]*read_\* list_\*/ })
  t.match(JSON.parse((await run('trust', 'list', '--json')).stdout), { approvals: [{ name: 'notes' }] })
  t.match(await run('discover', url, LOOPBACK), { stdout: /trusted: it was approved on/ })
  t.match(await run('trust', 'revoke', 'notes'), { code: 0 })
  t.match(await run('trust', 'revoke', 'notes'), { code: 1, stderr: /"notes" is not approved/ })

  const other = join(ready(t).folder, 'mine.json')
  const quarantined = await run('discover', url, LOOPBACK, '--trust-store', other, '--json')
  const [{ trust }] = JSON.parse(quarantined.stdout).servers
  t.ok(trust.remedy.endsWith(`--trust-store ${other}`), 'a command that is shown is for the same store')
  t.equal((await run(...(trust.remedy as string).split(' ').slice(1))).code, 0)
  t.match(await run('trust', 'list', '--trust-store', other), { stdout: /approved {2}notes/ })

  const wrong: [args: string[], code: number, said: RegExp][] = [
    [['trust'], 2, /"mcp-bridge trust" needs a command: list, approve/],
    [['trust', 'approve'], 2, /trust approve needs <server>/],
    [['trust', 'bless', 'x'], 2, /"trust bless" is not a command: there are list, approve/],
    [['trust', 'approve', 'x', 'y'], 2, /trust approve takes <server>, and there is "y" more/],
    [['trust', 'approve', url, '--for', 'ever'], 2, /--for needs a time/],
    [['trust', 'approve', 'nobody', '--discover', url, LOOPBACK], 1, /no single server is "nobody"\. Found: http/],
    [
      ['trust', 'approve', `${url}/mcp`],
      1,
      /did not answer: \S+ is this machine, [\s\S]*--discover-loopback: add it to the command/,
    ],
    [['trust', 'key', 'remove', 'acme.test', '-id-of-a-key'], 1, /acme\.test has no key -id-of-a-key/],
    [['trust', 'key', 'add', 'Acme', 'x'], 1, /is not the name of a publisher/],
    [['trust', 'key', 'add', 'acme.test', '/nonexistent'], 1, /ENOENT/],
    [['trust', 'pin', 'notes'], 1, /is not an address/],
    [['trust', 'pin', url, LOOPBACK], 1, /not reached over TLS/],
  ]
  const ended = wrong.map(async ([args, code, said]) => {
    const ended = await run(...args)
    t.equal(ended.code, code, args.join(' '))
    t.match(ended.stderr, said, args.join(' '))
    t.notMatch(ended.stderr, /^\s+at /m)
  })
  await Promise.all(ended)
})

t.test('a damaged store is neither used nor changed', async (t) => {
  const url = await notes(t)
  const { run, store, folder } = ready(t)
  mkdirSync(join(folder, 'mcp-bridge'), { mode: 0o700 })
  writeFileSync(store, '{"version":1,"version":1}', { mode: 0o600 })
  t.match(await run('trust', 'list'), { code: 1, stderr: /is not used: it is damaged/ })
  t.match(await run('trust', 'approve', `${url}/mcp`, LOOPBACK), { code: 1, stderr: /cannot be approved.*is not used/ })
  t.match(await run('discover', url, LOOPBACK), { stdout: /quarantined: The trust store .* is not used/ })
  t.equal(readFileSync(store, 'utf8'), '{"version":1,"version":1}')
})

t.test('trust key and trust pin add and remove entries', async (t) => {
  const ca = await makeCa()
  const pages: Record<string, unknown> = {}
  const answer = modernServer(offers())
  const server = await serveTls(t, await ca.serverOptions(['localhost', '127.0.0.1']), (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'https://x')
    if (pathname === '/mcp') answer(request, response)
    else if (pages[pathname]) response.end(pages[pathname])
    else response.writeHead(404).end()
  })
  const origin = `https://127.0.0.1:${server.port}`
  const acme = await publisherWith('p256')
  const bytes = bytesOf(manifestFor(`${origin}/mcp`))
  pages['/.well-known/mcp.json'] = bytes
  pages['/.well-known/mcp.json.jws'] = await acme.sign(bytes)
  const authority = join(temporaryFolder(t), 'ca.pem')
  writeFileSync(authority, ca.cert)
  const { run, folder } = ready(t, { NODE_EXTRA_CA_CERTS: authority })
  const allow = ['--discover-allow', '127.0.0.1']

  const file = join(folder, 'acme.pem')
  writeFileSync(file, acme.pair.publicKey.export({ type: 'spki', format: 'pem' }))
  t.match(await run('trust', 'key', 'add', 'acme.test', file), { code: 0, stdout: new RegExp(acme.key.id) })
  t.match(await run('discover', origin, ...allow), { code: 0, stdout: /trusted: its manifest is signed by acme\.test/ })
  t.match(await run('trust', 'key', 'remove', 'acme.test', acme.key.id), { code: 0 })
  t.match(await run('discover', origin, ...allow), {
    stdout: /quarantined: no signature, pin or approval vouches for it/,
  })
  const secret = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
  writeFileSync(file, secret)
  t.match(await run('trust', 'key', 'add', 'acme.test', file), { code: 1, stderr: /This is a private key/ })

  const pinned = await run('trust', 'pin', origin, ...allow)
  t.match(pinned, { code: 0, stdout: /is pinned to .{44}\.[\s\S]*With --backup <pin> you can/ })
  t.match(await run('discover', origin, ...allow), { stdout: /trusted: it has the pinned key/ })
  t.match(await run('trust', 'unpin', origin), { code: 0 })
  t.match(await run('trust', 'unpin', origin), { code: 1, stderr: /is not pinned/ })
})

t.test('a bridge serves the servers it finds, and publishes the servers it fronts', async (t) => {
  const url = await notes(t)
  const { env, folder } = ready(t)
  const key = join(folder, 'key.pem')
  writeFileSync(key, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const config = join(folder, 'config.json')
  const { server } = legacyStdio(t)
  writeFileSync(
    config,
    JSON.stringify({
      mcpServers: { mine: server },
      discover: [url],
      discoverLoopback: true,
      readOnlyTools: ['read_*'],
      publicUrl: 'http://127.0.0.1:1',
      publish: { publisher: 'me.test', key: `\${file:${key}}` },
    }),
  )
  const program = startProgram(t, ['--config', config, '--listen', 'http://127.0.0.1:0/mcp'], env)
  const [, origin] = await says(program, /"url":"(http:[^"]*)\/notes\/mcp"/)
  const asks = (name: string) =>
    call(`${origin}/notes/mcp`, 'tools/call', { name, arguments: {} }).then(({ message }) => message.result)
  t.match(await asks('delete_notes'), { isError: true })
  t.match(await asks('read_notes'), { content: [{ text: /plants/ }] }, 'it only reads, and is listed')
  const answered = await fetch(`${origin}/.well-known/mcp.json`)
  t.equal(answered.headers.get('cache-control'), 'public, max-age=300')
  t.match(await answered.json(), { publisher: 'me.test', servers: [{ name: 'mine', serverName: 'scripted' }] })
  t.match(await (await fetch(`${origin}/.well-known/mcp.json.jws`)).text(), /^[\w-]+\.\.[\w-]+$/)
})

t.test('--listen stdio needs exactly one server', async (t) => {
  const { run } = ready(t)
  const none = await run('--listen', 'stdio', '--discover', 'mcp.nobody.invalid')
  t.match(none, { code: 78, stderr: /on stdio there is one server, and there are none/ })
})
