/** What a manifest is, and which path is named where a document is none. */
import { readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import t from 'tap'
import { ManifestError, manifestJsonSchema, readManifest } from '../../src/services/discovery/manifest.js'
import { bytesOf, manifestOf, NOW } from '../support/trust.js'

const server = (changes: object) => manifestOf({}, changes)
const transport = (changes: object) =>
  server({ transports: [{ type: 'streamable-http', url: 'https://a.example/mcp', ...changes }] })
const tools = (count: number, prefix = 't') => Array.from({ length: count }, (_, at) => ({ name: `${prefix}${at}` }))

/** Where a document is found to be none. */
function placeOf(bytes: Uint8Array): string {
  try {
    readManifest(bytes)
  } catch (error) {
    if (error instanceof ManifestError) return error.path
    throw error
  }
  return 'nowhere'
}

t.test('reads a manifest, with times as numbers and defaults filled in', async (t) => {
  const { servers, ...rest } = readManifest(bytesOf(manifestOf()))
  t.match(rest, { manifest: 1, publisher: 'acme.example', serial: 7, issued: NOW - 86_400_000 })
  t.match(servers[0], {
    name: 'weather',
    tools: [
      { name: 'read', scopes: [] },
      { name: 'delete_all', scopes: [] },
    ],
  })
  const [plain] = readManifest(bytesOf(server({ tools: undefined, capabilities: undefined }))).servers
  t.equal(plain?.tools, 'runtime')
})

const good: [string, object][] = [
  ['no server at all', manifestOf({ servers: [] })],
  ['an address for editors', manifestOf({ $schema: 'https://x.example/manifest.schema.json' })],
  ['an address without a slash at the end', transport({ url: 'https://a.example' })],
  ['a port, a path with an "@", a query', transport({ url: 'https://a.example:8443/@x/mcp?user=a@b' })],
  ['plain HTTP on this machine', transport({ url: 'http://127.0.0.1:8080/mcp' })],
  ['plain HTTP on this machine by name', transport({ url: 'http://localhost:8080/mcp', type: 'sse' })],
  ['plain HTTP on this machine over IPv6', transport({ url: 'http://[::1]:8080/mcp' })],
  ['a program', server({ transports: [{ type: 'stdio', command: 'npx', args: ['-y', 'x'] }] })],
  ['scopes', server({ tools: [{ name: 'x', scopes: ['files:read'] }] })],
  ['what it wants of callers', server({ auth: { type: 'oauth', resourceMetadata: 'https://a.example/prm' } })],
  ['another name in the handshake', server({ serverName: 'Acme Weather (beta)' })],
  ['capabilities of any kind', server({ capabilities: { tools: { listChanged: true }, extensions: { 'a/b': {} } } })],
  ['2,000 tools', server({ tools: tools(2_000) })],
  ['emoji', server({ description: 'Wetter ☀️' })],
]
for (const [name, document] of good)
  t.test(`a manifest may have ${name}`, async (t) => {
    t.doesNotThrow(() => readManifest(bytesOf(document)))
  })

const text = JSON.stringify(manifestOf())
const bad: [name: string, document: unknown, path: string][] = [
  ['nothing', '', ''],
  ['a list', [], ''],
  ['null', 'null', ''],
  ['what follows the document', `${text}{}`, ''],
  ['a comment', text.replace('{', '{/* */'), ''],
  ['a comma too many', text.replace(/\}$/, ',}'), ''],
  ['NaN', text.replace('"serial":7', '"serial":NaN'), ''],
  ['Infinity', text.replace('"serial":7', '"serial":Infinity'), ''],
  ['a number too large for numbers', text.replace('"serial":7', '"serial":1e400'), 'serial'],
  ['nesting without end', `${'{"a":'.repeat(17)}1${'}'.repeat(17)}`, ''],
  ['another format', manifestOf({ manifest: 2 }), 'manifest'],
  ['no format', manifestOf({ manifest: undefined }), 'manifest'],
  ['no publisher', manifestOf({ publisher: '' }), 'publisher'],
  ['a publisher in capitals', manifestOf({ publisher: 'Acme.example' }), 'publisher'],
  ['a publisher that is a path', manifestOf({ publisher: '../acme' }), 'publisher'],
  ['a serial that is none', manifestOf({ serial: '7' }), 'serial'],
  ['a negative serial', manifestOf({ serial: -1 }), 'serial'],
  ['half a serial', manifestOf({ serial: 7.5 }), 'serial'],
  ['a serial beyond what is counted exactly', text.replace('"serial":7', '"serial":9007199254740993'), 'serial'],
  ['a date that is none', manifestOf({ issued: 'yesterday' }), 'issued'],
  ['a date that the calendar does not have', manifestOf({ issued: '2026-02-30T00:00:00Z' }), 'issued'],
  ['a date in nobody’s time zone', manifestOf({ expires: '2026-10-22T00:00:00' }), 'expires'],
  ['an end before the beginning', manifestOf({ expires: '2026-01-01T00:00:00Z' }), 'expires'],
  ['an end in the year 9999', manifestOf({ expires: '9999-12-31T23:59:59Z' }), 'expires'],
  ['65 servers', manifestOf({ servers: Array.from({ length: 65 }, (_, n) => ({ name: `s${n}` })) }), 'servers'],
  ['an unknown member', manifestOf({ pinned: true }), 'pinned'],
  ['an unknown member of a server', server({ trusted: true }), 'servers.0.trusted'],
  ['an unknown member of a transport', transport({ headers: {} }), 'servers.0.transports.0.headers'],
  ['an address in capitals', text.replace('"url"', '"URL"'), 'servers.0.transports.0.URL'],
  ['a server without a name', server({ name: undefined }), 'servers.0.name'],
  ['a name that is a path', server({ name: '../x' }), 'servers.0.name'],
  ['a name that every object has', server({ name: 'toString' }), 'servers.0.name'],
  ['a name that is a prototype', server({ name: '__proto__' }), 'servers.0.name'],
  ['a version that turns text around', server({ version: '1\u202e2' }), 'servers.0.version'],
  ['a description that drives a terminal', server({ description: '\u001b[2J' }), 'servers.0.description'],
  ['a description with half a character', server({ description: '\ud800' }), 'servers.0.description'],
  ['no way to reach it', server({ transports: [] }), 'servers.0.transports'],
  ['an unknown transport', transport({ type: 'carrier-pigeon' }), 'servers.0.transports.0.type'],
  ['no address', transport({ url: undefined }), 'servers.0.transports.0.url'],
  ['plain HTTP', transport({ url: 'http://a.example/mcp' }), 'servers.0.transports.0.url'],
  [
    'plain HTTP to a name like this machine',
    transport({ url: 'http://localhost.a.example/' }),
    'servers.0.transports.0.url',
  ],
  ['an address of a file', transport({ url: 'file:///etc/passwd' }), 'servers.0.transports.0.url'],
  ['a user', transport({ url: 'https://me:secret@a.example/mcp' }), 'servers.0.transports.0.url'],
  ['an empty user', transport({ url: 'https://@a.example/mcp' }), 'servers.0.transports.0.url'],
  ['a fragment', transport({ url: 'https://a.example/mcp#x' }), 'servers.0.transports.0.url'],
  ['an empty fragment', transport({ url: 'https://a.example/mcp#' }), 'servers.0.transports.0.url'],
  ['a host in capitals', transport({ url: 'https://A.example/mcp' }), 'servers.0.transports.0.url'],
  ['a host in another script', transport({ url: 'https://аcme.example/mcp' }), 'servers.0.transports.0.url'],
  ['a host with a dot at its end', transport({ url: 'https://a.example./mcp' }), 'servers.0.transports.0.url'],
  ['a port that goes without saying', transport({ url: 'https://a.example:443/mcp' }), 'servers.0.transports.0.url'],
  ['dots in the path', transport({ url: 'https://a.example/x/../mcp' }), 'servers.0.transports.0.url'],
  ['backslashes', transport({ url: 'https:\\\\a.example\\mcp' }), 'servers.0.transports.0.url'],
  ['white space around an address', transport({ url: ' https://a.example/mcp' }), 'servers.0.transports.0.url'],
  ['an address as a number', transport({ url: 'https://2130706433/mcp' }), 'servers.0.transports.0.url'],
  ['a revision that is none', server({ protocolRevisions: ['latest'] }), 'servers.0.protocolRevisions.0'],
  ['no revision', server({ protocolRevisions: [] }), 'servers.0.protocolRevisions'],
  ['capabilities that are a list', server({ capabilities: [] }), 'servers.0.capabilities'],
  ['tools that are neither', server({ tools: 'none' }), 'servers.0.tools'],
  ['a tool without a name', server({ tools: [{}] }), 'servers.0.tools.0.name'],
  [
    'a hint that is a word',
    server({ tools: [{ name: 'x', annotations: { readOnlyHint: 'true' } }] }),
    'servers.0.tools.0.annotations.readOnlyHint',
  ],
  [
    'a hint that nobody knows',
    server({ tools: [{ name: 'x', annotations: { safeHint: true } }] }),
    'servers.0.tools.0.annotations.safeHint',
  ],
  ['scopes that are one text', server({ tools: [{ name: 'x', scopes: 'a b' }] }), 'servers.0.tools.0.scopes'],
  ['two tools of one name', server({ tools: [{ name: 'x' }, { name: 'x' }] }), 'servers.0.tools.1.name'],
  ['2,001 tools', server({ tools: tools(2_001) }), 'servers.0.tools'],
  ['credentials', server({ auth: { type: 'bearer', token: 'x' } }), 'servers.0.auth.token'],
  ['two equal members', text.replace('"serial":7', '"serial":7,"serial":8'), 'serial'],
  [
    'two equal members deep inside',
    text.replace('"tools":{}', '"tools":{"a":1,"a":1}'),
    'servers.0.capabilities.tools.a',
  ],
  [
    'two spellings of a member',
    text.replace('"url":', '"url":"https://b.example/","u\\u0072l":'),
    'servers.0.transports.0.url',
  ],
  ['members that differ in case', text.replace('"tools":{}', '"tools":{},"Tools":{}'), 'servers.0.capabilities.Tools'],
  ['a prototype', text.replace('"manifest":1', '"manifest":1,"__proto__":{"publisher":"x"}'), '__proto__'],
  [
    'a prototype deep inside',
    text.replace('"tools":{}', '"tools":{"__proto__":{}}'),
    'servers.0.capabilities.tools.__proto__',
  ],
  ['a constructor', text.replace('"tools":{}', '"constructor":{}'), 'servers.0.capabilities.constructor'],
]
for (const [name, document, path] of bad)
  t.test(`a manifest may not have ${name}`, async (t) => {
    t.equal(placeOf(bytesOf(document)), path)
  })

t.test('refuses two servers with one name, in any case', async (t) => {
  const [one] = manifestOf()['servers'] as object[]
  for (const name of ['weather', 'Weather'])
    t.equal(placeOf(bytesOf(manifestOf({ servers: [one, { ...one, name }] }))), 'servers.1.name')
})

t.test('a manifest has at most 2,000 tools', async (t) => {
  const [one] = manifestOf()['servers'] as object[]
  const servers = [
    { ...one, name: 'a', tools: tools(1_500) },
    { ...one, name: 'b', tools: tools(501) },
  ]
  t.equal(placeOf(bytesOf(manifestOf({ servers }))), 'servers.1.tools')
})

t.test('requires UTF-8 without a byte order mark, of bounded size', async (t) => {
  const fits = bytesOf(text.padEnd(256 * 1024))
  t.doesNotThrow(() => readManifest(fits))
  for (const bytes of [
    Buffer.concat([fits, Buffer.from(' ')]),
    Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytesOf(text)]),
    Buffer.from(text, 'utf16le'),
    Buffer.from(text.replace('weather', 'wéather'), 'latin1'),
    Buffer.concat([bytesOf(text), Buffer.from([0])]),
  ])
    t.equal(placeOf(bytes), '')
})

t.test('describes mistakes without control characters for a terminal', async (t) => {
  t.throws(() => readManifest(bytesOf(manifestOf({ '\u001b[2J': 1 }))), {
    message: /^\?\[2J: is not a member/,
  })
})

t.test('reading leaves Object.prototype unchanged', async (t) => {
  const before = Reflect.ownKeys(Object.prototype).length
  for (const [, document] of bad) placeOf(bytesOf(document))
  t.equal(Reflect.ownKeys(Object.prototype).length, before)
})

t.test('the published schema is fresh (npm run schema writes it), and accepts what the reader accepts', async (t) => {
  const file = JSON.parse(readFileSync(new URL('../../config/manifest.schema.json', import.meta.url), 'utf8')) as object
  t.same(file, JSON.parse(manifestJsonSchema()))
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(file)
  for (const [name, document] of good) t.ok(validate(JSON.parse(JSON.stringify(document))), name)
  for (const document of [manifestOf({ pinned: true }), server({ trusted: true }), manifestOf({ serial: -1 })])
    t.notOk(validate(JSON.parse(JSON.stringify(document))))
})
