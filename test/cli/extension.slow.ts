/** `mcp-bridge bundle`: its extensions are valid for the program that packs and unpacks them, and answer hosts of both eras. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { env, execPath, pid } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Client as ModernClient } from '@modelcontextprotocol/client'
import { StdioClientTransport as ModernStdio } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { run } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { inTools, missing, runTool } from '../support/tools.js'

const skip = env['NODE_V8_COVERAGE'] ? 'coverage is measured' : missing('extension')
const root = fileURLToPath(new URL('../../', import.meta.url))
const ME = { name: 'host', version: '1.0.0' }
/** A PNG image of one pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

type Manifest = Record<string, unknown> & { user_config?: Record<string, Record<string, unknown>> }
type Config = { command: string; args: string[]; env: Record<string, string> }

/** Bundles, validates, unpacks and packs again. */
async function bundle(t: Test, args: readonly string[], more: Record<string, string> = {}) {
  const folder = temporaryFolder(t)
  const file = join(folder, 'it.mcpb')
  const { code, stdout, stderr } = await run(t, ['bundle', '-o', file, ...args], more)
  t.equal(code, 0, stderr)
  const unpacked = join(folder, 'unpacked')
  const tool = (...words: string[]) => {
    const { status, stdout: said, stderr: wrong } = runTool('extension', 'mcpb', words)
    t.equal(status, 0, `${words[0]}: ${said}${wrong}`)
  }
  tool('unpack', file, unpacked)
  tool('validate', join(unpacked, 'manifest.json'))
  tool('pack', unpacked, join(folder, 'packed.mcpb'))
  const manifest = JSON.parse(readFileSync(join(unpacked, 'manifest.json'), 'utf8')) as Manifest
  return { manifest, unpacked, stdout, stderr, bytes: readFileSync(file) }
}

/** How a host starts an extension, by the package of the format itself. */
async function started(manifest: Manifest, extensionPath: string, userConfig: object): Promise<Config> {
  const { getMcpConfigForManifest } = (await import(
    pathToFileURL(inTools('extension', '@anthropic-ai/mcpb/dist/index.js')).href
  )) as { getMcpConfigForManifest: (options: object) => Promise<Config | undefined> }
  const options = { manifest, extensionPath, systemDirs: {}, userConfig, pathSeparator: '/' }
  const config = await getMcpConfigForManifest(options)
  if (!config) throw new Error('a required value is missing')
  return { ...config, command: execPath, env: { ...config.env, XDG_STATE_HOME: extensionPath } }
}

/** The text that a tool answers to a legacy host, and to a modern one. */
async function answers(config: Config, name: string, args: Record<string, unknown> = {}): Promise<string[]> {
  const legacy = new Client(ME)
  const modern = new ModernClient(ME, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await legacy.connect(new StdioClientTransport({ ...config, stderr: 'inherit' }))
  await modern.connect(new ModernStdio({ ...config, stderr: 'inherit' }))
  const results = [
    await legacy.callTool({ name, arguments: args }),
    await modern.callTool({ name, arguments: args }),
  ] as { content: { text: string }[] }[]
  await Promise.all([legacy.close(), modern.close()])
  return results.map(({ content }) => content[0]?.text ?? '')
}

/** A program with a name, an icon and one tool, which tells its arguments and a variable. */
function program(t: Test): string {
  const folder = join(root, '.tap', `extension-${pid}`)
  mkdirSync(folder, { recursive: true })
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const text = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
const server = new McpServer({ name: 'teller', title: 'The Teller', version: '2.1.0', websiteUrl: 'https://tell.example/about',
  description: 'Tells what it was given', icons: [{ src: 'data:image/png;base64,${PIXEL}', mimeType: 'image/png' }] })
server.registerTool('tell', { description: 'Tells it' }, () => ({
  content: [{ type: 'text', text: JSON.stringify([process.argv.slice(2), process.env.COLOUR, process.env.API_KEY]) }] }))
await server.connect(new StdioServerTransport())
`
  const file = join(folder, 'teller.mjs')
  writeFileSync(file, text)
  return file
}

t.test(
  'a server with an address and a token answers both kinds of hosts, with the token of the user',
  { skip },
  async (t) => {
    const tokens = new Set<unknown>()
    const server = await LegacyHttp.start(t, {
      override: ({ headers }) => {
        tokens.add(headers.authorization)
        return false
      },
    })
    const { manifest, unpacked, stdout } = await bundle(t, ['--header', 'Authorization: Bearer ${TOKEN}', server.url], {
      TOKEN: 'of-the-author',
    })
    const url = Object.keys(manifest.user_config ?? {}).find((key) => key.endsWith('_url')) ?? ''
    t.match(manifest.user_config, {
      [url]: { type: 'string', default: server.url, sensitive: false },
      token: { type: 'string', sensitive: true, required: true },
    })
    t.notOk('default' in (manifest.user_config?.['token'] ?? {}))
    t.match(manifest['tools'], [{ name: 'echo' }])
    t.match(stdout, /TOKEN \(secret\)/)
    await t.rejects(started(manifest, unpacked, {}), 'a host does not start it before the token is given')
    tokens.clear()
    const config = await started(manifest, unpacked, { token: 'of-the-user' })
    for (const text of await answers(config, 'echo', { a: 1 })) t.match(text, /"a":1/)
    t.same([...tokens], ['Bearer of-the-user'])
  },
)

t.test(
  'a program has its own name, icon and tools, and its folder, variables and secrets are the user’s',
  { skip },
  async (t) => {
    const file = program(t)
    const folder = temporaryFolder(t)
    const { manifest, unpacked, stderr, bytes } = await bundle(t, [
      ...['--env', 'COLOUR=red', '--env', 'API_KEY=key-of-the-author'],
      ...['--', execPath, file, folder, '--token', 'flag-of-the-author', '--secret=other-of-the-author', '--loud'],
    ])
    t.match(manifest, {
      name: 'teller',
      display_name: 'The Teller',
      version: '2.1.0',
      description: 'Tells what it was given',
      homepage: 'https://tell.example/about',
      author: { name: 'tell.example' },
      icon: 'icon.png',
      tools: [{ name: 'tell', description: 'Tells it' }],
    })
    t.ok(readFileSync(join(unpacked, 'icon.png')).equals(Buffer.from(PIXEL, 'base64')))
    const questions = Object.entries(manifest.user_config ?? {})
    t.same(
      questions.map(([, { type, sensitive, default: initial }]) => [type, sensitive, initial]),
      [
        ['directory', undefined, undefined],
        ['string', true, undefined],
        ['string', true, undefined],
        ['string', false, 'red'],
        ['string', true, undefined],
      ],
    )
    t.notMatch(readFileSync(join(unpacked, 'server/mcp.json'), 'utf8') + JSON.stringify(manifest), /of-the-author/)
    t.ok(bytes.length < 1_700_000, `${bytes.length} bytes`)
    t.match(stderr, new RegExp(`${file} is not in the extension`))
    const values = ['/home/ada', 'a', 'b', 'blue', 'k']
    const given = Object.fromEntries(questions.map(([key], at) => [key, values[at]]))
    const config = await started(manifest, unpacked, given)
    const told = JSON.stringify([['/home/ada', '--token', 'a', '--secret=b', '--loud'], 'blue', 'k'])
    t.same(await answers(config, 'tell'), [told, told])
  },
)

t.test('a group has the names of its tools, and without its servers an extension has none', { skip }, async (t) => {
  const one = await LegacyHttp.start(t)
  const two = await LegacyHttp.start(t)
  const config = temporaryFile(t, 'mcp.json', {
    mcpServers: { one: { url: one.url }, two: { url: two.url } },
    groups: { team: { servers: ['one', 'two'] } },
    timeouts: { call: 50_000 },
    listen: 'http://127.0.0.1:0/mcp',
  })
  const { manifest, unpacked, stderr } = await bundle(t, ['--config', config])
  t.equal(manifest['name'], 'team')
  const names = (manifest['tools'] as { name: string }[]).map(({ name }) => name)
  t.ok(names.includes('one__echo') && names.includes('two__echo'), names.join())
  t.match(stderr, /without listen/)
  for (const text of await answers(await started(manifest, unpacked, {}), 'two__echo', { b: 2 })) t.match(text, /"b":2/)
  const offline = await bundle(t, ['--config', config, '--offline', '--group', 'team'])
  t.notOk('tools' in offline.manifest)
  t.match(offline.manifest, { name: 'team', tools_generated: true })
})

t.test('the extension of a release asks for the address of a server, and answers as it does', { skip }, async (t) => {
  const { manifest, unpacked } = await bundle(t, ['--offline', '--config', join(root, 'config/extension.json')])
  t.match(manifest, { name: 'mcp-bridge', user_config: { address: { required: true } } })
  const server = await LegacyHttp.start(t)
  const config = await started(manifest, unpacked, { address: server.url })
  for (const text of await answers(config, 'echo', { c: 3 })) t.match(text, /"c":3/)
})

t.test('says what is missing', async (t) => {
  const server = await LegacyHttp.start(t)
  const cases: [args: string[], code: number, said: RegExp][] = [
    [['bundle', server.url], 2, /-o server\.mcpb/],
    [['bundle', '-o', 'x.mcpb'], 2, /bundle needs a server/],
    [['bundle', '-o', 'x.mcpb', 'http://127.0.0.1:9/mcp'], 1, /refused|not available/i],
  ]
  for (const [args, code, said] of cases) {
    const ended = await run(t, args)
    t.equal(ended.code, code, args.join(' '))
    t.match(ended.stderr, said)
  }
})
