/** A token of callers on the command line: in a variable or in a file, never in the arguments. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { cliErrorOf, inWords } from '../../src/command/errors.js'
import { parseCommand } from '../../src/command/parse.js'
import { says, startProgram } from '../support/cli.js'
import { temporaryFile } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'

const SECRET = 'canary-of-32-characters-and-more-x'
const EVERYWHERE = ['--listen', 'http://0.0.0.0:8080/mcp', 'http://x.example/mcp']

const settingsOf = (argv: readonly string[], env = {}) => {
  const command = parseCommand(argv, env)
  return command.kind === 'run' ? command.settings.auth : undefined
}
const saidOf = (argv: readonly string[], env = {}) => {
  try {
    parseCommand(argv, env)
    return ''
  } catch (error) {
    return inWords(cliErrorOf(error, { probing: false }))
  }
}

t.test(
  '--token names a variable and --token-file a file, and one of them is enough to listen everywhere',
  async (t) => {
    const file = temporaryFile(t, 'token', `${SECRET}\n`)
    const expected = { tokens: { client: SECRET } }
    t.match(settingsOf(['--token', '${TOKEN}', ...EVERYWHERE], { TOKEN: SECRET }), expected)
    t.match(settingsOf(['--token', `\${file:${file}}`, ...EVERYWHERE]), expected)
    t.match(settingsOf(['--token-file', file, ...EVERYWHERE]), expected)
    const config = temporaryFile(t, 'mcp.json', {
      mcpServers: { a: { command: 'x' } },
      auth: { tokens: { alice: `${SECRET}-2` } },
    })
    t.match(settingsOf(['--config', config, '--token', '${TOKEN}'], { TOKEN: SECRET }), {
      tokens: { client: SECRET, alice: `${SECRET}-2` },
    })
  },
)

t.test('errors about a token do not contain the token', async (t) => {
  const cases: [argv: string[], said: RegExp, env?: object][] = [
    [['--token', SECRET], /--token needs a variable, as in --token '\$\{TOKEN\}' with single quotes, or --token-file/],
    [['--token', '${TOKEN}'], /--token the environment variable TOKEN is not set/],
    [['--token', '${TOKEN}'], /--token has to be 16 or more visible ASCII characters/, { TOKEN: 'canary' }],
    [['--token-file', '/nonexistent'], /--token-file cannot read \/nonexistent/],
    [['--token', '${TOKEN}', '--token-file', '/x'], /--token and --token-file cannot be combined: give one of them/],
    [[], /require a token with --token '\$\{TOKEN\}' or "auth\.tokens"/],
  ]
  for (const [argv, said, env] of cases) {
    const found = saidOf([...argv, ...EVERYWHERE], env)
    t.match(found, said)
    t.notMatch(found, /canary/)
  }
})

t.test('callers need the token', async (t) => {
  const { command, args } = legacyStdio(t).server
  const flags = ['--listen', 'http://127.0.0.1:0/mcp', '--token', '${TOKEN_OF_TEST}', '--log-format', 'json']
  const program = startProgram(t, [...flags, '--', command, ...args], { TOKEN_OF_TEST: SECRET })
  const [, url = ''] = await says(program, /"url":"([^"]+)"/)
  t.equal((await call(url, 'tools/list')).status, 401)
  const headers = { authorization: `Bearer ${SECRET}` }
  t.equal((await call(url, 'tools/list', {}, { headers })).status, 200)
  t.notMatch(program.stderr(), /canary/)
})

t.test('samples for Docker require a token', async (t) => {
  for (const name of ['README.md', 'docs/docker.md']) {
    const text = readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
    const samples = [...text.matchAll(/^```\w*\n(.*?)^```$/gms)].map(([, sample = '']) => sample)
    const open = samples.filter((sample) => sample.includes('http://0.0.0.0:8080'))
    t.ok(open.length > 0)
    for (const sample of open) {
      t.match(sample, /--token|"auth"|--config/)
      t.notMatch(sample, /--allow-unauthenticated/)
    }
  }
})
