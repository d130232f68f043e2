/** Servers that redirect requests to another address on the same origin, as frameworks do that want a slash at the end. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startBridge } from '../support/bridge.js'
import { callers } from '../support/callers.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { LegacySse, PATHS } from '../support/legacy-sse.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

type Server = { url: string; received: readonly { method: string; path: string }[] }

const ECHO = { name: 'echo', arguments: { x: 1 } }
const ECHOED = { result: { structuredContent: { x: 1 } } }

/** Where a path is redirected to; undefined if it is not. */
type Moves = (path: string, origin: string) => { status: number; location: string } | undefined

const MOVES: Record<string, Moves> = {
  'with 307 to the same path with a slash': (path) =>
    path === '/mcp' ? { status: 307, location: '/mcp/' } : undefined,
  'with 308 to a whole address': (path, origin) =>
    path === '/mcp' ? { status: 308, location: `${origin}/mcp/` } : undefined,
  'to a relative address with a query': (path) =>
    path === '/mcp' ? { status: 307, location: 'v2/mcp?tenant=1' } : undefined,
  'twice, from address to address': (path) => {
    if (path === '/mcp') return { status: 308, location: '/api/' }
    return path === '/api/' ? { status: 307, location: 'mcp' } : undefined
  },
}

const redirecting =
  (moves: Moves) =>
  ({ path, headers }: { path: string; headers: { host?: string | undefined } }, response: ServerResponse) => {
    const moved = moves(path, `http://${headers.host}`)
    if (moved) response.writeHead(moved.status, { location: moved.location }).end('Moved')
    return moved !== undefined
  }

const servers: Record<string, (t: Test, moves: Moves) => Promise<Server>> = {
  legacy: (t, moves) => LegacyHttp.start(t, { override: redirecting(moves) }),
  modern: (t, moves) => ModernHttp.start(t, { override: redirecting(moves) }),
}

for (const [era, start] of Object.entries(servers))
  for (const [what, moves] of Object.entries(MOVES))
    t.test(`follows a ${era} server that redirects ${what} for every client, and keeps the address`, async (t) => {
      for (const [name, connect] of Object.entries(callers)) {
        const server = await start(t, moves)
        const ask = await connect(t, server.url)
        t.match(await ask(ECHO), ECHOED, name)
        const before = server.received.length
        for (let n = 0; n < 3; n++) t.match(await ask(ECHO), ECHOED, name)
        const later = server.received.slice(before)
        t.ok(later.length >= 3, name)
        t.same(
          later.filter(({ path }) => moves(path, '')),
          [],
          `${name}: nothing is redirected a second time`,
        )
      }
    })

t.test('follows a server over HTTP+SSE that redirects its stream and its messages', async (t) => {
  const moved = (path: string) => path.replace(/^(\/[^/?]+)(\?.*)?$/, '$1/$2')
  const moves: Moves = (path) => (moved(path) === path ? undefined : { status: 307, location: moved(path) })
  const sse = await LegacySse.start(t, {
    override: (received, response) => {
      if (redirecting(moves)(received, response)) return true
      received.path = received.path.replace(/^(\/[^/?]+)\//, '$1')
      return false
    },
  })
  const server = { url: sse.url, transport: 'sse' }
  const { url } = await startBridge(t, server)
  t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
  const client = await LegacyClient.open(url)
  t.match((await client.request('tools/call', ECHO)).message, ECHOED)
  const before = sse.received.length
  t.match((await client.request('tools/call', ECHO)).message, ECHOED)
  t.equal(sse.received.length - before, 1, 'the messages of a session are redirected once')
  t.ok(sse.received.some(({ path }) => path.startsWith(PATHS.messages)))
})

t.test('the stream and the end of a direct session go to the redirected address', async (t) => {
  const server = await LegacyHttp.start(t, {
    override: redirecting(MOVES['with 307 to the same path with a slash'] as Moves),
  })
  const { url } = await startBridge(t, { url: server.url })
  const client = await LegacyClient.open(url)
  const stream = await client.listen()
  server.push({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
  await stream.has(1)
  t.equal((await client.end()).status, 200)
  const others = server.received.filter(({ method }) => method !== 'POST')
  t.strictSame([...new Set(others.map(({ path }) => path))], ['/mcp/'])
})

t.test('refuses a redirect to another origin in every lane, and sends nothing there', async (t) => {
  for (const [era, start] of Object.entries(servers)) {
    const other = await LegacyHttp.start(t)
    const location = new URL('/mcp', other.url).href
    let isMoved = false
    const server = await start(t, () => (isMoved ? { status: 307, location } : undefined))
    for (const [name, connect] of Object.entries(callers)) {
      isMoved = false
      const ask = await connect(t, server.url)
      t.match(await ask(ECHO), ECHOED)
      isMoved = true
      t.match(await ask(ECHO), { error: { message: /redirects to another address/ } }, `${era}, ${name}`)
    }
    t.equal(other.received.length, 0)
  }
})

t.test('redirects in a circle end', async (t) => {
  let isMoved = false
  const server = await LegacyHttp.start(t, {
    override: redirecting((path) => (isMoved ? { status: 307, location: path === '/a' ? '/b' : '/a' } : undefined)),
  })
  for (const [name, connect] of Object.entries(callers)) {
    isMoved = false
    const ask = await connect(t, server.url)
    t.match(await ask(ECHO), ECHOED)
    isMoved = true
    const before = server.received.length
    t.match(await ask(ECHO), { error: { message: /redirects to another address/ } }, name)
    t.ok(server.received.length - before <= 10, name)
  }
})

t.test('requests a new address when the old one does not exist any more', async (t) => {
  let home = '/old/'
  const server = await ModernHttp.start(t, {
    override: ({ path }, response) => {
      if (path === '/mcp') response.writeHead(307, { location: home }).end()
      else if (path !== home) response.writeHead(404, { 'content-type': 'text/html' }).end('Not found')
      else return false
      return true
    },
  })
  const { url } = await startBridge(t, { url: server.url })
  t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
  home = '/new/'
  t.match((await call(url, 'tools/call', ECHO)).message, ECHOED)
})
