/** `mcp-bridge add` and `mcp-bridge remove`: what becomes of the file, and what is refused. */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { editConfig } from '../../src/command/edit-config.js'
import { cliErrorOf, inWords } from '../../src/command/errors.js'
import { parseCommand } from '../../src/command/parse.js'
import { run } from '../support/cli.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'

const sources = { env: {}, read: (path: string) => readFileSync(path, 'utf8') }
const edit = (...argv: string[]) => {
  try {
    const command = parseCommand(argv, { ADDRESS: 'https://e.example/mcp' })
    if (command.kind === 'edit') editConfig(command.action, sources)
    return ''
  } catch (error) {
    return inWords(cliErrorOf(error, { probing: false }))
  }
}
const FILE = `// ours
{
  "mcpServers": {
    "a": { "command": "node" } // the first
  },
  "groups": { "team": { "servers": ["a"] } }
}
`

t.test('add writes the entry that the flags describe, and keeps the rest', async (t) => {
  const cases: [argv: string[], entry: object][] = [
    [['https://b.example/mcp'], { url: 'https://b.example/mcp' }],
    [['sse+https://b.example/sse'], { url: 'https://b.example/sse', type: 'sse' }],
    [['env:ADDRESS'], { url: '${ADDRESS}' }],
    [
      ['https://b.example/mcp', '-H', 'X-Key: ${T}', '--scope', 'x', '--timeout', 'call=5', '--ipv4'],
      {
        url: 'https://b.example/mcp',
        headers: { 'X-Key': '${T}' },
        ipv4: true,
        timeouts: { call: 5 },
        oauth: { scopes: 'x' },
      },
    ],
    [
      ['-e', 'A=${B}', '--', 'npx', '-y', 'server', '${X}'],
      { command: 'npx', args: ['-y', 'server', '$${X}'], env: { A: '${B}' } },
    ],
  ]
  for (const [argv, entry] of cases) {
    const file = temporaryFile(t, 'mcp.json', FILE)
    t.equal(edit('add', 'b', '--config', file, ...argv), '', argv.join(' '))
    const text = readFileSync(file, 'utf8')
    t.match(text, '// ours\n{\n  "mcpServers": {\n    "a": { "command": "node" }, // the first\n    "b": {')
    t.match(text, '"groups": { "team": { "servers": ["a"] } }')
    const { mcpServers } = JSON.parse(text.replace(/\/\/ .*/g, '')) as { mcpServers: { b: object } }
    if (!argv[0]?.includes('example')) t.same(mcpServers.b, entry)
    t.equal(edit('remove', 'b', '--config', file), '')
    t.equal(readFileSync(file, 'utf8'), FILE, 'as before')
  }
})

t.test('add replaces a server, and makes a file that only its owner reads', async (t) => {
  const file = join(temporaryFolder(t), 'new.json')
  t.equal(edit('add', 'a', 'https://a.example/mcp', '--config', file), '')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(edit('add', 'a', 'https://b.example/mcp', '--config', file), '')
  t.same(JSON.parse(readFileSync(file, 'utf8')), { mcpServers: { a: { url: 'https://b.example/mcp' } } })
})

t.test('what would make the configuration invalid is refused, and the file stays', async (t) => {
  const cases: [argv: string[], said: RegExp][] = [
    [['remove', 'a'], /mcpServers names no server/],
    [['remove', 'aa'], /has no server "aa": it has a/],
    [['add', 'b', 'https://b.example/mcp', '--era', 'old'], /mcpServers\.b\.era/],
    [['add', 'b'], /add needs one server/],
    [['add', 'b', 'https://b.example/mcp', '--', 'npx'], /add needs one server/],
    [['add', 'b', 'example.com'], /is not a server/],
    [['add', 'b b', 'https://b.example/mcp'], /needs a name made of letters/],
    [['add'], /needs a name/],
  ]
  for (const [argv, said] of cases) {
    const file = temporaryFile(t, 'mcp.json', FILE)
    const [command = '', ...more] = argv
    const at = more.indexOf('--')
    const words = at < 0 ? [...more, '--config', file] : [...more.slice(0, at), '--config', file, ...more.slice(at)]
    t.match(edit(command, ...words), said, argv.join(' '))
    t.equal(readFileSync(file, 'utf8'), FILE)
  }
  t.match(edit('add', 'b', 'https://b.example/mcp'), /needs --config/)
  t.match(edit('remove', 'b', '--config', '/nonexistent/x.json'), /there is no file/)
  const zed = temporaryFile(t, 'settings.json', '{ "context_servers": { "a": { "command": "x" } } }')
  t.match(edit('add', 'b', 'https://b.example/mcp', '--config', zed), /is a file of .*[Zz]ed/)
  const toml = temporaryFile(t, 'config.toml', '')
  t.match(edit('add', 'b', 'https://b.example/mcp', '--config', toml), /only JSON files/)
})

t.test('the program says what it did', async (t) => {
  const file = temporaryFile(t, 'mcp.json', FILE)
  const added = await run(t, ['add', 'b', 'https://b.example/mcp', '--config', file])
  t.same([added.code, added.stdout], [0, `"b" is in ${file}\n`])
  const removed = await run(t, ['remove', 'b', '--config', file])
  t.same([removed.code, removed.stdout], [0, `Removed "b" from ${file}\n`])
  writeFileSync(file, '{')
  const broken = await run(t, ['add', 'b', 'https://b.example/mcp', '--config', file])
  t.not(broken.code, 0)
  t.equal(readFileSync(file, 'utf8'), '{')
})
