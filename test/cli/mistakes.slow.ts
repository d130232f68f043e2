/** Mistakes on the command line, as the program answers them. */
import t from 'tap'
import { run } from '../support/cli.js'

const wrong: [name: string, args: string[], code: number, said: RegExp][] = [
  ['an unknown flag', ['--upstraem', 'x'], 2, /unknown flag --upstraem: did you mean --upstream\?[\s\S]*--help/],
  ['an unknown flag that is near to nothing', ['--elephants'], 2, /unknown flag --elephants$/m],
  ['an unknown short flag', ['-Z'], 2, /unknown flag -Z$/m],
  ['nothing', [], 2, /no server: give an address/],
  ['a flag without its value', ['--upstream'], 2, /--upstream needs a value: --upstream <server>/],
  ['a flag in place of a value', ['--era', '--listen', 'x'], 2, /--era needs a value.*write --era=--listen/],
  ['a switch with a value', ['--publish=yes'], 2, /--publish has no value: leave out "=yes"/],
  ['a command that does not exist', ['bridgify', '--upstream', 'x'], 2, /unknown command "bridgify"/],
  ['a misspelt command', ['prob', 'https://x/mcp'], 2, /unknown command "prob": did you mean probe\?/],
  [
    'a misspelt command of two words',
    ['trust', 'aprove', 'x'],
    2,
    /"trust aprove" is not a command: did you mean trust app/,
  ],
  ['a file without --config', ['mcp.json'], 2, /a configuration file needs --config: mcp-bridge --config mcp\.json/],
  ['a server that is none', ['--upstream', 'ftp://x'], 78, /"ftp:\/\/x" is not a server: give http/],
  ['an empty command', ['--upstream', 'stdio:'], 78, /stdio: needs a command/],
  [
    'two servers',
    ['--upstream', 'http://x/mcp', '--', 'cmd'],
    2,
    /--upstream and a command cannot be combined: give one of them/,
  ],
  ['two addresses', ['http://x/mcp', 'http://y/mcp'], 2, /serve takes .*, and there is "http:\/\/y\/mcp" more/],
  ['a header for a program', ['-H', 'a: b', '--', 'cmd'], 2, /--header is for servers with an address/],
  ['a variable for an address', ['-e', 'A=b', '-u', 'http://x/mcp'], 2, /--env is for servers that are programs/],
  ['a header without colon', ['-H', 'secret-token', '-u', 'http://x/mcp'], 2, /--header needs 'Name: value'/],
  ['an unknown era', ['--era', 'old', '-u', 'http://x/mcp'], 78, /--era .*auto/],
  [
    'a place to listen that is none',
    ['--listen', 'ftp://x', '-u', 'http://x/mcp'],
    78,
    /--listen "ftp:\/\/x" has to be stdio, unix:/,
  ],
  ['listening to everybody', ['--listen', 'http://0.0.0.0:1/mcp', '-u', 'http://x/mcp'], 78, /--allow-unauthenticated/],
  [
    'a variable that is not set',
    ['-H', 'Authorization: Bearer ${NOT_SET_ANYWHERE}', '-u', 'http://x/mcp'],
    78,
    /--header Authorization the environment variable NOT_SET_ANYWHERE is not set/,
  ],
  ['a file that is not there', ['--config', '/nonexistent.json'], 78, /cannot read the file \/nonexistent\.json/],
  ['check without a file', ['check'], 2, /check needs --config/],
  ['11.23 probe without a server', ['probe'], 2, /probe needs a server: mcp-bridge probe https:.*stdio:"command args"/],
  [
    'probe with a command that is not quoted',
    ['probe', 'npx', 'x'],
    2,
    /"npx" is not an address: before a program write --/,
  ],
]

t.test('a mistake on the command line is one sentence and a next step, without a stack trace', async (t) => {
  await Promise.all(
    wrong.map(async ([name, args, code, said]) => {
      const ended = await run(t, ['--log-format', 'pretty', ...args])
      t.equal(ended.code, code, name)
      t.match(ended.stderr, said, name)
      t.notMatch(ended.stderr, /^\s+at /m, name)
      t.equal(ended.stdout, '', name)
    }),
  )
})
