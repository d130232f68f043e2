/** Connections that are opened and say nothing take no place from those who ask. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Agent, request } from 'undici'
import { Listener } from '../../src/app/listener.js'
import type { Fault } from '../../src/base/fault/fault.js'
import { PemFiles } from '../../src/base/net/pem-files.js'
import { listen } from '../../src/services/oauth/person/loopback.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'
import { legacyStdio } from '../support/legacy-stdio.js'
import { call } from '../support/modern.js'
import { raw } from '../support/raw.js'
import { makeCa } from '../support/tls.js'

/** Opens connections that send this, and nothing more. */
async function open(t: Test, url: string, count: number, said = ''): Promise<{ closed: number; sockets: Socket[] }> {
  const { hostname, port } = new URL(url)
  const state = { closed: 0, sockets: [] as Socket[] }
  for (let n = 0; n < count; n++) {
    const socket = connect(Number(port), hostname.replace(/^\[|\]$/g, ''))
    state.sockets.push(socket)
    t.teardown(() => socket.destroy())
    socket.on('error', () => {}).on('close', () => state.closed++)
    socket.resume()
    await once(socket, 'connect')
    if (said !== '') socket.write(said)
  }
  return state
}

const GET = 'GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n'

async function start(t: Test, most: number, more: object = {}, secure = false) {
  const told: Fault[] = []
  const held: ServerResponse[] = []
  const front = {
    routing: ({ url }: IncomingMessage, response: ServerResponse) => {
      if (url === '/hold') held.push(response)
      else response.end('fine')
    },
  }
  const listener = new Listener(front, {
    maxConnections: most,
    maxConnectionsOption: 'limits.connections',
    write: 30_000,
    refused: (fault) => told.push(fault),
    ...more,
  })
  t.teardown(() => listener.close())
  const origin = await listener.listen({ host: '127.0.0.1', port: 0, secure })
  return { origin, listener, told, held }
}

t.test('closes silent connections for new ones, those silent for longest first', async (t) => {
  const { origin, listener } = await start(t, 4)
  const used = await open(t, origin, 1, GET)
  await until(() => used.sockets[0]?.bytesRead !== 0, 'an answer')
  const silent = await open(t, origin, 2)
  const half = await open(t, origin, 1, 'GET /healthz HTTP/1.1\r\nhost: loc')
  await until(() => listener.connections === 4, 'all connections')
  for (const [closed, name] of [
    [() => silent.closed === 1, 'one that said nothing'],
    [() => silent.closed === 2, 'the other one'],
    [() => half.closed === 1, 'one with half a request'],
  ] as const) {
    await open(t, origin, 1, GET)
    await until(closed, name)
  }
  t.equal(used.closed, 0, 'one that has asked before is kept until then')
  await open(t, origin, 1, GET)
  await until(() => used.closed === 1, 'a connection between two requests')
  t.equal((await raw(origin, [GET])).status, 200)
})

t.test('with all connections in use, the next request gets 503, a reason and Retry-After', async (t) => {
  const { origin, told, held } = await start(t, 3)
  const used = await open(t, origin, 3, GET.replace('/healthz', '/hold'))
  await until(() => held.length === 3, 'three requests')
  const refused = await raw(origin, [GET])
  t.equal(refused.status, 503)
  t.match(refused.head, /retry-after: 1\r\n/i)
  t.match(refused.head, /mcp-bridge-error: overloaded/i)
  t.match(refused.head, /connection: close/i)
  t.match(JSON.parse(refused.body), {
    error: {
      code: -32603,
      message: /Too many connections \(at most 3, limits.connections\)/,
      data: { retryAfterMs: 1_000 },
    },
  })
  t.same(
    told.map(({ fault }) => fault),
    ['overloaded'],
  )
  t.equal(used.closed, 0)
  const silent = await open(t, origin, 100)
  await until(() => silent.closed >= 30, 'silent ones beyond the bound')
  t.equal((await raw(origin, [GET])).status, 503)
  held[0]?.end('done')
  await until(async () => (await raw(origin, [GET])).status === 200, 'room')
})

t.test('the same over TLS, before and after the handshake', async (t) => {
  const folder = temporaryFolder(t)
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const ca = await makeCa()
  const options = await ca.serverOptions(['localhost', '127.0.0.1'])
  writeFileSync(cert, options.cert)
  writeFileSync(key, options.key)
  const pem = new PemFiles({ cert, key })
  const { origin } = await start(t, 2, { pem }, true)
  const silent = await open(t, origin, 2)
  const agent = new Agent({ connect: { ca: ca.cert } })
  t.teardown(() => agent.destroy())
  t.equal((await request(`${origin}/healthz`, { dispatcher: agent })).statusCode, 200)
  await until(() => silent.closed === 1, 'one of them')
  await open(t, origin, 1)
  await until(() => silent.closed === 2, 'the other one')
  t.equal((await request(`${origin}/healthz`, { dispatcher: agent })).statusCode, 200)
})

t.test('silent connections to `admin` do not block /healthz', async (t) => {
  const { bridge, url } = await startBridge(t, legacyStdio(t).server, { admin: 'http://127.0.0.1:0' })
  const admin = String(bridge.adminUrl)
  const silent = await open(t, admin, 110)
  t.equal((await raw(admin, [GET])).status, 200)
  t.ok(silent.closed < 20, `${silent.closed} are closed`)
  t.equal((await call(url, 'tools/list')).status, 200)
})

t.test('silent connections to the callback of a sign-in do not block the browser', async (t) => {
  const listener = await listen({ port: 0, path: '/callback', name: 'own', onAnswer: async () => 'signedIn' })
  if (!listener) throw new Error('no port')
  t.teardown(() => listener.close())
  await open(t, `http://127.0.0.1:${listener.port}`, 70)
  const status = await new Promise((resolve, reject) => {
    const headers = { host: `localhost:${listener.port}` }
    get({ host: '127.0.0.1', port: listener.port, path: '/callback?code=1', headers }, (response) =>
      resolve(response.resume().statusCode),
    ).on('error', reject)
  })
  t.equal(status, 200)
})
