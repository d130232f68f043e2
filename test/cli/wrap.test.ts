/** `wrap` and `unwrap`, from the file of a client to a call as the client makes it, and back. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import t, { type Test } from 'tap'
import { run } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)

interface Entry {
  command: string
  args: string[]
  env?: Record<string, string>
}

/** A home with the file of Claude Desktop in it, where it is on Linux. */
function homeWith(t: Test, text: string) {
  const home = temporaryFolder(t)
  const file = join(home, '.config', 'Claude', 'claude_desktop_config.json')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  const bridge = (...args: string[]) => run(t, args, { HOME: home, XDG_CONFIG_HOME: '' })
  return { file, bridge, text: () => readFileSync(file, 'utf8') }
}

/** Starts the server of an entry as a client does, and connects. */
async function clientOf(t: Test, { command, args, env = {} }: Entry): Promise<Client> {
  const client = new Client({ name: 'walker', version: '1.0.0' })
  t.teardown(() => client.close())
  await client.connect(
    new StdioClientTransport({ command, args, env: { ...getDefaultEnvironment(), ...env }, stderr: 'ignore' }),
  )
  return client
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text ?? ''

t.test('wraps a program, serves a call to it, and unwraps to the original file', async (t) => {
  const entry = { command: execPath, args: [EVERYTHING, 'stdio', '${HOME}'], env: { SECRET: 'for the server' } }
  const original = `{
    // what I use
    "mcpServers": {
        "everything": ${JSON.stringify(entry)},
        "other": { "url": "ftp://stays" }, // not for us
    },
    "theme": "dark"
}
`
  const { file, bridge, text } = homeWith(t, original)
  const listed = await bridge('wrap')
  t.match(
    listed.stdout,
    /claude-desktop \(Claude Desktop\)\n {2}.*claude_desktop_config\.json\n {2}2 servers, 0 behind/,
  )
  const shown = await bridge('wrap', 'claude-desktop', '--dry-run')
  t.match(
    shown.stdout,
    /Would change 1 server .*\n {2}everything\n {2}- .*\n {2}\+ .* --listen stdio --pass-environment -- /,
  )
  t.notMatch(shown.stdout, 'for the server')
  t.equal(text(), original, 'a dry run writes nothing')

  const wrapped = await bridge('wrap', 'claude-desktop')
  t.equal(wrapped.code, 0, wrapped.stderr)
  t.match(
    wrapped.stdout,
    /Changed 1 server in .*\n {2}everything\n {2}other stays as it is: its address does not begin/,
  )
  t.match(wrapped.stdout, /Entries start the bridge with: \S+ \S+main\.js\n/)
  t.equal(readFileSync(`${file}.mcp-bridge-backup`, 'utf8'), original)
  t.match(text(), /\/\/ what I use\n.*"other": \{ "url": "ftp:\/\/stays" \}, \/\/ not for us\n {4}\},\n {4}"theme"/s)
  const after = text()
  t.match((await bridge('wrap', 'claude-desktop')).stdout, 'Nothing to change')
  t.equal(text(), after, 'wrapping twice changes nothing')
  t.match((await bridge('wrap')).stdout, '2 servers, 1 behind')

  const json = JSON.parse(
    after
      .replaceAll(/\/\/ .*/g, '')
      .replace('},\n    }', '}}')
      .replace(/,\s*\}/g, '}'),
  )
  const client = await clientOf(t, json.mcpServers.everything)
  t.match(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hello' } })), 'hello')
  t.match(JSON.parse(textOf(await client.callTool({ name: 'get-env', arguments: {} }))), { SECRET: 'for the server' })
  await client.close()

  const unwrapped = await bridge('unwrap', 'claude-desktop')
  t.match(unwrapped.stdout, 'The file is as it was before mcp-bridge wrap')
  t.equal(text(), original, 'byte for byte')
  t.notOk(existsSync(`${file}.mcp-bridge-backup`))
  t.match((await bridge('unwrap', 'claude-desktop')).stdout, 'Nothing to change')
})

t.test(
  'a server with an address works behind the bridge, without its headers and address on a command line',
  async (t) => {
    const url = await startSdkV1(t, (server) => {
      server.registerTool('whoami', {}, (extra) => ({
        content: [{ type: 'text', text: String(extra.requestInfo?.headers['x-secret']) }],
      }))
    })
    const entry = { type: 'http', url: `${url}?key=hidden`, headers: { 'X-Secret': 'Bearer ${HOME}' } }
    const original = JSON.stringify({ mcpServers: { remote: entry } }, null, '\t')
    const { bridge, text } = homeWith(t, original)
    t.equal((await bridge('wrap', 'claude-desktop', 'remote')).code, 0)
    const { mcpServers } = JSON.parse(text()) as { mcpServers: { remote: Entry & { type: string } } }
    t.notMatch([mcpServers.remote.command, ...mcpServers.remote.args].join(' '), /hidden|Bearer/)
    t.equal(mcpServers.remote.type, 'stdio')
    const client = await clientOf(t, mcpServers.remote)
    t.equal(textOf(await client.callTool({ name: 'whoami' })), entry.headers['X-Secret'], 'as the client would send it')
    await client.close()
    t.equal((await bridge('unwrap', 'claude-desktop', 'remote')).code, 0)
    t.equal(text(), original)
  },
)

t.test('refuses each mistake with advice, and changes nothing', async (t) => {
  const { file, bridge, text } = homeWith(t, '{ "mcpServers": { "github": { "command": "npx" }, "odd": {} } }')
  const original = text()
  const cases: [args: string[], code: number, said: RegExp][] = [
    [
      ['wrap', 'claude-dsktop'],
      2,
      /not a client that mcp-bridge knows: did you mean claude-desktop\? There are claude/,
    ],
    [['wrap', 'claude'], 2, /did you mean claude-desktop or claude-code\? There are claude-desktop, .*, codex/],
    [['wrap', 'gemini-cli-2'], 2, /did you mean gemini\?/],
    [['wrap', 'nobody'], 2, /not a client that mcp-bridge knows: there are claude-desktop, claude-code/],
    [['wrap', 'emacs'], 2, /there are claude-desktop, claude-code, cursor, /],
    [['wrap', 'cursor'], 2, /Cursor has no file at .*\.cursor\/mcp\.json: name its file with --file <file>/],
    [['wrap', 'claude-desktop', 'gihtub'], 2, /has no server "gihtub": did you mean "github"\?/],
    [['wrap', 'claude-desktop', 'odd'], 2, /"odd" in .* stays as it is: it has neither a command nor an address/],
    [['wrap', '--file', file], 2, /--file needs a client/],
    [
      ['wrap', 'vscode', '--file', file],
      78,
      /has no "servers", so it has no servers, or is not a file of VS Code\. Nothing was/,
    ],
    [['wrap', 'cursor', '--file', `${file}.none`], 78, /cannot read .*\.none: ENOENT.*Nothing was changed/],
  ]
  for (const [args, code, said] of cases) {
    const result = await bridge(...args)
    t.match(result, { code, stderr: said }, args.join(' '))
    t.equal(text(), original)
  }
  writeFileSync(file, original.slice(0, -3))
  t.match(await bridge('wrap', 'claude-desktop'), {
    code: 78,
    stderr: /is not valid JSON: .* at line 1, column \d+\. Nothing/,
  })
  t.equal(text(), original.slice(0, -3))
  t.notOk(existsSync(`${file}.mcp-bridge-backup`))
})

t.test(
  '--inspect has entries serve their inspector, also those that were wrapped before, and goes with them',
  async (t) => {
    const entry = { command: execPath, args: [EVERYTHING, 'stdio'] }
    const remote = { url: 'https://example.com/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } }
    const original = `${JSON.stringify({ mcpServers: { everything: entry, remote } }, null, 2)}\n`
    const { bridge, text } = homeWith(t, original)
    const entries = () => Object.values((JSON.parse(text()) as { mcpServers: Record<string, Entry> }).mcpServers)
    const flagsOf = () => {
      const starting = entries().filter(({ args = [] }) => args.includes('--listen'))
      return starting.map(({ args }) => args.slice(args.indexOf('--listen'), args.indexOf('--listen') + 3))
    }
    await bridge('wrap', 'claude-desktop', 'everything')
    const before = text()
    const { stdout } = await bridge('wrap', 'claude-desktop', '--inspect')
    t.match(stdout, /Changed 2 servers.*mcp-bridge inspect shows the calls of all of them in the browser/s)
    t.same(flagsOf(), [
      ['--listen', 'stdio', '--inspect'],
      ['--listen', 'stdio', '--inspect'],
    ])
    t.match((await bridge('wrap', 'claude-desktop', '--inspect')).stdout, /Nothing to change/)
    const client = await clientOf(t, JSON.parse(text()).mcpServers.everything as Entry)
    t.match(textOf(await client.callTool({ name: 'echo', arguments: { message: 'hello' } })), /hello/)
    await bridge('unwrap', 'claude-desktop')
    t.equal(text(), original)
    await bridge('wrap', 'claude-desktop', '--together', '--inspect')
    t.match(flagsOf(), [['--listen', 'stdio', '--inspect']])
    await bridge('unwrap', 'claude-desktop')
    t.equal(text(), original)
    await bridge('wrap', 'claude-desktop', 'everything')
    t.equal(text(), before, 'without the flag, as ever')
  },
)
