/** Pins of origins, with TLS servers on the loopback. */
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect as dial, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { Agent, buildConnector, request } from 'undici'
import { guardedConnector } from '../../src/base/net/connect.js'
import { Guard } from '../../src/base/net/guard.js'
import {
  assertPinned,
  isPin,
  lookAt,
  originToPin,
  pinnedConnector,
  pinOf,
} from '../../src/services/discovery/trust/pin.js'
import { makeCa, makeKeys, type ServerOptions, serveTls } from '../support/tls.js'

const ca = await makeCa()
const keys = await makeKeys()
const own = await ca.serverOptions(['localhost', '127.0.0.1'], { keys })
const other = await ca.serverOptions(['localhost', '127.0.0.1'])
const OTHER_PIN = other.pin

function serve(t: Test, shown: Pick<ServerOptions, 'key' | 'cert'>) {
  return serveTls(t, shown, (_request, response) => response.end('here'))
}

function agent(t: Test, origin: string, pins: readonly string[], more: object = {}): Agent {
  const agent = new Agent({ connect: pinnedConnector(origin, pins, { ca: ca.cert, ...more }) })
  t.teardown(() => agent.destroy())
  return agent
}

const ask = async (url: string, dispatcher: Agent) => (await request(url, { dispatcher })).body.text()

t.test('reaches a server with the pinned key under each of its names', async (t) => {
  const { port } = await serve(t, own)
  for (const host of ['localhost', '127.0.0.1']) {
    const origin = `https://${host}:${port}`
    t.equal(await ask(origin, agent(t, origin, [own.pin])), 'here')
  }
})

t.test('accepts the backup pin, and a new certificate for the same key', async (t) => {
  const renewed = await ca.serverOptions(['localhost'], { keys })
  const { port } = await serve(t, renewed)
  const origin = `https://localhost:${port}`
  t.equal(await ask(origin, agent(t, origin, [OTHER_PIN, own.pin])), 'here')
})

const refused: [name: string, shown: () => Promise<ServerOptions>, pins: readonly string[], code: string][] = [
  ['another key, with a certificate that is right', async () => other, [own.pin], 'ERR_PIN_MISMATCH'],
  ['no pin at all', async () => own, [], 'ERR_PIN_MISMATCH'],
  [
    'the pinned key for another host',
    () => ca.serverOptions(['other.example'], { keys }),
    [own.pin],
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ],
  [
    'the pinned key, signed by itself',
    () => ca.serverOptions(['localhost'], { keys, selfSigned: true }),
    [own.pin],
    'DEPTH_ZERO_SELF_SIGNED_CERT',
  ],
  [
    'the pinned key, of another authority',
    async () => (await makeCa('another')).serverOptions(['localhost'], { keys }),
    [own.pin],
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  ],
  [
    'the pinned key, long ago',
    () => ca.serverOptions(['localhost'], { keys, notAfter: new Date(Date.now() - 3_600_000) }),
    [own.pin],
    'CERT_HAS_EXPIRED',
  ],
]
for (const [name, shown, pins, code] of refused)
  t.test(`refuses ${name}, and sends nothing`, async (t) => {
    const server = await serve(t, await shown())
    const origin = `https://localhost:${server.port}`
    await t.rejects(ask(origin, agent(t, origin, pins)), { code })
    await t.rejects(ask(origin, agent(t, origin, pins, { rejectUnauthorized: false })), { code })
    t.same(server.asked, [])
  })

t.test('pins apply to one origin, and no other server is connected to in its place', async (t) => {
  const [one, two] = [await serve(t, own), await serve(t, own)]
  const dispatcher = agent(t, `https://localhost:${one.port}`, [own.pin])
  for (const url of [`https://localhost:${two.port}`, `https://127.0.0.1:${one.port}`, `http://localhost:${one.port}`])
    await t.rejects(ask(url, dispatcher), { code: 'ERR_PIN_MISMATCH' }, url)
  t.equal(one.accepted + two.accepted, 0)
})

t.test('checks each connection, so a changed key is noticed at the next one', async (t) => {
  let asked = 0
  const server = createServer(own, (_request, response) => {
    asked++
    response.setHeader('connection', 'close').end('here')
  }).on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const origin = `https://localhost:${(server.address() as AddressInfo).port}`
  const dispatcher = agent(t, origin, [own.pin])
  t.equal(await ask(origin, dispatcher), 'here')
  server.setSecureContext(other)
  await t.rejects(ask(origin, dispatcher), { code: 'ERR_PIN_MISMATCH' })
  server.setSecureContext(own)
  t.equal(await ask(origin, dispatcher), 'here')
  t.equal(asked, 2)
})

t.test('resumes no session, so an old one bypasses no check', async (t) => {
  const { port } = await serve(t, own)
  const connector = buildConnector({ ca: ca.cert })
  const target = { protocol: 'https:', hostname: 'localhost', port: String(port) }
  const open = (connect: buildConnector.connector) =>
    new Promise<TLSSocket>((resolve, reject) =>
      connect(target, (...[error, socket]) => (error ? reject(error) : resolve(socket as TLSSocket))),
    )
  const used = async (connect: buildConnector.connector) => {
    const socket = await open(connect)
    const reused = socket.isSessionReused()
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    await new Promise((resolve) => socket.resume().once('close', resolve))
    return reused
  }
  t.same([await used(connector), await used(connector)], [false, true], 'as undici does it otherwise')
  const pinned = pinnedConnector(`https://localhost:${port}`, [own.pin], { ca: ca.cert })
  t.same([await used(pinned), await used(pinned)], [false, false])
})

t.test('refuses a resumed session, although Node verifies nothing of it', async (t) => {
  const { port } = await serve(t, own)
  let checked = 0
  const open = async (session?: Buffer) => {
    const checkServerIdentity = () => void checked++
    const names = { port, host: 'localhost', servername: 'localhost' }
    const socket = dial({ ...names, ca: ca.cert, checkServerIdentity, ...(session && { session }) })
    t.teardown(() => socket.destroy())
    await once(socket, 'secureConnect')
    return socket
  }
  const first = await open()
  assertPinned(first, 'localhost', [own.pin])
  const [session] = (await once(first.resume(), 'session')) as [Buffer]
  const second = await open(session)
  t.equal(second.isSessionReused(), true)
  t.equal(checked, 1)
  t.throws(() => assertPinned(second, 'localhost', [own.pin]), { code: 'ERR_PIN_MISMATCH' })
})

t.test('checks the connections of the guard in the same way', async (t) => {
  const { port, asked } = await serve(t, own)
  const origin = `https://localhost:${port}`
  const guard = new Guard({ allowLoopback: true })
  const dispatcher = (pins: readonly string[]) => {
    const secured = (socket: TLSSocket, host: string) => assertPinned(socket, host, pins)
    const agent = new Agent({ connect: guardedConnector({ guard, ca: ca.cert, secured }) })
    t.teardown(() => agent.destroy())
    return agent
  }
  t.equal(await ask(origin, dispatcher([OTHER_PIN, own.pin])), 'here')
  await t.rejects(ask(origin, dispatcher([OTHER_PIN])), {
    phase: 'tls',
    reason: 'pin',
    cause: { code: 'ERR_PIN_MISMATCH' },
  })
  t.same(asked, ['/'])
  t.match(await lookAt(origin, guardedConnector({ guard, ca: ca.cert })), { pin: own.pin })
})

t.test('shows a certificate and its key without a pin', async (t) => {
  const { port } = await serve(t, own)
  const seen = await lookAt(`https://localhost:${port}`, buildConnector({ ca: ca.cert }))
  t.match(seen, { pin: own.pin, subject: 'localhost', issuer: 'Authority of a test', names: /DNS:localhost/ })
  await t.rejects(lookAt(`https://localhost:${port}`, buildConnector({})), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
})

t.test('pins are for TLS addresses, and have a fixed form', async (t) => {
  t.equal(originToPin('https://mcp.example:443/x?y'), 'https://mcp.example')
  t.throws(() => originToPin('http://127.0.0.1/mcp'), { name: 'TypeError' })
  t.equal(isPin(own.pin), true)
  for (const text of ['', own.pin.slice(1), `${own.pin}=`, own.pin.replace(/.=$/, '!='), `sha256/${own.pin}`])
    t.equal(isPin(text), false, text)
  const der = Buffer.from(own.cert.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
  t.equal(pinOf(der), own.pin)
})
