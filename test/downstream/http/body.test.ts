/** How bodies are read: to the letter, within bounds, and with their reservation released whatever happens. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { fastify } from 'fastify'
import t, { type Test } from 'tap'
import { Fault } from '../../../src/base/fault/fault.js'
import { Memory } from '../../../src/base/limits/memory.js'
import { readBodies, reserveUntilClosed } from '../../../src/clients/http/body.js'
import { until } from '../../support/eventually.js'
import { raw } from '../../support/raw.js'

const KIB = 1024
const LIMIT = 1024 * KIB

async function start(t: Test, memory = new Memory({ max: 8 * LIMIT })) {
  const app = fastify({ bodyLimit: LIMIT })
  const bodies: Buffer[] = []
  app.decorateRequest('principal', 'local')
  app.setErrorHandler((error, _request, reply) => {
    reply.code(Fault.from(error).status).send({ message: Fault.from(error).message })
  })
  await app.register(async (inner) => {
    readBodies(inner, memory)
    inner.post('/', async (request, reply) => {
      reserveUntilClosed(request, reply)
      bodies.push(request.body as Buffer)
      return { used: memory.used }
    })
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  return { url, memory, bodies }
}

const head = (length?: number) => {
  const framing = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`
  return `POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`
}
const chunked = (pieces: readonly Buffer[]) => [
  ...pieces.map((piece) =>
    Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
  ),
  Buffer.from('0\r\n\r\n'),
]
const bytes = (length: number) => Buffer.from(Array.from({ length }, (_, at) => (at * 7) % 256))
const split = (whole: Buffer, size: number) =>
  Array.from({ length: Math.ceil(whole.length / size) }, (_, at) => whole.subarray(at * size, (at + 1) * size))

t.test('a body is what was sent, of any size and however it is split', async (t) => {
  const { url, memory, bodies } = await start(t)
  for (const length of [1, 300, 16 * KIB, 16 * KIB + 1, 100_000, LIMIT]) {
    const body = bytes(length)
    for (const size of [length, Math.ceil(length / 3), Math.ceil(length / 50)]) {
      const pieces = split(body, size)
      t.equal((await raw(url, [head(length), ...pieces])).status, 200)
      t.ok(bodies.pop()?.equals(body), `${length} bytes in pieces of ${size}`)
      t.equal((await raw(url, [head(), ...chunked(pieces)])).status, 200)
      t.ok(bodies.pop()?.equals(body), `${length} bytes in chunks of ${size}`)
    }
  }
  const small = bytes(2_000)
  t.equal((await raw(url, [head(), ...chunked(split(small, 1))])).status, 200)
  t.ok(bodies.pop()?.equals(small), 'byte by byte')
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('a large body reserves memory until it is answered, a small one reserves none', async (t) => {
  const { url, memory } = await start(t)
  const used = async (length: number) => JSON.parse((await raw(url, [head(length), bytes(length)])).body).used as number
  t.equal(await used(16 * KIB), 0)
  t.equal(await used(100 * KIB), 200 * KIB)
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('reserves nothing for a declared length, and releases the memory of an incomplete body', async (t) => {
  const { url, memory } = await start(t)
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(head(LIMIT))
  socket.write(bytes(20 * KIB))
  await until(() => memory.used > 0, 'the reservation of the beginning')
  t.ok(memory.used <= 160 * KIB)
  socket.destroy()
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('without memory, refuses a body by its length, or by the bytes received', async (t) => {
  const memory = new Memory({ max: 256 * KIB })
  const { url } = await start(t, memory)
  t.equal((await raw(url, [head(200 * KIB)])).status, 503, 'before any of it has come')
  const refused = await raw(url, [head(), ...chunked(split(bytes(200 * KIB), 4 * KIB))])
  t.equal(refused.status, 503)
  t.match(refused.body, /limits\.memory/)
  t.equal((await raw(url, [head(10 * KIB), bytes(10 * KIB)])).status, 200, 'small ones need nothing')
  t.equal((await raw(url, [head(100 * KIB), bytes(100 * KIB)])).status, 200)
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('refuses a body over the limit by its length, or by the bytes received', async (t) => {
  const { url, memory } = await start(t)
  t.equal((await raw(url, [head(LIMIT + 1)])).status, 413)
  t.equal((await raw(url, [head(), ...chunked(split(bytes(LIMIT + 1), 64 * KIB))])).status, 413)
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('refuses a body in ten thousand chunks of one byte, but not one in chunks of 512', async (t) => {
  const { url, memory } = await start(t)
  const tiny = Buffer.concat(chunked(split(bytes(10_000), 1)))
  t.equal((await raw(url, [head(), tiny])).status, 400)
  t.equal((await raw(url, [head(), Buffer.concat(chunked(split(bytes(LIMIT), 512)))])).status, 200)
  await until(() => memory.used === 0, 'everything being given back')
})
