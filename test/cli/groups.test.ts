/** Groups on the command line: which one is served, and what `check` and `probe` say of them. */
import t from 'tap'
import { parseCommand } from '../../src/command/parse.js'
import { groupsOf, type Settings } from '../../src/config/settings.js'
import { check } from '../support/check.js'
import { run, says, startProgram } from '../support/cli.js'
import { until } from '../support/eventually.js'
import { temporaryFile } from '../support/folder.js'
import { INTRICATE } from '../support/intricate.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { envelope } from '../support/modern.js'
import { modernStdio } from '../support/modern-stdio.js'

const server = (name: string) => ({ url: `http://${name}.example/mcp` })
const SERVERS = { a: server('a'), b: server('b'), c: server('c') }
const GROUPS = { team: { servers: ['b', 'a'] }, rest: { servers: ['c', 'a'], prefix: 'never' } }

function served(file: string, ...args: string[]): { servers: string[]; groups: Record<string, string[]> } {
  const command = parseCommand(['--config', file, ...args], {}) as { settings: Settings }
  const groups = [...groupsOf(command.settings)].map(([name, { members }]) => [
    name,
    members.map(({ server }) => server),
  ])
  return { servers: Object.keys(command.settings.mcpServers), groups: Object.fromEntries(groups) }
}

t.test('--group selects a group and its servers, and --server reduces groups to the selected servers', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups: GROUPS })
  t.same(served(file, '--group', 'team'), { servers: ['a', 'b'], groups: { team: ['b', 'a'] } })
  t.same(served(file, '--server', 'a', '--server', 'b'), {
    servers: ['a', 'b'],
    groups: { team: ['b', 'a'], rest: ['a'] },
  })
  t.same(served(file, '--server', 'a'), { servers: ['a'], groups: {} }, 'one server by itself')
  const plain = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS })
  t.same(served(plain, '--group', 'all'), { servers: ['a', 'b', 'c'], groups: { all: ['a', 'b', 'c'] } })
  t.same(served(plain, '--server', 'a', '--server', 'c'), { servers: ['a', 'c'], groups: { all: ['a', 'c'] } })
  const off = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups: false })
  t.same(served(off), { servers: ['a', 'b', 'c'], groups: {} })
})

t.test('serve with the name of a server of the file says how to choose it', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS })
  const serve = (...args: string[]) => parseCommand(['serve', ...args, '--config', file], {})
  t.throws(() => serve('a'), { message: /"a" is no address: to serve one server of the file, give --server a/ })
  t.match(serve('--server', 'a'), { settings: { mcpServers: { a: SERVERS.a } } })
})

t.test('on stdio, serves one group or one server, and says how to select it', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups: GROUPS })
  t.match(check(file, { args: ['--listen', 'stdio'] }), { code: 78, said: /team, rest.*choose it with --group <name>/ })
  const off = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups: false })
  t.match(check(off, { args: ['--listen', 'stdio'] }), { code: 78, said: /3 servers and no group.*--server <name>/ })
  t.same(served(file, '--listen', 'stdio', '--group', 'rest'), { servers: ['a', 'c'], groups: { rest: ['c', 'a'] } })
  t.same(served(file, '--listen', 'stdio', '--server', 'c'), { servers: ['c'], groups: {} })
})

const WRONG: readonly (readonly [what: string, args: string[], said: RegExp])[] = [
  ['a misspelt group', ['--group', 'taem'], /no group "taem": did you mean "team"\? It has team, rest/],
  ['an unknown server', ['--server', 'zz'], /no server "zz": it has a, b, c/],
  ['a list of servers in one word', ['--server', 'a,c'], /no server "a,c": write --server a --server c/],
  ['an unknown group', ['--group', 'x'], /no group "x": it has team, rest/],
  [
    'a group and a server',
    ['--group', 'team', '--server', 'a'],
    /--group and --server cannot be combined: give one of them/,
  ],
]
for (const [what, args, said] of WRONG)
  t.test(`${what} is refused`, async (t) => {
    const file = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups: GROUPS })
    t.match(check(file, { args }), { code: 2, said })
  })

t.test('refuses --group without a file', async (t) => {
  t.throws(() => parseCommand(['https://a.example/mcp', '--group', 'x'], {}), /--group is for .* --config <file>/)
})

t.test('check lists the groups with their paths and prefixes', async (t) => {
  const groups = { ...GROUPS, long: { prefixes: { a: 'alpha' }, path: '/long' } }
  const file = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS, groups })
  const { said } = check(file)
  t.match(said, '  team at /team/mcp: b__…, a__…\n')
  t.match(said, '  rest at /rest/mcp: c, a without prefixes; of equal names, the first one counts\n')
  t.match(said, '  long at /long: alpha__… (a), b__…, c__…\n')
  const plain = temporaryFile(t, 'mcp.json', { mcpServers: SERVERS })
  t.match(check(plain).said, '  all at /mcp: a__…, b__…, c__…\n')
  t.match(check(plain, { args: ['--listen', 'stdio'] }).said, '  all: a__…, b__…, c__…\n')
  t.match(check(plain, { args: ['--offline'] }).said, '  all at /mcp: ')
})

t.test('check refuses servers with one prefix, and names both', async (t) => {
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { 'a.b': server('a'), a_b: server('b') } })
  t.match(check(file), { code: 78, said: /a\.b and a_b would both have the prefix "a-b".*"groups" to false/ })
})

t.test(
  'probe shows what clients of a group see: names, those left out or too long, and how large the list is',
  async (t) => {
    const [one, two] = [legacyStdio(t).server, modernStdio(t).server]
    const mcpServers = { one, two, dead: { url: 'http://127.0.0.1:9/mcp' } }
    const groups = {
      team: { prefixes: { one: 'a-prefix-that-is-too-long-for-it' }, servers: ['one', 'two'] },
      'a-group-with-quite-a-long-name-in-its-clients': { prefix: 'never', servers: ['two', 'one'] },
    }
    const file = temporaryFile(t, 'mcp.json', { mcpServers, groups })
    const { code, stdout } = await run(t, ['probe', '--config', file, '--json'])
    t.equal(code, 1, 'a server could not be reached')
    const found = JSON.parse(stdout)
    t.match(found.servers, { one: { era: 'legacy' }, two: { era: 'modern' }, dead: { error: /Connection refused/ } })
    const { team, ...others } = found.groups
    t.match(team, { servers: ['one', 'two'], unavailable: [], leftOut: [], tooLong: [] })
    t.ok(team.tools.includes('two__echo') && team.tools.includes('a-prefix-that-is-too-long-for-it__echo'))
    t.ok(team.toolBytes > 1_000)
    t.same(team.prompts, ['a-prefix-that-is-too-long-for-it__greet', 'two__greet', 'two__ask'])
    const [bare] = Object.values(others) as [{ leftOut: object[]; tooLong: string[]; tools: string[] }]
    t.match(bare.leftOut, [{ server: 'one', name: 'echo' }])
    t.equal(bare.tools.filter((name) => name === 'echo').length, 1)
    t.ok(bare.tooLong.includes('badly-mirrored'))

    const inWords = await run(t, ['probe', '--config', file])
    t.match(inWords.stdout, /\ndead\n {2}unavailable: .*Connection refused/)
    t.match(inWords.stdout, /left out {3}echo of one: an earlier server/)
    t.match(inWords.stdout, /too long {3}badly-mirrored: .* mcp__a-group-with/)
    t.match(inWords.stdout, /group team\n {2}servers {4}one, two\n {2}lists {6}\d+ tools \([\d,]+ bytes\), 3 prompts/)
  },
)

t.test('probe shows how many tools of a group are listed, and how many are searched', async (t) => {
  const [one, two] = [legacyStdio(t).server, modernStdio(t).server]
  const groups = { team: { search: { always: ['one__echo'] } } }
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { one: { ...one, tools: ['e*'] }, two }, groups })
  const { team } = JSON.parse((await run(t, ['probe', '--config', file, '--json'])).stdout).groups
  t.same(team.tools, ['search_tools', 'call_tool', 'one__echo'])
  t.same(team.searched.tools.slice(0, 1), ['one__echo'])
  t.ok(team.searched.tools.includes('two__act'))
  t.notOk(team.searched.tools.includes('one__act'), 'what is hidden is not found')
  t.ok(team.searched.toolBytes > team.toolBytes)
  const { stdout } = await run(t, ['probe', '--config', file])
  t.match(
    stdout,
    /lists {6}3 tools \([\d,]+ bytes\), .*\n {2}searches {3}\d+ tools \([\d,]+ bytes\)\n.* search_tools\n/s,
  )
  t.match(stdout, '    two__act\n')
})

t.test('announces the path of the default group, and serves it on stdio', async (t) => {
  const [one, two] = [legacyStdio(t).server, modernStdio(t).server]
  const file = temporaryFile(t, 'mcp.json', { mcpServers: { one, two } })
  const serving = startProgram(t, ['--config', file, '--listen', 'http://127.0.0.1:0/mcp', '--log-format', 'json'])
  const [line] = await says(serving, /.*"event":"listening".*/)
  t.match(JSON.parse(line), { group: 'all', url: /\/mcp$/, try: /curl/ })

  const piped = startProgram(t, ['--config', file, '--listen', 'stdio'])
  const params = { name: 'one__echo', arguments: { a: 1 }, _meta: envelope() }
  piped.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`)
  await until(() => piped.stdout() !== '', 'an answer')
  t.match(JSON.parse(piped.stdout()), { id: 1, result: { content: [{ text: '{"a":1}' }] } })
})

t.test('probe says what a group with portable schemas makes of the tools of its servers', async (t) => {
  const mcpServers = { in: INTRICATE, out: INTRICATE }
  const groups = { team: { servers: ['in'], prefix: 'always', schemas: { portable: ['gemini*'] } } }
  const file = temporaryFile(t, 'mcp.json', { mcpServers, groups })
  const { servers } = JSON.parse((await run(t, ['probe', '--config', file, '--json'])).stdout)
  t.match(servers.in.simplified, [{ tool: 'tree' }, { tool: 'find' }, { tool: 'files.read/all' }, { tool: 'lost' }])
  t.notMatch(servers.in.simplified, [{}, {}, { shown: String }], 'names are those of the group')
  t.equal(servers.out.simplified, undefined)
})
