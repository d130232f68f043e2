/**
 * The load generator, a process of its own that takes jobs by IPC. It uses bare sockets: autocannon takes as much CPU but
 * counts latencies in whole milliseconds and gives all connections the same id, and undici takes half as much again, on a core
 * that is shared with the servers.
 *
 * A closed loop sends the next request of a connection when the one before is answered. An open loop sends requests at random
 * times of a given rate (a Poisson process), whether or not earlier ones are answered, and counts the latency of each from the
 * time at which it was due: a request that has to wait for a slow one counts as slow too (no coordinated omission).
 */
import { connect } from 'node:net'
import { createHistogram, performance } from 'node:perf_hooks'
import { AnswerReader } from './answer-reader.mjs'

/**
 * @typedef {object} Job
 * @property {{ port: number, head: string }[]} targets Where connections go, in turn, and the head of their requests, without its
 *   length.
 * @property {number} connections
 * @property {number} milliseconds How long requests are sent.
 * @property {number} [requests] Ends after so many requests, in a closed loop.
 * @property {number} [rate] Requests per second of an open loop; without it the loop is closed.
 * @property {string[]} body What stands before, between and after the places of the id.
 * @property {string[]} expected The same of what the answer carries: its body, or the messages of its events in lines.
 *
 * @typedef {object} Load
 * @property {number} requests Answered, and rightly.
 * @property {number} seconds
 * @property {number} p50 Milliseconds, as all latencies.
 * @property {number} p90
 * @property {number} p99
 */

/** Every so many answers of a connection one is compared to the letter; of the others, status and length. */
const SAMPLE = 16
const HANG = 10_000
/** As long as the id in the question, so that all lengths are equal. */
const FIRST_ID = 100_000_000
/** An open loop sleeps only if nothing is due for so many milliseconds, because timers are not exact. */
const NAP = 2

process.on('message', (/** @type {Job} */ job) => {
  run(job).then(
    (load) => process.send?.({ load }),
    (error) => process.send?.({ broken: String(error?.message) }),
  )
})
process.once('disconnect', () => process.exit())

/**
 * Runs one job. Rejects at the first answer that is not as expected: what is broken has no speed.
 *
 * @param {Job} job
 * @returns {Promise<Load>}
 */
async function run(job) {
  const latencies = createHistogram({ figures: 3 })
  const clients = Array.from({ length: job.connections }, (_, index) => new Client(job, index, latencies))
  try {
    await Promise.all(clients.map((client) => client.connected))
    const begin = performance.now()
    await (job.rate === undefined ? closedLoop(clients, job) : openLoop(clients, job, job.rate))
    return {
      requests: latencies.count,
      seconds: (performance.now() - begin) / 1000,
      p50: latencies.percentile(50) / 1e6,
      p90: latencies.percentile(90) / 1e6,
      p99: latencies.percentile(99) / 1e6,
    }
  } finally {
    for (const client of clients) client.close()
  }
}

/**
 * Resolves when the last answer is there.
 *
 * @param {Client[]} clients
 * @param {Job} job
 */
function closedLoop(clients, { milliseconds, requests = Number.POSITIVE_INFINITY }) {
  const until = performance.now() + milliseconds
  return withPatience(clients, milliseconds, (done) => {
    let left = requests
    let busy = 0
    for (const client of clients) {
      client.answered = () => {
        const now = performance.now()
        if (now < until && left-- > 0) client.ask(now)
        else if (--busy === 0) done()
      }
      if (left-- > 0) {
        busy++
        client.ask(performance.now())
      }
    }
  })
}

/**
 * Resolves when all that was due is answered.
 *
 * @param {Client[]} clients
 * @param {Job} job
 * @param {number} rate
 */
function openLoop(clients, { milliseconds }, rate) {
  const idle = [...clients]
  /** @type {number[]} When the requests were due for which there is no connection yet. */
  const waiting = []
  const pause = () => (-Math.log(1 - Math.random()) / rate) * 1000
  let due = performance.now()
  const until = due + milliseconds
  return withPatience(clients, milliseconds, (done) => {
    for (const client of clients)
      client.answered = () => {
        const first = waiting.shift()
        if (first === undefined) idle.push(client)
        else client.ask(first)
      }
    const tick = () => {
      const now = performance.now()
      for (; due <= now && due < until; due += pause()) {
        const client = idle.pop()
        if (client) client.ask(due)
        else waiting.push(due)
      }
      if (due >= until && idle.length === clients.length) done()
      else if (due - now > NAP) setTimeout(tick, 1)
      else setImmediate(tick)
    }
    tick()
  })
}

/**
 * Rejects if a client fails, or if it takes much longer than it should.
 *
 * @param {Client[]} clients
 * @param {number} milliseconds
 * @param {(done: () => void) => void} begin
 * @returns {Promise<void>}
 */
function withPatience(clients, milliseconds, begin) {
  return new Promise((resolve, reject) => {
    const hang = setTimeout(() => reject(new Error('No answer')), milliseconds + HANG)
    for (const client of clients)
      client.fail = (/** @type {Error} */ error) => {
        clearTimeout(hang)
        reject(error)
      }
    begin(() => {
      clearTimeout(hang)
      resolve()
    })
  })
}

/** One connection, one request at a time, with an id that no other connection has. */
class Client {
  /**
   * @param {Job} job
   * @param {number} index Of the connection.
   * @param {import('node:perf_hooks').RecordableHistogram} latencies
   */
  constructor({ targets, body, expected }, index, latencies) {
    const { port, head } = /** @type {Job['targets'][number]} */ (targets[index % targets.length])
    const id = FIRST_ID + index
    const sent = body.join(String(id))
    this.request = Buffer.from(`${head}content-length: ${Buffer.byteLength(sent)}\r\n\r\n${sent}`)
    this.expected = Buffer.from(expected.join(String(id)))
    this.latencies = latencies
    this.count = 0
    this.asked = 0
    this.fail = (/** @type {Error} */ _error) => {}
    this.answered = () => {}
    this.reader = new AnswerReader((answer) => this.check(answer))
    this.socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.connected = new Promise((resolve, reject) => {
      this.socket.once('connect', resolve)
      this.fail = reject
    })
    this.socket.on('data', (chunk) => this.reader.read(chunk))
    this.socket.on('error', (error) => this.fail(error))
    this.socket.on('close', () => this.fail(new Error('The connection was closed')))
  }

  /** @param {number} due When the request was due, from which on its latency counts. */
  ask(due) {
    this.asked = due
    this.reader.keep = this.count++ % SAMPLE === 0
    this.socket.write(this.request)
  }

  /** @param {import('./answer-reader.mjs').Answer} answer */
  check({ head, events, length, body }) {
    const now = performance.now()
    if (!head.startsWith('HTTP/1.1 200 ') || (!events && length !== this.expected.length)) {
      const text = Buffer.concat(body).toString('utf8', 0, 500)
      this.fail(new Error(`Not the answer that was expected: ${length} bytes, ${head} ${text}`))
    } else if (this.reader.keep && !this.isExpected(Buffer.concat(body), events)) {
      this.fail(new Error('The answer differs from the one that was expected'))
    } else {
      this.latencies.record(Math.max(1, Math.round((now - this.asked) * 1e6)))
      this.answered()
    }
  }

  /**
   * @param {Buffer} body
   * @param {boolean} events
   */
  isExpected(body, events) {
    return events ? messagesOf(body.toString()) === this.expected.toString() : body.equals(this.expected)
  }

  close() {
    this.fail = () => {}
    this.socket.destroy()
  }
}

/**
 * The messages of an event stream, in lines. The same as `messagesOf` in questions.ts.
 *
 * @param {string} text
 */
function messagesOf(text) {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: ') && line.length > 6)
    .map((line) => line.slice(6).trimEnd())
    .join('\n')
}
