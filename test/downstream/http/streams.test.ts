/** Streams of one session, without any HTTP around them: what is kept, what is told where, and what waits for whom. */
import type { Readable } from 'node:stream'
import t from 'tap'
import { Memory, unlimited } from '../../../src/base/limits/memory.js'
import { EventStore } from '../../../src/clients/http/event-store.js'
import { type EventStream, type StreamOptions, Streams } from '../../../src/clients/http/streams.js'
import { holdTimers } from '../../support/clock.js'
import { type Event, eventsIn } from '../../support/events.js'
import { until } from '../../support/eventually.js'

const R11: StreamOptions = { resumable: true, priming: true }
const R06: StreamOptions = { resumable: true, priming: false }
const R24: StreamOptions = { resumable: false, priming: false }

function streamsOf(options: StreamOptions, memory = unlimited()): Streams {
  const streams = new Streams('alice', new EventStore(memory))
  streams.options = options
  return streams
}

interface Reading {
  text(): string
  /** What was said, in order. */
  said(): string[]
  events(): Event[]
  over(): boolean
  failed(): boolean
}

/** Reads a connection as fast as it comes. */
function read(connection: Readable): Reading {
  let text = ''
  let isOver = false
  let hasFailed = false
  connection.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  connection.on('close', () => {
    isOver = true
  })
  connection.on('error', () => {
    hasFailed = true
  })
  return {
    text: () => text,
    said: () => eventsIn(text).flatMap(({ data }) => (data ? [data] : [])),
    events: () => eventsIn(text),
    over: () => isOver,
    failed: () => hasFailed,
  }
}

/** Says something, and waits for nothing. */
function say(stream: EventStream, text: string, last = false): void {
  stream.push(text, last)?.catch(() => {})
}

/** Whether the stream has demanded a connection. */
function demandOf(stream: EventStream): () => boolean {
  let demanded = false
  stream.begin = () => {
    demanded = true
  }
  return () => demanded
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

t.test('a stream begins with an event to resume from if the revision has that, otherwise with a comment', async (t) => {
  for (const [options, first] of [
    [R11, { id: 'p1-0', retry: '1000', data: '' }],
    [R06, { comment: 'keep-alive' }],
    [R24, { comment: 'keep-alive' }],
  ] as const) {
    const reading = read(streamsOf(options).streamFor().connect())
    await settled()
    t.same(reading.events(), [first])
  }
})

t.test('messages from before the connection come first, once', async (t) => {
  const streams = streamsOf(R11)
  const stream = streams.streamFor()
  const demanded = demandOf(stream)
  t.notOk(demanded())
  say(stream, '1')
  t.ok(demanded())
  const reading = read(stream.connect())
  say(stream, '2')
  say(stream, '3', true)
  await until(reading.over)
  t.same(reading.said(), ['1', '2', '3'])
  t.same(
    reading.events().map(({ id }) => id),
    ['p1-0', 'p1-1', 'p1-2', 'p1-3'],
  )
  t.equal(stream.push('4'), undefined, 'nothing follows the last one')
})

t.test('streams and their events have ids of their own', async (t) => {
  const streams = streamsOf(R06)
  const opened = [streams.streamFor(), streams.streamFor()]
  const readings = [...opened.map((stream) => read(stream.connect())), read(streams.listen() as Readable)]
  for (const stream of opened) for (const text of ['a', 'b']) say(stream, text)
  streams.deliver('c')
  streams.deliver('d')
  await settled()
  const ids = readings.flatMap((reading) => reading.events().flatMap(({ id }) => id ?? []))
  t.same(ids, ['p1-1', 'p1-2', 'p2-1', 'p2-2', 'g3-1', 'g3-2'])
})

t.test('resumes a stream after any of its events, without events of other streams', async (t) => {
  const streams = streamsOf(R06)
  const [first, other] = [streams.streamFor(), streams.streamFor()]
  first.connect().destroy()
  other.connect().destroy()
  for (let n = 1; n <= 4; n++) {
    say(first, `first ${n}`)
    say(other, `other ${n}`)
  }
  for (let after = 0; after <= 4; after++) {
    const reading = read(streams.resume(`p1-${after}`) as Readable)
    await settled()
    t.same(
      reading.said(),
      [1, 2, 3, 4].slice(after).map((n) => `first ${n}`),
    )
  }
  const last = read(streams.resume('p1-4') as Readable)
  say(first, 'first 5', true)
  await until(last.over)
  t.same(last.said(), ['first 5'], 'and goes on')
})

t.test('there is nothing to resume after the last event of a stream, or after an unknown one', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  read(stream.connect())
  say(stream, '1')
  say(stream, '2', true)
  streams.forgetStream(stream)
  for (const id of [
    'p1-2',
    'p1-3',
    'p2-0',
    'g1-0',
    'p1',
    '',
    'x1-1',
    'p01-1x',
    'p1-1-1',
    'p9999999999-1',
    '__proto__-1',
  ])
    t.equal(streams.resume(id), undefined, id)
  t.ok(streams.resume('p1-1'), 'what has not been seen yet can be had after the end')
})

t.test('a connection that resumes a stream ends the one before', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  const first = read(stream.connect())
  say(stream, '1')
  const second = read(streams.resume('p1-0') as Readable)
  await until(first.over)
  say(stream, '2')
  await settled()
  t.same(first.said(), ['1'])
  t.same(second.said(), ['1', '2'])
  t.notOk(second.over())
  t.ok(stream.connected)
})

t.test('bounds the number of stored events', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  stream.connect().destroy()
  for (let n = 1; n <= 1_001; n++) say(stream, `${n}`)
  t.equal(streams.resume('p1-0'), undefined, 'the first one is gone, so not all that follows can be had')
  const reading = read(streams.resume('p1-1') as Readable)
  await settled()
  t.equal(reading.said().length, 1_000)
})

t.test('bounds the bytes of stored events', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  stream.connect().destroy()
  const megabyte = 'x'.repeat(1024 * 1024)
  for (let n = 1; n <= 5; n++) say(stream, megabyte)
  t.equal(streams.resume('p1-1'), undefined)
  t.ok(streams.resume('p1-2'))
  say(stream, megabyte.repeat(5))
  t.equal(streams.resume('p1-5'), undefined, 'what is larger than all the room is not kept')
  t.ok(streams.resume('p1-6'), 'but the stream goes on')
})

t.test('stores events for five minutes', async (t) => {
  let now = 1_000_000
  t.intercept(performance, 'now', { value: () => now })
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  stream.connect().destroy()
  say(stream, '1')
  now += 200_000
  say(stream, '2')
  now += 99_000
  t.ok(streams.resume('p1-0'))
  now += 2_000
  t.equal(streams.resume('p1-0'), undefined)
  t.ok(streams.resume('p1-1'))
})

t.test('does not store events without ids', async (t) => {
  const streams = streamsOf(R24)
  const stream = streams.streamFor()
  stream.connect().destroy()
  say(stream, '1')
  say(stream, '2', true)
  t.equal(streams.resume('p1-0'), undefined)
})

t.test(
  'a message without a request goes to exactly one stream: the newest for such messages, or else one of a request',
  async (t) => {
    const streams = streamsOf(R06)
    const answering = [streams.streamFor(), streams.streamFor()].map((stream) => read(stream.connect()))
    const [older, newer] = [streams.listen() as Readable, streams.listen() as Readable]
    const listening = [read(older), read(newer)]
    streams.deliver('1')
    newer.destroy()
    await settled()
    streams.deliver('2')
    older.destroy()
    await settled()
    streams.deliver('3')
    await settled()
    t.same(
      [...answering, ...listening].map((reading) => reading.said()),
      [[], ['3'], ['2'], ['1']],
    )
  },
)

t.test('a request without a stream gets one if no other is open', async (t) => {
  const streams = streamsOf(R11)
  const stream = streams.streamFor()
  const demanded = demandOf(stream)
  streams.deliver('asked')
  t.ok(demanded())
  const reading = read(stream.connect())
  await settled()
  t.same(reading.said(), ['asked'])
})

t.test('messages without a stream wait for the next one, of equal ones only the last', async (t) => {
  const streams = streamsOf(R06)
  streams.deliver('a1', { key: 'a' })
  streams.deliver('b1', { key: 'b' })
  streams.deliver('none 1')
  streams.deliver('a2', { key: 'a' })
  streams.deliver('none 2')
  const reading = read(streams.listen() as Readable)
  await settled()
  t.same(reading.said(), ['b1', 'none 1', 'a2', 'none 2'])
  const other = read(streams.listen() as Readable)
  await settled()
  t.same(other.said(), [], 'once')
})

t.test('bounds unsent events', async (t) => {
  const streams = streamsOf(R06)
  for (let n = 1; n <= 300; n++) streams.deliver(`${n}`)
  for (let n = 1; n <= 300; n++) streams.deliver(`same ${n}`, { key: 'same' })
  const reading = read(streams.listen() as Readable)
  await settled()
  t.equal(reading.said().length, 256)
})

t.test('a request whose client has left gets no messages: they wait for the next stream', async (t) => {
  for (const options of [R24, R06]) {
    const streams = streamsOf(options)
    const connection = streams.streamFor().connect()
    connection.destroy()
    await settled()
    streams.deliver('told')
    const reading = read(streams.listen() as Readable)
    await settled()
    t.same(reading.said(), ['told'], JSON.stringify(options))
  }
})

t.test('a resumed stream of a request gets the waiting messages', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  stream.connect().destroy()
  say(stream, '1')
  streams.deliver('waits')
  const reading = read(streams.resume('p1-0') as Readable)
  await settled()
  t.same(reading.said(), ['1', 'waits'])
})

t.test('a finished stream has only its own messages', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  stream.connect().destroy()
  say(stream, '1', true)
  streams.forgetStream(stream)
  streams.deliver('waits for another')
  const reading = read(streams.resume('p1-0') as Readable)
  await until(reading.over)
  t.same(reading.said(), ['1'])
  const listening = read(streams.listen() as Readable)
  await settled()
  t.same(listening.said(), ['waits for another'])
})

t.test("at most four streams for the server's own messages are open at once", async (t) => {
  const streams = streamsOf(R06)
  const kept = read(streams.listen() as Readable)
  for (let n = 0; n < 50; n++) {
    streams.listen()?.destroy()
    await settled()
  }
  streams.deliver('still there')
  await settled()
  t.same(kept.said(), ['still there'])
  for (let n = 0; n < 3; n++) t.ok(streams.listen())
  t.equal(streams.listen(), undefined)
  streams.close()
  await until(kept.over)
})

t.test('an abandoned stream can be resumed for a while', async (t) => {
  const streams = streamsOf(R06)
  const first = streams.listen() as Readable
  read(first)
  streams.deliver('1')
  await settled()
  first.destroy()
  await settled()
  streams.listen()?.destroy()
  await settled()
  streams.deliver('2', { key: 'k' })
  const again = read(streams.resume('g1-1') as Readable)
  await settled()
  t.same(again.said(), ['2'])
})

t.test('a sender waits for a slow reader, and all waiting senders continue', async (t) => {
  const streams = streamsOf(R24)
  const stream = streams.streamFor()
  const connection = stream.connect()
  t.equal(stream.push('small'), undefined)
  const waiting = Array.from({ length: 3 }, () => stream.push('x'.repeat(1024 * 1024)))
  for (const one of waiting) t.ok(one instanceof Promise)
  let gone = 0
  for (const one of waiting) one?.then(() => gone++).catch(() => {})
  await settled()
  t.equal(gone, 0)
  read(connection)
  await until(() => gone === 3, 'that all go on')
})

t.test('a waiting sender continues when the connection closes', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  const connection = stream.connect()
  const waiting = [1, 2].map(() => stream.push('x'.repeat(1024 * 1024)))
  connection.destroy()
  await Promise.all(waiting)
  t.equal(stream.push('x'.repeat(1024 * 1024)), undefined, 'and nobody waits for a client that is gone')
})

t.test('closes a connection that is not read, and waits for none', async (t) => {
  for (const options of [R24, R06]) {
    const streams = streamsOf(options)
    const stream = streams.streamFor()
    const connection = stream.connect()
    const waiting: (Promise<void> | undefined)[] = []
    for (let n = 0; n < 18; n++) waiting.push(stream.push('x'.repeat(1024 * 1024)))
    t.ok(connection.destroyed)
    await Promise.all(waiting)
    t.notOk(stream.connected)
  }
})

t.test('a large message that has not been read yet closes no connection, but what waits beside it does', async (t) => {
  const LARGE = 'x'.repeat(20 * 1024 * 1024)
  const lanes: Record<string, (streams: Streams) => { connection: Readable; send(text: string): void }> = {
    'an answer': (streams) => {
      const stream = streams.streamFor()
      return { connection: stream.connect(), send: (text) => say(stream, text) }
    },
    'a GET stream': (streams) => ({
      connection: streams.listen() as Readable,
      send: (text) => streams.deliver(text),
    }),
  }
  for (const [lane, open] of Object.entries(lanes)) {
    const read20 = open(streamsOf(R24))
    for (const text of ['small', LARGE, 'small']) read20.send(text)
    const reading = read(read20.connection)
    await until(() => reading.text().length > LARGE.length, lane)
    await settled()
    t.same(
      reading.said().map(({ length }) => length),
      [5, LARGE.length, 5],
      lane,
    )
    const unread = open(streamsOf(R24))
    unread.send(LARGE)
    for (let n = 0; n < 16; n++) unread.send('x'.repeat(1024 * 1024))
    t.notOk(unread.connection.destroyed, lane)
    unread.send('small')
    t.ok(unread.connection.destroyed, lane)
  }
})

t.test('silent streams get keep-alive comments, and finished ones do not', async (t) => {
  const streams = streamsOf(R06)
  const open = read(streams.listen() as Readable)
  const answering = streams.streamFor()
  const slow = answering.connect()
  await settled()
  streams.keepAlive()
  await settled()
  t.equal(open.events().filter(({ comment }) => comment === 'keep-alive').length, 2)

  // It has been read to its end by nobody yet, as where a client is slow.
  slow.read()
  answering.end()
  answering.keepAlive()
  streams.keepAlive()
  const reading = read(slow)
  await until(reading.over)
  t.notOk(reading.failed())
})

t.test('nothing of a closed stream can be resumed', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  const readings = [read(stream.connect()), read(streams.listen() as Readable)]
  say(stream, '1')
  t.ok(streams.connected)
  streams.close()
  for (const reading of readings) await until(reading.over)
  t.notOk(streams.connected)
  t.equal(streams.resume('p1-0'), undefined)
  t.equal(stream.push('2'), undefined)
})

t.test('streams that only wait for the server can be ended, and answers continue', async (t) => {
  const streams = streamsOf(R06)
  const stream = streams.streamFor()
  const [answer, listening] = [read(stream.connect()), read(streams.listen() as Readable)]
  streams.endStandalone()
  await until(listening.over)
  say(stream, '1', true)
  await until(answer.over)
  t.same(answer.said(), ['1'])
})

t.test('stored events reserve memory, and release it with the session', async (t) => {
  const memory = new Memory({ max: 1024 * 1024 })
  const streams = streamsOf(R06, memory)
  const stream = streams.streamFor()
  read(stream.connect())
  for (let at = 0; at < 10; at++) say(stream, 'x'.repeat(20_000))
  await settled()
  t.equal(streams.stored.bytes, 10 * (20_000 + 'id: p1-1\nevent: message\ndata: \n\n'.length) + 1)
  t.ok(memory.used >= streams.stored.bytes)
  streams.close()
  t.equal(streams.stored.bytes, 0)
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('without memory, the session that stores the most loses its oldest events first', async (t) => {
  const memory = new Memory({ max: 640 * 1024 })
  const store = new EventStore(memory)
  const sessions = ['greedy', 'modest'].map((name) => {
    const streams = new Streams(name, store)
    streams.options = R06
    return { streams, stream: streams.streamFor() }
  })
  const [greedy, modest] = sessions as [(typeof sessions)[0], (typeof sessions)[0]]
  const lastIds = sessions.map(({ stream }) => read(stream.connect()))
  for (let at = 0; at < 5; at++) say(modest.stream, 'x'.repeat(20_000))
  for (let at = 0; at < 100; at++) {
    say(greedy.stream, 'x'.repeat(20_000))
    await settled()
  }
  t.ok(memory.used <= memory.max)
  t.ok(modest.streams.stored.bytes > 100_000, 'who keeps little keeps all of it')
  t.ok(greedy.streams.stored.bytes > 200_000)
  t.equal(lastIds[0]?.said().length, 100, 'everything was said')
  t.equal(greedy.streams.resume('p1-1'), undefined, 'what was kept longest is gone')
  read(greedy.streams.resume('p1-98') as Readable)
  const reservation = memory.mustReserve('somebody', 480 * 1024)
  t.ok(memory.used <= memory.max, 'what is on its way takes the place of what is kept')
  reservation.end()
  for (const { streams } of sessions) streams.close()
  await until(() => memory.used === 0, 'everything being given back')
})

t.test('for a principal, only its own events make room', async (t) => {
  const memory = new Memory({ max: 1024 * 1024, share: 0.5 })
  const store = new EventStore(memory)
  const [mine, theirs] = ['a', 'b'].map((name) => {
    const streams = new Streams(name, store)
    streams.options = R06
    const stream = streams.streamFor()
    read(stream.connect())
    for (let at = 0; at < 10; at++) say(stream, 'x'.repeat(10_000))
    return streams
  }) as [Streams, Streams]
  await settled()
  const kept = theirs.stored.bytes
  t.ok(kept > 100_000)
  memory.mustReserve('a', 300 * 1024)
  t.ok(mine.stored.bytes < 100_000)
  t.equal(theirs.stored.bytes, kept)
})

t.test('waiting and unread messages reserve memory, and are dropped without it', async (t) => {
  const memory = new Memory({ max: 300 * 1024 })
  const streams = streamsOf(R24, memory)
  for (let at = 0; at < 10; at++) streams.deliver('x'.repeat(50_000))
  t.ok(memory.used > 200_000 && memory.used <= memory.max)
  const reading = read(streams.listen() as Readable)
  await settled()
  t.equal(reading.said().length, 6)
  await until(() => memory.used === 0, 'everything being given back')

  const stream = streams.streamFor()
  const unread = stream.connect()
  stream.push('x'.repeat(200_000))?.catch(() => {})
  t.ok(memory.used >= 200_000)
  stream.push('x'.repeat(200_000), true, () => 'no memory')?.catch(() => {})
  t.same(read(unread).text().length, 0)
  const after = read(unread)
  await settled()
  t.same(after.said().at(-1), 'no memory', 'an answer is replaced by an error')

  const cut = streams.streamFor()
  const never = cut.connect()
  cut.push('x'.repeat(400_000))?.catch(() => {})
  t.ok(never.destroyed, 'anything else cuts the connection')
  streams.close()
  await until(() => memory.used === 0, 'everything being given back')
})

t.test(
  'what comes after GET streams have ended waits for others, also while their connections are there',
  async (t) => {
    const held = holdTimers(t, 1_000)
    const streams = streamsOf(R11)
    const call = read(streams.streamFor().connect())
    const connection = streams.listen() as Readable
    streams.endStandalone()
    streams.deliver('"a question"', { kind: 'question', key: 'q' })
    t.equal(connection.closed, false, 'the client has not read the end')
    held.run()
    await settled()
    t.same(call.said(), ['"a question"'], 'on the stream of the call')
  },
)
