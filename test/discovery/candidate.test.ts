import t from 'tap'
import { httpEndpoint, stdioEndpoint } from '../../src/config/endpoint.js'
import { pathName } from '../../src/config/formats/served-names.js'
import {
  CANDIDATES,
  type Finding,
  isPlain,
  merge,
  type Source,
  transportNamed,
} from '../../src/services/discovery/candidate.js'

const at = (source: Source, name: string, url: string, more: Partial<Finding> = {}): Finding => ({
  name,
  endpoint: httpEndpoint(url),
  source,
  from: `${source} of the test`,
  entry: { url, said: source },
  runnable: true,
  ...more,
})
const program = (source: Source, name: string, command: string, runnable: boolean): Finding => ({
  name,
  endpoint: stdioEndpoint(command),
  source,
  from: `${source} of the test`,
  entry: { command, said: source },
  runnable,
})

t.test('the first source describes an endpoint that several sources name', async (t) => {
  const spellings = [
    'https://mcp.example/mcp',
    'https://MCP.example:443/mcp/',
    'https://mcp.example/a/../mcp',
    'https://mcp.example./mcp',
  ]
  const [config, registry, wellKnown, address] = [
    at('config', 'mine', spellings[0] as string, { transport: 'sse' }),
    at('registry', 'weather', spellings[1] as string, { version: '1.0.0', transport: 'http' }),
    at('well-known', 'forecast', spellings[2] as string, {
      version: '2.0.0',
      manifest: { url: 'https://mcp.example/m' },
    }),
    at('address', 'mcp.example', spellings[3] as string),
  ]
  const all = [address, wellKnown, registry, config] as Finding[]
  const cases: [given: Finding[], wins: Finding, others: Finding[]][] = [
    [all, config as Finding, [registry, wellKnown, address] as Finding[]],
    [all.slice(0, 3), registry as Finding, [wellKnown, address] as Finding[]],
    [all.slice(0, 2), wellKnown as Finding, [address as Finding]],
    [all.slice(0, 1), address as Finding, []],
  ]
  for (const [given, wins, others] of cases) {
    for (const lists of [given.map((one) => [one]), [given], [given.toReversed()], [[], given]]) {
      const { candidates, leftOut } = merge(lists)
      t.same(candidates, [{ ...wins, alsoFrom: others }], wins.source)
      t.equal(leftOut, 0)
    }
  }
})

t.test('the first candidate of a source wins', async (t) => {
  const first = at('config', 'first', 'https://mcp.example/')
  const second = at('config', 'second', 'https://mcp.example')
  t.same(merge([[first], [second]]).candidates, [{ ...first, alsoFrom: [second] }])
})

t.test('candidates are in the order of their sources', async (t) => {
  const lists = (['address', 'well-known', 'registry', 'config'] as const).map((source) => [
    at(source, `${source}-1`, `https://${source}.example/1`),
    at(source, `${source}-2`, `https://${source}.example/2`),
  ])
  t.same(
    merge(lists).candidates.map(({ name }) => name),
    ['config-1', 'config-2', 'registry-1', 'registry-2', 'well-known-1', 'well-known-2', 'address-1', 'address-2'],
  )
})

t.test('a command that a person wrote is never replaced by one from the network', async (t) => {
  const registry = program('registry', 'weather', 'npx', false)
  const wellKnown = program('well-known', 'weather', 'npx', false)
  const address = program('address', 'weather', 'npx', true)
  const config = program('config', 'weather', 'npx', true)
  t.match(merge([[registry], [wellKnown], [address]]).candidates, [
    { runnable: true, entry: { said: 'address' }, alsoFrom: [{ source: 'registry' }, { source: 'well-known' }] },
  ])
  t.match(merge([[registry], [config], [address]]).candidates, [{ runnable: true, entry: { said: 'config' } }])
  t.match(merge([[registry], [wellKnown]]).candidates, [{ runnable: false, entry: { said: 'registry' } }])
})

t.test('names become segments of a path', async (t) => {
  const cases: [text: string, name: string][] = [
    ['weather', 'weather'],
    ['My Server (beta)!', 'My-Server-beta'],
    ['a/b\\c', 'a-b-c'],
    ['.', 'server'],
    ['..', 'server'],
    ['', 'server'],
    ['../../etc', 'etc'],
    ['.hidden', 'hidden'],
    ['ends.', 'ends'],
    ['wetter für alle', 'wetter-f-r-alle'],
    ['天気', 'server'],
    ['%2e%2e', '2e-2e'],
    ['a\u0000b', 'a-b'],
    ['a?b#c', 'a-b-c'],
    ['__proto__', 'proto'],
    ['constructor', 'constructorserver'],
    ['toString', 'toStringserver'],
    ['x'.repeat(100), 'x'.repeat(64)],
    [`${'x'.repeat(63)}.y`, 'x'.repeat(63)],
  ]
  for (const [text, name] of cases) {
    t.equal(pathName(text), name, JSON.stringify(text))
    t.match(pathName(text), /^[\w.-]{1,64}$/)
  }
})

t.test('each name belongs to one candidate', async (t) => {
  const names = ['weather', 'weather', 'weather-2', 'Weather', 'weather', '???', '!!!', 'x'.repeat(64), 'x'.repeat(70)]
  const found = merge([names.map((name, index) => at('config', name, `https://${index}.example/`))])
  t.same(
    found.candidates.map(({ name }) => name),
    [
      'weather',
      'weather-2',
      'weather-2-2',
      'Weather',
      'weather-3',
      'server',
      'server-2',
      'x'.repeat(64),
      `${'x'.repeat(62)}-2`,
    ],
  )
})

t.test('bounds the candidates, and reports how many were left out', async (t) => {
  const many = (source: Source, count: number) =>
    Array.from({ length: count }, (_, index) => at(source, 'many', `https://${source}.example/${index}`))
  const { candidates, leftOut } = merge([many('registry', 60), many('config', 10), many('config', 10)])
  t.equal(candidates.length, CANDIDATES)
  t.equal(leftOut, 6)
  t.equal(candidates.filter(({ source }) => source === 'config').length, 10)
})

t.test('reads the names that files use for transports', async (t) => {
  const cases: [word: unknown, transport: string | undefined][] = [
    ['http', 'http'],
    ['https', 'http'],
    ['streamable-http', 'http'],
    ['streamableHttp', 'http'],
    ['streamable_http', 'http'],
    ['Streamable HTTP', 'http'],
    ['stream', 'http'],
    ['sse', 'sse'],
    ['SSE', 'sse'],
    ['stdio', 'stdio'],
    ['websocket', undefined],
    ['', undefined],
    [undefined, undefined],
    [7, undefined],
  ]
  for (const [word, transport] of cases) t.equal(transportNamed(word), transport, String(word))
})

t.test('data from the network cannot claim members reserved for the bridge, or hide anything', async (t) => {
  for (const text of ['https://mcp.example/?a=$b', '--flag={x}', 'ünïcödé']) t.ok(isPlain(text), text)
  for (const text of [
    '${HOME}',
    'a${file:/etc/passwd}b',
    '\u001b[2J',
    'a\nb',
    'a\u202eb',
    'a\u200bb',
    'x'.repeat(3_000),
  ])
    t.notOk(isPlain(text), JSON.stringify(text.slice(0, 20)))
})
