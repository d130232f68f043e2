/**
 * The load generator, a process of its own that takes jobs by IPC: a closed loop over bare sockets. autocannon takes as
 * much CPU but counts latencies in whole milliseconds, and gives all connections the same id; undici takes half as much
 * again, on a core that is shared with the servers.
 */
import { connect } from 'node:net'
import { createHistogram, performance } from 'node:perf_hooks'

/**
 * @typedef {object} Job
 * @property {number} port
 * @property {number} connections
 * @property {number} milliseconds
 * @property {string} head Of each request, without its length.
 * @property {[string, string]} body What stands before and after the id.
 * @property {[string, string]} expected The same of the answer's body.
 *
 * @typedef {object} Load
 * @property {number} requests Answered, and rightly.
 * @property {number} seconds
 * @property {number} p50 Milliseconds, as all latencies.
 * @property {number} p99
 */

/** Every so many answers of a connection one is compared to the letter; of the others, status and length. */
const SAMPLE = 16
const HANG = 10_000
const FIRST_ID = 100_000
const HEAD_END = '\r\n\r\n'

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
  const clients = Array.from({ length: job.connections }, (_, index) => new Client(job, FIRST_ID + index))
  try {
    await Promise.all(clients.map((client) => client.connected))
    const begin = performance.now()
    const until = begin + job.milliseconds
    const counts = await Promise.all(clients.map((client) => client.askUntil(until, latencies)))
    return {
      requests: counts.reduce((sum, count) => sum + count, 0),
      seconds: (performance.now() - begin) / 1000,
      p50: latencies.percentile(50) / 1e6,
      p99: latencies.percentile(99) / 1e6,
    }
  } finally {
    for (const client of clients) client.close()
  }
}

/** One connection, one request at a time, with an id that no other connection has. */
class Client {
  /**
   * @param {Job} job
   * @param {number} id
   */
  constructor({ port, head, body, expected }, id) {
    const sent = body.join(String(id))
    this.request = Buffer.from(`${head}content-length: ${Buffer.byteLength(sent)}${HEAD_END}${sent}`)
    this.expected = Buffer.from(expected.join(String(id)))
    /** @type {Buffer[]} Of an answer that is compared. */
    this.kept = []
    /** Bytes of the body that are still to come; before the head is read, none is known. */
    this.left = -1
    this.count = 0
    this.asked = 0
    this.fail = (/** @type {Error} */ _error) => {}
    this.answered = () => {}
    this.socket = connect({ host: '127.0.0.1', port, noDelay: true })
    this.connected = new Promise((resolve, reject) => {
      this.socket.once('connect', resolve)
      this.fail = reject
    })
    this.socket.on('data', (chunk) => this.read(chunk))
    this.socket.on('error', (error) => this.fail(error))
    this.socket.on('close', () => this.fail(new Error('The connection was closed')))
  }

  /**
   * Asks again and again until it is time, and waits for the last answer. Resolves to how many there were.
   *
   * @param {number} until
   * @param {import('node:perf_hooks').RecordableHistogram} latencies
   * @returns {Promise<number>}
   */
  askUntil(until, latencies) {
    return new Promise((resolve, reject) => {
      const hang = setTimeout(() => reject(new Error('No answer')), until - performance.now() + HANG)
      this.fail = (/** @type {Error} */ error) => {
        clearTimeout(hang)
        reject(error)
      }
      this.answered = () => {
        const now = performance.now()
        latencies.record(Math.max(1, Math.round((now - this.asked) * 1e6)))
        this.count++
        if (now < until) {
          this.ask()
        } else {
          clearTimeout(hang)
          resolve(this.count)
        }
      }
      this.ask()
    })
  }

  ask() {
    this.left = -1
    this.asked = performance.now()
    this.socket.write(this.request)
  }

  /** @param {Buffer} chunk */
  read(chunk) {
    let piece = chunk
    if (this.left < 0) {
      const end = chunk.indexOf(HEAD_END)
      const head = chunk.toString('latin1', 0, end)
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
      if (end < 0 || !head.startsWith('HTTP/1.1 200 ') || Number(length) !== this.expected.length) {
        this.fail(new Error(`Not the answer that was expected: ${chunk.toString('latin1', 0, 500)}`))
        return
      }
      this.left = this.expected.length
      piece = chunk.subarray(end + HEAD_END.length)
    }
    this.left -= piece.length
    const sampled = this.count % SAMPLE === 0
    if (sampled) this.kept.push(piece)
    if (this.left > 0) return
    if (sampled && !Buffer.concat(this.kept.splice(0)).equals(this.expected)) {
      this.fail(new Error('The answer differs from the one that was expected'))
      return
    }
    this.answered()
  }

  close() {
    this.fail = () => {}
    this.socket.destroy()
  }
}
