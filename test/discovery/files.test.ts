/** Configuration files of other programs. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { findInFiles, finding } from '../../src/services/discovery/sources/files.js'
import { type Machine, usualFiles } from '../../src/services/discovery/sources/usual-files.js'

/** Files of a test, and what is found in them. */
async function find(
  t: Test,
  files: Record<string, unknown>,
  paths: readonly string[] = Object.keys(files),
  wanted = true,
) {
  const folder = t.testdir({})
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(
      join(folder, path),
      typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content),
    )
  }
  const { findings, failures } = await findInFiles(
    paths.map((path) => join(folder, path)),
    { home: '/home/me', wanted },
  )
  return {
    folder,
    findings,
    failures: failures.map(({ place, error }) => [place.slice(folder.length + 1), `${error.phase}: ${error.reason}`]),
    errors: failures.map(({ error }) => error),
  }
}

t.test('reads the files of Claude Desktop, Cursor, Claude Code and VS Code', async (t) => {
  const { folder, findings, failures } = await find(t, {
    'claude_desktop_config.json': {
      globalShortcut: '',
      mcpServers: {
        filesystem: {
          command: 'npx',
          args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me'],
          env: { A: '1' },
        },
        off: { command: 'npx', args: [], disabled: true },
      },
    },
    '.cursor/mcp.json': {
      mcpServers: {
        remote: { url: 'https://mcp.example/mcp', headers: { Authorization: 'Bearer ${env:TOKEN}' } },
        here: { command: '${workspaceFolder}/run.sh', args: ['${userHome}/data'] },
      },
    },
    '.mcp.json': { mcpServers: { events: { type: 'sse', url: 'https://events.example/sse' } } },
    '.vscode/mcp.json': `\uFEFF{
      // Asked for when the server is started.
      "inputs": [{ "id": "api-key", "type": "promptString", "description": "Key", "password": true }],
      /* "servers": { "not": "this one" }, */
      "servers": {
        "perplexity": {
          "type": "stdio", "command": "npx", "args": ["-y", "server-perplexity // no comment", "/* nor this */",],
          "env": { "API_KEY": "\${input:api-key}", "PATTERN": "a,]b,}\\"c,]" },
        },
        "github": { "type": "http", "url": "https://api.example.com/mcp/", },
      },
    }`,
    'windsurf/mcp_config.json': { mcpServers: { other: { serverUrl: 'https://other.example/mcp' } } },
  })
  const at = (path: string) => ({ from: join(folder, path), source: 'config', runnable: true })
  t.match(findings, [
    {
      ...at('claude_desktop_config.json'),
      name: 'filesystem',
      endpoint: { kind: 'stdio', command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/home/me'] },
      transport: 'stdio',
      entry: { command: 'npx', env: { A: '1' } },
    },
    {
      ...at('.cursor/mcp.json'),
      name: 'remote',
      endpoint: { kind: 'http', url: 'https://mcp.example/mcp' },
      transport: undefined,
      entry: { url: 'https://mcp.example/mcp', headers: { Authorization: 'Bearer ${env:TOKEN}' } },
    },
    { ...at('.cursor/mcp.json'), name: 'here', endpoint: { command: join(folder, 'run.sh'), args: ['/home/me/data'] } },
    { ...at('.mcp.json'), name: 'events', transport: 'sse', entry: { type: 'sse', url: 'https://events.example/sse' } },
    {
      ...at('.vscode/mcp.json'),
      name: 'perplexity',
      endpoint: { args: ['-y', 'server-perplexity // no comment', '/* nor this */'] },
      entry: { env: { API_KEY: '${input:api-key}', PATTERN: 'a,]b,}"c,]' } },
      wants: ['input:api-key'],
    },
    { ...at('.vscode/mcp.json'), name: 'github', transport: 'http', entry: { type: 'http' } },
    { ...at('windsurf/mcp_config.json'), name: 'other', entry: { url: 'https://other.example/mcp' } },
  ])
  t.equal(findings.length, 7)
  t.notOk('serverUrl' in (findings[6]?.entry ?? {}))
  t.same(failures, [])
})

t.test('a broken file spoils no other', async (t) => {
  const good = { mcpServers: { good: { command: 'npx' } } }
  const cases: [name: string, content: unknown, reason: string][] = [
    ['empty', '', 'file: malformed'],
    ['no JSON', '{"mcpServers": {"secret"', 'file: malformed'],
    ['a comment without end', '{"mcpServers": {} /* secret', 'file: malformed'],
    ['a text without end', '{"mcpServers": {"secret: {}}}', 'file: malformed'],
    ['a list', [], 'file: malformed'],
    ['nothing', 'null', 'file: malformed'],
    ['no servers', { servers: 'secret' }, 'file: malformed'],
    ['neither', { inputs: [] }, 'file: malformed'],
    ['a server that is none', { mcpServers: { a: 'secret' } }, 'file: malformed'],
    ['a server without anything', { mcpServers: { a: {} } }, 'file: malformed'],
    ['a command that is none', { mcpServers: { a: { command: 7 } } }, 'file: malformed'],
    ['arguments that are none', { mcpServers: { a: { command: 'npx', args: 'secret' } } }, 'file: malformed'],
    ['arguments that are no texts', { mcpServers: { a: { command: 'npx', args: [{}] } } }, 'file: malformed'],
    ['an address that is none', { mcpServers: { a: { url: 'mcp.example' } } }, 'url: malformed'],
    ['an address of another scheme', { mcpServers: { a: { url: 'ftp://mcp.example/secret' } } }, 'url: scheme'],
    ['too large', `${' '.repeat(1024 * 1024)}{}`, 'file: too-large'],
  ]
  for (const [name, content, reason] of cases) {
    const { findings, failures, errors } = await find(t, { 'bad.json': content, 'good.json': good })
    t.match(findings, [{ name: 'good' }], name)
    t.same(failures, [['bad.json', reason]], name)
    t.notMatch(
      JSON.stringify(errors.map(({ message, cause }) => [message, String(cause)])),
      /secret/,
      `${name}: nothing is told`,
    )
  }
  const largest = `${' '.repeat(1024 * 1024 - 100)}${JSON.stringify(good)}`
  t.match((await find(t, { 'large.json': largest })).findings, [{ name: 'good' }])
})

t.test('does not wait for a FIFO in the place of a file', async (t) => {
  const folder = t.testdir({})
  const path = join(folder, 'mcp.json')
  execFileSync('mkfifo', [path])
  const { failures } = await findInFiles([path], { home: '/home/me' })
  t.match(failures, [{ place: path, error: { reason: 'unreadable', message: /not a regular file/ } }])
})

t.test('a broken server spoils no other of its file', async (t) => {
  const servers = { a: { command: 'a' }, b: {}, c: { url: 'https://c.example/' }, d: { url: 7 }, e: { command: 'e' } }
  const { findings, failures } = await find(t, { 'mcp.json': { mcpServers: servers } })
  t.same(
    findings.map(({ name }) => name),
    ['a', 'c', 'e'],
  )
  t.equal(failures.length, 2)
})

t.test('removes comments and trailing commas, and only those, in linear time', async (t) => {
  const cases: [text: string, value: unknown][] = [
    ['{"a": "//"} // b', '//'],
    ['{"a": "/*"} /* b */', '/*'],
    ['{"a": "\\"//\\""}', '"//"'],
    ['{"a": "\\\\"} // "', '\\'],
    ['{/* "a": 1, */ "a": "b" /**/}', 'b'],
    ['// "\n{"a": "b"}', 'b'],
    ['{"a": "b", // ,}\n}', 'b'],
    ['{"a": ",}", /* x */ }', ',}'],
    ['/* // */ {"a": "b"}', 'b'],
    ['{"a": "b"}//', 'b'],
  ]
  for (const [text, value] of cases) {
    const wrapped = `{"mcpServers": {"x": {"command": "c", "env": ${text}\n}, // more\n}}`
    const { findings, failures } = await find(t, { 'mcp.json': wrapped })
    t.match(findings, [{ entry: { env: { a: value } } }], text)
    t.same(failures, [], text)
  }
  // In time that grows with the square of the length, this test would not end.
  for (const piece of ['/*', '"\\"', '//', ', ', '[', '\\', '"', '"a":1,', 'x\n'])
    await find(t, { 'mcp.json': `{${piece.repeat(1_000_000 / piece.length)}` })
})

t.test('a missing file is not a failure', async (t) => {
  const absent = ['absent.json', 'folder/absent.json', 'file.json/mcp.json']
  const files = { 'file.json': { mcpServers: {} } }
  t.same((await find(t, files, absent, false)).failures, [], 'are nothing to speak of where nobody has named them')
  t.same(
    (await find(t, files, absent)).failures,
    absent.map((path) => [path, 'file: unreadable']),
  )
  t.same(
    (await find(t, { 'folder/x.json': {} }, ['folder'], false)).failures,
    [['folder', 'file: unreadable']],
    'a folder is no file',
  )
})

t.test('finds the files of known clients', async (t) => {
  const pathsFor = (machine: Machine) => usualFiles(machine).map(({ path }) => path)
  const unix = { home: '/home/me', cwd: '/work', env: {} }
  const project = [
    '/work/.mcp.json',
    '/work/.cursor/mcp.json',
    '/work/.vscode/mcp.json',
    '/work/.gemini/settings.json',
    '/work/.codex/config.toml',
    '/work/opencode.jsonc',
    '/work/opencode.json',
  ]
  const own = [
    '/home/me/.cursor/mcp.json',
    '/home/me/.codeium/windsurf/mcp_config.json',
    '/home/me/.gemini/settings.json',
    '/home/me/.codex/config.toml',
    '/home/me/.config/opencode/opencode.jsonc',
    '/home/me/.config/opencode/opencode.json',
    '/home/me/.config/zed/settings.json',
  ]
  t.same(pathsFor({ ...unix, platform: 'linux' }), [
    ...project,
    ...own,
    '/home/me/.config/Claude/claude_desktop_config.json',
    '/home/me/.config/Code/User/mcp.json',
  ])
  t.same(pathsFor({ ...unix, platform: 'darwin' }), [
    ...project,
    ...own,
    '/home/me/Library/Application Support/Claude/claude_desktop_config.json',
    '/home/me/Library/Application Support/Code/User/mcp.json',
  ])
  const windows = { platform: 'win32', home: 'C:\\Users\\me', cwd: 'D:\\work', env: {} }
  t.same(pathsFor({ ...windows, env: { APPDATA: 'E:\\Data' } }).slice(-2), [
    'E:\\Data\\Claude\\claude_desktop_config.json',
    'E:\\Data\\Code\\User\\mcp.json',
  ])
  t.match(pathsFor(windows), ['D:\\work\\.mcp.json'])
  t.equal(pathsFor(windows).at(-2), 'C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json')
})

t.test('reads an entry of its own configuration in the same way', async (t) => {
  t.match(
    finding('mine', { url: 'https://MCP.example/mcp', type: 'streamable-http', era: 'modern' }, 'mcp-bridge.json'),
    {
      name: 'mine',
      endpoint: { kind: 'http', url: 'https://mcp.example/mcp' },
      transport: 'http',
      source: 'config',
      from: 'mcp-bridge.json',
      entry: { url: 'https://MCP.example/mcp', type: 'http', era: 'modern' },
      runnable: true,
    },
  )
})
