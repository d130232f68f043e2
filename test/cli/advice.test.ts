/** The commands that the program advises can be run as they are printed. */
import { resolve } from 'node:path'
import t from 'tap'
import { COMMANDS } from '../../src/command/command-table.js'
import { cliErrorOf } from '../../src/command/errors.js'
import { adviceToRun, configOf, loginWords, probeAgain } from '../../src/command/own-command.js'
import { parseCommand } from '../../src/command/parse.js'
import type { Program } from '../../src/command/program.js'
import { signInFor } from '../../src/command/sign-in.js'
import { judge } from '../../src/services/discovery/trust/judge.js'
import { withFlags } from '../../src/services/discovery/trust/remedy.js'
import { run } from '../support/cli.js'
import { temporaryFile } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'

t.test('the examples in the help of each command are accepted', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { github: { url: 'https://x.example/mcp' } } })
  const env = { TOKEN: 'x'.repeat(32), API_KEY: 'x', PATH: process.env['PATH'] }
  let seen = 0
  for (const { examples } of Object.values(COMMANDS))
    for (const [, line] of examples) {
      const [program, ...words] = wordsOf(line.replaceAll('mcp.json', file))
      if (program !== 'mcp-bridge') continue
      t.doesNotThrow(() => parseCommand(words, env), line)
      seen++
    }
  t.ok(seen > 30, `${seen} commands`)
})

t.test('the advice to sign in names the file, and can be run from another folder', async (t) => {
  const file = temporaryFile(t, "a file's name.json", { mcpServers: { notes: { url: 'https://x.example/mcp' } } })
  const loginIn = (...argv: string[]) => {
    const program = { argv, env: {}, platform: 'linux', uid: 1, errors: {}, output: {} } as unknown as Program
    return signInFor(program, undefined, { log: { warn() {} } as never }).loginName?.(
      'notes',
      'https://x.example/mcp?key=canary',
    )
  }
  const named = loginIn('--config', file)
  t.match(parseCommand(['login', ...wordsOf(named)], {}), { kind: 'login', settings: { mcpServers: { notes: {} } } })
  t.ok(named?.includes(resolve(file).replaceAll("'", "'\\''")))
  t.equal(loginIn('https://x.example/mcp?key=canary'), 'https://x.example/mcp')
  t.equal(loginIn('--', 'node', 'x.js', '--config', 'y'), 'https://x.example/mcp', 'a flag of the program is not ours')
  t.match(
    loginIn(`--config=${file}`, '--token-store', '/srv/tokens'),
    /^notes --config .* --token-store \/srv\/tokens$/,
  )
})

t.test('a command that the source advises has no placeholder, and is accepted as it is written', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { notes: { url: 'https://x.example/mcp' } } })
  const env = { TOKEN: 'x'.repeat(32), PATH: process.env['PATH'] }
  // What people may have written, and what is said instead.
  const words = [
    'install',
    'uninstall',
    'find',
    'signin',
    'approve',
    'pin',
    'list',
    'serve-all',
    'call',
    'validate',
    'logs',
    'http',
  ]
  const wrong = [
    ...words.map((word) => [word]),
    ...words.map((word) => [word, 'x']),
    ['replay'],
    ['discover'],
    ['size'],
    ['probe'],
    ['probe', 'npx', '-y', 'x'],
    ['check', file],
    ['probe', 'other.json'],
    ['trust', 'approve'],
    ['trust', 'revoke'],
    ['trust', 'pin'],
    ['trust', 'unpin'],
    ['trust', 'key', 'add', 'acme.example'],
    ['trust', 'key', 'remove', 'acme.example'],
    ['--stdio', 'npx -y some-server'],
    ['--sse', 'https://x.example/sse'],
    ['--device-code', 'https://x.example/mcp'],
  ]
  const advised = wrong.flatMap((argv) => {
    try {
      parseCommand(argv, env)
      return []
    } catch (error) {
      const { why, next = '' } = cliErrorOf(error, { probing: false })
      return [...commandsIn(why), ...commandsIn(next)].map((line) => [argv.join(' '), line] as const)
    }
  })
  for (const [argv, line] of advised) {
    t.notMatch(line, /<\w+>/, `${argv}: ${line}`)
    const [, ...own] = wordsOf(line.replace(/(?<=\s)(?:mcp|other)\.json/, file))
    t.doesNotThrow(() => parseCommand(own, env), `${argv}: ${line}`)
  }
  t.ok(advised.length > 25, `${advised.length} commands`)
})

t.test('a command has the flags of this program that it needs', async (t) => {
  const file = temporaryFile(t, "a file's.json", {
    mcpServers: { notes: { url: 'https://x.example/mcp' }, '-x': { url: 'https://y.example/mcp' } },
  })
  const started = {
    argv: ['--config', file, '--trust-store', '/srv/trust.json', '--admin', 'http://127.0.0.1:1'],
    env: {},
  }
  const taken = (line: string) => parseCommand(wordsOf(line).slice(1), {})
  for (const [name, url] of [
    ['notes', 'https://x.example/mcp'],
    ['-x', 'https://y.example/mcp'],
  ] as const)
    t.match(taken(`mcp-bridge login ${loginWords(started, name, url, true)}`), {
      kind: 'login',
      settings: { mcpServers: { [name]: { url } } },
    })
  const found = loginWords(started, 'found', 'https://z.example/mcp?key=canary', false)
  t.match(taken(`mcp-bridge login ${found}`), { kind: 'login' }, 'what was found is not in the file')
  t.notMatch(found, /canary|--config/)
  t.match(taken(adviceToRun(started, 'trust list')), { kind: 'trust', trustStore: '/srv/trust.json' })
  t.equal(configOf(started), resolve(file))
  const alone = { argv: ['--client-id', 'abc', '--scope', 'a b', '-H', 'X: canary', 'https://x.example/mcp'], env: {} }
  const words = loginWords(alone, 'x.example', 'https://x.example/mcp', false)
  t.equal(words, "https://x.example/mcp --client-id abc --scope 'a b'")
  t.match(taken(`mcp-bridge login ${words}`), { kind: 'login' })
  t.equal(
    probeAgain({ argv: ['login', 'https://x.example/mcp?key=canary'], env: {} }),
    'mcp-bridge probe https://x.example/mcp',
  )
  t.equal(probeAgain({ argv: ['--', 'node', 'x.js', '--key', 'canary'], env: {} }), undefined)
})

t.test('the advice to trust a server names where it is, and the file of the bridge', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: {}, discover: ['https://mcp.acme.example'] })
  const url = 'https://mcp.acme.example/mcp'
  const settings = { discoverAllow: [], discoverLoopback: false, trustStore: undefined }
  const facts = {
    name: 'weather',
    kind: 'http',
    endpoint: url,
    origin: 'https://mcp.acme.example',
    configured: false,
  } as const
  const trust = {
    refusal: undefined,
    keysOf: () => [],
    pinsOf: () => undefined,
    approvalOf: () => undefined,
    seenOf: () => undefined,
  }
  for (const [kind, given] of [
    ['trust approve', facts],
    ['trust pin', { ...facts, pin: { pins: ['x'], matched: false } }],
  ] as const) {
    const verdict = judge(given, trust as never, 0)
    const { remedy } = withFlags(verdict, { settings, config: file, candidate: { endpoint: { kind: 'http', url } } })
    t.match(remedy, new RegExp(`^mcp-bridge ${kind} https://mcp\\.acme\\.example\\S* --config `))
    t.match(parseCommand(wordsOf(remedy).slice(1), {}), { kind: 'trust', action: { server: /^https:\/\/mcp/ } })
  }
})

t.test(
  'an address with a mistake in its scheme is answered with the one that was meant, by every command',
  async (t) => {
    for (const command of ['probe', 'login', 'status', 'tail'])
      for (const word of ['http:/x', 'https:x', 'htp://x', 'localhost:3000'])
        t.throws(
          () => parseCommand([command, word], {}),
          {
            message:
              /is not an address: (?:did you mean|begin it with http:\/\/, as in) https?:\/\/(?:x|localhost:3000)/,
          },
          `${command} ${word}`,
        )
    t.doesNotThrow(() => parseCommand(['tail', 'http', 'tool:x'], {}), 'a filter of tail is no address')
  },
)

t.test('probe, replay and login take the name of a server of a file in the same way', async (t) => {
  const { server } = legacyStdio(t)
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { notes: server, other: server } })
  t.match(parseCommand(['probe', 'notes', '--config', file], {}), { settings: { mcpServers: { notes: {} } } })
  t.throws(() => parseCommand(['probe', 'nots', '--config', file], {}), {
    message: /did you mean "notes"\? It has notes, other/,
  })
  t.throws(() => parseCommand(['probe', 'notes'], {}), { message: /"notes" is not an address/ })
  t.throws(() => parseCommand(['probe', 'notes', '--server', 'other', '--config', file], {}), {
    message: /cannot be combined/,
  })
})

t.test('check --json says what is in a file, or what is wrong with it', async (t) => {
  const { server } = legacyStdio(t)
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { a: server, b: { ...server, tools: ['x'] } } })
  const well = await run(t, ['check', '--config', file, '--json'])
  t.equal(well.code, 0)
  t.match(JSON.parse(well.stdout), {
    valid: true,
    file,
    servers: ['a', 'b'],
    groups: [{ name: 'all', path: '/mcp', prefixed: true, members: [{ server: 'a', prefix: 'a' }, { server: 'b' }] }],
    warnings: [],
    chosen: { b: 'tools x' },
  })
  const [, probing = ''] =
    /tokens of a model that takes: (.*)$/m.exec((await run(t, ['check', '--config', file])).stdout) ?? []
  t.match(
    parseCommand(wordsOf(probing).slice(1), {}),
    { kind: 'probe' },
    'no server is asked, so it says what asks them',
  )
  const wrong = temporaryFile(t, 'mcp.json', { mcpServers: { a: { url: 'http:/x' } }, audit: true })
  const said = await run(t, ['check', '--config', wrong, '--json'])
  t.equal(said.code, 78)
  t.equal(said.stderr, '')
  t.match(JSON.parse(said.stdout), {
    valid: false,
    issues: [
      { path: 'mcpServers.a.url', message: /did you mean http:\/\/x\?/, at: /mcp\.json:\d+:\d+/ },
      { path: 'audit' },
    ],
  })
})

/** The commands in a message: up to the end of the sentence, or the words that are no part of one. */
function commandsIn(text: string): string[] {
  return [
    ...text.matchAll(
      /mcp-bridge (?!itself|does\b|has\b|serves\b|always|reads\b|stops\b|negotiates|detects|tries\b|and\b|nor\b|knows\b|as a)([^\n;]+)/g,
    ),
  ].map(([line]) =>
    line
      .replace(/ (?:lists|puts|takes the|finds|follows|serves|shows|catches|prints|for help)\b.*$/, '')
      .replace(/(?:[.:,]? (?:If|or|which|with|in|and|a)\b.*|[,."]+)$/, '')
      .replace(/["]\s*for help.*$/, '')
      .replace(/"$/, ''),
  )
}

/** Words as a POSIX shell reads them. */
function wordsOf(line = ''): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
  )
}
