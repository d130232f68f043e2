/** Listening at all addresses, on systems with and without IPv6. */
import { connect, createServer, Server } from 'node:net'
import t from 'tap'
import { listenAt } from '../../src/base/net/listen.js'

/** Whether this machine has IPv6 at all. */
async function hasIpv6(): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(0, '::1', () => server.close(() => resolve(true)))
  })
}

t.test('all addresses are those of both families', async (t) => {
  const server = createServer((socket) => socket.end())
  t.teardown(() => server.close())
  const { address, port } = await listenAt(server, '::', 0)
  for (const host of ['127.0.0.1', ...((await hasIpv6()) ? ['::1'] : [])])
    await new Promise<void>((resolve, reject) => connect({ host, port }).once('connect', resolve).once('error', reject))
  t.equal(address, (await hasIpv6()) ? '::' : '0.0.0.0')
})

/** A server of a system that lacks an address. */
class Lacking extends Server {
  readonly tried: unknown[] = []
  readonly #hosts: readonly string[]
  readonly #code: string

  constructor(hosts: readonly string[], code: string) {
    super()
    this.#hosts = hosts
    this.#code = code
  }

  override listen(...args: unknown[]): this {
    const [{ host = '' }] = args as [{ host?: string }]
    this.tried.push(host)
    if (!this.#hosts.includes(host)) return super.listen({ host, port: 0 })
    process.nextTick(() => this.emit('error', Object.assign(new Error(`listen ${this.#code}`), { code: this.#code })))
    return this
  }
}

t.test('without IPv6, all addresses are those of IPv4', async (t) => {
  for (const code of ['EAFNOSUPPORT', 'EADDRNOTAVAIL']) {
    const server = new Lacking(['::'], code)
    t.teardown(() => server.close())
    t.match(await listenAt(server, '::', 0), { address: '0.0.0.0', port: Number })
    t.same(server.tried, ['::', '0.0.0.0'])
  }
})

t.test('no other address is replaced, and no other error is passed over', async (t) => {
  await t.rejects(listenAt(new Lacking(['::1'], 'EADDRNOTAVAIL'), '::1', 0), { code: 'EADDRNOTAVAIL' })
  await t.rejects(listenAt(new Lacking(['::'], 'EADDRINUSE'), '::', 0), { code: 'EADDRINUSE' })
})
