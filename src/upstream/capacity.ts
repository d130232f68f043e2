/** Bounds the concurrent sessions with a server, or the processes of a program, in total and per principal. */

import { Bound } from '../limits/bound.js'
import { Occupancy } from '../limits/occupancy.js'
import type { Gauge } from '../ports/events.js'
import { lookEvery } from '../time/time.js'
import type { Detection } from './era/detection.js'
import type { ServerOptions } from './options.js'
import { Starts } from './transport/stdio/starts.js'

/** Milliseconds between checks for idle sessions, at most. */
const SWEEP_EVERY = 30_000

export class Capacity {
  readonly occupancy: Occupancy
  readonly #options: ServerOptions
  readonly #detection: Detection
  #starts: Starts | undefined
  #sweeper: NodeJS.Timeout | undefined
  /** The number of connected clients, by principal. */
  readonly #clients = new Map<string, number>()

  constructor(options: ServerOptions, detection: Detection) {
    this.#options = options
    this.#detection = detection
    const { maxSessions: max, share = 1 } = options
    const what = this.#isProgram ? 'processes of the server' : 'sessions with the server'
    this.occupancy = new Occupancy(new Bound({ max, share }), what)
    this.change()
  }

  /** Applies the bounds and times of the options, which may have changed. */
  change(): void {
    const { maxSessions: max, share = 1, timeouts, startsPerMinute: perMinute, isolation } = this.#options
    Object.assign(this.occupancy.bound, { max, share })
    const { idle } = timeouts
    clearInterval(this.#sweeper)
    this.#sweeper =
      idle === undefined ? undefined : lookEvery(Math.min(idle, SWEEP_EVERY), () => this.occupancy.endIdle())
    // With `per-request` isolation every call starts a process, so the rate of starts is not limited.
    if (!this.#isProgram || perMinute === undefined || isolation === 'per-request') return
    const rate = { burst: max, perMinute }
    if (this.#starts) this.#starts.change(rate)
    else this.#starts = new Starts(rate)
  }

  get gauge(): Gauge {
    const { name: server, maxSessions: limit } = this.#options
    return { bound: this.#isProgram ? 'processes' : 'sessions', server, used: this.occupancy.used, limit }
  }

  /**
   * Notes that a client of this principal is connected. Returns a function to call when the client has disconnected.
   */
  connected(principal: string): () => void {
    this.#clients.set(principal, (this.#clients.get(principal) ?? 0) + 1)
    return () => {
      const left = (this.#clients.get(principal) ?? 1) - 1
      if (left > 0) this.#clients.set(principal, left)
      else this.#clients.delete(principal)
    }
  }

  /**
   * Milliseconds after which an idle session of a principal ends; undefined if it does not. A process does not end while a
   * client of the principal is connected.
   */
  readonly idleLimit = (principal: string): number | undefined =>
    this.#isProgram && this.#clients.has(principal) ? undefined : this.#options.timeouts.idle

  /** Waits until a principal may start a process, if the next channel needs a new one. Rejects with a Fault. */
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
