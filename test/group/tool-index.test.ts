/** Which words find which tools. */
import t from 'tap'
import { indexOf, MAX_INDEXED_TOOLS } from '../../src/group/tool-index.js'

const TOOLS = [
  { name: 'github__search_code', description: 'Searches the code of all repositories' },
  { name: 'github__listPullRequests', title: 'Pull requests', description: 'Open ones, newest first' },
  { name: 'github__create_issue', description: 'Opens an issue', inputSchema: { properties: { assignee: {} } } },
  { name: 'files__read_file', description: 'Reads a file from the disk' },
  { name: 'files__write_file', description: 'Writes a file, and creates it if needed' },
  { name: 'weather__forecast', description: 'Weather of the next days' },
  { name: 'wetter__vorhersage', description: 'Überblick über das Wetter der nächsten Tage' },
  { name: 'tianqi__get', description: '查询未来几天的天气预报' },
  { name: 'x__no_text' },
]
const names = async (query: string, limit = 3, tools: object[] = TOOLS) => {
  const find = await indexOf(tools.map((tool) => JSON.stringify(tool)))
  return find(query, limit).map((at) => (tools[at] as { name: string }).name)
}

const cases: [query: string, first: string][] = [
  ['search code', 'github__search_code'],
  ['SEARCH', 'github__search_code'],
  ['pull requests', 'github__listPullRequests'],
  ['list pull', 'github__listPullRequests'],
  ['issues', 'github__create_issue'],
  ['assignee', 'github__create_issue'],
  ['read a file', 'files__read_file'],
  ['write a file', 'files__write_file'],
  ['files__read_file', 'files__read_file'],
  [' x__no_text ', 'x__no_text'],
  ['no_text', 'x__no_text'],
  ['forcast', 'weather__forecast'],
  ['what is the weather tomorrow?', 'weather__forecast'],
  ['überblick', 'wetter__vorhersage'],
  ['ÜBERBLICK', 'wetter__vorhersage'],
  ['天气', 'tianqi__get'],
]
t.test('finds a tool by words of its name, title, description and arguments', async (t) => {
  for (const [query, first] of cases) t.equal((await names(query))[0], first, query)
})

t.test('bounds the results, and finds nothing for words that no tool has', async (t) => {
  t.equal((await names('file', 1)).length, 1)
  t.equal((await names('github', 50)).length, 3)
  for (const query of ['', ' ', '?!', 'zzzzzz', '__proto__', 'constructor', 'toString'])
    t.same(await names(query), [], query)
  t.same(await names('x', 3, []), [])
})

t.test('ignores members of a definition that are not text', async (t) => {
  const odd = [
    { name: 'odd', title: 7, description: ['a'], inputSchema: { properties: [] } },
    { name: 'strange', description: null, inputSchema: 'x' },
    { name: '__proto__', inputSchema: { properties: { ['__proto__']: 1, constructor: 1 } } },
  ]
  t.same(await names('odd', 3, odd), ['odd'])
  t.same(await names('constructor', 3, odd), ['__proto__'])
})

t.test('truncates long queries and texts, and indexes only the first tools', async (t) => {
  const long = [{ name: 'long', description: `${'word '.repeat(100_000)}last` }, { name: 'short' }]
  t.same(await names('last', 3, long), [])
  const others = Array.from({ length: 32 }, (_, at) => `q${'abcdef'[at % 6]}${'ghijkl'[Math.floor(at / 6)]}`)
  t.same(await names([...others.slice(0, 31), 'short'].join(' '), 3, long), ['short'])
  t.same(await names([...others, 'short'].join(' '), 3, long), [])
  const many = Array.from({ length: MAX_INDEXED_TOOLS + 1 }, (_, at) => ({ name: `tool${at}q` }))
  t.same(await names(`tool${MAX_INDEXED_TOOLS - 1}q`, 1, many), [`tool${MAX_INDEXED_TOOLS - 1}q`])
  t.not((await names(`tool${MAX_INDEXED_TOOLS}q`, 1, many))[0], `tool${MAX_INDEXED_TOOLS}q`)
})
