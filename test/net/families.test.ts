/** Hosts with several addresses, some of which cannot be reached. */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import {
  type AddressInfo,
  connect,
  getDefaultAutoSelectFamilyAttemptTimeout,
  type LookupFunction,
  type Socket,
  setDefaultAutoSelectFamilyAttemptTimeout,
} from 'node:net'
import { execPath, platform } from 'node:process'
import t, { type Test } from 'tap'
import { ipv4Addresses } from '../../src/base/net/connect.js'
import { waitForEachAddress } from '../../src/base/net/families.js'
import { reachOf, serverConnector } from '../../src/base/net/server-connect.js'
import { causeOf, whatOf } from '../../src/servers/transport/causes.js'
import { Origin } from '../../src/servers/transport/origin.js'
import { startBridge } from '../support/bridge.js'
import { until } from '../support/eventually.js'
import { freePort } from '../support/free-port.js'
import { call } from '../support/modern.js'

const skip = platform === 'linux' ? false : 'other systems queue connections in other ways'

/** A server in a process that can stand still with a full queue of connections: a further one then takes a second or more. */
async function slowServer(t: Test): Promise<{ port: number; goOn(): void; standStill(): Promise<void> }> {
  const script = `const s = require('node:net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () =>
    console.log(s.address().port))`
  const child = spawn(execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const port = await new Promise<number>((resolve) => child.stdout.once('data', (text) => resolve(Number(text))))
  const queued = new Set<Socket>()
  t.teardown(() => queued.forEach((socket) => socket.destroy()))
  const isStill = () => /^State:\s+T/m.test(readFileSync(`/proc/${child.pid}/status`, 'utf8'))
  return {
    port,
    goOn: () => child.kill('SIGCONT'),
    async standStill() {
      child.kill('SIGSTOP')
      await until(isStill, 'the server stands still')
      let connected = 0
      // The queue has room for two; further connections wait.
      for (let n = 0; n < 4; n++)
        queued.add(connect({ host: '127.0.0.1', port }, () => connected++).on('error', () => {}))
      await until(() => connected >= 2, 'a full queue')
    },
  }
}

/** Resolves every host to an address where the server is, and one where nothing listens. */
const twoAddresses = (asked?: () => void): LookupFunction => {
  const addresses = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }))
  return (_host, _options, done) => {
    asked?.()
    done(null, addresses)
  }
}

t.test('waits a second for an address, although another one is unreachable', { skip }, async (t) => {
  const { port, goOn, standStill } = await slowServer(t)
  const target = { hostname: 'two.example', host: 'two.example', protocol: 'http:', port: String(port) }
  // A busy machine may let the server go on too late. Then it is tried again.
  await until(async () => {
    await standStill()
    let opened = Promise.resolve(false)
    await new Promise<void>((goesOn) => {
      const goOnLater = () => setTimeout(() => goesOn(goOn()), 400)
      const open = serverConnector({ tls: { lookup: twoAddresses(goOnLater) } })
      opened = new Promise((resolve) => {
        open(target, (error, socket) => {
          socket?.destroy()
          resolve(error === null)
        })
      })
    })
    return opened
  }, 'the connection')
})

t.test(
  'if no address of a host is reachable in time, the failure has a cause, and nothing was executed',
  { skip },
  async (t) => {
    const { port, standStill } = await slowServer(t)
    await standStill()
    const url = new URL(`http://two.example:${port}/mcp`)
    const { connect } = reachOf(url, { proxyOf: () => undefined })
    t.ok(connect, 'also without a proxy and certificates')
    const origin = new Origin({ url, connect: serverConnector({ tls: { lookup: twoAddresses() } }) })
    t.teardown(() => origin.close(true))
    const failed = origin.askOrigin({ method: 'POST', headers: {}, body: '{}' }, { onHead: () => 'whole' })
    await t.rejects(failed, { message: 'The connection timed out', delivered: 'no' })
  },
)

t.test('if every address of a host refuses connections, nothing was executed', async (t) => {
  const port = await freePort()
  const { url } = await startBridge(t, { url: `http://localhost:${port}/mcp` })
  const { error } = (await call(url, 'tools/list')).message
  t.match(error, { message: /Connection refused/, data: { outcome: 'not_executed' } })
})

t.test('every cause has a name', async (t) => {
  const failed = (code: string, message = '') => Object.assign(new Error(message), { code })
  const all = (...codes: string[]) =>
    Object.assign(new AggregateError(codes.map((code) => failed(code))), { code: codes[0] })
  t.equal(whatOf(all('ETIMEDOUT', 'ENETUNREACH')), 'The connection timed out')
  t.equal(whatOf(all('EUNHEARDOF', 'ENETUNREACH')), 'The network of the host is unreachable')
  t.equal(whatOf(all('EUNHEARDOF')), 'EUNHEARDOF')
  t.equal(whatOf(failed('EUNHEARDOF')), 'EUNHEARDOF')
  t.equal(whatOf(new AggregateError([])), 'AggregateError')
  t.equal(causeOf(failed('ETIMEDOUT'))?.notSent, undefined, 'an open connection may end with it')
})

t.test('packages wait for each address, too', (t) => {
  const before = getDefaultAutoSelectFamilyAttemptTimeout()
  t.teardown(() => setDefaultAutoSelectFamilyAttemptTimeout(before))
  waitForEachAddress()
  t.equal(getDefaultAutoSelectFamilyAttemptTimeout(), 2_000)
  t.end()
})

t.test('a server that is reached over IPv4 only is not tried over IPv6', async (t) => {
  const server = createServer((_request, response) => response.writeHead(404).end())
  const isBound = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(0, '::1', () => resolve(true))
  })
  t.teardown(() => server.close())
  const asked: unknown[] = []
  const six = isBound ? (server.address() as AddressInfo).port : 0
  const lookup: LookupFunction = (_host, { all, family }, done) => {
    asked.push(family)
    const found = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]
    const fit = found.filter((one) => family !== 4 || one.family === 4)
    if (all) done(null, fit)
    else done(null, fit[0]?.address ?? '', fit[0]?.family)
  }
  const target = { hostname: 'both.example', host: 'both.example', protocol: 'http:', port: String(six) }
  const dial = (ipv4: boolean) =>
    new Promise<string>((resolve) => {
      serverConnector({ ipv4, timeout: 5_000, tls: { lookup } })(target, (error, socket) => {
        resolve(error ? String((error as NodeJS.ErrnoException).code) : String(socket?.remoteAddress))
        socket?.destroy()
      })
    })
  if (isBound) t.equal(await dial(false), '::1')
  t.equal(await dial(true), 'ECONNREFUSED', 'the port is open over IPv6 alone')
  t.equal(asked.at(-1), 4)
  t.same(await ipv4Addresses('localhost'), ['127.0.0.1'], 'the same for a sign-in')
})
