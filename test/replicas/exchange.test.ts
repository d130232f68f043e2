/** Answers of another replica, over HTTP and in frames: small ones whole, others as streams, and what becomes of them if either side goes. */
import { once } from 'node:events'
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { Pool } from 'undici'
import { HangUp } from '../../src/base/time/hang-up.js'
import { type Dispatching, exchange } from '../../src/services/replicas/exchange.js'
import { framedTo } from '../support/framed.js'

const LARGE = Buffer.alloc(5_000_000, 'x')

/** How requests go, and the code of the error when an answer breaks off. */
const WAYS = [
  { way: 'over HTTP', to: pooledTo, broken: 'UND_ERR_SOCKET' },
  {
    way: 'in frames',
    to: async (t: Test, program: RequestListener) => (await framedTo(t, program)).to,
    broken: 'ECONNRESET',
  },
]

async function pooledTo(t: Test, program: RequestListener): Promise<Dispatching> {
  const server = createServer(program)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const pool = new Pool(`http://127.0.0.1:${port}`)
  t.teardown(async () => {
    await pool.destroy()
    server.closeAllConnections()
    server.close()
  })
  return pool
}

for (const { way, to, broken } of WAYS) {
  /** Asks a program. The signal is that of the request. */
  const asked = async (t: Test, program: RequestListener) => {
    const signal = new HangUp()
    const request = { method: 'POST', path: '/mcp', headers: ['host', 'x'], body: Buffer.from('{}') }
    return { signal, answer: exchange(await to(t, program), request, signal) }
  }

  t.test(
    `a small answer is whole, also if it comes in pieces, without headers of the connection (${way})`,
    async (t) => {
      const { answer } = await asked(t, (_request, response) => {
        response.writeHead(200, { 'content-length': 6, 'x-of-owner': 'kept', 'keep-alive': 'timeout=9' })
        response.write('abc')
        setImmediate(() => response.end('def'))
      })
      const { status, headers, body } = await answer
      t.equal(status, 200)
      t.equal(headers['x-of-owner'], 'kept')
      t.notOk('keep-alive' in headers)
      t.equal(String(body), 'abcdef')
    },
  )

  t.test(`a large answer is a stream, and is read no faster than it is taken (${way})`, async (t) => {
    let written = 0
    const { answer } = await asked(t, (_request, response) => {
      response.writeHead(200, { 'content-length': LARGE.length })
      Readable.from(
        (function* () {
          for (; written < LARGE.length; written += 50_000) yield LARGE.subarray(written, written + 50_000)
        })(),
      ).pipe(response)
    })
    const { body } = await answer
    t.ok(body instanceof Readable)
    let length = 0
    for await (const piece of body as Readable) length += (piece as Buffer).length
    t.equal(length, LARGE.length)
  })

  t.test(`a request that is given up rejects, and the other replica sees its client leave (${way})`, async (t) => {
    let left: Promise<unknown> | undefined
    const { signal, answer } = await asked(t, (_request, response) => {
      left = closed(response)
      signal.abort(new Error('given up'))
    })
    await t.rejects(answer, { message: 'given up' })
    await left
  })

  t.test(`a request that was given up before is not sent (${way})`, async (t) => {
    let requests = 0
    const { signal, answer } = await asked(t, (_request, response) => {
      requests += 1
      response.end()
    })
    signal.abort(new Error('given up'))
    await t.rejects(answer, { message: 'given up' })
    t.equal(requests, 0)
  })

  t.test(`a stream that nobody reads any more ends at the other replica, too (${way})`, async (t) => {
    for (const leave of [
      (body: Readable) => body.destroy(),
      (_body: Readable, signal: HangUp) => signal.abort(new Error('given up')),
    ]) {
      let left: Promise<unknown> | undefined
      const { signal, answer } = await asked(t, (_request, response) => {
        left = closed(response)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
      })
      const body = (await answer).body as Readable
      const [first] = (await once(body, 'data')) as [Buffer]
      t.equal(String(first), 'data: 1\n\n')
      leave(body, signal)
      await left
      t.ok(body.destroyed)
    }
  })

  t.test(`an answer that breaks off fails: a small one at once, a stream where it is read (${way})`, async (t) => {
    const small = await asked(t, (_request, response) => {
      response.writeHead(200, { 'content-length': 10 }).write('abc', () => response.destroy())
    })
    await t.rejects(small.answer, { code: broken })
    const stream = await asked(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n', () => response.destroy())
    })
    const { body } = await stream.answer
    await t.rejects((body as Readable).toArray())
  })
}

/** Waits until the program's side of the connection is closed. */
function closed(response: ServerResponse): Promise<unknown> {
  return response.closed ? Promise.resolve() : once(response, 'close')
}

t.test('a replica that does not listen is told from one that breaks off', async (t) => {
  const pool = new Pool('http://127.0.0.1:1')
  t.teardown(() => pool.destroy())
  const request = { method: 'POST', path: '/mcp', headers: [], body: null }
  await t.rejects(exchange(pool, request, new HangUp()), { code: 'ECONNREFUSED' })
})
