/** The commands that the program advises can be run as they are printed. */
import { resolve } from 'node:path'
import t from 'tap'
import { COMMANDS } from '../../src/cli/command-table.js'
import { parseCommand } from '../../src/cli/parse.js'
import type { Program } from '../../src/cli/program.js'
import { signInFor } from '../../src/cli/sign-in.js'
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

/** Words as a POSIX shell reads them. */
function wordsOf(line = ''): string[] {
  return [...line.matchAll(/(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"|\\(.)/g, '$1$2$3'),
  )
}
