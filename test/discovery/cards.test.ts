/** Server cards and AI Catalogs: how they are read, what they count for, and what the bridge publishes itself. */
import { createHash } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { cardDocuments } from '../../src/services/discovery/cards.js'
import { findAtHost } from '../../src/services/discovery/sources/well-known.js'
import { type Discovered, discover, type Examined } from '../../src/services/discovery/steps.js'
import { legacyServer, makeWorld, manifestFor, modernServer, offers, type World } from '../support/found.js'
import { bytesOf, publisherWith } from '../support/trust.js'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

const CARD = 'application/mcp-server-card+json'
const CATALOG = 'application/ai-catalog+json'
const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'
const MODERN = '2026-07-28'
const acme = await publisherWith('ed25519')

const cardFor = (url: string, changes: object = {}, revisions: readonly string[] | undefined = [MODERN]) => ({
  $schema: SCHEMA,
  name: 'test.acme/weather',
  version: '1.2.0',
  description: 'Forecasts',
  remotes: [{ type: 'streamable-http', url, ...(revisions && { supportedProtocolVersions: revisions }) }],
  ...changes,
})
const catalogOf = (...entries: object[]) => ({ specVersion: '1.0', entries })
const entry = (more: object) => ({ identifier: 'urn:air:acme.test:mcp:weather', type: CARD, ...more })

const find = (world: World, targets = [world.origin]) => discover(targets, world.discovery().parts)
const only = ({ servers }: Discovered): Examined => {
  if (servers.length !== 1) throw new Error(`there are ${servers.length}`)
  return servers[0] as Examined
}

/** The server, and the methods that it was asked for. */
function overheard(answer: Answer): { answer: Answer; methods: string[] } {
  const methods: string[] = []
  return {
    methods,
    answer: (request, response) => {
      const { emit } = request
      const chunks: Buffer[] = []
      request.emit = ((name: string, ...more: unknown[]) => {
        if (name === 'data') chunks.push(more[0] as Buffer)
        if (name === 'end' && chunks.length > 0) {
          const { method } = JSON.parse(Buffer.concat(chunks).toString()) as { method?: string }
          methods.push(method ?? 'answer')
        }
        return emit.call(request, name, ...more)
      }) as typeof request.emit
      answer(request, response)
    },
  }
}

for (const [where, page] of Object.entries({
  'a catalog by its address': (world: World) => ({
    '/.well-known/ai-catalog.json': catalogOf(entry({ url: '/cards/weather' })),
    '/cards/weather': cardFor(world.url),
  }),
  'a catalog that has it': (world: World) => ({
    '/.well-known/ai-catalog.json': catalogOf(entry({ data: cardFor(world.url) })),
  }),
  'a catalog in a catalog': (world: World) => ({
    '/.well-known/ai-catalog.json': catalogOf({ identifier: 'x', type: CATALOG, url: '/more.json' }),
    '/more.json': catalogOf(entry({ data: cardFor(world.url) })),
  }),
  'the usual address of a server': (world: World) => ({ '/mcp/server-card': cardFor(world.url) }),
  'the address of the host': (world: World) => ({ '/server-card': cardFor(world.url) }),
}))
  t.test(`a bare host names its server in ${where}`, async (t) => {
    const world = await makeWorld(t)
    Object.assign(world.pages, page(world), { '/mcp': modernServer(offers()) })
    t.match(only(await find(world)), {
      candidate: { name: 'weather', endpoint: { url: world.url }, card: { name: 'test.acme/weather' } },
      introspected: { era: 'modern' },
      verdict: { state: 'quarantined', reason: 'no signature, pin or approval vouches for it' },
    })
  })

/** What `mount_discovery` of the Python SDK serves, and what its first draft served (python-sdk, mcp/server/experimental). */
for (const [draft, more] of [
  ['as it is', { type: CARD, displayName: 'Weather' }],
  ['in its first draft', { mediaType: CARD, displayName: 'Weather' }],
] as const)
  t.test(`what the helper of the Python SDK publishes is read, ${draft}`, async (t) => {
    const world = await makeWorld(t)
    const serve = (type: string, document: object): Answer => {
      const text = JSON.stringify(document)
      const etag = `"${createHash('sha256').update(text).digest('hex')}"`
      return ({ headers }, response) => {
        response.setHeader('access-control-allow-origin', '*').setHeader('cache-control', 'public, max-age=3600')
        response.setHeader('etag', etag).setHeader('content-type', type)
        const isKnown = headers['if-none-match'] === etag
        response.writeHead(isKnown ? 304 : 200).end(isKnown ? undefined : text)
      }
    }
    const card = cardFor(world.url, {
      title: 'Weather',
      websiteUrl: 'https://acme.test/weather',
      repository: { url: 'https://github.com/acme/weather', source: 'github' },
      icons: [{ src: 'https://acme.test/icon.png', mimeType: 'image/png' }],
      _meta: { 'test.acme/x': 1 },
    })
    const url = `${world.url}/server-card`
    Object.assign(world.pages, {
      '/mcp': modernServer(offers()),
      '/mcp/server-card': serve(CARD, card),
      '/.well-known/ai-catalog.json': serve(CATALOG, catalogOf({ ...entry({ url }), type: undefined, ...more })),
    })
    const found = await find(world)
    t.same(found.failures, [])
    t.match(only(found).candidate, {
      endpoint: { url: world.url },
      card: { name: 'test.acme/weather', title: 'Weather', version: '1.2.0', revisions: [MODERN] },
    })
  })

t.test('a host that answers every path with its manifest has no card', async (t) => {
  const world = await makeWorld(t)
  const manifest = manifestFor(world.url)
  for (const path of ['/.well-known/mcp.json', '/server-card', '/mcp/server-card']) world.pages[path] = manifest
  world.pages['/mcp'] = modernServer(offers())
  const { candidate, steps } = only(await find(world))
  t.match(candidate, { name: 'weather', endpoint: { url: world.url } })
  t.notOk(steps.some(({ step }) => step === 'card'))
})

t.test('the card of an address that a person gives is read, and a page in its place is none', async (t) => {
  const world = await makeWorld(t)
  world.pages['/mcp'] = modernServer(offers())
  for (const [page, step] of [
    [cardFor(world.url), 'card'],
    [cardFor(`${world.origin}/other`), undefined],
    ['<!doctype html>', undefined],
    [((_request, response) => response.writeHead(401).end()) as Answer, undefined],
    [((_request, response) => response.writeHead(302, { location: '/' }).end()) as Answer, undefined],
  ] as const) {
    world.pages['/mcp/server-card'] = page
    const found = await find(world, [world.url])
    t.same(found.failures, [])
    t.equal(only(found).steps.find((one) => one.step === 'card')?.step, step)
    t.ok(only(found).introspected)
  }
})

for (const [name, serverOf, revisions, expected] of [
  ['a modern server is not probed', modernServer, [MODERN, '2025-11-25'], ['server/discover', 'tools/list']],
  ['a legacy server is not probed', legacyServer, ['2025-06-18'], ['initialize']],
  [
    'a legacy server whose card says that it is modern',
    legacyServer,
    [MODERN],
    ['server/discover', 'server/discover', 'initialize'],
  ],
  [
    'a modern server whose card says that it is legacy',
    modernServer,
    ['2025-11-25'],
    ['initialize', 'server/discover'],
  ],
  ['a card with revisions that nobody knows', modernServer, ['3000-01-01'], ['server/discover', 'server/discover']],
] as const)
  t.test(`the revisions of a card spare the probe, and the first answer decides: ${name}`, async (t) => {
    const world = await makeWorld(t)
    const { answer, methods } = overheard(serverOf(offers()))
    world.pages['/mcp'] = answer
    world.pages['/mcp/server-card'] = cardFor(world.url, {}, revisions)
    const { introspected } = only(await find(world, [world.url]))
    t.equal(introspected?.era, serverOf === modernServer ? 'modern' : 'legacy')
    t.same([...(introspected?.tools.tools.keys() ?? [])], ['read', 'delete_all'])
    t.same(methods.slice(0, expected.length), expected, methods.join(' '))
    const isTrue = revisions.some((one) => one === introspected?.handshake.revision)
    if (isTrue) t.equal(methods.filter((one) => one === 'server/discover').length, Number(serverOf === modernServer))
  })

t.test('a card is a claim: it makes nobody trusted, and counts against a server that says otherwise', async (t) => {
  for (const [changes, offered, reason] of [
    [{}, {}, /^no signature, pin or approval vouches for it$/],
    [{ name: 'test.acme/other', title: 'WEATHER' }, {}, /^no signature/],
    [{ version: '1.3.0' }, {}, /differs from its server card: its version is "1.2.0" and not "1.3.0"/],
    [{}, { name: 'storms' }, /differs from its server card: its name is "storms"/],
    [{ remotes: 'old' }, {}, /differs from its server card: its revision is "2026-07-28" and not "2025-03-26"/],
  ] as const) {
    const world = await makeWorld(t)
    world.pages['/mcp'] = modernServer(offers(offered))
    const old = 'remotes' in changes
    world.pages['/mcp/server-card'] = old ? cardFor(world.url, {}, ['2025-03-26']) : cardFor(world.url, changes)
    const { verdict } = only(await find(world, [world.url]))
    t.match(verdict, { state: 'quarantined', reason })
  }
})

t.test('a signed manifest outranks a card', async (t) => {
  const world = await makeWorld(t)
  world.pages['/mcp'] = modernServer(offers())
  world.pages['/mcp/server-card'] = cardFor(world.url, { version: '9.9.9' })
  const bytes = bytesOf(manifestFor(world.url))
  world.pages['/.well-known/mcp.json'] = bytes
  world.pages['/.well-known/mcp.json.jws'] = await acme.sign(bytes)
  await world.discovery().store.addKey('acme.test', acme.key)
  t.match(only(await find(world)).verdict, { state: 'trusted', by: 'signature' })
})

t.test('a document with an ETag is sent again only if it has changed', async (t) => {
  const world = await makeWorld(t)
  const asked: (string | undefined)[] = []
  let version = '"1"'
  world.pages['/mcp'] = modernServer(offers())
  world.pages['/mcp/server-card'] = (request, response) => {
    asked.push(request.headers['if-none-match'])
    if (request.headers['if-none-match'] === version) return response.writeHead(304, { etag: version }).end()
    response.writeHead(200, { etag: version }).end(JSON.stringify(cardFor(world.url, { title: version })))
  }
  let now = 0
  const { parts } = world.discovery({}, { timing: { sleep: async () => {}, now: () => now } })
  const card = async () => {
    now += 7_200_000
    return only(await discover([world.url], parts)).candidate.card
  }
  t.match(await card(), { title: '"1"' })
  t.match(await card(), { title: '"1"' })
  version = '"2"'
  t.match(await card(), { title: '"2"' })
  t.same(asked, [undefined, '"1"', '"1"'])
})

t.test('what a bridge publishes is a valid catalog and valid cards, which discovery reads', async (t) => {
  const base = 'https://bridge.example:8443/'
  const documents = cardDocuments({
    publisher: 'bridge.example',
    base,
    served: [
      { name: 'all', path: '/mcp', identity: { name: 'all', version: '1' }, needsToken: true },
      { name: 'github', path: '/github/mcp', identity: { name: 'GitHub', version: '3.1.0' }, needsToken: false },
      { name: 'long', path: '/', identity: { name: 'x'.repeat(300), version: 'v'.repeat(300) }, needsToken: false },
    ],
  })
  t.same(
    [...documents.keys()],
    ['/.well-known/ai-catalog.json', '/mcp/server-card', '/github/mcp/server-card', '/server-card'],
  )
  for (const [path, { text, type }] of documents) {
    if (path.startsWith('/.well-known')) {
      t.equal(type, CATALOG)
      continue
    }
    t.equal(type, CARD)
    const card = JSON.parse(text) as Record<string, string>
    t.equal(card['$schema'], SCHEMA)
    t.match(card['name'], /^example\.bridge\/[a-zA-Z0-9._-]+$/)
    for (const member of ['title', 'description']) t.ok((card[member] as string).length <= 100)
    t.ok((card['version'] as string).length <= 255)
  }
  const found = await findAtHost(
    'https://bridge.example:8443',
    async (url) => {
      const text = documents.get(new URL(url).pathname)?.text
      return text === undefined ? undefined : { url, address: '', headers: {}, bytes: Buffer.from(text) }
    },
    () => ({ servers: [] }),
  )
  t.same(found.failures, [])
  const addresses = found.findings.map(({ entry }) => entry['url'])
  t.same([...new Set(addresses)].sort(), [base, `${base}github/mcp`, `${base}mcp`])
  t.match(
    found.findings.find(({ name }) => name === 'all'),
    {
      wants: ['header Authorization'],
      card: { revisions: [MODERN, '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] },
    },
  )
})
