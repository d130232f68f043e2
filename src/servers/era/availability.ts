/** Whether a server is available. After a failure, calls fail at once for a while, so that not every one tries again. */

import { withoutCredentials } from '../../base/credentials/credentials.js'
import { Fault, isAboutOthers } from '../../base/fault/fault.js'
import { backoff } from '../../base/time/pause.js'
import { adviceOn, whyInLine } from '../advice.js'
import { callFault, openingFault } from '../failure.js'
import type { ServerOptions } from '../options.js'
import type { ChannelError } from '../transport/channel.js'

/** A failure of a server: when, in milliseconds since 1970, and why, in one line. */
export interface ServerFailure {
  at: number
  why: string
}

/** Milliseconds after a failure during which calls fail at once. They double with each further failure. */
const BACKOFF = { http: { first: 1_000, most: 5_000 }, stdio: { first: 1_000, most: 30_000 } }

export class Availability {
  isClosed = false
  readonly #options: ServerOptions
  #failures = 0
  #down: { until: number; fault: Fault } | undefined
  /** The last failure of the server, also if it has worked since; undefined if there was none. */
  lastFailure: ServerFailure | undefined

  constructor(options: ServerOptions) {
    this.#options = options
  }

  /** Why the server is unavailable; undefined once it has worked again. */
  get down(): Fault | undefined {
    return this.#down?.fault
  }

  /** How many failures in a row there were, and the milliseconds for which calls fail at once; undefined if they do not. */
  get pause(): { failures: number; ms: number } | undefined {
    const ms = (this.#down?.until ?? 0) - performance.now()
    return ms > 0 ? { failures: this.#failures, ms } : undefined
  }

  /** Throws a Fault during the backoff after a failure. */
  throwIfDown(): void {
    if (this.isClosed) throw new Fault('draining', 'The bridge is shutting down')
    if (this.#down && this.#down.until > performance.now()) throw this.#down.fault
  }

  /** Notes a failure and begins the backoff. Returns the Fault for the caller. */
  failed(error: unknown): Fault {
    const { transport, name } = this.#options
    const fault = openingFault(error, name)
    if (fault === this.#down?.fault) return fault
    // Refused credentials and missing sign-ins concern one caller only, and an unreachable Redis no server.
    if (fault.refused || isAboutOthers(fault)) return fault
    const usual = backoff(this.#failures++, BACKOFF[transport.kind === 'stdio' ? 'stdio' : 'http'])
    // Of several addresses, one that fails rests only while another one works.
    const wait = this.#options.isOneOfSeveral ? 0 : usual
    this.#down = { until: performance.now() + wait, fault }
    this.#noteFailure(fault)
    return fault
  }

  /** Notes that a channel has ended by itself. `served`: it has answered a request, so no backoff begins. */
  ended(error: ChannelError, served: boolean): void {
    const fault = callFault(error)
    const { next } = adviceOn(fault)
    const why = withoutCredentials(error.message)
    const fields = { why, stderr: error.stderr.map(withoutCredentials), ...(next !== undefined && { next }) }
    this.#options.log.warn({ event: 'server_gone', ...fields }, 'server exited or closed the connection')
    if (served) {
      this.markAvailable()
      this.#failures = 0
      this.#noteFailure(fault)
    } else this.failed(error)
  }

  /** Notes that the server is available. Until it has answered a request, further failures count on. */
  markAvailable(): void {
    this.#down = undefined
  }

  #noteFailure(fault: Fault): void {
    this.lastFailure = { at: Date.now(), why: whyInLine(fault) }
  }
}
