/** What a bridge says of one of its servers to its inspector. */
import type { Simplified } from '../../base/texts/simplified.js'

/** The current state of a server, as the bridge reports it to its inspector. */
export interface ServerStatus {
  name: string
  state: string
  era?: string | undefined
  revision?: string | undefined
  /** The evidence for its era, or the reason why it is down. */
  why?: string | undefined
  /** What the operator can do about a server that is down. */
  next?: string | undefined
  calls: number
  parked: number
  /** Its programs that run, if it is a program: how many, and the bytes of their memory, where the system tells it. */
  programs?: number | undefined
  memory?: number | undefined
  /** The last failure, also if it has worked since: when, as an ISO 8601 time, and why. */
  lastError?: { at: string; why: string } | undefined
  /**
   * The circuit breaker is open: consecutive failures, and milliseconds until the next attempt. Undefined if it is closed.
   */
  pause?: { failures?: number | undefined; ms: number } | undefined
  /** What portable schemas make of its tools, as clients have listed them. */
  simplified?: readonly Simplified[] | undefined
}
