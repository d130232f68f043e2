/** The program as people run it: what it says when all is well, and when it is not. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { execPath, pid } from 'node:process'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { LOG_EVENTS } from '../src/base/log/events.js'
import { check } from './support/check.js'
import { run, says, startProgram } from './support/cli.js'
import { until } from './support/eventually.js'
import { temporaryFile } from './support/folder.js'
import { initialize } from './support/legacy-client.js'
import { LegacyHttp } from './support/legacy-http.js'
import { legacyStdio } from './support/legacy-stdio.js'
import { call, envelope } from './support/modern.js'

const quoted = (server: { command: string; args: string[] }) =>
  `stdio:${[server.command, ...server.args].map((word) => `'${word}'`).join(' ')}`

const fileWith = (t: Test, content: unknown) => temporaryFile(t, 'config.json', content)

t.test('an unreachable server ends the program with the reason', async (t) => {
  const dying = ['--', execPath, '-e', 'console.error("no API key"); process.exit(3)']
  const cases: [name: string, args: string[], said: RegExp][] = [
    [
      'no such command',
      ['--', 'no-such-command-here'],
      /"no-such-command-here" is not available: Cannot start no-such-command-here: command not found/,
    ],
    ['one that dies at once', dying, /exited with code 3[\s\S]*no API key[\s\S]*mcp-bridge probe/],
  ]
  const everywhere = cases.flatMap(([name, args, said]): typeof cases => [
    [name, ['--listen', 'http://127.0.0.1:0/mcp', ...args], said],
    [name, ['--listen', 'stdio', ...args], said],
  ])
  await Promise.all(
    everywhere.map(async ([name, args, said]) => {
      const ended = await run(t, ['--log-format', 'pretty', ...args])
      t.equal(ended.code, 1, name)
      t.match(ended.stderr, said, name)
      t.notMatch(ended.stderr, /^\s+at /m, name)
      t.equal(ended.stdout, '')
    }),
  )
})

t.test('on stdio, answers each request while a remote server is down, and serves it later', async (t) => {
  const server = await LegacyHttp.start(t)
  const { url } = server
  const startAgain = await server.stop()
  const { child, stdout, stderr, ended } = startProgram(t, ['--listen', 'stdio', '--upstream', url])
  let id = 0
  const ask = async (method: string, params: object) => {
    const asked = ++id
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: asked, method, params })}\n`)
    const answer = () =>
      stdout()
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { id: number; error?: { message: string }; result?: object })
        .find((message) => message.id === asked)
    await until(() => answer() !== undefined || child.exitCode !== null, `an answer to ${method} (${stderr()})`)
    return answer()
  }
  const DOWN = { error: { code: -32603, message: /not available: Connection refused/ } }
  const opening = JSON.parse(initialize('2025-11-25')) as { params: object }
  for (let i = 0; i < 2; i++) {
    t.match(await ask('tools/list', { _meta: envelope() }), DOWN, 'a modern request')
    t.match(await ask('initialize', opening.params), DOWN, 'the opening of a session')
    t.match(await ask('tools/list', {}), DOWN, 'a legacy request after it')
  }
  t.match(stderr(), /"event":"server_unavailable".*Connection refused/)
  await startAgain()
  await until(async () => (await ask('initialize', opening.params))?.result !== undefined, 'a session')
  t.match(await ask('tools/list', {}), { result: { tools: [{ name: 'echo' }] } })
  child.stdin.end()
  t.equal(await ended, 0)
})

t.test('a remote server may start later than the bridge', async (t) => {
  const program = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--upstream', 'http://127.0.0.1:9/mcp'])
  await says(program, /"event":"server_unavailable".*"why":".*Connection refused"/)
  const [, origin] = await says(program, /"url":"(http:[^"]*)\/mcp"/)
  t.equal((await fetch(`${origin}/readyz`)).status, 503)
  t.equal((await fetch(`${origin}/healthz`)).status, 200)
})

t.test('names a port in use, and suggests another', async (t) => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => taken.close())
  const { port } = taken.address() as { port: number }
  const ended = await run(t, ['--listen', `http://127.0.0.1:${port}/mcp`, '--upstream', quoted(legacyStdio(t).server)])
  t.equal(ended.code, 1)
  t.match(ended.stderr, new RegExp(`port ${port} is in use[\\s\\S]*--listen`))
  if (existsSync('/proc/net/tcp'))
    t.match(ended.stderr, new RegExp(`in use by node .*\\(process ${pid}\\)`), 'who has it')
  const file = temporaryFile(t, 'no-socket', '')
  for (const [admin, why] of [
    [`http://127.0.0.1:${port}`, `port ${port} is in use`],
    [`unix:${file}`, 'no-socket exists and is not a socket'],
  ] as const) {
    const flags = ['--listen', 'http://127.0.0.1:0/mcp', '--admin', admin]
    const { code, stderr } = await run(t, [...flags, '--upstream', quoted(legacyStdio(t).server)])
    t.equal(code, 1)
    t.match(stderr, new RegExp(`${why}[\\s\\S]*Choose another \\w+ with --admin `))
    t.notMatch(stderr, /--listen/)
  }
})

t.test('names an address that this machine does not have, and suggests others', async (t) => {
  for (const [host, why] of [
    ['192.0.2.1', /cannot listen on port 8080: this machine does not have the address 192\.0\.2\.1\n {2}Listen on 127/],
    ['nobody.invalid', /cannot listen on nobody\.invalid: the host name could not be resolved\n {2}Listen on 127/],
  ] as const) {
    const listen = ['--listen', `http://${host}:8080/mcp`, '--allow-unauthenticated', '--log-format', 'pretty']
    const ended = await run(t, [...listen, '--', execPath, '-e', ''])
    t.equal(ended.code, 1, host)
    t.match(ended.stderr, why)
    t.notMatch(ended.stderr, /node:/, 'without a stack')
  }
})

t.test('prints the version of the package', async (t) => {
  t.match((await run(t, ['-V'])).stdout, /^\d+\.\d+\.\d+\n$/)
})

t.test('an address alone is a server, and a program after --, with all later arguments', async (t) => {
  const { command, args } = legacyStdio(t).server
  const probed = startProgram(t, ['--listen', 'http://127.0.0.1:0/mcp', '--', command, ...args, '--port', 'ignored'])
  const [, url = ''] = await says(probed, /"url":"([^"]+)"/)
  t.equal((await call(url, 'tools/list')).status, 200)
  const http = await LegacyHttp.start(t)
  const address = startProgram(t, [http.url, '--listen', 'http://127.0.0.1:0/mcp'])
  const [, served = ''] = await says(address, /"url":"([^"]+)"/)
  t.equal((await call(served, 'tools/list')).status, 200)
})

t.test('prints where it listens and how to try it, and the printed commands work', async (t) => {
  const program = startProgram(t, [
    '--listen',
    'http://127.0.0.1:0/mcp',
    '--log-format',
    'pretty',
    '--upstream',
    quoted(legacyStdio(t).server),
  ])
  const [, curl = ''] = await says(program, /^ {2}(curl .*)$/m)
  const { stdout } = await promisify(execFile)('sh', ['-c', curl])
  t.match(JSON.parse(stdout), { result: { supportedVersions: ['2026-07-28'] } })
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
  t.equal(program.stdout(), '')
})

t.test('without a terminal, the log is JSON, with a line for each call and no secret', async (t) => {
  const http = await LegacyHttp.start(t)
  const program = startProgram(
    t,
    [
      '--listen',
      'http://127.0.0.1:0/mcp',
      '--upstream',
      http.url,
      '-H',
      'Authorization: Bearer ${CANARY_TOKEN}',
      '--log-level',
      'trace',
    ],
    { CANARY_TOKEN: 'canary-1' },
  )
  const [, url = ''] = await says(program, /"url":"([^"]+)"/)
  const params = { name: 'echo', arguments: { password: 'canary-2' } }
  await call(url, 'tools/call', params, {
    headers: { authorization: 'Bearer canary-3', 'mcp-param-x': 'canary-4', 'mcp-session-id': 'canary-5' },
  })
  await call(url, 'resources/read', { uri: 'https://user:canary-6@host/path?key=canary-7' })
  await call(url, 'tools/call', {
    name: 'fail',
    arguments: { error: { code: 1, message: 'canary-8', data: 'canary-9' } },
  })
  t.equal(http.of('tools/call')[0]?.headers['authorization'], 'Bearer canary-1')
  program.child.kill('SIGTERM')
  t.equal(await program.ended, 0)
  const lines = program
    .stderr()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const { event } of lines) t.ok(Object.hasOwn(LOG_EVENTS, String(event)), String(event))
  const calls = lines.filter(({ event }) => event === 'call')
  t.match(calls[0], {
    clientEra: 'modern',
    serverEra: 'legacy',
    method: 'tools/call',
    name: 'echo',
    outcome: 'ok',
    ms: Number,
  })
  t.match(calls[1], { method: 'resources/read', name: 'https://host/path' })
  t.match(calls[2], { outcome: 'error', code: 1 })
  t.notMatch(program.stderr(), /canary/)
})

t.test('speaks on stdio as a program of a client, and exits with its input', async (t) => {
  const stdio = legacyStdio(t)
  const program = startProgram(t, ['--listen', 'stdio', '--', stdio.server.command, ...stdio.server.args])
  program.child.stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: envelope() } })}\n`,
  )
  await until(() => program.stdout().includes('\n'))
  t.match(JSON.parse(program.stdout()), { id: 1, result: { resultType: 'complete' } })
  program.child.stdin.end()
  t.equal(await program.ended, 0)
  t.throws(() => process.kill(Number(stdio.pids()[0]), 0), { code: 'ESRCH' })
})

t.test('probe describes a server to people and to programs', async (t) => {
  const stdio = legacyStdio(t)
  const forPeople = await run(t, ['probe', quoted(stdio.server)])
  t.equal(forPeople.code, 0)
  t.match(
    forPeople.stdout,
    /legacy 2025-11-25 over stdio[\s\S]*because .*-32601[\s\S]*scripted 1\.0\.0[\s\S]*tools, prompts, resources[\s\S]*echo/,
  )
  const http = await LegacyHttp.start(t)
  const forPrograms = await run(t, ['probe', '--json', http.url])
  t.match(JSON.parse(forPrograms.stdout), {
    era: 'legacy',
    revision: '2025-11-25',
    transport: 'http',
    server: { name: 'scripted' },
    capabilities: { tools: {} },
    tools: [{ name: 'echo' }],
  })
  const gone = await run(t, ['probe', 'http://127.0.0.1:9/mcp'])
  t.equal(gone.code, 1)
  t.match(gone.stderr, /Connection refused/)
})

const SECRET = 'canary-0123456789abcdef'
const EVERYWHERE = 'http://0.0.0.0:1/mcp'
const withAuth = (auth: object) => ({ mcpServers: { a: { url: 'http://x/mcp' } }, auth })

const files: [name: string, content: unknown, code: number, said: RegExp][] = [
  [
    'one of Claude Desktop',
    { mcpServers: { files: { command: 'npx', args: ['-y', 'x'], env: { A: '1' } } } },
    0,
    /is valid/,
  ],
  [
    'one of Cursor',
    { mcpServers: { remote: { url: 'https://x.example/mcp', headers: { Authorization: 'Bearer x' } } } },
    0,
    /is valid/,
  ],
  ['one of VS Code', { servers: { remote: { type: 'http', url: 'https://x.example/mcp' } } }, 0, /is valid/],
  [
    'one with keys of another program',
    { mcpServers: { a: { command: 'x', autoApprove: [] } } },
    0,
    /is valid[\s\S]*mcpServers\.a\.autoApprove is not known/,
  ],
  [
    'everything by name',
    {
      mcpServers: { a: { type: 'streamable-http', url: 'http://x/mcp', era: 'legacy', session: 'shared' } },
      listen: 'stdio',
      timeouts: { call: 1 },
    },
    0,
    /is valid/,
  ],
  ['no JSON', '{"mcpServers":', 78, /not valid JSON: a value is missing at line 1, column 15/],
  ['no servers', {}, 78, /has no "mcpServers", the servers by name: add /],
  ['an empty list', { mcpServers: {} }, 78, /mcpServers names no server/],
  [
    'neither command nor url',
    { mcpServers: { a: { args: [] } } },
    78,
    /mcpServers\.a has to have either "command" .* or "url"/,
  ],
  [
    'both',
    { mcpServers: { a: { command: 'x', url: 'http://x' } } },
    78,
    /mcpServers\.a has "command" .* and "url" .*: remove one/,
  ],
  ['arguments that are no list', { mcpServers: { a: { command: 'x', args: 'y' } } }, 78, /mcpServers\.a\.args .*array/],
  ['an address that is none', { mcpServers: { a: { url: 'x.example' } } }, 78, /mcpServers\.a\.url has to be an http/],
  [
    'an option that there is not',
    { mcpServers: { a: { command: 'x' } }, lisen: 'stdio' },
    78,
    /lisen is not an option: did you mean "listen"\?/,
  ],
  [
    'an option of the wrong type',
    { mcpServers: { a: { command: 'x' } }, timeouts: { call: '1s' } },
    78,
    /timeouts\.call .*number/,
  ],
  ['a limit below zero', { mcpServers: { a: { command: 'x' } }, limits: { calls: -1 } }, 78, /limits\.calls/],
  ['tokens', withAuth({ tokens: { alice: SECRET, 'bob.b-2': `${SECRET}2` } }), 0, /is valid/],
  ['tokens of the environment', withAuth({ tokens: { alice: '${NOT_SET:-0123456789abcdef}' } }), 0, /is valid/],
  ['tokens, and everybody can reach it', { ...withAuth({ tokens: { a: SECRET } }), listen: EVERYWHERE }, 0, /is valid/],
  ['passing through', withAuth({ passthrough: true }), 0, /is valid/],
  ['a name with a space', withAuth({ tokens: { 'a b': SECRET } }), 78, /auth\.tokens\.a b has to be made of letters/],
  ['a long name', withAuth({ tokens: { ['a'.repeat(65)]: SECRET } }), 78, /auth\.tokens\.a+ has to be made of/],
  [
    'the name of nobody',
    withAuth({ tokens: { anon: SECRET } }),
    78,
    /auth\.tokens\.anon is reserved for callers without/,
  ],
  ['a short token', withAuth({ tokens: { alice: 'canary-15-chars' } }), 78, /auth\.tokens\.alice has to be 16 or more/],
  ['a token with a line end', withAuth({ tokens: { alice: `${SECRET}\n` } }), 78, /auth\.tokens\.alice has to be/],
  [
    'a token that is long only before it is replaced',
    withAuth({ tokens: { alice: '${A_LONG_NAME_THAT_IS_NOT_SET:-canary}' } }),
    78,
    /auth\.tokens\.alice has to be 16 or more/,
  ],
  [
    'a token that the environment lacks',
    withAuth({ tokens: { alice: '${NOT_SET_ANYWHERE}' } }),
    78,
    /auth\.tokens\.alice the environment variable NOT_SET_ANYWHERE is not set/,
  ],
  ['one token for two', withAuth({ tokens: { a: SECRET, b: SECRET } }), 78, /auth\.tokens\.b is the same as that of a/],
  ['tokens of nobody', withAuth({ tokens: {} }), 78, /auth\.tokens is empty/],
  [
    'authentication that asks for nothing',
    withAuth({}),
    78,
    /auth has to have "tokens", "issuers" or "forwarded", or "passthrough"/,
  ],
  [
    'tokens that are passed through',
    withAuth({ tokens: { a: SECRET }, passthrough: true }),
    78,
    /auth has to have "tokens", "issuers" or "forwarded", or "passthrough": true/,
  ],
  ['a misspelt key', withAuth({ token: { a: SECRET } }), 78, /auth\.token is not an option/],
  [
    'passing through to everybody',
    { ...withAuth({ passthrough: true }), listen: EVERYWHERE },
    78,
    /"auth\.tokens", or allow it with --allow-unauthenticated/,
  ],
  [
    'passing through to a program',
    { ...withAuth({ passthrough: true }), mcpServers: { a: { command: 'x' } } },
    78,
    /auth\.passthrough is for servers with an address, but a is a program/,
  ],
  [
    'passing through beside a token of ours',
    {
      ...withAuth({ passthrough: true }),
      mcpServers: { a: { url: 'http://x/mcp', headers: { authorization: 'Bearer canary' } } },
    },
    78,
    /mcpServers\.a\.headers\.authorization cannot be combined with "auth\.passthrough"/,
  ],
]

t.test('check reports mistakes of a configuration by path, or that it is valid', async (t) => {
  for (const [name, content, code, expected] of files) {
    const ended = check(fileWith(t, content))
    t.equal(ended.code, code, name)
    t.match(ended.said, expected, name)
    t.notMatch(ended.said, /canary/, name)
  }
  const valid = await run(t, ['check', '--config', fileWith(t, { mcpServers: { a: { command: 'x' } } })])
  t.match(valid, { code: 0, stdout: /is valid: 1 server\.$/m, stderr: '' })
  const invalid = await run(t, ['check', '--config', fileWith(t, {})])
  t.match(invalid, {
    code: 78,
    stdout: '',
    stderr: /^mcp-bridge: invalid configuration:\n {2}\S+:1:1 has no "mcpServers"/,
  })
})

t.test('the command to try it shows where a token goes, and works with one', async (t) => {
  const file = fileWith(t, {
    mcpServers: { it: legacyStdio(t).server },
    listen: 'http://127.0.0.1:0/mcp',
    auth: { tokens: { alice: '${ALICE_OF_TEST}' } },
  })
  const program = startProgram(t, ['--config', file, '--log-format', 'pretty'], { ALICE_OF_TEST: SECRET })
  const [, curl = ''] = await says(program, /^ {2}(curl .*)$/m)
  const { stdout } = await promisify(execFile)('sh', ['-c', curl], { env: { ...process.env, TOKEN: SECRET } })
  t.match(JSON.parse(stdout), { result: { supportedVersions: ['2026-07-28'] } })
  t.notMatch(program.stderr(), /canary/)
})

t.test('flags override the file', async (t) => {
  const stdio = legacyStdio(t)
  const file = fileWith(t, {
    mcpServers: { it: stdio.server },
    listen: 'stdio',
    log: { level: 'debug', format: 'json' },
  })
  const program = startProgram(t, ['--config', file, '--listen', 'http://127.0.0.1:0/mcp', '--log-level', 'info'])
  const [, url = ''] = await says(program, /"url":"([^"]+)"/)
  t.equal((await call(url, 'tools/list')).status, 200)
  t.notMatch(program.stderr(), /"level":20/)
})
