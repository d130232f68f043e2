/** A name that leads to several IP addresses of a server: those that come, and those that leave. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import t from 'tap'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { listenAtOwnPort } from '../support/free-port.js'
import { LegacyClient } from '../support/legacy-client.js'
import { LegacyHttp } from '../support/legacy-http.js'
import { call } from '../support/modern.js'
import { ModernHttp } from '../support/modern-http.js'

const ECHO = { name: 'echo', arguments: { x: 1 } }
const ACT = { name: 'act', arguments: {} }
/** Other systems have one loopback address only. */
const skip = process.platform !== 'linux'

/** Lets servers be reached at 127.0.0.2, 127.0.0.3 and so on, at one port. */
async function atOnePort(t: Test, servers: readonly { url: string }[]): Promise<{ port: number; ips: string[] }> {
  let port = 0
  const ips = []
  for (const [at, { url }] of servers.entries()) {
    const ip = `127.0.0.${at + 2}`
    const open = new Set<Socket>()
    const gate = createServer((socket) => {
      const onward = connect(Number(new URL(url).port), '127.0.0.1')
      for (const one of [socket, onward]) open.add(one.on('error', () => {}))
      socket.pipe(onward).pipe(socket)
      socket.on('close', () => onward.destroy())
      onward.on('close', () => socket.destroy())
    })
    if (at === 0) port = await listenAtOwnPort(gate, ip)
    else await once(gate.listen(port, ip), 'listening')
    t.teardown(() => {
      for (const socket of open) socket.destroy()
      gate.close()
    })
    ips.push(ip)
  }
  return { port, ips }
}

/** Runs what the bridge does every five seconds, when the test says so. */
function heldLooks(t: Test): () => void {
  const looks = new Set<() => void>()
  const { setInterval: own } = globalThis
  const set = (run: () => void, every: number) => {
    if (every === 5_000) looks.add(run)
    return own(run, every === 5_000 ? 2 ** 31 - 1 : every)
  }
  Object.assign(globalThis, { setInterval: set })
  t.teardown(() => Object.assign(globalThis, { setInterval: own }))
  return () => {
    for (const look of looks) look()
  }
}

const counts = (servers: readonly { of(method: string): unknown[] }[]) =>
  servers.map((server) => server.of('tools/call').length)

t.test('calls spread over all addresses of a name, and follow it', { skip }, async (t) => {
  const look = heldLooks(t)
  const servers = await Promise.all([ModernHttp.start(t), ModernHttp.start(t), ModernHttp.start(t)])
  const { port, ips } = await atOnePort(t, servers)
  let found: readonly string[] | Error = ips.slice(0, 2)
  const asked: string[] = []
  const resolve = async (host: string) => {
    asked.push(host)
    if (found instanceof Error) throw found
    return found
  }
  const url = `http://replicas.test:${port}/mcp`
  const { url: bridge, log, bridge: own } = await startBridge(t, { url, resolve: 'all' }, {}, { resolve })
  const act = async (times: number) => {
    const before = counts(servers)
    for (let n = 0; n < times; n++) t.ok((await call(bridge, 'tools/call', ACT)).message.result)
    return counts(servers).map((count, at) => count - Number(before[at]))
  }
  const [one, two, three] = await act(40)
  t.ok(Number(one) > 5 && Number(two) > 5 && three === 0, `${one}, ${two}, ${three}`)
  t.match(servers[0]?.of('tools/call')[0]?.headers, { host: `replicas.test:${port}` }, 'the name stays')

  found = [...ips.slice(1)]
  look()
  await until(() => log.some(({ event }) => event === 'addresses_changed'), 'the change')
  const [gone, ...others] = await act(40)
  t.equal(gone, 0)
  t.ok(Math.min(...others) > 5, `${others}`)

  found = new Error('SERVFAIL')
  look()
  await until(() => log.some(({ event }) => event === 'addresses_unknown'), 'the failure')
  t.ok(Math.min(...(await act(40)).slice(1)) > 5, 'the known addresses stay')
  t.match(own.mounts.get('test')?.health.addresses, [
    { address: `${url} at ${ips[1]}`, state: 'ready' },
    { address: `${url} at ${ips[2]}`, state: 'ready' },
  ])
  t.strictSame([...new Set(asked)], ['replicas.test'])
})

t.test('a session goes on at an address that has left the name, and new ones open elsewhere', { skip }, async (t) => {
  const look = heldLooks(t)
  const servers = await Promise.all([LegacyHttp.start(t), LegacyHttp.start(t)])
  const { port, ips } = await atOnePort(t, servers)
  let found = ips
  const { url, log, bridge } = await startBridge(
    t,
    { url: `http://replicas.test:${port}/mcp`, resolve: 'all' },
    {},
    { resolve: async () => found },
  )
  const client = await LegacyClient.open(url)
  await client.request('tools/call', ECHO)
  const at = counts(servers).indexOf(1)
  found = ips.filter((_, n) => n !== at)
  look()
  await until(() => log.some(({ event }) => event === 'addresses_changed'), 'the change')
  const opened = servers[at]?.of('initialize').length
  for (let n = 0; n < 6; n++) {
    t.ok((await client.request('tools/call', ECHO)).message.result, 'the old session')
    const other = await LegacyClient.open(url)
    t.ok((await other.request('tools/call', ECHO)).message.result, 'a new one')
  }
  t.equal(servers[at]?.of('initialize').length, opened)
  t.equal(servers[at]?.of('tools/call').length, 7)

  const known = () => bridge.mounts.get('test')?.health.addresses
  t.equal(known()?.length, 2, 'it drains')
  t.match(known()?.[at], { leaves: true, sessions: 1 })
  await client.end()
  await until(() => {
    look()
    return known()?.length === 1
  }, 'its end')
})

t.test('a name that leads nowhere, or to one address, is served as any other', { skip }, async (t) => {
  const server = await ModernHttp.start(t)
  const { port, ips } = await atOnePort(t, [server])
  const resolve = async () => ips
  const one = await startBridge(t, { url: `http://replicas.test:${port}/mcp`, resolve: 'all' }, {}, { resolve })
  t.ok((await call(one.url, 'tools/call', ACT)).message.result)
  const none = await startBridge(
    t,
    { url: 'http://nowhere.invalid/mcp', resolve: 'all' },
    {},
    { resolve: () => Promise.reject(new Error('ENOTFOUND')) },
  )
  t.match((await call(none.url, 'tools/call', ACT)).message.error, { message: /could not be resolved/ })
})
