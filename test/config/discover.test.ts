/** What a configuration says of servers that are to be found, of scopes and of publishing. */
import t from 'tap'
import { foundServer, parseSettings, secretOf, withServers } from '../../src/config/settings.js'

const elsewhere = { env: { TOKEN: 'token-of-somebody', KEY: 'a key' }, read: (path: string) => `read ${path}` }
const parse = (settings: object) => parseSettings(settings, elsewhere)
const a = { url: 'https://a.example/mcp' }

t.test('allows no configured server if servers are discovered', async (t) => {
  t.same(parse({ discover: ['example.com'] }).mcpServers, {})
  t.same(parse({ discover: ['example.com'], mcpServers: {} }).discover, ['example.com'])
  t.throws(() => parse({}), { message: /mcpServers/ })
  t.throws(() => parse({ mcpServers: {} }), { message: /names no server/ })
  t.throws(() => parse({ discover: [] }), { message: /mcpServers/ })
})

t.test('refuses to pass credentials of clients to discovered servers', async (t) => {
  const auth = { passthrough: true }
  t.throws(() => parse({ mcpServers: { a }, discover: ['example.com'], auth }), {
    message: /auth\.passthrough: cannot be combined with "discover"/,
  })
  t.ok(parse({ mcpServers: { a }, auth }))
})

t.test('publish requires publicUrl', async (t) => {
  t.throws(() => parse({ mcpServers: { a }, publish: {} }), { message: /publicUrl: is required with "publish"/ })
  const { publish } = parse({
    mcpServers: { a },
    publish: { key: '${file:/key.pem}' },
    publicUrl: 'https://me.example',
  })
  t.same(publish, { key: 'read /key.pem' })
  const path = '/.well-known/mcp.json'
  t.throws(() => parse({ mcpServers: { a: { ...a, path } } }), { message: /is a path of the bridge itself/ })
})

t.test('a token may have scopes', async (t) => {
  const tokens = { one: '${TOKEN}', two: { token: 'another-token-of-somebody', scopes: ['read'] } }
  const { auth } = parse({ mcpServers: { a }, auth: { tokens } })
  t.same(Object.values(auth?.tokens ?? {}).map(secretOf), ['token-of-somebody', 'another-token-of-somebody'])
  const same = { one: '${TOKEN}', two: { token: '${TOKEN}', scopes: [] } }
  t.throws(() => parse({ mcpServers: { a }, auth: { tokens: same } }), { message: /is the same as that of one/ })
  for (const scope of ['', 'two words', 'quote"', 'é'])
    t.throws(() => parse({ mcpServers: { a: { ...a, scopes: { '*': [scope] } } } }), { message: /scopes/ }, scope)
})

t.test('a discovered server gets its path if the path is free', async (t) => {
  const settings = parse({ mcpServers: { a: { ...a, path: '/b/mcp' } } })
  const found = { b: foundServer('b', a, elsewhere), c: foundServer('c', a, elsewhere) }
  t.same(Object.keys(withServers(settings, found).mcpServers), ['a', 'c'])
  t.same(
    foundServer(
      'x',
      { url: 'https://${KEY}.example/mcp', headers: { k: '${KEY}' } },
      { env: { KEY: 'k' }, read: () => '' },
    ),
    {
      ...found.b,
      url: 'https://k.example/mcp',
      headers: { k: 'k' },
    },
  )
  const nowhere = { env: {}, read: () => '' }
  t.throws(() => foundServer('x', { url: 'https://a.example/${TOKEN}' }, nowhere), {
    message: /variable TOKEN is not set/,
  })
})
