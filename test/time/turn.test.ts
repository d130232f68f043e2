/** Delaying writes to the end of a turn of the event loop. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import t from 'tap'
import { atTurnEnd, corkUntilTurnEnd } from '../../src/base/time/turn.js'

t.test(
  'acts after the events of the turn, in the order of the calls, also if one of them puts off another',
  async (t) => {
    const done: string[] = []
    await new Promise<void>((resolve) => {
      setImmediate(() => {
        atTurnEnd(() => {
          done.push('first')
          atTurnEnd(() => {
            done.push('later')
            resolve()
          })
        })
        atTurnEnd(() => done.push('second'))
        queueMicrotask(() => done.push('microtask'))
        process.nextTick(() => done.push('tick'))
      })
    })
    t.same(done, ['tick', 'microtask', 'first', 'second', 'later'])
  },
)

t.test('a corked stream gets its bytes at the end of the turn, once', async (t) => {
  const stream = new PassThrough()
  corkUntilTurnEnd(stream)
  corkUntilTurnEnd(stream)
  stream.write('a')
  stream.write('b')
  t.equal(stream.read(), null)
  await new Promise<void>((resolve) => atTurnEnd(resolve))
  t.equal(stream.writableCorked, 0)
  t.equal(String(stream.read()), 'ab')
})

t.test('a stream that is destroyed in between is no error', async (t) => {
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket: Socket = connect((server.address() as { port: number }).port, '127.0.0.1')
  await once(socket, 'connect')
  corkUntilTurnEnd(socket)
  socket.write('never sent')
  socket.destroy()
  await new Promise<void>((resolve) => atTurnEnd(resolve))
  t.equal(socket.destroyed, true)
  server.close()
})
