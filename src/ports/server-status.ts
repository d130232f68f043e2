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
  /**
   * The circuit breaker is open: consecutive failures, and milliseconds until the next attempt. Undefined if it is closed.
   */
  pause?: { failures?: number | undefined; ms: number } | undefined
}
