/** Places on the network that name servers: registries and hosts. */
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { Findings } from '../../src/services/discovery/candidate.js'
import { documents, type FetchDocument } from '../../src/services/discovery/documents.js'
import { failure } from '../../src/services/discovery/failure.js'
import { findInRegistry } from '../../src/services/discovery/sources/registry.js'
import { findAtHost, type ReadManifest } from '../../src/services/discovery/sources/well-known.js'
import { makeCa, serveTls } from '../support/tls.js'
import { setTrap } from '../support/trap.js'

const ca = await makeCa()
const certificate = await ca.serverOptions(['mcp.example', 'other.example'])

/** A host that has these documents, texts as they are and all else as JSON, and a way to fetch them. */
async function host(t: Test, pages: Record<string, unknown>) {
  const asked: { path: string; accept: string | undefined }[] = []
  const server = await serveTls(t, certificate, ({ url = '', headers }, response) => {
    asked.push({ path: url, accept: headers.accept })
    const { pathname } = new URL(url, 'https://mcp.example')
    const page = pages[url] ?? pages[pathname]
    if (page === undefined) response.writeHead(404).end('<h1>Nothing here</h1>')
    else response.end(typeof page === 'string' ? page : JSON.stringify(page))
  })
  const told: unknown[] = []
  const { fetch } = documents({
    ca: ca.cert,
    allowed: ['mcp.example', 'other.example'],
    resolve: async () => ['127.0.0.1'],
    onFailed: (failed) => told.push(failed),
    sleep: async () => {},
  })
  return {
    fetch,
    asked,
    told,
    origin: `https://mcp.example:${server.port}`,
    other: `https://other.example:${server.port}`,
  }
}

const named = ({ findings }: Findings) => findings.map(({ name }) => name)
const reasons = ({ failures }: Findings) => failures.map(({ error }) => `${error.phase}: ${error.reason}`)

/** A page of the registry, as it was recorded. */
const recorded = (page: number): unknown =>
  JSON.parse(readFileSync(new URL(`../fixtures/discovery/registry-${page}.json`, import.meta.url), 'utf8'))

/** Answers from what is at hand, without a network. */
const from =
  (pages: Record<string, unknown>): FetchDocument =>
  async (url) => {
    const page = pages[url]
    if (page instanceof Error) throw page
    if (page === undefined) return undefined
    return {
      url,
      address: '93.184.215.14',
      headers: {},
      bytes: Buffer.from(typeof page === 'string' ? page : JSON.stringify(page)),
    }
  }

t.test('reads a registry page by page', async (t) => {
  const query = 'search=weather&version=latest&limit=30'
  const { fetch, asked, told, origin } = await host(t, {
    [`/v0.1/servers?${query}`]: recorded(1),
    [`/v0.1/servers?${query}&cursor=io.github.someone%2Fpy-weather%3A2.0.1`]: recorded(2),
    [`/v0.1/servers?${query}&cursor=com.example%2Fweather%3A1.3.0`]: recorded(3),
  })
  const found = await findInRegistry('weather', fetch, `${origin}/`)
  t.equal(asked.length, 3)
  t.same(told, [])
  const common = { source: 'registry', from: `${origin}/v0.1/servers` }
  t.match(found.findings, [
    {
      ...common,
      name: 'weather',
      endpoint: { kind: 'http', url: 'https://weather.example.com/mcp' },
      transport: 'http',
      entry: { type: 'http', url: 'https://weather.example.com/mcp' },
      runnable: true,
      version: '1.4.0',
      description: 'Forecasts and warnings for any place',
    },
    { ...common, name: 'weather', transport: 'sse', entry: { type: 'sse', url: 'https://weather.example.com/sse' } },
    {
      ...common,
      name: 'weather-local',
      endpoint: { kind: 'stdio', command: 'npx' },
      transport: 'stdio',
      runnable: false,
      entry: {
        command: 'npx',
        args: ['-y', '@example/weather-local@0.9.2', '--station', '<--station>', '--units', 'metric', '--quiet'],
        env: { WEATHER_API_KEY: '<WEATHER_API_KEY>', LOG_LEVEL: 'info' },
      },
      wants: ['--station', 'variable WEATHER_API_KEY'],
    },
    {
      ...common,
      name: 'weather-local',
      runnable: false,
      entry: {
        command: 'docker',
        args: [
          'run',
          '-i',
          '--rm',
          '-e',
          'WEATHER_API_KEY',
          '--mount',
          'type=bind,src=<source>,dst=/data',
          'docker.io/example/weather-local:0.9.2',
        ],
        env: { WEATHER_API_KEY: '<WEATHER_API_KEY>' },
      },
      wants: ['source', 'variable WEATHER_API_KEY'],
    },
    {
      ...common,
      name: 'py-weather',
      runnable: false,
      entry: { command: 'uvx', args: ['py-weather-mcp@2.0.1', 'serve', '<region>'] },
      wants: ['region'],
    },
    {
      ...common,
      name: 'weather',
      entry: { type: 'http', url: 'https://eu.tenants.example/mcp' },
      wants: ['header X-Api-Key'],
    },
    { ...common, name: 'old-weather', transport: 'sse', description: 'Deprecated: What was before Weather' },
    { ...common, name: 'weather-maps', entry: { url: 'https://maps.example.com/weather/mcp' } },
  ])
  t.equal(found.findings.length, 8, 'neither what was taken back nor what is not the latest')
  t.same(reasons(found).sort(), ['document: incomplete', 'document: unsupported', 'document: unsupported'])
})

t.test('bounds the requests to a registry', async (t) => {
  const page = (cursor: string | undefined, count = 1) => ({
    servers: Array.from({ length: count }, (_, index) => ({
      server: { name: `a/${cursor}-${index}`, remotes: [{ type: 'sse', url: `https://${cursor}-${index}.example/` }] },
    })),
    metadata: { nextCursor: cursor },
  })
  let asked = 0
  const answering = (next: (asked: number) => unknown): FetchDocument => {
    asked = 0
    return async (url) => from({ [url]: next(++asked) })(url)
  }
  t.equal(
    (
      await findInRegistry(
        '',
        answering((n) => page(`c${n}`)),
      )
    ).findings.length,
    10,
  )
  t.equal(asked, 10, 'ten pages')
  t.equal(
    (
      await findInRegistry(
        '',
        answering(() => page('same')),
      )
    ).findings.length,
    2,
  )
  t.equal(asked, 2, 'not in a circle')
  t.equal(
    (
      await findInRegistry(
        '',
        answering((n) => page(`c${n}`, 40)),
      )
    ).findings.length,
    64,
  )
  t.equal(asked, 2, 'until there are enough')
  for (const end of [undefined, '', null]) {
    await findInRegistry(
      '',
      answering(() => page(end as undefined)),
    )
    t.equal(asked, 1, `the end is ${JSON.stringify(end)}`)
  }
})

t.test('a bad entry of a registry spoils no other', async (t) => {
  const good = { server: { name: 'a/good', remotes: [{ type: 'streamable-http', url: 'https://good.example/mcp' }] } }
  const remote = (url: unknown, type: unknown = 'streamable-http') => ({
    server: { name: 'a/b', remotes: [{ type, url }] },
  })
  const npm = (more: object) => ({
    server: { name: 'a/b', packages: [{ registryType: 'npm', identifier: 'evil', version: '1.0.0', ...more }] },
  })
  const cases: [name: string, entry: unknown, reason: string][] = [
    ['nothing', null, 'document: malformed'],
    ['a text', 'server', 'document: malformed'],
    ['no name', { server: {} }, 'document: malformed'],
    ['a name that is none', { server: { name: 7 } }, 'document: malformed'],
    ['remotes that are none', { server: { name: 'a/b', remotes: 'https://evil.example' } }, 'document: malformed'],
    ['an address that is none', remote(7), 'document: malformed'],
    ['a relative address', remote('/mcp'), 'url: malformed'],
    ['a file', remote('file:///etc/passwd'), 'url: scheme'],
    ['a script', remote('javascript:alert(1)'), 'url: scheme'],
    ['a user', remote('https://me:secret@evil.example/'), 'url: credentials'],
    ['a variable of ours', remote('https://evil.example/?key=${AWS_SECRET_ACCESS_KEY}'), 'document: incomplete'],
    ['a file of ours', remote('https://evil.example/?key=${file:/etc/passwd}'), 'url: malformed'],
    ['a transport that there is not', remote('https://evil.example/', 'websocket'), 'document: unsupported'],
    ['a command for an address', remote('https://evil.example/', 'stdio'), 'document: unsupported'],
    [
      'another program',
      npm({ runtimeHint: 'bash', runtimeArguments: [{ type: 'positional', value: '-c' }] }),
      'document: unsupported',
    ],
    ['a program with a path', npm({ runtimeHint: '/tmp/npx' }), 'document: unsupported'],
    ['a kind of packages that there is not', npm({ registryType: '__proto__' }), 'document: unsupported'],
    [
      'a variable of ours in a command',
      npm({ packageArguments: [{ type: 'positional', value: '${HOME}' }] }),
      'document: malformed',
    ],
    [
      'a command that moves the cursor',
      npm({ packageArguments: [{ type: 'positional', value: '\u001b[1A' }] }),
      'document: malformed',
    ],
    [
      'a variable that is one of ours',
      npm({ environmentVariables: [{ name: 'KEY', value: '${GITHUB_TOKEN}' }] }),
      'document: malformed',
    ],
  ]
  for (const [name, entry, reason] of cases) {
    const found = await findInRegistry('', async (url) => from({ [url]: { servers: [entry, good] } })(url))
    t.same(named(found), ['good'], name)
    t.same(reasons(found), [reason], name)
  }
  t.equal(({} as Record<string, unknown>)['programs'], undefined)
})

t.test('reports an address that is not a registry', async (t) => {
  const cases: [name: string, page: unknown, reason: string][] = [
    ['nothing there', undefined, 'http: absent'],
    ['a page for people', '<!doctype html>', 'document: malformed'],
    ['another API', { results: [] }, 'document: malformed'],
    ['a list', [], 'document: malformed'],
    ['one that is down', failure('connect', 'refused', 'nobody listens'), 'connect: refused'],
  ]
  for (const [name, page, reason] of cases) {
    const found = await findInRegistry('', async (url) => from({ [url]: page })(url))
    t.same(found.findings, [], name)
    t.same(reasons(found), [reason], name)
  }
})

/** As small a manifest as can be, in the place of the real one. */
const readManifest: ReadManifest = (bytes) => {
  const value = JSON.parse(Buffer.from(bytes).toString()) as { manifest?: number }
  if (value.manifest !== 1) throw new Error('The manifest is none')
  return value as unknown as ReturnType<ReadManifest>
}
const CARD = 'application/mcp-server-card+json'

t.test('requests the manifest, the catalog and the card of a host', async (t) => {
  const pages: Record<string, unknown> = {}
  const { fetch, asked, told, origin, other } = await host(t, pages)
  Object.assign(pages, {
    '/.well-known/mcp.json': {
      manifest: 1,
      servers: [
        {
          name: 'weather',
          version: '1.0.0',
          transports: [
            { type: 'stdio', command: 'npx', args: ['weather'] },
            { type: 'streamable-http', url: `${origin}/weather/mcp` },
            { type: 'sse', url: `${origin}/weather/sse` },
          ],
        },
        { name: 'local', version: '2.0.0', transports: [{ type: 'stdio', command: 'npx', args: ['-y', 'local'] }] },
      ],
    },
    '/.well-known/mcp/catalog.json': {
      specVersion: 'draft',
      entries: [
        {
          identifier: 'urn:air:mcp.example:maps',
          displayName: 'Maps',
          type: CARD,
          url: `${origin}/maps/mcp/server-card`,
        },
        { identifier: 'urn:air:mcp.example:plain', mediaType: CARD, url: `${other}/plain/mcp/server-card` },
        { identifier: 'urn:air:mcp.example:agent', type: 'application/a2a-agent-card+json', url: `${origin}/agent` },
        { identifier: 'urn:air:mcp.example:gone', type: CARD, url: '/gone/server-card' },
      ],
    },
    '/maps/mcp/server-card': {
      $schema: 'https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json',
      name: 'com.example/maps',
      version: '3.1.0',
      description: 'Maps of everything',
      remotes: [{ type: 'streamable-http', url: 'https://maps.example.com/mcp' }],
    },
    '/plain/mcp/server-card': { name: 'com.example/plain', version: '0.1.0' },
    '/.well-known/mcp/server-card.json': {
      version: '1.0',
      serverInfo: { name: 'card', version: '4.0.0' },
      transport: { type: 'streamable-http', endpoint: '/mcp' },
    },
  })
  const found = await findAtHost(origin, fetch, readManifest)
  const manifest = { url: `${origin}/.well-known/mcp.json` }
  t.match(found.findings, [
    {
      name: 'weather',
      entry: { type: 'http', url: `${origin}/weather/mcp` },
      runnable: true,
      manifest,
      version: '1.0.0',
    },
    { name: 'local', entry: { command: 'npx', args: ['-y', 'local'] }, runnable: false, manifest },
    {
      name: 'maps',
      entry: { url: 'https://maps.example.com/mcp' },
      version: '3.1.0',
      description: 'Maps of everything',
    },
    { name: 'plain', entry: { url: `${other}/plain/mcp` }, from: `${other}/plain/mcp/server-card` },
    { name: 'card', entry: { url: `${origin}/mcp` }, version: '4.0.0' },
  ])
  t.equal(found.findings.length, 5)
  t.ok(found.findings.every(({ source }) => source === 'well-known'))
  t.ok(
    found.findings.slice(2).every(({ manifest }) => manifest === undefined),
    'drafts are no manifests',
  )
  t.same(reasons(found), ['http: absent'], 'a catalog that names what is not there')
  t.same(told, [])
  t.same(asked.find(({ path }) => path === '/maps/mcp/server-card')?.accept, CARD)
})

t.test('a host without documents is not a failure', async (t) => {
  const { fetch, told, origin } = await host(t, {})
  const { findings, failures } = await findAtHost(origin, fetch, readManifest)
  t.same([findings, failures, told], [[], [], []])
})

t.test('reads cards in each of their forms', async (t) => {
  const cases: [name: string, card: unknown, found: unknown[]][] = [
    [
      'the draft of today',
      {
        name: 'a/b',
        version: '1',
        remotes: [
          { type: 'streamable-http', url: 'https://b.example/mcp' },
          { type: 'sse', url: 'https://b.example/sse' },
        ],
      },
      [
        { name: 'b', transport: 'http', entry: { url: 'https://b.example/mcp' }, version: '1' },
        { name: 'b', transport: 'sse', entry: { url: 'https://b.example/sse' } },
      ],
    ],
    [
      'an endpoint that is relative',
      { serverInfo: { name: 'b' }, transport: { type: 'streamable-http', endpoint: '/mcp/' } },
      [{ name: 'b', entry: { url: 'https://mcp.example/mcp/' } }],
    ],
    [
      'an address of its own',
      {
        serverInfo: { name: 'B Data', version: '2' },
        version: '1.0',
        transport: { type: 'http', url: 'https://b.example/?tools=a,b' },
      },
      [{ name: 'B Data', version: '2', entry: { url: 'https://b.example/?tools=a,b' } }],
    ],
    [
      'a transport that is a word',
      { name: 'b', url: 'https://b.example', transport: 'sse' },
      [{ name: 'b', transport: 'sse', entry: { url: 'https://b.example/' } }],
    ],
    ['only an address', { url: 'https://b.example/mcp' }, [{ name: 'mcp.example', transport: 'http' }]],
    [
      'only an endpoint',
      { name: 'b', endpoint: 'mcp' },
      [{ entry: { url: 'https://mcp.example/.well-known/mcp/mcp' } }],
    ],
    [
      'transports',
      {
        name: 'b',
        transports: [
          { type: 'http', url: '/a' },
          { type: 'sse', endpoint: '/b' },
        ],
      },
      [{ entry: { url: 'https://mcp.example/a' } }, { entry: { url: 'https://mcp.example/b' } }],
    ],
    [
      'members of other kinds',
      { name: 7, version: {}, tools: 'x', url: 'https://b.example/' },
      [{ name: 'mcp.example', version: undefined }],
    ],
    [
      'a description that hides something',
      { url: 'https://b.example/', description: 'a\u202eb\nc' },
      [{ description: 'a?b?c' }],
    ],
  ]
  for (const [name, card, expected] of cases) {
    const url = 'https://mcp.example/.well-known/mcp/server-card.json'
    const { findings, failures } = await findAtHost('https://mcp.example', from({ [url]: card }), readManifest)
    t.match(findings, expected, name)
    t.equal(findings.length, expected.length, name)
    t.same(failures, [], name)
  }
})

t.test('reports documents of a host that name no server', async (t) => {
  const manifest = '/.well-known/mcp.json'
  const catalog = '/.well-known/mcp/catalog.json'
  const card = '/.well-known/mcp/server-card.json'
  const transport = (one: object) => ({ manifest: 1, servers: [{ name: 'a', version: '1', transports: [one] }] })
  const cases: [name: string, path: string, document: unknown, reasons: string[]][] = [
    ['a manifest that is none', manifest, { servers: [] }, ['document: malformed']],
    [
      'a manifest with a command that would hide',
      manifest,
      transport({ type: 'stdio', command: 'a\u001b[2K', args: [] }),
      ['document: malformed'],
    ],
    [
      'a manifest with a variable of ours',
      manifest,
      transport({ type: 'sse', url: 'https://evil.example/?${HOME}' }),
      ['url: malformed'],
    ],
    ['a manifest with no transport', manifest, { manifest: 1, servers: [{ name: 'a', transports: [] }] }, []],
    ['a catalog that is none', catalog, [], ['document: malformed']],
    ['a catalog for people', catalog, '<html>', ['document: malformed']],
    ['an entry without an address', catalog, { entries: [{ type: CARD }] }, ['document: malformed']],
    [
      'an entry with an address that is none',
      catalog,
      { entries: [{ type: CARD, url: 'https://[' }] },
      ['url: malformed'],
    ],
    ['an entry of another kind', catalog, { entries: [{ type: 'text/html', url: 'https://mcp.example/' }] }, []],
    [
      'more cards than are looked at',
      catalog,
      { entries: Array.from({ length: 17 }, () => ({ url: '/' })) },
      ['document: incomplete'],
    ],
    ['a card that is none', card, [], ['document: malformed']],
    ['a card without an address', card, { name: 'a' }, ['document: incomplete']],
    [
      'a card with a command',
      card,
      { transport: { type: 'stdio', url: 'https://evil.example/' } },
      ['document: unsupported'],
    ],
    ['a card with a user', card, { url: 'https://me:secret@evil.example/' }, ['url: credentials']],
    ['a card with a file', card, { url: 'file:///etc/passwd' }, ['url: scheme']],
  ]
  for (const [name, path, document, expected] of cases) {
    const found = await findAtHost(
      'https://mcp.example',
      from({ [`https://mcp.example${path}`]: document }),
      readManifest,
    )
    t.same(found.findings, [], name)
    t.same(reasons(found), expected, name)
    for (const { error } of found.failures) t.notMatch(error.message, /secret|passwd/, name)
  }
})

t.test('a host cannot lead the bridge to a private address', async (t) => {
  const trap = await setTrap(t)
  const inside = [
    `https://127.0.0.1:${trap.port}/server-card`,
    `https://localhost:${trap.port}/server-card`,
    `https://[::ffff:127.0.0.1]:${trap.port}/server-card`,
    `http://127.0.0.1:${trap.port}/server-card`,
    `https://2130706433:${trap.port}/server-card`,
    `https://mcp.example@127.0.0.1:${trap.port}/server-card`,
    `//127.0.0.1:${trap.port}/server-card`,
  ]
  const { fetch, told, origin } = await host(t, {
    '/.well-known/mcp/catalog.json': { entries: inside.map((url) => ({ type: CARD, url })) },
  })
  const found = await findAtHost(origin, fetch, readManifest)
  t.same(found.findings, [])
  t.same(reasons(found).sort(), [
    'guard: internal-address',
    'guard: internal-address',
    'guard: internal-address',
    'guard: internal-address',
    'guard: internal-name',
    'url: credentials',
    'url: scheme',
  ])
  t.equal(told.length, 5, 'each address is told once, however it is spelled')
  t.same(await trap.caught(), [])
})

t.test('caches what it fetched, and never prints a query string', async (t) => {
  const { fetch, asked, told, origin } = await host(t, {
    '/document': { some: 'thing' },
    '/bad?secret=1': 'x'.repeat(300_000),
  })
  await fetch(`${origin}/document`)
  await fetch(`${origin}/document`)
  t.equal(await fetch(`${origin}/absent`), undefined)
  t.equal(await fetch(`${origin}/absent`), undefined)
  t.equal(asked.length, 2)
  await t.rejects(fetch(`${origin}/bad?secret=1`), { name: 'Failure', reason: 'too-large' })
  t.match(told, [{ endpoint: `${origin}/bad`, phase: 'body', reason: 'too-large', opens: false }])
  t.notMatch(String((told[0] as { endpoint: string }).endpoint), /secret/)
})
