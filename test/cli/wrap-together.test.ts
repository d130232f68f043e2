/** `wrap --together` and `unwrap`, from the file of a client to calls as the client makes them, and back. */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { execPath } from 'node:process'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { getDefaultEnvironment, StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { stringify } from 'smol-toml'
import t, { type Test } from 'tap'
import { CLIENTS, layoutOf } from '../../src/command/wrap/clients.js'
import { entriesIn } from '../../src/command/wrap/plan.js'
import { isAsJoined, joined, parted, togetherIn } from '../../src/command/wrap/together.js'
import { readJson } from '../../src/config/formats/document.js'
import { run } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { startSdkV1 } from '../support/sdk-v1.js'

const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
)

interface Entry {
  command: string
  args: string[]
}

/** A home with the file of Claude Desktop in it, where it is on Linux. */
function homeWith(t: Test, text: string) {
  const home = temporaryFolder(t)
  const file = join(home, '.config', 'Claude', 'claude_desktop_config.json')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  const bridge = (...args: string[]) => run(t, args, { HOME: home, XDG_CONFIG_HOME: '' })
  const servers = () => (readJson(readFileSync(file, 'utf8')).value as { mcpServers: Record<string, Entry> }).mcpServers
  const config = `${file}.mcp-bridge.json`
  return { file, config, bridge, servers, text: () => readFileSync(file, 'utf8') }
}

/** Starts an entry as a client does, and connects. */
async function clientOf(t: Test, { command, args }: Entry): Promise<Client> {
  const client = new Client({ name: 'walker', version: '1.0.0' })
  t.teardown(() => client.close())
  await client.connect(new StdioClientTransport({ command, args, env: getDefaultEnvironment(), stderr: 'ignore' }))
  return client
}

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text ?? ''

/** The file of somebody who has a program, a server with an address, and entries that cannot move. */
async function fileOf(t: Test): Promise<string> {
  const url = await startSdkV1(t, (server) => {
    server.registerTool('whoami', {}, (extra) => ({
      content: [{ type: 'text', text: String(extra.requestInfo?.headers['x-secret']) }],
    }))
  })
  const program = { command: execPath, args: [EVERYTHING, 'stdio'], env: { SECRET: 'for the program' } }
  return `{
    // what I use
    "mcpServers": {
        "everything": ${JSON.stringify(program)},
        "odd": { "url": "ftp://stays" }, // not for us
        "remote": { "url": "${url}", "headers": { "X-Secret": "for the server" } },
        "wanted": { "command": "x", "args": ["\${input:key}"] }
    },
    "theme": "dark"
}
`
}

t.test('wraps two servers into one entry, serves calls through it, and unwraps to the original file', async (t) => {
  const original = await fileOf(t)
  const { file, config, bridge, servers, text } = homeWith(t, original)
  const shown = await bridge('wrap', 'claude-desktop', '--together', '--dry-run')
  t.match(shown, { code: 0, stdout: /Would change 2 servers/ }, shown.stderr)
  t.notMatch(shown.stdout, /for the (?:program|server)/)
  t.equal(text(), original, 'a dry run writes nothing')
  t.notOk(existsSync(config))

  const wrapped = await bridge('wrap', 'claude-desktop', '--together')
  t.match(wrapped.stdout, /Changed 2 servers in .*\n {2}everything\n {2}remote\n {2}odd stays as it is: its address/)
  t.match(wrapped.stdout, /wanted stays as it is: it has a reference/)
  t.match(wrapped.stdout, `Servers that are together: ${config}`)
  t.same(Object.keys(servers()), ['all', 'odd', 'wanted'], 'one entry in the place of the first')
  t.equal(statSync(config).mode & 0o777, 0o600)
  t.equal(readFileSync(`${file}.mcp-bridge-backup`, 'utf8'), original)
  t.match(text(), /^\{\n {4}\/\/ what I use\n.*\/\/ not for us\n.*"theme": "dark"\n\}\n$/s)
  const { all } = servers() as { all: Entry }
  t.notMatch(all.args.join(' '), /for the/)

  const client = await clientOf(t, all)
  const names = (await client.listTools()).tools.map(({ name }) => name)
  t.ok(names.includes('everything__echo') && names.includes('remote__whoami'))
  t.equal(textOf(await client.callTool({ name: 'remote__whoami' })), 'for the server')
  const env = textOf(await client.callTool({ name: 'everything__get-env', arguments: {} }))
  t.match(JSON.parse(env), { SECRET: 'for the program' })
  await client.close()

  const after = text()
  t.match((await bridge('wrap', 'claude-desktop', '--together')).stdout, 'Nothing to change')
  t.match((await bridge('wrap', 'claude-desktop', 'all')).code, 0)
  t.equal(text(), after, 'wrapping again changes nothing')

  const unwrapped = await bridge('unwrap', 'claude-desktop')
  t.match(unwrapped.stdout, /Changed 2 servers .*\n {2}everything\n {2}remote\nThe file is as it was before/)
  t.equal(text(), original, 'byte for byte')
  for (const beside of [config, `${file}.mcp-bridge-backup`]) t.notOk(existsSync(beside))
})

t.test('adds a further server to the entry, and keeps changed settings', async (t) => {
  const original = await fileOf(t)
  const { config, bridge, servers, text, file } = homeWith(t, original)
  t.equal((await bridge('wrap', 'claude-desktop', 'everything')).code, 0)
  t.equal((await bridge('wrap', 'claude-desktop', '--together')).code, 0)
  t.same(Object.keys(servers()), ['all', 'odd', 'wanted'], 'also one that had the bridge before it already')
  t.equal(readFileSync(`${file}.mcp-bridge-backup`, 'utf8'), original)

  const settings = readJson(readFileSync(config, 'utf8')).value as { mcpServers: Record<string, object> }
  Object.assign(settings.mcpServers['everything'] as object, { tools: { deny: ['get-env'] } })
  writeFileSync(config, JSON.stringify({ ...settings, groups: { mine: { title: 'Mine' } } }))
  writeFileSync(file, text().replace('"odd"', '"late": { "command": "late" }, "odd"'))
  const joined = await bridge('wrap', 'claude-desktop', '--together')
  t.match(joined.stdout, /Changed 1 server in .*\n {2}late\n/)
  t.same(Object.keys(servers()), ['all', 'odd', 'wanted'])
  t.match(readJson(readFileSync(config, 'utf8')).value, {
    mcpServers: { everything: { tools: { deny: ['get-env'] } }, late: { command: 'late' } },
    groups: { mine: { title: 'Mine' } },
  })

  const unwrapped = await bridge('unwrap', 'claude-desktop')
  t.match(unwrapped.stdout, `Their settings stay in ${config}`)
  t.same(Object.keys(servers()), ['everything', 'remote', 'late', 'odd', 'wanted'])
  const before = (readJson(original).value as { mcpServers: object }).mcpServers
  t.match(servers(), { ...before, late: { command: 'late' } })
  t.ok(existsSync(config), "they are somebody's work")
})

t.test('refuses each mistake with advice, and changes nothing', async (t) => {
  const { file, config, bridge, text } = homeWith(t, '{ "mcpServers": { "my files": { "command": "npx" } } }')
  const original = text()
  const cases: [args: string[], code: number, said: RegExp][] = [
    [['wrap', 'claude-desktop', 'my files', '--together'], 2, /leave out the name of the server/],
    [['wrap', 'claude-desktop', '--together'], 78, /my files.*has to be made of letters/s],
  ]
  for (const [args, code, said] of cases) {
    t.match(await bridge(...args), { code, stderr: said }, args.join(' '))
    t.equal(text(), original)
    for (const beside of [config, `${file}.mcp-bridge-backup`]) t.notOk(existsSync(beside))
  }
})

const machine = { platform: 'linux', home: '/home/me', cwd: '/project', env: {} }
const launcher = { command: '/usr/bin/node', args: ['/opt/main.js'] }
const SERVERS = {
  one: { command: 'a', args: ['b'], alwaysAllow: ['x'] },
  two: { url: 'https://x/mcp', type: 'http' },
}

for (const client of CLIENTS)
  t.test(`wraps the servers of ${client.program} into one entry, and unwraps them`, async (t) => {
    const layout = layoutOf(client, machine)
    const { dialect } = layout
    const own = Object.fromEntries(Object.entries(SERVERS).map(([name, entry]) => [name, dialect.entry(entry)]))
    for (const place of layout.places) {
      const nested = [...place].reverse().reduce<object>((below, key) => ({ other: 1, [key]: below }), own)
      const text = client.isToml ? stringify(nested) : JSON.stringify(nested)
      const joining = { layout, launcher, configPath: '/c.json.mcp-bridge.json', config: undefined }
      const plan = joined(text, joining)
      const [entry, ...others] = entriesIn(plan.text, layout)
      t.same(others, [])
      t.same(togetherIn(entry?.entry ?? {}), { launcher: { ...launcher, flags: [] }, config: joining.configPath })
      t.same(readJson(plan.config).value, {
        mcpServers: { one: { command: 'a', args: ['b'], passEnvironment: true }, two: { url: 'https://x/mcp' } },
      })
      t.ok(isAsJoined(plan.text, plan.config, text, joining))
      t.notOk(isAsJoined(plan.text, plan.config.replace('"a"', '"b"'), text, joining))
      const back = entry && parted(plan.text, layout, entry, { config: plan.config, backup: text })
      t.same(layout.open(back ?? '').value, layout.open(text).value, 'with all that the client keeps in them')
      const bare = entry && parted(plan.text, layout, entry, { config: plan.config, backup: undefined })
      t.match(entriesIn(bare ?? '', layout), [{ name: 'one', entry: { command: 'a', args: ['b'] } }, { name: 'two' }])
    }
  })
