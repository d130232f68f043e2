/** Files of configuration as people have them: what `check` says of them, and that the bridge serves them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { check } from '../support/check.js'
import { run, says, startProgram } from '../support/cli.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const fixtures = fileURLToPath(new URL('../fixtures/configs/', import.meta.url))

function fileWith(t: Test, content: unknown, name = 'mcp.json'): string {
  const file = join(temporaryFolder(t), name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2))
  return file
}

const ELSEWHERE = {
  CURSOR_API_KEY: 'x',
  CURSOR_TOKEN: 'x',
  WINDSURF_TOKEN: 'x',
  GEMINI_MCP_TOKEN: 'x',
  DB_CONNECTION_STRING: 'x',
  EXTERNAL_API_KEY: 'x',
  MY_VALUE: 'x',
  FIGMA_OAUTH_TOKEN: 'x',
  FIGMA_WORKSPACE: 'x',
}

const checked: [file: string, code: number, said: RegExp[]][] = [
  [
    'claude_desktop_config.json',
    0,
    [
      /is valid: 2 servers, in the format of Claude Desktop\.$/m,
      /^ {2}\S+:2:21 globalShortcut is not an option of mcp-bridge, and is left out$/m,
      /json:12:48 mcpServers\.github\.env\.GITHUB_PERSONAL_ACCESS_TOKEN looks like a placeholder/,
    ],
  ],
  [
    'vscode/.vscode/mcp.json',
    78,
    [
      /json:21:38 servers\.perplexity\.env\.PERPLEXITY_API_KEY \$\{input:perplexity-key\} is an input of an editor: write \$\{PERPLEXITY_KEY\} instead, and set the environment variable PERPLEXITY_KEY/,
    ],
  ],
  ['cursor/.cursor/mcp.json', 0, [/2 servers, in the format of Cursor/, /mcpServers\.local\.envFile is not known/]],
  ['windsurf/mcp_config.json', 0, [/1 server, in the format of Windsurf/, /remote-http\.disabledTools is not known/]],
  ['gemini/.gemini/settings.json', 0, [/3 servers, in the format of Gemini CLI/, /python\.trust is not known/]],
  ['zed/settings.json', 0, [/3 servers, in the format of Zed/, /6 settings of Zed are left out/]],
  ['codex/.codex/config.toml', 0, [/2 servers, in the format of Codex/, /toml:4:1 .*enabled_tools is not known/]],
]

t.test('check names the program of a file, ignored keys and warnings', async (t) => {
  for (const [file, code, said] of checked) {
    const ended = check(fixtures + file, { env: ELSEWHERE })
    t.equal(ended.code, code, file)
    for (const part of said) t.match(ended.said, part, file)
  }
})

t.test('check --offline requires nothing of the machine, and is as strict otherwise', async (t) => {
  const config = {
    mcpServers: {
      a: { url: '${ADDRESS_OF_A}', headers: { Authorization: 'Bearer ${file:/run/secrets/canary}' } },
      b: { command: '${PROGRAM_OF_B}', env: { KEY: '${KEY_OF_B}' } },
    },
    auth: { tokens: { alice: '${TOKEN_OF_ALICE}', bob: '${file:/run/secrets/bob}' } },
    redis: { url: '${REDIS_OF_TEST}' },
    stateKeys: ['${STATE_KEY_OF_TEST}'],
    inspect: { token: '${VIEWERS}' },
  }
  const file = fileWith(t, config)
  const online = await run(t, ['check', '--config', file])
  t.equal(online.code, 78)
  t.match(online.stderr, /the environment variable ADDRESS_OF_A is not set/)
  const offline = await run(t, ['check', '--offline', '--config', file])
  t.equal(offline.stderr, '')
  t.match(offline.stdout, /is valid: 2 servers\.$/m)
  for (const redis of [
    { url: 'redis://primary', sentinels: ['${SENTINEL_OF_TEST}'] },
    { cluster: ['${NODE_OF_TEST}'] },
  ])
    t.equal(check(fileWith(t, { ...config, redis }), { args: ['--offline'] }).code, 0)
  const wrong: [change: object, said: RegExp][] = [
    [{ listen: 'nowhere' }, /listen "nowhere" has to be stdio, unix:/],
    [{ limits: { calls: '${NOT_REPLACED}' } }, /limits\.calls has to be a number, not a string/],
    [{ redis: '${REDIS_OF_TEST}' }, /redis has to be an object, not a string/],
    [{ replicas: '${ADDRESS_OF_TEST}' }, /replicas has to be an object, not a string/],
    [{ publish: '${KEY_OF_TEST}' }, /publish has to be an object, not a string/],
    [{ stateKeys: '${STATE_KEY_OF_TEST}' }, /stateKeys has to be a list/],
    [{ auth: { tokens: '${TOKENS_OF_TEST}' } }, /auth\.tokens has to be an object/],
    [{ auth: { issuers: '${ISSUERS_OF_TEST}' } }, /auth\.issuers has to be a list/],
  ]
  for (const [change, said] of wrong) {
    const refused = check(fileWith(t, { ...config, ...change }), { args: ['--offline'] })
    t.equal(refused.code, 78)
    t.match(refused.said, said)
  }
})

const broken: [name: string, file: string, content: unknown, code: number, said: RegExp][] = [
  [
    'a numeric header',
    'mcp.json',
    { mcpServers: { a: { url: 'https://x.example/mcp', headers: { 'x-version': 2 } } } },
    78,
    /mcp\.json:6:22 mcpServers\.a\.headers\.x-version has to be a string, not a number: put it in quotes$/m,
  ],
  [
    'a number where a list is meant',
    'mcp.json',
    { mcpServers: { a: { command: 'x', args: 7 } } },
    78,
    /mcpServers\.a\.args has to be a list \(an array\), not a number: as in \["-y", "some-server"\]$/m,
  ],
  [
    'a variable that is missing in a disabled entry and in a key that means nothing',
    'mcp.json',
    {
      mcpServers: {
        a: { command: 'x', theirs: '${NOT_SET_ANYWHERE}' },
        b: { url: '${NOT_SET_ANYWHERE}', disabled: true },
      },
    },
    0,
    /is valid: 1 server\./,
  ],
  [
    'all servers disabled',
    'mcp.json',
    { mcpServers: { b: { command: 'x', disabled: true } } },
    78,
    /mcpServers has no enabled server/,
  ],
  [
    'a folder of a project where there is none',
    'mcp.json',
    { mcpServers: { a: { command: 'x', args: ['${workspaceFolder}/y'] } } },
    78,
    /args\.0 \$\{workspaceFolder\} is known to editors only: write its value/,
  ],
  [
    'what is hardly meant',
    'mcp.json',
    { mcpServers: { a: { command: 'npx -y thing', args: ['~/data', '--key=YOUR_API_KEY'] } } },
    0,
    /Probably mistakes:[\s\S]*args\.0 contains "~"[\s\S]*args\.1 looks like a placeholder[\s\S]*command contains a space/,
  ],
  [
    'a path with single backslashes, which JSON reads as control characters',
    'mcp.json',
    '{"mcpServers":{"a":{"command":"C:\\new\\tools\\run.exe","args":["--dir=C:\\temp"]}}}',
    0,
    /Probably mistakes:\n.*command contains a tab or line break: write each backslash.*\n.*args\.0 contains a tab.*\n$/,
  ],
  [
    'a path with a space is no suspicion',
    'mcp.json',
    { mcpServers: { a: { command: 'C:\\Program Files\\nodejs\\node.exe', args: ['a~b'] } } },
    0,
    /is valid: 1 server\.\n$/,
  ],
  [
    'a mistake in the file',
    'mcp.json',
    '{\n  "mcpServers": {\n  }\n  "x": 1\n}',
    78,
    /a comma is missing at line 4, column 3/,
  ],
  [
    'a slip in an option, where it stands',
    'mcp.json',
    { mcpServers: { a: { command: 'x' } }, timeouts: { cal: 1 } },
    78,
    /mcp\.json:\d+:\d+ timeouts\.cal is not an option: did you mean "call"\?/,
  ],
]

t.test('check accepts the same syntax as editors, and names the place of each mistake', async (t) => {
  for (const [name, file, content, code, said] of broken) {
    const ended = check(fileWith(t, content, file))
    t.equal(ended.code, code, name)
    t.match(ended.said, said, name)
  }
})

t.test('serves a VS Code file with comments, inputs and its own names', async (t) => {
  const { server } = legacyStdio(t)
  const text = `\uFEFF{
    // Mine.
    "inputs": [{ "id": "x", "type": "promptString" }],
    "servers": { "io.github.someone/echo": ${JSON.stringify(server)}, },
    "listen": "http://127.0.0.1:0/mcp",
  }`
  const file = fileWith(t, text, '.vscode/mcp.json')
  const program = startProgram(t, ['--config', file])
  const [, url = ''] = await says(program, /"url":"(http:[^"]+)"/)
  t.equal((await call(url, 'tools/list')).status, 200)
  const named = new URL('/io.github.someone-echo/mcp', url).href
  t.equal((await call(named, 'tools/list')).status, 200)
  await says(program, /"event":"config_format_detected","format":"VS Code"/)
  await says(program, /"event":"config_adjusted","path":"inputs".*"why":"are values that VS Code asks a person for/)
  const chosen = startProgram(t, ['--config', file, '--server', 'io.github.someone/echo'])
  await says(chosen, /"event":"server_ready"/)
})

t.test('discover reads the same formats', async (t) => {
  const folder = temporaryFolder(t)
  const env = { XDG_CONFIG_HOME: folder, HOME: folder }
  const { server } = legacyStdio(t)
  const toml = `[mcp_servers.echo]\ncommand = ${JSON.stringify(server.command)}\nargs = ${JSON.stringify(server.args)}\n`
  const ended = await run(t, ['discover', fileWith(t, toml, 'config.toml')], env)
  t.match(ended.stdout, /^echo {2}/)
  t.equal(ended.code, 0)
  const wrong = await run(t, ['discover', fileWith(t, '{"mcpServers": {"a" 1}}')], env)
  t.match(wrong.stdout, /is not valid JSON: a colon is missing at line 1, column 21/)
})
