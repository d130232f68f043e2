/** Arguments: which command they name, which flags it takes, and what is said of those that it does not take. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import t from 'tap'
import { readArguments } from '../../src/command/arguments.js'
import { COMMAND_NAMES, type CommandName, EVERYWHERE, rowOf } from '../../src/command/commands.js'
import { cliErrorOf } from '../../src/command/errors.js'
import { FLAGS, type FlagName, flagOf } from '../../src/command/flags.js'
import { parseCommand } from '../../src/command/parse.js'
import { UsageError } from '../../src/command/usage-error.js'
import { temporaryFolder } from '../support/folder.js'

const flagNames = Object.keys(FLAGS) as FlagName[]
const VALUES: Partial<Record<FlagName, string>> = {
  as: 'curl',
  header: 'a: b',
  'header-env': 'A=B',
  env: 'A=B',
  token: '${T}',
  'client-secret': '${S}',
  'callback-port': '8765',
  'oauth-param': 'a=b',
  'sign-in-wait': '1000',
  ping: '30000',
  workers: '2',
  timeout: 'call=1000',
}
const given = (name: FlagName) =>
  flagOf(name)?.value === undefined ? [`--${name}`] : [`--${name}`, VALUES[name] ?? 'x']
const complaintOf = (argv: readonly string[]) => {
  try {
    parseCommand(argv, {})
    throw new Error('it was taken')
  } catch (error) {
    return cliErrorOf(error, { probing: false })
  }
}
const messageOf = (argv: readonly string[], env = {}) => {
  try {
    parseCommand(argv, env)
    return ''
  } catch (error) {
    return error instanceof UsageError ? error.message : `no UsageError: ${error}`
  }
}

t.test('every command accepts its own flags, and refuses all others by name, command and place', async (t) => {
  for (const command of COMMAND_NAMES.filter((name) => name !== 'help')) {
    const words = command.split(' ')
    for (const name of flagNames.filter((name) => !EVERYWHERE.includes(name))) {
      if (rowOf(command).flags.includes(name))
        t.ok(name in readArguments([...words, ...given(name)], {}).flags, `${command} --${name}`)
      else {
        const message = messageOf([...words, ...given(name)])
        t.match(message, `--${name} is not a flag of `)
        t.match(message, command === 'serve' ? 'mcp-bridge itself (serve)' : `"mcp-bridge ${command}"`)
        t.match(message, /: it is one of ("mcp-bridge \w|mcp-bridge itself)/)
      }
    }
  }
})

t.test('refuses the flag of another command, and names that command', async (t) => {
  t.equal(
    messageOf(['check', '--backup', 'x', '--for', '3d', '--tools', 'y']),
    '--backup is not a flag of "mcp-bridge check": it is one of "mcp-bridge trust pin"',
  )
  t.equal(
    messageOf(['--json', 'https://x/mcp']),
    '--json is not a flag of mcp-bridge itself (serve): it is one of "mcp-bridge probe", "mcp-bridge check" and others',
  )
  t.match(complaintOf(['check', '--backup', 'x']).next, '"mcp-bridge check --help"')
})

t.test('words of a filter may begin with a dash', async (t) => {
  const url = 'http://127.0.0.1:9091/inspect'
  const tails: [argv: string[], target: string | undefined, filter: string, json: boolean][] = [
    [['tail', '-status:ok'], undefined, '-status:ok', false],
    [['--json', 'tail', url, 'tool:book', '-ms>500'], url, 'tool:book -ms>500', true],
    [['tail', '-server:orders', '--json', url, 'echo', '-text'], url, 'echo -server:orders -text', true],
  ]
  for (const [argv, target, filter, json] of tails)
    t.same(parseCommand(argv, {}), { kind: 'tail', target, filter, json, both: false })
  t.match(parseCommand(['tail', '-h'], {}), { kind: 'help', commands: ['tail'] })
  t.match(messageOf(['tail', '--no-such-flag']), /unknown flag --no-such-flag/)
  t.match(messageOf(['discover', '-status:ok']), /--server is not a flag/)
  const id = ['trust', 'key', 'remove', 'acme.example', '-Ab_1']
  t.match(parseCommand(id, {}), { action: { do: 'key remove', id: '-Ab_1' } })
})

t.test('reads an address without http:// as an address, not as a filter', async (t) => {
  for (const address of ['127.0.0.1:9091', 'localhost:9091/inspect#token', '[::1]:9091', 'bridge.example:80'])
    t.equal(
      messageOf(['tail', address]),
      `${JSON.stringify(address)} is not an address: begin it with http://, as in http://${address}`,
    )
  for (const word of ['status:404', 'ms:500', 'id:7', 'v1.2', 'a.b:c']) t.equal(messageOf(['tail', word]), '', word)
})

t.test('every flag belongs to a command', async (t) => {
  for (const name of flagNames.filter((name) => !EVERYWHERE.includes(name)))
    t.ok(
      COMMAND_NAMES.some((command) => rowOf(command).flags.includes(name)),
      name,
    )
})

t.test(
  'reads a word as a command or an address, and as nothing else: only what is after -- is a program',
  async (t) => {
    const folder = temporaryFolder(t)
    for (const name of ['some-server', 'probe', 'probes']) {
      writeFileSync(join(folder, name), '')
      chmodSync(join(folder, name), 0o755)
    }
    mkdirSync(join(folder, 'a-folder'))
    const env = { PATH: ['/nonexistent', folder].join(delimiter) }
    const read = (...argv: string[]) => {
      const { command, words, program, flags } = readArguments(argv, env)
      return { command, words, program, flags: { ...flags } }
    }
    const serve = { command: 'serve', words: [] as string[], program: [] as string[], flags: {} }
    t.same(read('probe'), { ...serve, command: 'probe' })
    t.same(read('https://x/mcp', '--era', 'legacy'), { ...serve, words: ['https://x/mcp'], flags: { era: 'legacy' } })
    t.same(read('stdio:x y'), { ...serve, words: ['stdio:x y'] })
    t.same(read('serve', 'https://x/mcp'), { ...serve, words: ['https://x/mcp'] })
    t.same(read('--era', 'legacy', '--', 'some-server', '-y', '--port', 'x', '--', '--help'), {
      ...serve,
      flags: { era: 'legacy' },
      program: ['some-server', '-y', '--port', 'x', '--', '--help'],
    })
    t.same(read('--', 'anything', '--at-all').program, ['anything', '--at-all'])
    const refused: [argv: string[], said: RegExp][] = [
      [
        ['some-servr'],
        /unknown command "some-servr": a server is an address \(https:\/\/…\), and before a program write --/,
      ],
      [
        ['some-server', '-y'],
        /unknown command "some-server": before a program write --, as in mcp-bridge -- some-server$/,
      ],
      [['--era', 'legacy', join(folder, 'some-server')], /unknown command ".*": before a program write --/],
      [['--cwd', folder, './some-server'], /unknown command "\.\/some-server": before a program write --/],
      [['prob'], /did you mean probe\?$/],
      [['prob', '--version', '--help'], /did you mean probe\?$/],
      [['probes'], /did you mean probe\? To start the program, write -- before it: mcp-bridge -- probes/],
      [['a-folder'], /unknown command "a-folder"/],
      [['prob', 'https://x/mcp'], /did you mean probe\?/],
      [['example.com/mcp'], /"example\.com\/mcp" is not an address: did you mean https:\/\/example\.com\/mcp\?/],
      [['config/mcp.json'], /needs --config: mcp-bridge --config config\/mcp\.json/],
      [['--upstraem', 'some-server'], /unknown flag --upstraem: did you mean --upstream\?/],
    ]
    for (const [argv, said] of refused) t.throws(() => readArguments(argv, env), { message: said })
  },
)

t.test('suggests for a misspelt flag the nearest one of the command, otherwise the nearest of all', async (t) => {
  const cases: [argv: string[], said: string][] = [
    [['discover', '--jsno'], 'unknown flag --jsno: did you mean --json?'],
    [['trust', 'approve', 'x', '--tool', 'y'], 'unknown flag --tool: did you mean --tools?'],
    [['--heder', 'a: b', 'https://x/mcp'], 'unknown flag --heder: did you mean --header?'],
    [['probe', '--offlin', 'https://x/mcp'], 'unknown flag --offlin: did you mean --offline?'],
    [['--elephants'], 'unknown flag --elephants'],
  ]
  for (const [argv, said] of cases) t.equal(messageOf(argv), said)
})

t.test('the id of a key may begin with a dash', async (t) => {
  const { words, flags } = readArguments(['trust', 'key', 'remove', 'acme.test', '-id', '--trust-store', 'x'], {})
  t.same({ words, flags: { ...flags } }, { words: ['acme.test', '-id'], flags: { 'trust-store': 'x' } })
})

t.test('shows the help of the named command despite other mistakes', async (t) => {
  const commands = (...argv: string[]) => {
    const command = parseCommand(argv, {})
    return command.kind === 'help' ? command.commands : command.kind
  }
  t.equal(commands('--help'), undefined)
  t.equal(commands('help'), undefined)
  t.same(commands('check', '--bogus', '-h'), ['check'])
  t.same(commands('trust', 'approve', '--help'), ['trust approve'])
  t.same(commands('help', 'trust', 'approve'), ['trust approve'])
  const all: CommandName[] = COMMAND_NAMES.filter((name) => name.startsWith('trust '))
  t.same(commands('trust', '--help'), all)
  t.same(commands('help', 'trust'), all)
  t.match(messageOf(['help', 'chekc']), /"chekc" is not a command: did you mean check\?/)
  t.match(messageOf(['help', 'trust', 'aprove']), /"trust aprove" is not a command: did you mean trust approve\?/)
})

t.test(
  'what a program is started with is passed on as it is, and the whole environment with --pass-environment',
  async (t) => {
    const server = (argv: readonly string[], env = {}) => {
      const command = parseCommand(argv, env)
      return command.kind === 'run' && Object.values(command.settings.mcpServers)[0]
    }
    t.match(server(['--', 'x', '${HOME}', '$${HOME}', 'a${input:key}']), {
      command: 'x',
      args: ['${HOME}', '$${HOME}', 'a${input:key}'],
      passEnvironment: false,
    })
    t.match(server(['--pass-environment', '--', 'x']), { passEnvironment: true })
    t.match(messageOf(['--pass-environment', 'https://x/mcp']), /--pass-environment is for servers that are programs/)
  },
)

t.test('takes the address and headers of a server from environment variables', async (t) => {
  const env = { URL: 'sse+https://x/mcp?key=1', TOKEN: 'Bearer ${HOME}', HOME: '/home/me' }
  const command = parseCommand(['--upstream', 'env:URL', '--header-env', 'Authorization=TOKEN', '-H', 'X-A: b'], env)
  t.match(command.kind === 'run' && Object.values(command.settings.mcpServers), [
    { url: 'https://x/mcp?key=1', type: 'sse', headers: { Authorization: 'Bearer ${HOME}', 'X-A': 'b' } },
  ])
  t.match(messageOf(['--upstream', 'env:NONE']), /the environment variable NONE, which --upstream names, is not set/)
  t.match(messageOf(['--header-env', 'Authorization', 'https://x/mcp']), /--header-env needs Name=VARIABLE/)
  t.match(messageOf(['--header-env', 'A=b c', 'https://x/mcp']), /--header-env needs Name=VARIABLE/)
})
