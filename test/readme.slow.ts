/**
 * README.md from top to bottom: every command is run as it stands there, in a fresh clone with an empty home, and what the README
 * shows of its output is compared. A command or a block that is not in the tables below fails the test.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import t, { type Test } from 'tap'
import { noHelm } from './support/chart.js'
import { manifestFor } from './support/found.js'
import { Guarded } from './support/guarded.js'
import { complaints, parseManifest } from './support/kubernetes.js'
import { LegacyClient } from './support/legacy-client.js'
import { call } from './support/modern.js'
import { Newcomer, type Started } from './support/newcomer.js'
import { Oidc } from './support/oidc.js'
import { startSdkV1 } from './support/sdk-v1.js'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const { scripts } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  scripts: Record<string, string>
}
/** What a reader has in the environment, because the commands and files name it. */
const ENVIRONMENT = {
  ALICE_TOKEN: 'alice-of-this-test-0123456789',
  API_KEY: 'key-of-this-test',
  BOB_TOKEN: 'bob-of-this-test-0123456789',
  SEARCH_TOKEN: 'search-of-this-test',
  TOKEN: 'token-of-this-test',
}
/** Megabytes that `npm ci` may take. */
const MOST = 400

/** The address of the bridge, for people and in JSON. */
const LISTENS = /(?: listens on |"url":"|^ {2})(http[^\s"]+mcp)\b/m

interface Walk {
  newcomer: Newcomer
  /** What the command before printed. */
  printed: string
  /** The demo, until it is interrupted. */
  demo: Started | undefined
  /** The header Authorization of requests to example.com. */
  authorizations: Set<string | undefined>
}

type Step = (t: Test, walk: Walk, text: string) => Promise<unknown>
/** How commands and blocks begin, in their order, and what is done with each. */
type Steps = readonly (readonly [begins: string, step: Step])[]

const BLOCKS: Steps = [
  ['npm ci && npm run demo', startDemo],
  ['curl -s http://127.0.0.1:8080/mcp \\', runs],
  ['{"jsonrpc"', compareAnswer],
  ['curl -s http://127.0.0.1:8080/mcp -H', discoverByHand],
  ['npm ci && npm pack && npm install -g ./mcp-bridge-', install],
  ['mcp-bridge probe https://example.com/mcp', probe],
  ['mcp-bridge --upstream https://example.com/mcp', serveRemote],
  ["mcp-bridge -e API_KEY='${API_KEY}' -- npx -y some-mcp-server --verbose", serveProgram],
  ['mcp-bridge --listen stdio --upstream https://example.com/mcp -H', serveOnStdio],
  ['mcp-bridge --config mcp.json', serveFile],
  ['{\n  "mcpServers": {\n    "files"', async () => 'the command before has used it'],
  ['docker build -t mcp-bridge .', runs],
  ['docker run --rm -p 127.0.0.1:8080:8080 -e TOKEN mcp-bridge', serveGateway],
  ['docker run -i --rm mcp-bridge --listen stdio', serveOnStdio],
  ['kubectl apply --dry-run=server -f', applies],
  ['helm install bridge config/helm/mcp-bridge', installsChart],
  ['mcp-bridge wrap claude-desktop', wrap],
  ['mcp-bridge wrap claude-desktop --together', wrapTogether],
  ['mcp-bridge login https://mcp.example.com/mcp', signIn],
  ['mcp-bridge auth status', showSignIn],
  ['mcp-bridge logout https://mcp.example.com/mcp', signOut],
  ['{\n  "mcpServers": {\n    "linear"', checkFile],
  ['{ "auth": { "tokens"', serveCallers],
]

/** Commands within sentences. They are run after the blocks. */
const MENTIONS: Steps = [
  ['mcp-bridge demo', async (t) => t.match(scripts['demo'], /main\.js demo$/, 'npm run demo has run it')],
  ['mcp-bridge tail', follow],
  ['npx -y ./mcp-bridge-', runPackage],
  [
    'npm ci && npm run build:executable',
    async (t) => t.ok(scripts['build:executable'], 'the test of the executable builds it'),
  ],
  ['npm run build:deb', async (t) => t.ok(scripts['build:deb'], 'the test of the package for Debian builds it')],
  [
    'mcp-bridge completion',
    async (t, { newcomer }) => t.match((await newcomer.run('mcp-bridge completion bash')).stdout, /complete /),
  ],
  ['mcp-bridge check --config mcp.json', runs],
  ['docker compose up --build', runs],
  ['mcp-bridge discover example.com', discover],
  ['mcp-bridge --discover example.com', serveFound],
  ['mcp-bridge trust approve', approve],
  ['npm run conformance', async (t) => t.ok(scripts['conformance'], 'CI runs it nightly')],
  ['mcp-bridge probe <server>', probeInVain],
]

const windows = process.platform === 'win32' && 'the commands are for a shell of Unix'

t.test('the README works from top to bottom', { skip: windows }, async (t) => {
  const newcomer = await Newcomer.start(t, ENVIRONMENT)
  if ((await newcomer.startOnline('npm view tap name').ended) !== 0)
    return t.pass('not run', { skip: 'the registry of npm cannot be reached' })
  const walk: Walk = { newcomer, printed: '', demo: undefined, authorizations: new Set() }
  await serveHosts(t, walk)
  await follows(t, walk, blocksOf(readme), BLOCKS)
  await follows(t, walk, mentionsOf(readme), MENTIONS)
})

/** Goes on until the first step that fails. */
async function follows(t: Test, walk: Walk, texts: readonly string[], steps: Steps): Promise<void> {
  for (const [i, text] of texts.entries()) {
    const [begins, step] = steps[i] ?? []
    const isKnown = begins !== undefined && text.startsWith(begins)
    if (!isKnown || !step) return void t.fail(`README.md has what the test does not know:\n${text}`)
    await t.test(text.replace(/\s+/g, ' ').slice(0, 110), (t) => step(t, walk, text))
    if (!t.passing()) return
  }
  t.equal(texts.length, steps.length, 'the README has all that the test knows')
}

/** The blocks of code. A block of commands is several: each ends with its line, but for a line that ends with a backslash. */
function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)\n```$/gm)].flatMap(([, language, code = '']) =>
    language === 'sh' ? [...code.matchAll(/^(?!#)(?:.*\\\n)*.+$/gm)].map(([command]) => command) : [code],
  )
}

function mentionsOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, '')
  return [...prose.matchAll(/`((?:mcp-bridge|npm|npx|docker|kubectl|helm|curl) [^`]+)`/g)].map(([, code = '']) => code)
}

/** A text of the README that begins so. */
function shown(begins: string): string {
  return blocksOf(readme).find((text) => text.startsWith(begins)) ?? ''
}

async function serveHosts(t: Test, walk: Walk): Promise<void> {
  const remote = await startSdkV1(t, (server) => {
    server.registerTool('greet', { description: 'Greets.' }, ({ requestInfo }) => {
      walk.authorizations.add(requestInfo?.headers['authorization']?.toString())
      return { content: [{ type: 'text', text: 'Hello' }] }
    })
  })
  const oidc = await Oidc.start(t, { issuer: 'https://auth.example.com' })
  const guarded = await Guarded.start(t, oidc, remote, { origin: 'https://mcp.example.com' })
  const hosts = {
    'example.com': remote,
    'search.example.com': remote,
    'mcp.example.com': guarded.address,
    'auth.example.com': oidc.address,
  }
  const about = { name: 'greeter', protocolRevisions: ['2025-11-25'] }
  const manifest = manifestFor('https://example.com/mcp', { publisher: 'example.com' }, about)
  await walk.newcomer.publish(hosts, { 'https://example.com/.well-known/mcp.json': manifest })
}

async function runs(t: Test, walk: Walk, command: string): Promise<void> {
  const { code, stdout, stderr } = await walk.newcomer.run(command)
  t.equal(code, 0, code === 0 ? 'it succeeds' : stdout + stderr)
  walk.printed = stdout
}

async function startDemo(t: Test, walk: Walk, command: string): Promise<void> {
  const { newcomer } = walk
  walk.demo = newcomer.startOnline(command)
  const [, inspector = ''] = await walk.demo.says(/^Inspector: (http\S+)$/m)
  const [, url = ''] = await walk.demo.says(LISTENS)
  await walk.demo.says(/Ctrl-C ends the demo/)
  newcomer.finds(8080, url)
  t.notMatch(walk.demo.output(), /EBADENGINE|npm warn/i, 'no warnings')
  t.equal((await fetch(inspector)).status, 200)
  const { stdout } = await newcomer.run('du -sm node_modules')
  t.ok(Number.parseInt(stdout, 10) < MOST, `${stdout}, less than ${MOST} MB`)
}

/** test/cli/demo.slow.ts finds the messages of the server in the inspector. */
async function compareAnswer(t: Test, { printed }: Walk, block: string): Promise<void> {
  t.equal(printed.trim(), block.split('\n').at(-1), 'the last line is what curl has printed')
}

async function discoverByHand(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  t.match(JSON.parse(walk.printed), { result: { supportedVersions: ['2026-07-28'] } })
}

async function install(t: Test, { newcomer, demo }: Walk, command: string): Promise<void> {
  await demo?.interrupt()
  const installing = newcomer.startOnline(command)
  t.equal(await installing.ended, 0, installing.output())
  t.notMatch(installing.output(), /EBADENGINE|npm warn/i, 'no warnings')
  t.match((await newcomer.run('mcp-bridge --version')).stdout, /^\d+\.\d+\.\d+\n$/)
}

async function probe(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  for (const said of [/legacy 2025-11-25/, /greet +Greets/]) t.match(walk.printed, said)
}

/** Serves until the step is over, and resolves to what is printed as the address of the bridge. */
async function serving(t: Test, { newcomer }: Walk, command: string): Promise<string> {
  const bridge = newcomer.start(command)
  t.teardown(() => bridge.interrupt())
  const [, url = ''] = await bridge.says(LISTENS)
  return url
}

async function greets(t: Test, url: string, headers: Record<string, string> = {}): Promise<void> {
  const { message } = await call(url, 'tools/call', { name: 'greet', arguments: {} }, { headers })
  t.match(message, { result: { content: [{ text: 'Hello' }] } }, 'for a modern client')
  const legacy = await LegacyClient.open(url, { headers })
  const answer = await legacy.request('tools/call', { name: 'greet', arguments: {} })
  t.match(answer.message, { result: { content: [{ text: 'Hello' }] } }, 'for a legacy client')
}

async function serveRemote(t: Test, walk: Walk, command: string): Promise<void> {
  const url = await serving(t, walk, command)
  await greets(t, url)
  const client = new Client({ name: 'old', version: '1' })
  t.teardown(() => client.close())
  await client.connect(new SSEClientTransport(new URL('/sse', url)) as Transport)
  t.match(await client.callTool({ name: 'greet' }), { content: [{ text: 'Hello' }] }, 'over HTTP+SSE')
}

async function serveGateway(t: Test, walk: Walk, command: string): Promise<void> {
  const url = await serving(t, walk, command)
  await greets(t, url, { authorization: `Bearer ${ENVIRONMENT.TOKEN}` })
  t.equal((await call(url, 'tools/list')).status, 401, 'for nobody without the token')
}

async function serveProgram(t: Test, walk: Walk, command: string): Promise<void> {
  const url = await serving(t, walk, command)
  const { message } = await call(url, 'tools/call', { name: 'describe', arguments: {} })
  const text = JSON.stringify([['--verbose'], ENVIRONMENT.API_KEY])
  t.match(message, { result: { content: [{ text }] } }, 'it has its argument and its variable')
}

async function greetsOnStdio(t: Test, { child, says, ended }: Started): Promise<void> {
  const say = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'host', version: '1' }
  say({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } })
  await says(/"serverInfo"/)
  say({ method: 'notifications/initialized' })
  say({ id: 2, method: 'tools/call', params: { name: 'greet' } })
  await says(/"Hello"/)
  child.stdin.end()
  t.equal(await ended, 0)
}

async function serveOnStdio(t: Test, walk: Walk, command: string): Promise<void> {
  await greetsOnStdio(t, walk.newcomer.start(command))
  if (command.includes('-H')) t.ok(walk.authorizations.has(`Bearer ${ENVIRONMENT.TOKEN}`), 'the server got the header')
}

async function serveFile(t: Test, walk: Walk, command: string): Promise<void> {
  writeFileSync(join(walk.newcomer.clone, 'mcp.json'), shown('{\n  "mcpServers": {\n    "files"'))
  const bridge = walk.newcomer.start(command)
  t.teardown(() => bridge.interrupt())
  const [, files = ''] = await bridge.says(/(http[^\s"]+\/files\/mcp)/)
  const [, search = ''] = await bridge.says(/(http[^\s"]+\/search\/mcp)/)
  await greets(t, search)
  t.ok(walk.authorizations.has(`Bearer ${ENVIRONMENT.SEARCH_TOKEN}`))
  const { message } = await call(files, 'tools/call', { name: 'list_directory', arguments: { path: '.' } })
  t.match(message, { result: { content: [{ text: /README\.md/ }] } })
}

async function applies(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  t.same(parseManifest(walk.printed).mistakes, [], 'test/kubernetes.test.ts validates it')
}

async function installsChart(t: Test, walk: Walk, command: string): Promise<void> {
  if (noHelm) return t.comment(noHelm)
  await runs(t, walk, command)
  const { mistakes, resources } = parseManifest(walk.printed)
  t.same(mistakes, [])
  t.ok(resources.length > 3)
  for (const one of resources) t.same(await complaints(one), [], one.kind)
}

interface Entry {
  command: string
  args: string[]
  env: Record<string, string>
}

async function wrap(t: Test, walk: Walk, command: string): Promise<void> {
  const { newcomer } = walk
  const file = join(newcomer.home, '.config', 'Claude', 'claude_desktop_config.json')
  const before = '{\n  "mcpServers": { "remote": { "url": "https://example.com/mcp" } }\n}\n'
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, before)
  await runs(t, walk, command)
  const { mcpServers } = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: { remote: Entry } }
  const { command: program, args, env } = mcpServers.remote
  await greetsOnStdio(t, newcomer.start([program, ...args].join(' '), env))
  t.match((await newcomer.run('mcp-bridge wrap')).stdout, '1 server, 1 behind')
  await runs(t, walk, 'mcp-bridge unwrap claude-desktop')
  t.equal(readFileSync(file, 'utf8'), before, 'byte for byte')
}

async function wrapTogether(t: Test, walk: Walk, command: string): Promise<void> {
  const { newcomer } = walk
  const file = join(newcomer.home, '.config', 'Claude', 'claude_desktop_config.json')
  const before = readFileSync(file, 'utf8')
  await runs(t, walk, command)
  const { mcpServers } = JSON.parse(readFileSync(file, 'utf8')) as { mcpServers: { all: Entry } }
  const { command: program, args, env } = mcpServers.all
  await greetsOnStdio(t, newcomer.start([program, ...args].join(' '), env))
  await runs(t, walk, 'mcp-bridge unwrap claude-desktop')
  t.equal(readFileSync(file, 'utf8'), before, 'byte for byte')
}

async function signIn(t: Test, walk: Walk, command: string): Promise<void> {
  const before = await walk.newcomer.run('mcp-bridge probe https://mcp.example.com/mcp')
  t.match(before.stdout, /requires you to sign in/)
  await runs(t, walk, command)
  t.match(walk.printed, /Signed in to/)
  await probe(t, walk, 'mcp-bridge probe https://mcp.example.com/mcp')
}

async function showSignIn(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  t.match(walk.printed, /^https:\/\/mcp\.example\.com\/mcp\n +account +local: signed in/)
}

async function signOut(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  t.match(walk.printed, /Signed out/)
}

/** Its servers and secrets are elsewhere. */
async function checkFile(t: Test, walk: Walk, block: string): Promise<void> {
  writeFileSync(join(walk.newcomer.clone, 'sign-in.json'), block)
  await runs(t, walk, 'mcp-bridge check --offline --config sign-in.json')
}

async function serveCallers(t: Test, walk: Walk, block: string): Promise<void> {
  const settings = { mcpServers: { it: { url: 'https://example.com/mcp' } }, listen: 'http://0.0.0.0:8080/mcp' }
  writeFileSync(join(walk.newcomer.clone, 'callers.json'), JSON.stringify({ ...settings, ...JSON.parse(block) }))
  const url = (await serving(t, walk, 'mcp-bridge --config callers.json')).replace('0.0.0.0', '127.0.0.1')
  for (const token of [ENVIRONMENT.ALICE_TOKEN, ENVIRONMENT.BOB_TOKEN])
    await greets(t, url, { authorization: `Bearer ${token}` })
  t.equal((await call(url, 'tools/list')).status, 401, 'and for nobody else')
}

async function follow(t: Test, { newcomer }: Walk, command: string): Promise<void> {
  const bridge = newcomer.start('mcp-bridge --inspect --listen stdio https://example.com/mcp')
  t.teardown(() => bridge.interrupt())
  await bridge.says(/inspector/)
  const tail = newcomer.start(command)
  await bridge.says(/inspector opened|inspector_opened/)
  bridge.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"server/discover"}\n')
  await tail.says(/server\/discover/)
  await tail.interrupt()
}

async function runPackage(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, `${command} --version`)
  t.match(walk.printed, /^\d+\.\d+\.\d+\n$/)
}

async function discover(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, command)
  for (const said of [/^greeter/, /legacy 2025-11-25/, /greet +Greets/, /quarantine/]) t.match(walk.printed, said)
}

async function serveFound(t: Test, walk: Walk, command: string): Promise<void> {
  const url = await serving(t, walk, command)
  const { text } = await call(url, 'tools/call', { name: 'greet', arguments: {} })
  t.match(text, /mcp-bridge trust approve/, 'it is in quarantine')
}

async function approve(t: Test, walk: Walk, command: string): Promise<void> {
  await runs(t, walk, `${command} https://example.com/mcp`)
  await greets(t, await serving(t, walk, 'mcp-bridge --discover example.com'))
}

async function probeInVain(t: Test, { newcomer }: Walk, command: string): Promise<void> {
  const { code, stderr } = await newcomer.run(command.replace('<server>', 'http://127.0.0.1:1/mcp'))
  t.equal(code, 1)
  t.match(stderr, /127\.0\.0\.1:1/)
}
