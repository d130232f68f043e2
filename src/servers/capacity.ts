/** Bounds the concurrent sessions with a server, or the processes of a program, in total and per principal. */

import { Bound } from '../base/limits/bound.js'
import { Occupancy } from '../base/limits/occupancy.js'
import { lookEvery } from '../base/time/time.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Detection } from './era/detection.js'
import type { ServerOptions } from './options.js'
import { Starts } from './transport/stdio/starts.js'

/**
 * The clients with sessions that use a session with a server. `idle` while all that are here let it end when it is idle. Stateless
 * clients show nothing of themselves between calls.
 */
export type SessionClients = 'here' | 'idle' | 'gone' | 'unknown'

/** Milliseconds between checks for idle sessions, at most and at least. */
const SWEEP_EVERY = 30_000
const SWEEP_LEAST = 10

export class Capacity {
  readonly occupancy: Occupancy
  readonly #options: ServerOptions
  readonly #detection: Detection
  #starts: Starts | undefined
  #sweeper: NodeJS.Timeout | undefined
  /** The number of connected clients by principal, and of those whose session with the server is not known. */
  readonly #clients = new Bound({ max: Number.POSITIVE_INFINITY })
  readonly #ofAnySession = new Bound({ max: Number.POSITIVE_INFINITY })

  constructor(options: ServerOptions, detection: Detection) {
    this.#options = options
    this.#detection = detection
    const { maxSessions: max, share = 1 } = options
    const [what, option] = this.#isProgram
      ? ['processes of the server', 'limits.processes']
      : ['sessions with the server', 'limits.sessions']
    this.occupancy = new Occupancy(new Bound({ max, share }), what, option)
    this.change()
  }

  /** Applies the bounds and times of the options, which may have changed. */
  change(): void {
    const { maxSessions: max, share = 1, timeouts, startsPerMinute: perMinute, isolation } = this.#options
    Object.assign(this.occupancy.bound, { max, share })
    const { idle, reuse } = timeouts
    clearInterval(this.#sweeper)
    const least = Math.min(idle ?? Number.POSITIVE_INFINITY, reuse ?? Number.POSITIVE_INFINITY)
    this.#sweeper = Number.isFinite(least)
      ? lookEvery(Math.max(SWEEP_LEAST, Math.min(least, SWEEP_EVERY)), () => this.occupancy.endIdle())
      : undefined
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
   * Notes that a client of this principal is connected. `ofAnySession`: it may use any of the principal's sessions. Returns a
   * function to call when the client has disconnected.
   */
  connected(principal: string, ofAnySession: boolean): () => void {
    const counts = ofAnySession ? [this.#clients, this.#ofAnySession] : [this.#clients]
    for (const count of counts) count.occupy(principal)
    return () => {
      for (const count of counts) count.vacate(principal)
    }
  }

  /**
   * Milliseconds after which an idle session ends; undefined if it does not. A process does not end while a client that uses it
   * is connected. `clients`: those of this session; with `gone`, the last one has left.
   */
  readonly idleLimit = (principal: string, clients: SessionClients): number | undefined => {
    if (this.#isProgram && (clients === 'here' || this.#ofAnySession.heldBy(principal) > 0)) return undefined
    return clients === 'gone' ? this.spareLimit : this.#options.timeouts.idle
  }

  /** Milliseconds after which a session ends that no client has any more, whoever else is connected; undefined if it does not. */
  get spareLimit(): number | undefined {
    const { idle, reuse } = this.#options.timeouts
    return reuse === undefined ? idle : Math.min(reuse, idle ?? reuse)
  }

  /** Whether a session is a spare: the next equal client of its principal may take it over. */
  readonly isSpare = (principal: string, clients: SessionClients): boolean =>
    clients === 'gone' && !(this.#isProgram && this.#ofAnySession.heldBy(principal) > 0)

  /** The idle limit of a channel that serves all clients of a principal, or of all principals. */
  channelIdleLimit(principal: string | undefined): number | undefined {
    const clients = principal === undefined ? this.#clients.used : this.#clients.heldBy(principal)
    return this.#isProgram && clients > 0 ? undefined : this.#options.timeouts.idle
  }

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
