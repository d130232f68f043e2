/** What becomes of lines whose reader is slow, has gone, or has no room. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LineWriter } from '../../src/base/log/writer.js'
import { until } from '../support/eventually.js'
import { temporaryFolder } from '../support/folder.js'

const LINE = `${'x'.repeat(1_023)}\n`

/** A named pipe, to which a writer writes, and a way to read what is in it. */
function namedPipe(t: Test, options: { max?: number; retry?: number; isShared?: boolean } = {}) {
  const path = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [path])
  const openReader = () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  let reader = openReader()
  const fd = openSync(path, constants.O_WRONLY)
  const socket = new Socket({ fd, readable: false, writable: true })
  socket.on('error', () => {})
  // As the standard streams of a process do: they outlive their errors.
  socket._destroy = (error, done) => {
    done(error)
    ;(socket as unknown as { _undestroy(): void })._undestroy()
  }
  t.teardown(() => {
    Reflect.deleteProperty(socket, '_destroy')
    socket.destroy()
    closeSync(reader)
  })
  const writer = new LineWriter({ fd, stream: () => socket, ...options })
  const bytes = Buffer.alloc(64 * 1024)
  let text = ''
  const read = () => {
    try {
      for (let length = -1; length !== 0; ) {
        length = readSync(reader, bytes)
        text += bytes.toString('utf8', 0, length)
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
    }
    return text.split('\n').slice(0, -1)
  }
  return {
    writer,
    read,
    leave: () => closeSync(reader),
    comeBack: () => {
      reader = openReader()
    },
  }
}

t.test('buffers unread lines up to a bound, and reports dropped ones where they are missing', async (t) => {
  const { writer, read } = namedPipe(t, { max: 100 * 1024 })
  writer.onRoom = (lines) => writer.write(`${lines} dropped\n`)
  for (let i = 0; i < 1_000; i++) writer.write(LINE)
  t.equal(await writer.flush(50), false, 'a flush gives up when its time is over')
  await until(() => read().some((line) => line.endsWith('dropped')))
  const lines = read()
  const at = lines.findIndex((line) => line.endsWith('dropped'))
  t.equal(lines[at], `${1_000 - at} dropped`, 'no line is neither there nor counted')
  t.ok(
    lines.slice(0, at).every((line) => `${line}\n` === LINE),
    'and none is torn',
  )
  writer.write('after\n')
  t.equal(await writer.flush(30_000), true)
  t.equal(read().at(-1), 'after')
})

t.test('a reader that has gone costs nothing, and one that returns gets a report', async (t) => {
  const { writer, read, leave, comeBack } = namedPipe(t, { max: 4 * 1024, retry: 10 })
  writer.onRoom = (lines) => writer.write(`${lines} dropped\n`)
  writer.write(LINE)
  await until(() => read().length === 1)
  leave()
  for (let i = 0; i < 10; i++) writer.write(LINE)
  t.equal(await writer.flush(30_000), true, 'nobody waits for a reader that has gone')
  comeBack()
  await until(() => read().some((line) => line.endsWith('dropped')))
})

t.test('retries a full device, and delays nobody', async (t) => {
  // It stays open: the writer goes on trying.
  const fd = openSync('/dev/full', 'w')
  const writer = new LineWriter({ fd, stream: () => t.fail('this is no pipe') as never, retry: 10 })
  for (let i = 0; i < 2_000; i++) writer.write(LINE)
  t.equal(await writer.flush(30_000), true)
})

t.test('a file gets every line in order', async (t) => {
  const path = join(temporaryFolder(t), 'log')
  const fd = openSync(path, 'a')
  t.teardown(() => closeSync(fd))
  const writer = new LineWriter({ fd, stream: () => t.fail('this is no pipe') as never })
  for (let i = 0; i < 500; i++) writer.write(`${i}\n`)
  t.equal(await writer.flush(30_000), true)
  t.equal(readFileSync(path, 'utf8'), Array.from({ length: 500 }, (_, i) => `${i}\n`).join(''))
})

t.test('lines that come soon after a write go together, at the latest when they are flushed', async (t) => {
  const path = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR)
  t.teardown(() => closeSync(fd))
  const writes: string[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      writes.push(chunk.toString())
      done()
    },
  })
  const writer = new LineWriter({ fd, stream: () => stream, gather: 60_000 })
  writer.write('alone\n')
  await until(() => writes.length === 1)
  for (const line of ['one\n', 'two\n']) {
    writer.write(line)
    await turn()
  }
  t.equal(await writer.flush(30_000), true)
  t.same(writes, ['alone\n', 'one\ntwo\n'])
  writer.write('last\n')
  for (let i = 0; i < 64; i++) writer.write(LINE)
  await until(() => writes.length === 3)
  t.equal(writes[2], `last\n${LINE.repeat(64)}`, 'many lines wait for nothing')
  t.equal(await writer.flush(30_000), true, 'no timer is left')
})

t.test('where other processes write, too, lines are written in parts that stay whole', async (t) => {
  const written: number[] = []
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.length)
      done()
    },
  })
  const path = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [path])
  const fd = openSync(path, constants.O_RDWR)
  t.teardown(() => closeSync(fd))
  const writer = new LineWriter({ fd, stream: () => stream, isShared: true })
  const line = `${'ü'.repeat(199)}\n`
  for (let i = 0; i < 100; i++) writer.write(line)
  writer.write(LINE.repeat(8))
  t.equal(await writer.flush(30_000), true)
  t.equal(
    written.reduce((sum, one) => sum + one),
    100 * Buffer.byteLength(line) + 8 * LINE.length,
  )
  t.ok(written.slice(0, -1).every((bytes) => bytes <= 4_096))
  t.equal(written.at(-1), 8 * LINE.length, 'a line that is longer goes by itself')
})
