/** Configuration files as other programs write them: fixtures/configs has one of each. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import t from 'tap'
import { readConfigFile } from '../../src/config/formats/config-file.js'
import { OPTIONS } from '../../src/config/settings.js'

const folder = fileURLToPath(new URL('../fixtures/configs/', import.meta.url))
const options = { home: '/home/ada', options: OPTIONS }
const readFixture = (path: string) =>
  readConfigFile(readFileSync(folder + path, 'utf8'), { path: folder + path, ...options })
const read = (text: unknown, path = '/x/mcp.json') =>
  readConfigFile(typeof text === 'string' ? text : JSON.stringify(text), { path, ...options })

const fixtures: [path: string, program: string, servers: object, notes: RegExp[]][] = [
  [
    'claude_desktop_config.json',
    'Claude Desktop',
    {
      filesystem: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '/Users/ada/Desktop'] },
      github: { command: 'docker', env: { GITHUB_PERSONAL_ACCESS_TOKEN: '<YOUR_TOKEN>' } },
    },
    [/^globalShortcut is not an option/, /^preferences is not an option/],
  ],
  [
    'vscode/.vscode/mcp.json',
    'VS Code',
    {
      'github-github-mcp-server': { type: 'http', url: 'https://api.githubcopilot.com/mcp/' },
      'io.github.upstash-context7': { env: { ROOT: `${folder}vscode/docs`, CACHE: '/home/ada/.cache' } },
      perplexity: { env: { PERPLEXITY_API_KEY: '${input:perplexity-key}' } },
    },
    [
      /^inputs are values that VS Code asks a person for/,
      /^servers\.github\/github-mcp-server is called github-github-mcp-server here/,
      /^servers\.io\.github\.upstash\/context7 is called io\.github\.upstash-context7 here/,
    ],
  ],
  [
    'cursor/.cursor/mcp.json',
    'Cursor',
    {
      local: { args: [`${folder}cursor/tools/mcp_server.py`], env: { API_KEY: '${env:CURSOR_API_KEY}' } },
      remote: { url: 'https://api.example.com/mcp' },
    },
    [],
  ],
  [
    'windsurf/mcp_config.json',
    'Windsurf',
    { 'remote-http': { url: 'https://mcp.example.com/mcp' }, off: { disabled: true } },
    [],
  ],
  [
    'gemini/.gemini/settings.json',
    'Gemini CLI',
    {
      httpServer: { url: 'https://api.example.com/mcp', headers: { Authorization: 'Bearer ${GEMINI_MCP_TOKEN}' } },
      events: { url: 'http://localhost:8080/sse' },
      python: { env: { DATABASE_URL: '${DB_CONNECTION_STRING}', API_KEY: '${EXTERNAL_API_KEY}' } },
    },
    [/^theme is not/, /^general is not/, /^security is not/, /^mcp is not/],
  ],
  [
    'opencode.jsonc',
    'opencode',
    {
      everything: {
        type: 'stdio',
        command: 'npx',
        args: ['-y', '@modelcontextprotocol/server-everything'],
        env: { MY_ENV_VAR: '${MY_VALUE}' },
      },
      jira: { url: 'https://jira.example.com/mcp', disabled: true },
      context7: { headers: { CONTEXT7_API_KEY: '${file:/run/secrets/context7}' } },
    },
    [/^theme is not/],
  ],
  [
    'zed/settings.json',
    'Zed',
    {
      'local-mcp-server': { command: 'uv', args: ['run', 'main.py'] },
      older: { command: 'node', args: ['index.js'] },
      'remote-mcp-server': { url: 'https://example.com/mcp' },
    },
    [/^6 settings of Zed are left out/, /^context_servers\.mcp-server-postgres has neither a command nor an address/],
  ],
  [
    'codex/.codex/config.toml',
    'Codex',
    {
      context7: {
        command: 'npx',
        env: { MY_ENV_VAR: 'MY_ENV_VALUE', LOCAL_TOKEN: '${LOCAL_TOKEN:-}' },
        timeouts: { initialize: 20_000 },
      },
      figma: {
        url: 'https://mcp.figma.com/mcp',
        headers: {
          'X-Figma-Region': 'us-east-1',
          'X-Workspace': '${FIGMA_WORKSPACE}',
          Authorization: 'Bearer ${FIGMA_OAUTH_TOKEN}',
        },
        timeouts: { call: 45_000 },
      },
      'chrome-devtools': { disabled: true },
    },
    [/^model is not/, /^approval_policy is not/, /^mcp_servers\.chrome devtools is called chrome-devtools here/],
  ],
]

for (const [path, program, servers, notes] of fixtures) {
  t.test(`reads the file of ${program}, and reports what it has beside its servers`, async (t) => {
    const file = readFixture(path)
    t.equal(file.program, program)
    t.match(file.servers, servers)
    t.same(Object.keys(file.servers ?? {}), Object.keys(servers))
    t.match(
      file.notes.map(({ path, message }) => `${path} ${message}`.trim()),
      notes,
    )
    t.equal(file.notes.length, notes.length)
    t.same(file.options, {}, 'nothing of another program is an option of ours')
  })
}

t.test('recognizes the program of a file by its keys, wherever it is', async (t) => {
  const entry = { command: 'x' }
  const cases: [file: object, program: string | undefined][] = [
    [{ mcpServers: { a: entry } }, undefined],
    [{ mcpServers: { a: { serverUrl: 'https://x.example/' } } }, 'Windsurf'],
    [{ mcpServers: { a: { httpUrl: 'https://x.example/' } } }, 'Gemini CLI'],
    [{ servers: { a: entry } }, 'VS Code'],
    [{ mcp: { servers: { a: entry } }, 'editor.fontSize': 12 }, 'VS Code'],
    [{ mcp: { servers: { a: { type: 'local', command: ['x'] } } } }, 'opencode'],
    [{ mcp: { a: { type: 'remote', url: 'https://x.example/' } } }, 'opencode'],
    [{ context_servers: { a: entry } }, 'Zed'],
  ]
  for (const [file, program] of cases) {
    const { program: found, servers } = read(file)
    t.equal(found, program, JSON.stringify(file))
    t.same(Object.keys(servers ?? {}), ['a'])
  }
  t.equal(read({ mcp: { allowed: [] } }).servers, undefined, 'settings without servers')
})

t.test('options of mcp-bridge may stand beside the servers, and similar keys are reported', async (t) => {
  const servers = { a: { command: 'x' } }
  t.same(read({ mcpServers: servers, listen: 'stdio' }).options, { listen: 'stdio' })
  t.same(read({ servers, inputs: [], listen: 'stdio' }).options, { listen: 'stdio' })
  t.same(read({ mcpServers: servers, lisen: 'stdio' }).options, { lisen: 'stdio' }, 'a slip, for the check to refuse')
  t.same(read({ mcpServers: servers, listen: 'stdio', other: 1 }).options, { listen: 'stdio', other: 1 })
  t.same(read({ mcpServers: servers, globalShortcut: '' }).options, {})
})

t.test('names that are invalid in an address are replaced by valid, unique ones', async (t) => {
  const names = ['a b', 'a/b', 'a-b', '@scope/x', '', '__proto__', 'é', 'constructor']
  const file = read(`{"mcpServers": {${names.map((name) => `${JSON.stringify(name)}: {"command": "x"}`).join(', ')}}}`)
  const served = Object.keys(file.servers ?? {})
  t.equal(new Set(served).size, names.length)
  t.same([...file.given.values()], names)
  for (const name of served) t.match(name, /^[A-Za-z0-9][\w.-]{0,63}$/)
  t.equal(file.given.get('a-b'), 'a-b', 'who has a good one keeps it')
})

const broken: [name: string, text: string, said: string][] = [
  ['nothing', '', 'the file is empty at line 1, column 1'],
  ['a missing comma', '{\n  "a": 1\n  "b": 2\n}', 'a comma is missing at line 3, column 3'],
  ['a missing brace', '{\r\n  "mcpServers": {', 'a closing brace is missing at line 2, column 18'],
  ['a key without quotes', '{\n\ta: 1}', 'a key has to be in double quotes at line 2, column 2'],
  ['a backslash of Windows', '{"a": "C:\\Users"}', 'an invalid escape (write a backslash twice) at line 1, column 7'],
  ['a string without end', '{"a": "canary\n}', 'a string does not end at line 1, column 7'],
  ['more than one value', '{} canary', 'an invalid word at line 1, column 4'],
]

t.test('reports a mistake with line and column, and without the text there', async (t) => {
  for (const [name, text, said] of broken) {
    t.throws(() => read(text), { message: `not valid JSON: ${said}` }, name)
    t.throws(() => read(`\uFEFF${text}`), { message: `not valid JSON: ${said}` }, `${name}, after a byte order mark`)
  }
  t.throws(() => read('[mcp_servers.a]\ncommand = canary\n', '/x/config.toml'), {
    message: /^not valid TOML: (?!.*canary).* at line 2, column 11$/,
  })
  t.throws(() => read('['.repeat(400_000)), { message: /nested too deep|missing/ })
})

t.test('accepts comments, trailing commas and byte order marks', async (t) => {
  const text = '\uFEFF// one\r\n{ /* two */ "mcpServers": { "a": { "command": "x", }, }, }\n'
  t.same(read(text).servers, { a: { command: 'x' } })
})

t.test('every path has its line and column in the file', async (t) => {
  const file = readFixture('vscode/.vscode/mcp.json')
  t.same(file.place('mcpServers.io.github.upstash-context7.env.ROOT'), {
    path: 'servers.io.github.upstash/context7.env.ROOT',
    line: 16,
    column: 24,
  })
  t.match(file.place('mcpServers.perplexity.nothing'), { path: 'servers.perplexity.nothing', line: 18 })
  t.match(file.place('mcpServers'), { path: 'servers', line: 6 })
  t.match(readFixture('windsurf/mcp_config.json').place('mcpServers.remote-http.url'), {
    path: 'mcpServers.remote-http.serverUrl',
    line: 4,
  })
  t.match(readFixture('codex/.codex/config.toml').place('mcpServers.figma.headers'), {
    path: 'mcp_servers.figma.http_headers',
    line: 14,
  })
})

t.test('accepts anything that parses', async () => {
  const entry = fc.dictionary(
    fc.constantFrom(
      'command',
      'args',
      'url',
      'serverUrl',
      'type',
      'enabled',
      'env',
      'headers',
      '__proto__',
      'settings',
    ),
    fc.jsonValue(),
  )
  const servers = fc.oneof(fc.dictionary(fc.string(), fc.oneof(entry, fc.jsonValue())), fc.jsonValue())
  const file = fc.dictionary(
    fc.constantFrom('mcpServers', 'servers', 'mcp', 'context_servers', 'mcp_servers', 'inputs', 'x'),
    servers,
  )
  fc.assert(
    fc.property(fc.oneof(file, fc.jsonValue()), (value) => {
      const { servers, place } = read(JSON.stringify(value))
      for (const name of Object.keys(servers ?? {})) place(`mcpServers.${name}.url.x`)
    }),
    { numRuns: 500, endOnFailure: true },
  )
})
