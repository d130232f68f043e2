/** When requests to another replica go in frames: if both can, after a proof, and for as long as both have the key. */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { keyOf, Sealer } from '../../src/base/crypto/seal.js'
import { HangUp } from '../../src/base/time/hang-up.js'
import { OwnedByReplica } from '../../src/mcp/ports/replicas.js'
import { FRAMES } from '../../src/services/replicas/frames.js'
import { Internal } from '../../src/services/replicas/internal.js'
import { Peers } from '../../src/services/replicas/peers.js'
import { answerTo, PROOF, prove } from '../../src/services/replicas/proof.js'
import { until } from '../support/eventually.js'

const [OLD, NEW] = [keyOf('a secret of all replicas'), keyOf('the secret that comes after it')]
const REQUEST = { method: 'POST', path: '/mcp', headers: ['host', 'x'], body: Buffer.from('{}') }

/** A replica that listens, and how another one forwards to it. */
async function pair(t: Test, at = 'http://127.0.0.1:0') {
  const sealers = { here: new Sealer([OLD], 'replica'), there: new Sealer([OLD], 'replica') }
  const refused: string[] = []
  const internal = new Internal({
    id: 'one',
    address: new URL(at),
    sealer: () => sealers.there,
    refused: (why) => refused.push(why),
  })
  let isFramed = false
  internal.use((request, response) => {
    isFramed = internal.isForwarded(request) && internal.digestFor(request) === undefined
    request.resume()
    response.writeHead(200, { 'content-length': 2 }).end('{}')
  })
  const address = await internal.listen()
  const { peers, forward } = forwarder(t, address, () => sealers.here)
  t.teardown(() => internal.close())
  const framed = async () => {
    t.match(await forward(), { status: 200 })
    return isFramed
  }
  return { address, internal, peers, sealers, refused, forward, framed }
}

function forwarder(t: Test, address: string, sealer: () => Sealer) {
  const peers = new Peers({ records: { waitFor: async () => address }, sealer, refused: () => {} })
  t.teardown(() => peers.close())
  const forward = () =>
    peers
      .forward(new OwnedByReplica('one', 'session'), { ...REQUEST, received: {} as IncomingMessage }, new HangUp())
      .catch(({ fault }: { fault: string }) => ({ fault }))
  return { peers, forward }
}

t.test('requests go in frames to all kinds of addresses, as soon as there is a connection for them', async (t) => {
  // The path of a socket has to be short.
  const folder = mkdtempSync(join(tmpdir(), 'bridge-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  for (const at of ['http://127.0.0.1:0', 'https://127.0.0.1:0', `unix:${folder}/s`]) {
    const { framed, refused } = await pair(t, at)
    t.notOk(await framed(), 'the first does not wait for that')
    await until(framed, at)
    t.ok(await framed())
    t.same(refused, [])
  }
})

t.test('a replica of an earlier version gets requests over HTTP, with a proof each', async (t) => {
  const sealer = new Sealer([OLD], 'replica')
  const proofs = new Set<unknown>()
  const server = createServer(({ method, headers }, response) => {
    const proof = String(headers[PROOF])
    if (method === 'HEAD') return void response.writeHead(204, { [PROOF]: sealer.sign(answerTo(proof)) }).end()
    proofs.add(proof)
    response.end(String(headers.upgrade))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { forward } = forwarder(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => sealer)
  for (let at = 1; at <= 3; at++) {
    const answer = await forward()
    t.equal('body' in answer && String(answer.body), 'undefined', 'no other protocol is asked for')
    t.equal(proofs.size, at)
  }
})

t.test('a connection for frames needs a proof that is valid, new and for this replica', async (t) => {
  const { address, refused, sealers } = await pair(t)
  const headers = ['host', 'x']
  const proofFor = (to: string, sealer = sealers.here) =>
    prove(sealer, to, { method: 'GET', path: '/', headers, body: '' })
  const open = (proof: string | undefined, protocol = FRAMES) =>
    new Promise<number | undefined>((resolve, reject) => {
      const more = ['connection', 'upgrade', 'upgrade', protocol, ...(proof === undefined ? [] : [PROOF, proof])]
      const asked = httpRequest(address, { headers: [...headers, ...more], agent: false })
      asked.on('response', ({ statusCode }) => resolve(statusCode)).on('error', reject)
      asked.on('upgrade', ({ statusCode }, socket: Socket) => {
        socket.destroy()
        resolve(statusCode)
      })
      asked.end()
    })
  const once = proofFor('one')
  t.equal(await open(once), 101)
  t.equal(await open(once), 401)
  t.equal(await open(undefined), 401)
  t.equal(await open(proofFor('one', new Sealer([NEW], 'replica'))), 401)
  t.equal(await open(proofFor('two')), 421)
  t.same(refused, ['replayed', 'forged', 'forged', 'misdirected'])
  t.equal(await open(proofFor('one'), 'websocket'), 400)
})

t.test('who does not prove that it is the replica gets no frames', async (t) => {
  const sealer = new Sealer([OLD], 'replica')
  const sent: Buffer[] = []
  let upgrades = 0
  const server = createServer(({ method, headers }, response) => {
    const signed = sealer.sign(answerTo(String(headers[PROOF])))
    response.writeHead(method === 'HEAD' ? 204 : 200, { [PROOF]: signed, [FRAMES]: '1' }).end()
  })
  server.on('upgrade', (_request, socket: Socket) => {
    upgrades += 1
    socket.on('data', (bytes: Buffer) => sent.push(bytes)).on('error', () => {})
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${FRAMES}\r\n${PROOF}: x.y\r\n\r\n`,
    )
    t.teardown(() => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { forward } = forwarder(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => sealer)
  await forward()
  await until(() => upgrades > 0)
  for (let at = 0; at < 5; at++) t.match(await forward(), { status: 200 })
  t.same(sent, [])
})

t.test(
  'a connection ends with its key: what goes on over it is refused, and another key makes another one',
  async (t) => {
    const { framed, forward, peers, sealers, refused } = await pair(t)
    await until(framed)
    sealers.there = new Sealer([NEW, OLD], 'replica')
    t.ok(await framed(), 'both have the key')
    sealers.there = new Sealer([NEW], 'replica')
    t.match(await forward(), { fault: 'overloaded' })
    sealers.here = sealers.there
    peers.connectAnew()
    t.notOk(await framed())
    await until(framed)
    t.same(refused, [])
  },
)

t.test('a replica that ends gets no more frames, and refuses what is on the way', async (t) => {
  const { framed, forward, internal } = await pair(t)
  await until(framed)
  internal.leave()
  await until(async () => !(await framed()), 'requests over HTTP')
  t.notOk(await framed())
  const other = await pair(t)
  await until(other.framed)
  const [refused] = await Promise.all([other.forward(), other.internal.close()])
  t.match(refused, { fault: 'sessionNotFound' }, 'its sender looks for another replica')
  await internal.close()
  t.match(await forward(), { fault: 'sessionNotFound' })
})
