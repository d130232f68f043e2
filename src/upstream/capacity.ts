/** How much of a server may be used at once, and by whom: one bound for all sessions, or for all processes of a program. */
import type { Gauge } from '../ports/events.js'
import { Bound } from '../protocol/bound.js'
import { Occupancy } from '../protocol/occupancy.js'
import type { Detection } from './era/detection.js'
import type { ServerOptions } from './options.js'
import { Starts } from './transport/stdio/starts.js'

/** Milliseconds between checks for idle sessions, at most. */
const SWEEP_EVERY = 30_000

export class Capacity {
  readonly occupancy: Occupancy
  readonly #options: ServerOptions
  readonly #detection: Detection
  readonly #starts: Starts | undefined
  readonly #sweeper: NodeJS.Timeout | undefined
  /** Clients that are connected, by principal. */
  readonly #clients = new Map<string, number>()

  constructor(options: ServerOptions, detection: Detection) {
    this.#options = options
    this.#detection = detection
    const { maxSessions, share, timeouts, startsPerMinute, isolation } = options
    const what = this.#isProgram ? 'processes of the server' : 'sessions with the server'
    this.occupancy = new Occupancy(new Bound({ max: maxSessions, ...(share !== undefined && { share }) }), what)
    const { idle } = timeouts
    if (idle !== undefined)
      this.#sweeper = setInterval(() => this.occupancy.endIdle(), Math.min(idle, SWEEP_EVERY)).unref()
    // With a session for each call, the operator wants a process for each call.
    if (this.#isProgram && startsPerMinute !== undefined && isolation !== 'per-request')
      this.#starts = new Starts({ burst: maxSessions, perMinute: startsPerMinute })
  }

  get gauge(): Gauge {
    const { name: server, maxSessions: limit } = this.#options
    return { bound: this.#isProgram ? 'processes' : 'sessions', server, used: this.occupancy.used, limit }
  }

  /** Notes that a client of this principal is connected, until the function that it returns is called. */
  connected(principal: string): () => void {
    this.#clients.set(principal, (this.#clients.get(principal) ?? 0) + 1)
    return () => {
      const left = (this.#clients.get(principal) ?? 1) - 1
      if (left > 0) this.#clients.set(principal, left)
      else this.#clients.delete(principal)
    }
  }

  /** Milliseconds after which an idle session of a principal ends. A program stays while a client is connected. */
  readonly idleLimit = (principal: string): number | undefined =>
    this.#isProgram && this.#clients.has(principal) ? undefined : this.#options.timeouts.idle

  /** Waits until a principal may start a process, where that takes one. Rejects with a Fault. */
  async mayStart(principal: string): Promise<void> {
    if (!this.#detection.hasSpare) await this.#starts?.turn(principal)
  }

  close(): void {
    clearInterval(this.#sweeper)
  }

  get #isProgram(): boolean {
    return this.#options.transport.kind === 'stdio'
  }
}
