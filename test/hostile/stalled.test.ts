/** Clients that do not read what is written to them are cut off, and those that read slowly are not. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Stalled } from '../../src/app/stalled.js'
import { leaper } from '../support/clock.js'
import { repeatUntil, until } from '../support/eventually.js'

/** Longer than this test: the limit is over when the clock is moved on. */
const LIMIT = 3_600_000

/** A server that writes to whoever connects, as `write` does it, under a watch. */
async function start(t: Test, write: (socket: Socket) => void) {
  const stalled = new Stalled(LIMIT)
  const opened: Socket[] = []
  const cut: Socket[] = []
  const server = createServer((socket) => {
    stalled.watch(socket)
    opened.push(socket)
    socket.on('error', () => {})
    socket.on('close', () => cut.push(socket))
    write(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets: Socket[] = []
  t.teardown(() => {
    stalled.close()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as { port: number }
  return {
    stalled,
    opened,
    cut,
    open: async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      sockets.push(socket)
      socket.pause()
      await once(socket, 'connect')
      return socket
    },
  }
}

const LARGE = Buffer.alloc(64 * 1024 * 1024, 'x')

t.test('cuts off a client that reads nothing of one large write, or of many small ones', async (t) => {
  const ways: [string, (socket: Socket) => void][] = [
    ['one large write', (socket) => socket.write(LARGE)],
    [
      'many small writes, and signs of life between them',
      (socket) => {
        for (let at = 0; at < 1_000; at++) socket.write(LARGE.subarray(0, 64 * 1024))
        const timer = setInterval(() => socket.write(': keep-alive\n\n'), 50)
        socket.once('close', () => clearInterval(timer))
      },
    ],
  ]
  const leap = leaper(t)
  for (const [name, write] of ways) {
    const { cut, stalled, open } = await start(t, write)
    await open()
    const wait = () => {
      leap(LIMIT)
      stalled.look()
    }
    await repeatUntil(wait, () => cut.length === 1, `${name}: the connection being cut`)
    t.equal(stalled.size, 0)
  }
})

t.test('keeps a client that has nothing to read, or reads slowly', async (t) => {
  const leap = leaper(t)
  const { stalled, cut, open, opened } = await start(t, (socket) => socket.write(LARGE))
  const slow = await open()
  const unwritten = () => (opened[0] as unknown as { _handle: { writeQueueSize: number } })._handle.writeQueueSize
  const idle = await start(t, (socket) => socket.write('small'))
  await idle.open()
  for (let leaps = 0; leaps < 4; leaps++) {
    leap(0.9 * LIMIT)
    const before = unwritten()
    slow.on('data', () => {
      if (unwritten() < before) slow.pause()
    })
    slow.resume()
    await until(() => slow.isPaused(), 'the client reading')
    slow.removeAllListeners('data')
    stalled.look()
  }
  t.ok(unwritten() > 0, 'not everything was read')
  t.equal(cut.length, 0)
  t.equal(idle.cut.length, 0)
})
