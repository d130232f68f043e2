/** What `wrap` and `unwrap` make of the files of all clients, where these files are, and how they are replaced. */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execPath } from 'node:process'
import t from 'tap'
import { rowOf } from '../../src/command/commands.js'
import { parseCommand } from '../../src/command/parse.js'
import { CLIENTS, filesOf, layoutOf } from '../../src/command/wrap/clients.js'
import { readBackup, readClientFile, removeBackup, writeBackup, writeClientFile } from '../../src/command/wrap/file.js'
import { launcherOf } from '../../src/command/wrap/launcher.js'
import { entriesIn, unwrapped, wrapped } from '../../src/command/wrap/plan.js'
import { temporaryFile, temporaryFolder } from '../support/folder.js'

const LAUNCHER = { command: '/usr/bin/node', args: ['/opt/mcp-bridge/dist/main.js'] }
const OTHER = { command: 'npx', args: ['-y', 'mcp-bridge@9.9.9'] }
const machine = { platform: 'linux', home: '/home/me', cwd: '/project', env: {} }

const clientNamed = (id: string) => CLIENTS.find((one) => one.id === id) as (typeof CLIENTS)[number]
const layoutFor = (id: string) => layoutOf(clientNamed(id), machine)
const entriesFor = (id: string, text: string) => entriesIn(text, layoutFor(id))
const wrap = (id: string, text: string, launcher: typeof LAUNCHER = LAUNCHER) =>
  wrapped(text, layoutFor(id), entriesFor(id, text), launcher)
const unwrap = (id: string, text: string, backup?: string) =>
  unwrapped(text, layoutFor(id), entriesFor(id, text), backup)
const entryOf = (id: string, text: string, name: string) =>
  entriesFor(id, text).find((one) => one.name === name)?.entry as Record<string, unknown>

const IN_FRONT = ['--listen', 'stdio', '--pass-environment', '--']
const AT_ADDRESS = ['--listen', 'stdio', '--upstream', 'env:MCP_BRIDGE_URL']

/** Files as clients have them, and what becomes of one of their servers. */
const FILES: Record<string, { text: string; server: string; after: object }> = {
  'claude-desktop': {
    text: '{\r\n  "mcpServers": {\r\n    "fs": {\r\n      "command": "npx",\r\n      "args": [\r\n        "-y",\r\n        "fs-server"\r\n      ]\r\n    }\r\n  }\r\n}\r\n',
    server: 'fs',
    after: { command: LAUNCHER.command, args: [...LAUNCHER.args, ...IN_FRONT, 'npx', '-y', 'fs-server'] },
  },
  'claude-code': {
    text: '{"numStartups":7,"projects":{"/project":{"mcpServers":{"db":{"type":"stdio","command":"db","args":[],"env":{"A-B":"1"}}}},"/else":{"mcpServers":{"x":{"command":"x"}}}}}',
    server: 'db',
    after: { type: 'stdio', args: [...LAUNCHER.args, ...IN_FRONT, 'db'], env: { 'A-B': '1' } },
  },
  cursor: {
    text: '{\n\t"mcpServers": {\n\t\t"events": {\n\t\t\t"url": "https://x/sse", // old\n\t\t\t"type": "sse"\n\t\t}\n\t}\n}',
    server: 'events',
    after: {
      command: LAUNCHER.command,
      args: [...LAUNCHER.args, ...AT_ADDRESS],
      env: { MCP_BRIDGE_URL: 'sse+https://x/sse' },
      type: 'stdio',
    },
  },
  vscode: {
    text: `// mine
{
  "inputs": [{ "id": "key", "type": "promptString", "password": true }],
  "servers": {
    "api": {
      "type": "http",
      "url": "https://api.example/mcp",
      /* kept */
      "headers": { "Authorization": "Bearer \${input:key}", "x-a": "1", "X_A": "2" },
      "dev": {},
    },
    "files": { "command": "uvx", "args": ["files"], "envFile": "\${workspaceFolder}/.env" },
  }
}`,
    server: 'api',
    after: {
      type: 'stdio',
      args: [
        ...LAUNCHER.args,
        ...AT_ADDRESS,
        '--header-env=Authorization=MCP_BRIDGE_HEADER_AUTHORIZATION',
        ...['--header-env=x-a=MCP_BRIDGE_HEADER_2_X_A', '--header-env=X_A=MCP_BRIDGE_HEADER_3_X_A'],
      ],
      env: {
        MCP_BRIDGE_URL: 'https://api.example/mcp',
        MCP_BRIDGE_HEADER_AUTHORIZATION: 'Bearer ${input:key}',
        MCP_BRIDGE_HEADER_2_X_A: '1',
        MCP_BRIDGE_HEADER_3_X_A: '2',
      },
      dev: {},
    },
  },
  windsurf: {
    text: '{ "mcpServers": { "docs": { "serverUrl": "https://docs.example/mcp", "headers": {}, "env": { "A": "1" } } } }',
    server: 'docs',
    after: { command: LAUNCHER.command, env: { A: '1', MCP_BRIDGE_URL: 'https://docs.example/mcp' } },
  },
  gemini: {
    text: '{ "ui": {}, "mcpServers": { "g": { "httpUrl": "$URL", "timeout": 5 }, "p": { "command": "p", "cwd": "/x" } } }',
    server: 'g',
    after: { command: LAUNCHER.command, env: { MCP_BRIDGE_URL: '$URL' }, timeout: 5 },
  },
  zed: {
    text: '{\n  "theme": "One",\n  "context_servers": {\n    "a": { "source": "custom", "command": "a" },\n    "ext": { "settings": {} }\n  }\n}\n',
    server: 'a',
    after: { source: 'custom', command: LAUNCHER.command, args: [...LAUNCHER.args, ...IN_FRONT, 'a'] },
  },
  opencode: {
    text: '{\n  // mine\n  "mcp": {\n    "a": { "type": "local", "command": ["a", "b"], "environment": { "A": "1" } },\n    "r": { "type": "remote", "url": "https://x/mcp", "headers": { "A": "{env:A}" } }\n  }\n}\n',
    server: 'a',
    after: {
      type: 'stdio',
      command: LAUNCHER.command,
      args: [...LAUNCHER.args, ...IN_FRONT, 'a', 'b'],
      env: { A: '1' },
    },
  },
  codex: {
    text: '# mine\n[mcp_servers.a]\ncommand = "a" # it\n\n[mcp_servers.r]\nurl = "https://x/mcp"\nhttp_headers = { A = "1" }\n',
    server: 'r',
    after: {
      command: LAUNCHER.command,
      args: [...LAUNCHER.args, ...AT_ADDRESS, '--header-env=A=MCP_BRIDGE_HEADER_A'],
      env: { MCP_BRIDGE_URL: 'https://x/mcp', MCP_BRIDGE_HEADER_A: '1' },
    },
  },
}

t.test('wraps the files of all clients, and unwraps them to the same bytes', async (t) => {
  t.same(
    Object.keys(FILES),
    CLIENTS.map(({ id }) => id),
    'there is a file of each client',
  )
  for (const [id, { text, server, after }] of Object.entries(FILES)) {
    const { text: now, changed } = wrap(id, text)
    t.ok(changed.length > 0, id)
    t.match(entryOf(id, now, server), after, id)
    t.equal(wrap(id, now, OTHER).text, now, `${id}: wrapping twice changes nothing, also by another version`)
    t.equal(unwrap(id, now, text).text, text, `${id}: byte-equal`)
    const alone = unwrap(id, now).text
    t.same(
      entriesFor(id, alone).map(({ name, keys, entry }) => ({ name, keys, entry })),
      entriesFor(id, text).map(({ name, keys, entry }) => ({ name, keys, entry: withoutEmpty(id, entry) })),
      `${id}: without a backup`,
    )
    t.equal(now.replaceAll('\r\n', '').includes('\r'), false)
    t.equal(
      now.includes('\r\n'),
      text.includes('\r\n') && !now.replaceAll('\r\n', '').includes('\n'),
      `${id}: line breaks`,
    )
  }
})

/** What cannot be known without a backup: which key had the address, and whether a list was empty or not there. */
function withoutEmpty(id: string, entry: Record<string, unknown>): Record<string, unknown> {
  const { serverUrl, httpUrl, headers, args, ...rest } = entry
  const url = serverUrl ?? httpUrl
  return {
    ...rest,
    ...(url !== undefined && { url }),
    ...(headers !== undefined && id !== 'windsurf' && { headers }),
    ...(Array.isArray(args) && args.length > 0 && { args }),
  }
}

t.test('keeps comments, order and other entries', async (t) => {
  const { text } = FILES['vscode'] as { text: string }
  const now = wrapped(text, layoutFor('vscode'), entriesFor('vscode', text).slice(0, 1), LAUNCHER).text
  for (const part of [
    '// mine\n',
    '/* kept */\n',
    '      "dev": {},\n    },\n',
    text.slice(text.indexOf('    "files"')),
  ])
    t.ok(now.includes(part), part)
  t.match(
    now,
    /\n {6}"command": "\/usr\/bin\/node",\n {6}"args": \[.*\],\n {6}\/\* kept \*\/\n {6}"env": \{\n {8}"MCP_/,
  )
})

t.test(
  'an entry that was changed since is restored with the change, and the rest of the file is left alone',
  async (t) => {
    const { text } = FILES['vscode'] as { text: string }
    const now = wrap('vscode', text)
      .text.replace('"MCP_BRIDGE_HEADER_2_X_A": "1"', '"MCP_BRIDGE_HEADER_2_X_A": "new"')
      .replace('// mine', '// ours')
      .replace('"files": {', '"added": { "command": "later" },\n    "files": {')
    const after = unwrap('vscode', now, text).text
    t.match(entryOf('vscode', after, 'api'), {
      type: 'http',
      url: 'https://api.example/mcp',
      headers: { Authorization: 'Bearer ${input:key}', 'x-a': 'new', X_A: '2' },
    })
    t.notMatch(after, 'MCP_BRIDGE')
    t.match(after, '// ours')
    t.match(after, '"added": { "command": "later" }')
    t.ok(after.includes('"files": { "command": "uvx", "args": ["files"], "envFile"'), 'restored as it was')
  },
)

t.test('keeps flags added to a wrapped entry, and still unwraps it', async (t) => {
  const text = '{ "mcpServers": { "a": { "command": "x", "args": ["--", "--listen", "stdio"] } } }'
  const now = wrap('cursor', text).text.replace('"--pass-environment"', '"--era", "legacy", "--pass-environment"')
  t.equal(wrap('cursor', now).text, now)
  t.same(entryOf('cursor', unwrap('cursor', now, text).text, 'a'), { command: 'x', args: ['--', '--listen', 'stdio'] })
})

t.test('leaves entries of an unexpected shape unchanged, with a reason', async (t) => {
  const url = 'https://x.example/mcp'
  const cases: [entry: unknown, why: RegExp][] = [
    [{ command: 'x', args: 'y' }, /^its "args" is not a list$/],
    [{ command: 'x', args: null }, /^its "args" is not a list$/],
    [{ command: 'x', args: {} }, /^its "args" is not a list$/],
    [{ command: 'x', args: 1 }, /^its "args" is not a list$/],
    [{ command: 'x', args: [1] }, /not a string/],
    [{ command: ['x'] }, /not a string/],
    [{ command: {} }, /not a string/],
    [{ command: null }, /neither a command nor an address/],
    [{ command: '', url }, /an empty "command" beside its address: remove it/],
    [{ command: null, url }, /an empty "command" beside its address: remove it/],
    [{ url: '' }, /neither a command nor an address/],
    [{ url, headers: 'x' }, /its "headers" is not an object of strings/],
    [{ url, headers: { A: 1 } }, /its "headers" is not an object of strings/],
    [{ url, headers: { 'a=b': 'x' } }, /"a=b" is not a valid header name/],
    [{ url, headers: { '': 'x' } }, /"" is not a valid header name/],
    [{ url, env: 'x' }, /its "env" is not an object/],
    ['x', /neither a command nor an address/],
    [null, /neither a command nor an address/],
  ]
  for (const id of ['claude-desktop', 'cursor']) {
    for (const [entry, why] of cases) {
      const text = JSON.stringify({ mcpServers: { a: entry } })
      const { text: now, left } = wrap(id, text)
      t.equal(now, text)
      t.match(left, [{ name: 'a', why }], text)
    }
  }
})

t.test('wraps a header whose name looks like a flag', async (t) => {
  const text = JSON.stringify({
    mcpServers: { a: { url: 'https://x.example/mcp', headers: { '--upstream': 'secret' } } },
  })
  const now = wrap('cursor', text).text
  const { args, env } = entryOf('cursor', now, 'a') as { args: string[]; env: Record<string, string> }
  const command = parseCommand(args.slice(LAUNCHER.args.length), env)
  t.match(command.kind === 'run' && command.settings.mcpServers, {
    'x.example': { url: 'https://x.example/mcp', headers: { '--upstream': 'secret' } },
  })
  t.equal(unwrap('cursor', now, text).text, text)
})

t.test('recognizes a wrapped entry with flags and values as separate arguments', async (t) => {
  const text = JSON.stringify({ mcpServers: { a: { url: 'https://x.example/mcp', headers: { 'X-A': '1' } } } })
  const before = wrap('cursor', text).text.replace('--header-env=', '--header-env","')
  t.equal(wrap('cursor', before).text, before)
  t.match(entryOf('cursor', unwrap('cursor', before, text).text, 'a'), { headers: { 'X-A': '1' } })
})

t.test('leaves entries that cannot be wrapped unchanged, with a reason', async (t) => {
  const cases: [entry: object, why: RegExp][] = [
    [
      { command: 'npx', args: ['--no', '--', 'mcp-bridge', '--listen', 'stdio', '--upstream', 'https://x'] },
      /starts mcp-bridge already/,
    ],
    [
      { command: 'docker', args: ['run', 'ghcr.io/x/mcp-bridge:1', '--listen', 'stdio', '--upstream', 'https://x'] },
      /already/,
    ],
    [{ url: 'https://x', oauth: { clientId: 'x' } }, /signs in to this server by itself \("oauth"\)/],
    [{ url: 'https://x', headersHelper: 'x.sh' }, /by itself \("headersHelper"\)/],
    [{ type: 'ws', url: 'https://x' }, /its type "ws"/],
    [{ url: 'unix:/x' }, /its address does not begin with https/],
    [{ url: 'https://x', headers: { a: 1 } }, /its "headers" is not an object of strings/],
    [{ command: { path: 'x' } }, /its command or an argument is not a string/],
    [{ command: 'x', args: [1] }, /its command or an argument is not a string/],
    [{ settings: {} }, /neither a command nor an address/],
  ]
  for (const [entry, why] of cases) {
    const text = JSON.stringify({ mcpServers: { odd: entry } })
    const plan = wrap('cursor', text)
    t.match(plan, { text, changed: [], left: [{ name: 'odd', why }] }, JSON.stringify(entry))
  }
  const similar = JSON.stringify({
    mcpServers: { a: { command: 'x', args: ['--listen', 'stdio', '--era', 'legacy'] } },
  })
  t.match(wrap('cursor', similar).changed, [{ name: 'a' }], 'a program with a flag of the same name is another')
})

t.test('accepts members of Object.prototype as names and keys', async (t) => {
  const text =
    '{ "mcpServers": { "__proto__": { "command": "a" }, "constructor": { "url": "https://x" }, "a.b": { "command": "c" } } }'
  const { text: now, changed } = wrap('cursor', text)
  t.equal(changed.length, 3)
  t.equal(unwrap('cursor', now, text).text, text)
})

t.test('knows the paths of client files on each platform', async (t) => {
  const files = (id: string, on: Partial<typeof machine> & { env?: Record<string, string> }) =>
    filesOf(clientNamed(id), { ...machine, ...on }).map(({ path }) => path)
  const mac = { platform: 'darwin', home: '/Users/me', cwd: '/project' }
  const windows = { platform: 'win32', home: 'C:\\Users\\me', cwd: 'D:\\work' }
  const support = '/Users/me/Library/Application Support'
  const roaming = 'C:\\Users\\me\\AppData\\Roaming'
  const desktop = 'Claude\\claude_desktop_config.json'
  const packaged = `Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\${desktop}`
  t.same(files('claude-desktop', {}), ['/home/me/.config/Claude/claude_desktop_config.json'])
  t.same(files('claude-desktop', { env: { XDG_CONFIG_HOME: '/c' } }), ['/c/Claude/claude_desktop_config.json'])
  t.same(files('claude-desktop', mac), [`${support}/Claude/claude_desktop_config.json`])
  t.same(files('claude-desktop', windows), [`C:\\Users\\me\\AppData\\Local\\${packaged}`, `${roaming}\\${desktop}`])
  t.same(files('claude-desktop', { ...windows, env: { APPDATA: 'E:\\R', LOCALAPPDATA: 'E:\\L' } }), [
    `E:\\L\\${packaged}`,
    `E:\\R\\${desktop}`,
  ])
  t.same(files('claude-code', {}), ['/home/me/.claude.json', '/project/.mcp.json'])
  t.same(files('claude-code', { env: { CLAUDE_CONFIG_DIR: '/cc' } }), ['/cc/.claude.json', '/project/.mcp.json'])
  t.same(files('claude-code', windows), ['C:\\Users\\me\\.claude.json', 'D:\\work\\.mcp.json'])
  t.same(files('cursor', mac), ['/Users/me/.cursor/mcp.json', '/project/.cursor/mcp.json'])
  t.same(files('cursor', windows), ['C:\\Users\\me\\.cursor\\mcp.json', 'D:\\work\\.cursor\\mcp.json'])
  t.same(files('vscode', {}), ['/home/me/.config/Code/User/mcp.json', '/project/.vscode/mcp.json'])
  t.same(files('vscode', mac), [`${support}/Code/User/mcp.json`, '/project/.vscode/mcp.json'])
  t.same(files('vscode', windows), [`${roaming}\\Code\\User\\mcp.json`, 'D:\\work\\.vscode\\mcp.json'])
  t.same(files('windsurf', windows), ['C:\\Users\\me\\.codeium\\windsurf\\mcp_config.json'])
  t.same(files('gemini', mac), ['/Users/me/.gemini/settings.json', '/project/.gemini/settings.json'])
  t.same(files('zed', windows), [`${roaming}\\Zed\\settings.json`])
  t.match(clientNamed('claude-code').servers({ ...windows, env: {} }), [
    ['mcpServers'],
    ['projects', 'D:\\work'],
    ['projects', 'D:/work'],
  ])
  const { details = [] } = rowOf('wrap')
  t.equal(details[0], `Clients: ${CLIENTS.map(({ id }) => id).join(', ')}.`)
})

t.test('starts the bridge by a stable path', async (t) => {
  const script = temporaryFile(t, 'main.js', '')
  const running = { node: '/usr/bin/node', script, version: '1.2.3', platform: 'linux' }
  t.same(launcherOf(running), { command: '/usr/bin/node', args: [script] })
  const link = join(temporaryFolder(t), 'mcp-bridge')
  symlinkSync(script, link)
  t.same(launcherOf({ ...running, script: link }).args, [script], 'a folder of links may be of one session')
  const alone = { ...running, node: '/usr/bin/mcp-bridge', script: undefined }
  t.same(launcherOf(alone), { command: '/usr/bin/mcp-bridge', args: [] }, 'the executable has no script')
  const brewed = { ...running, node: '/opt/homebrew/Cellar/node@22/22.1.0/bin/node' }
  t.equal(launcherOf(brewed).command, '/opt/homebrew/opt/node@22/bin/node')

  const cache = join(temporaryFolder(t), '_npx', '0a1b')
  const inCache = join(cache, 'node_modules', 'mcp-bridge', 'dist', 'main.js')
  mkdirSync(join(inCache, '..'), { recursive: true })
  writeFileSync(inCache, '')
  const wanted = (version: string) =>
    writeFileSync(join(cache, 'package.json'), JSON.stringify({ dependencies: { 'mcp-bridge': version } }))
  wanted('^1.2.3')
  t.same(launcherOf({ ...running, script: inCache }), { command: 'npx', args: ['-y', 'mcp-bridge@1.2.3'] })
  t.same(launcherOf({ ...running, script: inCache, platform: 'win32' }), {
    command: 'cmd',
    args: ['/c', 'npx', '-y', 'mcp-bridge@1.2.3'],
  })
  wanted('file:../../mcp-bridge-1.2.3.tgz')
  t.throws(() => launcherOf({ ...running, script: inCache }), { message: /temporary folder, .* npm install -g/ })
})

t.test(
  'a file is replaced behind its link, with its mode and byte order mark, and only if it is as it was read',
  async (t) => {
    const path = temporaryFile(t, 'mcp.json', '\uFEFF{ "mcpServers": {} }')
    chmodSync(path, 0o640)
    const link = join(temporaryFolder(t), 'mcp.json')
    symlinkSync(path, link)
    const file = readClientFile(link)
    t.equal(file.text, '{ "mcpServers": {} }')
    t.equal(writeBackup(file, file.text), `${path}.mcp-bridge-backup`)
    t.equal(readFileSync(`${path}.mcp-bridge-backup`, 'utf8'), '\uFEFF{ "mcpServers": {} }')
    t.equal(statSync(`${path}.mcp-bridge-backup`).mode & 0o777, 0o640)
    t.equal(readBackup(file), file.text)
    writeClientFile(file, '{}')
    t.equal(readFileSync(path, 'utf8'), '\uFEFF{}')
    t.equal(statSync(path).mode & 0o777, 0o640)
    t.ok(lstatSync(link).isSymbolicLink())
    t.throws(() => writeClientFile(file, '{ }'), {
      message: /cannot write .*: it has changed at the same time.*Nothing was changed/,
    })
    t.equal(readFileSync(path, 'utf8'), '\uFEFF{}')
    removeBackup(file)
    t.same(readdirSync(join(path, '..')), ['mcp.json'], 'nothing is left over')
  },
)

t.test('refuses a file that is not text, and a path that is not a file', async (t) => {
  const path = temporaryFile(t, 'mcp.json', '')
  writeFileSync(path, Buffer.from([0x7b, 0xff, 0x7d]))
  t.throws(() => readClientFile(path), { message: /it is not UTF-8/ })
  t.throws(() => readClientFile(join(path, '..')), { message: /it is not a regular file/ })
  t.throws(() => readClientFile(execPath), { message: /more than \d+ bytes|not UTF-8/ })
})
