/** Requests in frames: they arrive as those of HTTP, many at a time, and nobody on the way can add to them or change them. */
import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { Duplex, Readable } from 'node:stream'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { HangUp } from '../../src/base/time/hang-up.js'
import { exchange } from '../../src/services/replicas/exchange.js'
import { FramedAnswers } from '../../src/services/replicas/framed-answers.js'
import { FramedRequests } from '../../src/services/replicas/framed-requests.js'
import { HEAD } from '../../src/services/replicas/frames.js'
import { until } from '../support/eventually.js'
import { type Framed, framedTo } from '../support/framed.js'
import { listenUntilEnd } from '../support/listen-until-end.js'

const TEXT = 'a small body'
const LARGE = Buffer.alloc(3_000_000, 'x')

function ask({ to }: Pick<Framed, 'to'>, body: Buffer | null = Buffer.from(TEXT), signal = new HangUp()) {
  const headers = ['Host', 'x', 'X-Twice', '1', 'x-twice', '2']
  return exchange(to, { method: body ? 'POST' : 'GET', path: '/mcp?a=1', headers, body }, signal)
}

/** The first frame of a request without a body. */
function frameOf(head: unknown): Buffer {
  const bytes = Buffer.from(JSON.stringify(head))
  const begin = Buffer.alloc(9)
  begin.writeUInt32BE(bytes.length)
  begin[4] = HEAD | 0x80
  return Buffer.concat([begin, bytes])
}

/** A program that keeps all requests, and answers when it is told to. */
function keeping() {
  const kept: { request: IncomingMessage; response: ServerResponse; body(): string }[] = []
  const program: RequestListener = (request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece)).on('error', () => {})
    kept.push({ request, response, body: () => Buffer.concat(pieces).toString() })
  }
  return { kept, program }
}

t.test('a request arrives with its head and body, however large', async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  for (const body of [Buffer.from(TEXT), LARGE, Buffer.alloc(0), null]) {
    const answer = ask(framed, body)
    await until(() => kept.at(-1)?.request.complete === true && kept.at(-1)?.request.readableEnded === true)
    const { request, response, body: arrived } = kept.pop() as (typeof kept)[0]
    t.match(request, { method: body ? 'POST' : 'GET', url: '/mcp?a=1', httpVersion: '1.1' })
    t.match(request.headers, { host: 'x', 'x-twice': '1, 2' })
    t.equal(request.headers['content-length'], body ? String(body.length) : undefined)
    t.equal(request.socket.remoteAddress, '127.0.0.1')
    t.ok(arrived() === (body?.toString() ?? ''))
    response
      .setHeader('X-One', 'a')
      .writeHead(201, { 'content-length': 2, 'x-many': ['b', 'c'] })
      .end('ok')
    const { status, headers, body: text } = await answer
    t.match(
      { status, headers, text: String(text) },
      { status: 201, headers: { 'x-one': 'a', 'x-many': ['b', 'c'] }, text: 'ok' },
    )
  }
})

t.test("a request has the headers that Node's HTTP server gives it, repeated ones too", async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  const parsed: IncomingMessage[] = []
  const server = createHttpServer((request, response) => {
    parsed.push(request)
    response.end()
  })
  await listenUntilEnd(t, server)
  const { port } = server.address() as AddressInfo
  const names = ['Set-Cookie', 'set-cookie', 'Cookie', 'X-A', 'x-a', 'Authorization', 'User-Agent', 'ETag', 'Accept']
  const name = fc.constantFrom(...names, 'Referer', 'Via', 'Host', 'From', 'Retry-After', '__proto__', 'constructor')
  const header = fc.tuple(name, fc.constantFrom('', 'a', 'b, c'))
  const seen = ({ rawHeaders, headers, headersDistinct }: IncomingMessage) =>
    JSON.stringify([rawHeaders, headers, headersDistinct])
  const property = fc.asyncProperty(fc.array(header, { maxLength: 12 }), async (others) => {
    const headers = ['Host', 'x', 'Connection', 'close', ...others.flat()]
    const asked = request({ port, headers }).end()
    await once(asked, 'response')
    exchange(framed.to, { method: 'GET', path: '/', headers, body: null }, new HangUp()).catch(() => {})
    await until(() => kept.length > 0)
    return seen(kept.pop()?.request as IncomingMessage) === seen(parsed.pop() as IncomingMessage)
  })
  await fc.assert(property, { numRuns: 200 })
})

t.test('a request whose head cannot be read ends the connection', async (t) => {
  for (const [method, path, headers] of [
    ['GET', '/', ['x', 1]],
    ['GET', 1, []],
    [null, '/', []],
  ] as unknown as [string, string, string[]][]) {
    const { kept, program } = keeping()
    const framed = await framedTo(t, program)
    const asked = new Promise((_resolve, reject) => {
      const handler = { onResponseError: (_controller: unknown, error: Error) => reject(error) }
      framed.to.dispatch({ method, path, headers, body: null }, handler)
    })
    await t.rejects(asked, { code: 'ECONNRESET' })
    t.equal(kept.length, 0)
  }
})

t.test('many requests share the connection, and none waits for the answer of another', async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  const answers = Array.from({ length: 50 }, () => ask(framed))
  await until(() => kept.length === 50)
  for (const [at, { response }] of kept.entries()) response.writeHead(200, { 'content-length': 3 }).end(`${100 + at}`)
  t.same(
    (await Promise.all(answers)).map(({ body }) => String(body)),
    Array.from({ length: 50 }, (_, at) => String(100 + at)),
  )
})

t.test('an answer that nobody reads stops its program, and no other answer', async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  const slow = ask(framed)
  await until(() => kept.length === 1)
  let written = 0
  const source = Readable.from(
    (function* () {
      for (; written < 100 * LARGE.length; written += 50_000) yield LARGE.subarray(0, 50_000)
    })(),
  )
  source.pipe((kept[0] as (typeof kept)[0]).response)
  const { body } = await slow
  await until(() => source.isPaused())
  t.ok(written < 30_000_000, `${written} bytes are on the way`)
  const other = ask(framed)
  await until(() => kept.length === 2)
  kept[1]?.response.writeHead(200, { 'content-length': 2 }).end('ok')
  t.equal(String((await other).body), 'ok')
  const before = written
  ;(body as Readable).resume()
  await until(() => written > before + 10_000_000, 'the program goes on')
  ;(body as Readable).destroy()
  await until(() => source.destroyed || kept[0]?.response.destroyed === true)
})

t.test('all pieces that wait for room are sent when there is room', async (t) => {
  const { kept, program } = keeping()
  let sent = 0
  const held: (() => void)[] = []
  const socket = new Duplex({
    read() {},
    writev(chunks, done) {
      for (const { chunk } of chunks) sent += chunk.length
      held.push(done)
    },
  })
  new FramedAnswers(socket as Socket, { received: undefined, answer: program, closed() {} })
  socket.push(frameOf(['GET', '/mcp', ['host', 'x']]))
  await until(() => kept.length === 1)
  const [{ response }] = kept as [(typeof kept)[0]]
  response.writeHead(200)
  for (let at = 0; at < LARGE.length; at += 50_000) response.write(LARGE.subarray(at, at + 50_000))
  await until(() => held.length === 1)
  t.ok(sent < LARGE.length, `${sent} bytes at once`)
  held.pop()?.()
  await until(() => held.length === 1)
  held.pop()?.()
  await until(() => held.length === 1)
  t.ok(sent > LARGE.length, `${sent} bytes after the second time`)
})

t.test('a request that is given up ends at the program, and the others go on', async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  const signal = new HangUp()
  const [left, other] = [ask(framed, LARGE, signal), ask(framed)]
  await until(() => kept.length === 2)
  signal.abort(new Error('given up'))
  await t.rejects(left, { message: 'given up' })
  await until(() => kept[0]?.response.closed === true)
  kept[1]?.response.writeHead(200, { 'content-length': 2 }).end('ok')
  t.equal(String((await other).body), 'ok')
})

t.test('a sender that is asked to leave sends nothing more, and leaves when all is answered', async (t) => {
  const { kept, program } = keeping()
  const framed = await framedTo(t, program)
  const answer = ask(framed)
  await until(() => kept.length === 1)
  framed.from.leave()
  await until(() => !framed.isOpen())
  t.notOk(framed.socket.destroyed)
  const gone = once(framed.socket, 'close')
  kept[0]?.response.writeHead(200, { 'content-length': 2 }).end('ok')
  t.equal(String((await answer).body), 'ok')
  await gone
})

/** Asks twice with what is done on the way. Resolves to what became of that, and to how many requests have arrived. */
async function onTheWay(t: Test, changed: (record: Buffer, number: number) => Buffer[]) {
  const bodies: string[] = []
  let records = 0
  const framed = await framedTo(
    t,
    (request, response) => {
      request.on('data', (piece: Buffer) => bodies.push(String(piece))).on('error', () => {})
      request.on('end', () => response.writeHead(200, { 'content-length': 2 }).end('ok'))
    },
    (record) => changed(record, ++records),
  )
  const outcomes: unknown[] = []
  for (const body of ['one', 'two']) {
    const answer = ask(framed, Buffer.from(body)).catch((error: NodeJS.ErrnoException) => ({ body: error.code }))
    outcomes.push(String((await answer).body))
  }
  return { outcomes, bodies, isOpen: framed.isOpen() }
}

t.test('a record that is changed, repeated, left out or of another connection ends the connection', async (t) => {
  const ended = { outcomes: ['ok', 'ECONNRESET'], isOpen: false }
  const flipped = await onTheWay(t, (record, number) => {
    if (number === 2) record[record.length - 1] = (record.at(-1) as number) ^ 1
    return [record]
  })
  t.match(flipped, ended)
  t.same(flipped.bodies, ['one'])
  let first: Buffer | undefined
  const repeated = await onTheWay(t, (record, number) => {
    first ??= record
    return number === 2 ? [first] : [record]
  })
  t.match(repeated, ended)
  t.same(repeated.bodies, ['one'], 'it is done once')
  const another = await onTheWay(t, (record, number) => (number === 2 ? [first as Buffer] : [record]))
  t.match(another, ended)
  t.same(another.bodies, ['one'])
})

t.test('what is no frame ends the connection', async (t) => {
  for (const bytes of [
    Buffer.from([0xff, 0xff, 0xff, 0xff, 1]),
    Buffer.concat([Buffer.from([0, 0, 0, 2, 1, 2]), Buffer.alloc(16)]),
  ]) {
    const { kept, program } = keeping()
    const framed = await framedTo(t, program, () => [bytes])
    await t.rejects(ask(framed), { code: 'ECONNRESET' })
    t.equal(kept.length, 0)
  }
})

t.test('an answer whose head cannot be read ends the connection', async (t) => {
  for (const head of ['{', '{}', '[200]', '["200",{}]', 'null']) {
    const server = createServer((socket) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(head.length)
      socket.on('error', () => {})
      socket.once('data', () => socket.write(Buffer.concat([length, Buffer.from([1, 0, 0, 0, 1]), Buffer.from(head)])))
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const to = new FramedRequests(connect((server.address() as AddressInfo).port, '127.0.0.1'), undefined, () => {})
    await t.rejects(ask({ to }), { code: 'ECONNRESET' }, head)
  }
})
