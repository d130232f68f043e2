/** Servers that close a connection before the bridge has read their answer: the bridge still reads all of it. */
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Origin } from '../../src/servers/transport/origin.js'
import { until } from '../support/eventually.js'

/** A little more than a stream buffers before it is read, so that nothing is left on the socket. */
const BODY = 'x'.repeat(70_000)
const head = (...lines: string[]) =>
  `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}connection: close\r\n\r\n`

const FRAMINGS: [name: string, answer: string][] = [
  ['its length', head(`content-length: ${BODY.length}`) + BODY],
  ['chunks', `${head('transfer-encoding: chunked')}${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`],
  ['the end of the connection', head() + BODY],
]

const get = async (origin: Origin) => (await origin.dispatcher).request({ origin: '', method: 'GET', path: '/mcp' })

/** Starts a server that answers each request with this response and closes the connection. */
async function startServer(t: Test, answer: string) {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {}).once('data', () => socket.end(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  return { url: new URL(`http://127.0.0.1:${port}/mcp`), sockets }
}

for (const [name, answer] of FRAMINGS)
  t.test(`an answer in ${name} is whole, although it is read after the connection ended`, async (t) => {
    const { url, sockets } = await startServer(t, answer)
    const origin = new Origin({ url, connections: 1 })
    t.teardown(() => origin.close(true))
    const { body } = await get(origin)
    await until(() => sockets[0]?.writableFinished === true, 'the end of what the server writes')
    // Node reports the end of the connection one turn after the last bytes.
    for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setTimeout(resolve, 2))
    t.equal((await body.text()).length, BODY.length)
  })

t.test('an answer that is never read does no harm when its connection ends', async (t) => {
  const { url, sockets } = await startServer(t, head() + BODY)
  const origin = new Origin({ url, connections: 1 })
  t.teardown(() => origin.close(true))
  const { body } = await get(origin)
  await until(() => sockets[0]?.writableFinished === true, 'the end of what the server writes')
  for (let turns = 0; turns < 50; turns++) await new Promise((resolve) => setTimeout(resolve, 2))
  body.on('error', () => {}).destroy()
  const { body: second } = await get(origin)
  t.equal((await second.text()).length, BODY.length)
})
