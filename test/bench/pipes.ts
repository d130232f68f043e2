/** A client on the pipe of a program: one session, and one call at a time. */
import type { ChildProcess } from 'node:child_process'
import { createHistogram } from 'node:perf_hooks'
import { createInterface } from 'node:readline'

export class PipeClient {
  readonly #program: ChildProcess
  #waiting: { id: string; resolve: (line: string) => void; reject: (error: Error) => void } | undefined
  #ended = false

  constructor(program: ChildProcess) {
    const { stdin, stdout } = program
    if (stdin === null || stdout === null) throw new TypeError('No pipe')
    this.#program = program
    stdin.on('error', () => {})
    createInterface({ input: stdout })
      .on('line', (line) => {
        // Some say more than what they were asked for.
        if (this.#waiting && line.includes(this.#waiting.id)) this.#settle()?.resolve(line)
      })
      .on('close', () => {
        this.#ended = true
        this.#settle()?.reject(new Error('The pipe was closed'))
      })
  }

  /** Says a message. Resolves to the line that has the same id, or at once if there is none. */
  ask = async (body: string, id?: number): Promise<string | undefined> => {
    if (this.#ended) throw new Error('The pipe is closed')
    this.#program.stdin?.write(`${body}\n`)
    if (id === undefined) return undefined
    return new Promise((resolve, reject) => {
      this.#waiting = { id: `"id":${id}`, resolve, reject }
    })
  }

  /** Fails whoever waits. */
  giveUp(): void {
    this.#settle()?.reject(new Error('No answer'))
  }

  /** Asks one question after the other, as the load generator does, and rejects at the first wrong answer. */
  async load(
    body: readonly string[],
    expected: readonly string[],
    milliseconds: number,
    requests = Number.POSITIVE_INFINITY,
  ) {
    const latencies = createHistogram({ figures: 3 })
    const begin = performance.now()
    for (let asked = begin; asked < begin + milliseconds && latencies.count < requests; ) {
      const id = FIRST_ID + latencies.count
      const answer = await this.ask(body.join(String(id)), id)
      if (answer !== expected.join(String(id))) throw new Error('The answer differs from the one that was expected')
      const now = performance.now()
      latencies.record(Math.max(1, Math.round((now - asked) * 1e6)))
      asked = now
    }
    const [p50, p90, p99] = [50, 90, 99].map((share) => latencies.percentile(share) / 1e6) as [number, number, number]
    return { requests: latencies.count, seconds: (performance.now() - begin) / 1000, p50, p90, p99 }
  }

  #settle() {
    const waiting = this.#waiting
    this.#waiting = undefined
    return waiting
  }
}

/** As long as the id in the question, so that all lengths are equal. */
const FIRST_ID = 100_000_000
