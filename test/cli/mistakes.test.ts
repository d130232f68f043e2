/** Mistakes of users: each names the mistake and the next step, and no mistake of a file hides another one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Fault } from '../../src/base/fault/fault.js'
import { cliErrorOf, inFields, inWords } from '../../src/command/errors.js'
import { insteadOf } from '../../src/command/habits.js'
import { parseCommand } from '../../src/command/parse.js'
import { openingFault } from '../../src/servers/failure.js'
import { ChannelError } from '../../src/servers/transport/channel.js'
import { reasonIn } from '../../src/servers/transport/stdio/stderr-tail.js'
import { check } from '../support/check.js'
import { temporaryFolder } from '../support/folder.js'

const saidOf = (argv: readonly string[]) => {
  try {
    parseCommand(argv, { PATH: '/usr/bin:/bin' })
    return ''
  } catch (error) {
    return inWords(cliErrorOf(error, { probing: false }))
  }
}

const ADDRESS = 'http://x.example/mcp'

const ARGUMENTS: [argv: string[], said: string][] = [
  [['-upstream', ADDRESS], 'a flag of more than one letter needs two: write --upstream'],
  [
    ['-port', '3000', ADDRESS],
    '--port is a flag of mcp-proxy and supergateway: write --listen http://127.0.0.1:3000/mcp',
  ],
  [['--port', '3000', ADDRESS], 'write --listen http://127.0.0.1:3000/mcp'],
  [['--port=3000', '--', 'x'], 'write --listen http://127.0.0.1:3000/mcp'],
  [['-p', '3000', ADDRESS], 'write --listen http://127.0.0.1:3000/mcp'],
  [['--stdio', 'npx -y server'], '--stdio is a flag of supergateway: put the program of the server last'],
  [['--sse', 'https://x.example/sse'], 'mcp-bridge --listen stdio sse+https://x.example/sse'],
  [['--sse', 'https://x.example/sse?key=canary'], 'mcp-bridge --listen stdio sse+https://example.com/mcp'],
  [['--outputTransport', 'stdio', '--', 'x'], 'write --listen stdio'],
  [['--named-server-config', 'servers.json'], 'write --config servers.json'],
  [['--transport', 'sse-only', ADDRESS], 'is a flag of mcp-proxy and mcp-remote: leave it out'],
  [['--allow-http', ADDRESS], '--allow-http is a flag of mcp-remote: leave it out'],
  [[ADDRESS, '3334'], 'for the port of the sign-in, write --callback-port 3334'],
  [['--server', 'stream', '--', 'x'], 'clients of both transports are served without it'],
  [['--url', ADDRESS], `give the address alone: mcp-bridge ${ADDRESS}`],
  [['--retry', 'safe', ADDRESS], 'write "retry": "safe" into the entry of the server in a configuration file'],
  [['--stateKeys', 'canary', ADDRESS], 'write "stateKeys" into a configuration file'],
  [['localhost:3000/mcp'], '"localhost:3000/mcp" is not an address: did you mean http://localhost:3000/mcp?'],
  [['example.com'], 'did you mean https://example.com/mcp?'],
  [['ws://x.example/mcp'], 'did you mean http://x.example/mcp?'],
  [['--upstream', 'localhost:3000/mcp'], 'did you mean http://localhost:3000/mcp?'],
  [['--listen', '8080', ADDRESS], 'did you mean http://127.0.0.1:8080/mcp?'],
  [['--listen', ':8080', ADDRESS], 'did you mean http://127.0.0.1:8080/mcp?'],
  [['probe', 'localhost:3000'], 'did you mean http://localhost:3000/mcp?'],
  [['login', 'mcp.example.com/mcp'], 'did you mean https://mcp.example.com/mcp?'],
  [['call', 'weather'], 'mcp-bridge probe https://example.com/mcp lists what a server offers'],
  [['run', 'npx'], 'put the program of the server last'],
  [['sh', 'server', '--listen', 'http://127.0.0.1:1/mcp'], 'before a program write --, as in mcp-bridge -- sh'],
  [['man'], 'unknown command "man"'],
  [['node server.js'], 'write a program without quotes and after --'],
  [['server.py'], 'write -- and the program that runs it before it'],
  [['mcp.yaml'], 'mcp.yaml is YAML, and mcp-bridge reads JSON and TOML'],
  [['--config', '{"mcpServers":{"a":{"url":"canary"}}}'], '--config needs the name of a file, not its text'],
  [['--config', 'https://x.example'], '--config needs a file, not an address'],
  [['--config', '/nonexistent/mcp.json'], 'it does not exist: check the name'],
  [['--config', '/'], 'it is a folder: name the file in it'],
  [['check', 'mcp.json'], 'mcp-bridge check --config mcp.json'],
  [['probe', 'mcp.json'], 'mcp-bridge probe --config mcp.json'],
  [['probe', 'npx', 'x'], 'before a program write --'],
  [['--header', 'Authorization', 'canary', ADDRESS], "--header needs 'Name: value' as one word"],
  [['--log-level', 'verbose', ADDRESS], 'did you mean "debug"?'],
]

t.test('each mistake on the command line names the next step', async (t) => {
  for (const [argv, said] of ARGUMENTS) {
    const found = saidOf(argv)
    t.ok(found.includes(said), argv.join(' '), { found, said })
    t.notMatch(found, /canary/)
  }
})

t.test('flags after -- belong to the program', async (t) => {
  t.match(parseCommand(['--', 'sh', '--listen', 'x'], {}), { kind: 'run' })
})

t.test('recognizes flags of supergateway, mcp-proxy and mcp-remote in each spelling', async (t) => {
  for (const flag of ['logLevel', 'log-level', 'loglevel']) t.match(insteadOf(flag, 'none'), /write --log-level silent/)
  const flags = {
    supergateway: ['stdio', 'sse', 'streamableHttp', 'outputTransport', 'baseUrl', 'ssePath', 'messagePath', 'cors'],
    'mcp-proxy': ['endpoint', 'stateless', 'apiKey', 'sslCa', 'shell', 'tunnel', 'allow-origin', 'sse-port'],
    'mcp-remote': ['allow-http', 'transport', 'debug', 'static-oauth-client-info', 'authorize-param', 'ignore-tool'],
  }
  for (const [program, names] of Object.entries(flags))
    for (const name of names) t.match(insteadOf(name, undefined), new RegExp(`is a flag of .*${program}.*: `), name)
  t.equal(insteadOf('constructor', undefined), undefined)
})

function checkOf(t: Test, content: string | Buffer | object, name = 'mcp.json') {
  const file = join(temporaryFolder(t), name)
  writeFileSync(file, typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content))
  const { code, said } = check(file)
  return { code, said: said.replaceAll(file, name) }
}

t.test('check reports every mistake of a file, and no valid part', async (t) => {
  const { code, said } = checkOf(t, {
    mcpServer: {
      a: { cmd: 'x', args: 'y' },
      b: { url: 'localhost:3000/mcp', timeouts: { call: '30s' } },
      c: { command: 'x', url: 'http://y' },
      d: { command: 'x', env: { A: '${NOPE}', B: '${input:my-key}' } },
      fine: { command: 'x' },
    },
    lisen: 'x',
    log: { level: 'verbose' },
    limits: { calls: 'many' },
    timeouts: { call: '30s' },
    auth: { token: 'canary' },
  })
  t.equal(code, 78)
  const expected = [
    'mcpServer is not an option: did you mean "mcpServers"?',
    'mcpServer.a has to have either "command" (a program) or "url" (an address). It has "cmd": did you mean "command"?',
    'mcpServer.a.args has to be a list (an array), not a string: as in ["-y", "some-server"]',
    'mcpServer.b.url has to be an http:// or https:// address: did you mean http://localhost:3000/mcp?',
    'mcpServer.b.timeouts.call has to be a number, not a string: write 30000, the number of milliseconds',
    'mcpServer.c has "command" (a program) and "url" (an address): remove one of them',
    'mcpServer.d.env.A the environment variable NOPE is not set',
    'mcpServer.d.env.B ${input:my-key} is an input of an editor: write ${MY_KEY} instead',
    'lisen is not an option: did you mean "listen"?',
    'log.level has to be "trace", "debug", "info", "warn", "error" or "silent": did you mean "debug"?',
    'limits.calls has to be a number, not a string',
    'timeouts.call has to be a number, not a string: write 30000, the number of milliseconds',
    'auth.token is not an option: did you mean "tokens"?',
  ]
  for (const one of expected) t.ok(said.includes(one), one, { said })
  t.equal(said.match(/mcp\.json:1:/g)?.length, expected.length, said)
  t.notMatch(said, /canary|fine/)
})

const FILES: [name: string, content: string | Buffer | object, said: string][] = [
  ['YAML', 'mcpServers:\n  a:\n    command: x\n', 'it looks like YAML: convert it'],
  ['TOML', '[mcp_servers.a]\ncommand = "x"\n', 'it looks like TOML: its name has to end in .toml'],
  ['UTF-16', Buffer.from('\ufeff{"mcpServers":{}}', 'utf16le'), 'it is UTF-16: save it as UTF-8'],
  ['UTF-16 without a mark', Buffer.from('{"mcpServers":{}}', 'utf16le'), 'it is UTF-16: save it as UTF-8'],
  ['Latin-1', Buffer.from('{"a":"\xe9"}', 'latin1'), 'it is not UTF-8: save it as UTF-8'],
  ['one server', { command: 'x' }, 'is one server without a name: put it into { "mcpServers"'],
  ['servers alone', { a: { command: 'x' } }, 'has no "mcpServers": put the servers into'],
  ['a list of servers', { mcpServers: [{ command: 'x' }] }, 'an object of servers by name, not a list'],
  ['a text as a server', { mcpServers: { a: 'npx x' } }, 'has to be an object: { "command"'],
  ['an address as a server', { mcpServers: { a: 'http://x/mcp' } }, 'has to be an object: { "url"'],
  [
    'servers within servers',
    { mcpServers: { mcpServers: { a: { command: 'x' } } } },
    'They are in "a": move them out of it',
  ],
  ['a port', { mcpServers: { a: { command: 'x' } }, listen: 3000 }, 'write "http://127.0.0.1:3000/mcp"'],
  [
    'a secret alone',
    { mcpServers: { a: { command: 'x' } }, auth: 'canary' },
    'as in { "tokens": { "<principal>": "${TOKEN}" } }',
  ],
  ['single quotes', `{ "mcpServers": { "a": { "command": 'canary' } } }`, 'a string has to be in double quotes'],
  [
    'a text for a switch',
    { mcpServers: { a: { command: 'x', passEnvironment: 'true' } } },
    'write true without quotes',
  ],
]

t.test('each mistake in a file names the next step, without repeating the value', async (t) => {
  for (const [name, content, said] of FILES) {
    const found = checkOf(t, content)
    t.equal(found.code, 78, name)
    t.ok(found.said.includes(said), name, { found: found.said, said })
    t.notMatch(found.said, /canary/, name)
  }
})

t.test('reports all syntax errors of a text, each with its line', async (t) => {
  const { said } = checkOf(t, `{\n"mcpServers": {\n"a": {"command": 'x'}\n"b": {"command": "y"}\n}\n# hi\n}`)
  t.match(said, /in double quotes at line 3.*\n.*a comma is missing at line 4.*\n.*begin with \/\/ at line 6/)
})

t.test('quotes the reason from the output of npm, not the path of its log', async (t) => {
  const lines = [
    'npm error code E404',
    'npm error 404 Not Found - GET https://registry.example/no-such - Not found',
    'npm error 404',
    "npm error 404  'no-such@*' is not in this registry.",
    'npm error A complete log of this run can be found in: /root/.npm/_logs/x.log',
  ]
  t.match(reasonIn(lines), /is not in this registry/)
})

const FAILURES: [message: string, next: RegExp][] = [
  ['Cannot start nosuch: command not found', /has to be on the PATH of the bridge/],
  ['The server exited with code 3', /only a few environment variables: see "env" and "passEnvironment"\./],
  ['The server exited with code 0, without an error', /prints nothing and waits/],
  ['its address is neither a Streamable HTTP nor an HTTP+SSE endpoint', /most servers are at \/mcp, HTTP\+SSE servers/],
  ['The server answered with HTTP 200 and text/html instead of a message', /most servers are at \/mcp/],
]

t.test('a server that cannot be used gets the next step of docs/troubleshooting.md', async (t) => {
  for (const [message, next] of FAILURES) {
    const shown = cliErrorOf(openingFault(new ChannelError(message), 'x'), { probing: true })
    t.match(inWords(shown), next)
    t.match(inFields(shown)['next'], next)
  }
  const other = cliErrorOf(new Fault('authFailed', 'The server exited with code 3'), {
    probing: false,
    probe: () => 'mcp-bridge probe x',
  })
  t.match(inFields(other)['next'], /^mcp-bridge probe/, 'not a failure of the channel')
})

t.test(
  'a check says that the file of the audit log cannot be written, and refuses it if lines are required',
  async (t) => {
    const folder = temporaryFolder(t)
    const config = join(folder, 'mcp.json')
    const file = join(folder, 'missing', 'audit.jsonl')
    const checkWith = (audit: object, args: string[] = []) => {
      writeFileSync(config, JSON.stringify({ mcpServers: { a: { url: 'https://x.example/mcp' } }, audit }))
      return check(config, { args })
    }
    t.match(checkWith({ file, required: true }), { code: 78, said: /audit\.file.*cannot be written: ENOENT/ })
    t.match(checkWith({ file: folder, required: true }), { code: 78, said: /audit\.file.*cannot be written: EISDIR/ })
    t.match(checkWith({ file }), { code: 0, said: /audit\.file.*cannot be written: ENOENT/ })
    t.match(checkWith({ file: join(folder, 'audit.jsonl'), required: true }), { code: 0 })
    t.match(checkWith({ file, required: true }, ['--offline']), { code: 0 }, 'for another machine')
  },
)
