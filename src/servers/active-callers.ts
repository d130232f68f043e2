/**
 * Remembers the callers whose calls may be running in a server that several callers share. A call may continue in the
 * server after its answer or cancellation, and log messages do not name their call.
 */
import { BoundedMap } from '../base/limits/bounded.js'
import { ANONYMOUS } from '../mcp/protocol/call.js'

/** Milliseconds for which a call may continue: after its answer; after its cancellation, unless it is answered late. */
export const GRACE = { answered: 10_000, cancelled: 600_000 }
/** The maximum number of callers, and of cancelled calls, that are remembered individually. */
const MAX_PRESENT = 1_000

interface Caller {
  running: number
  /** The number of cancelled calls that may be answered late. */
  cancelled: number
  /** When its answered calls have ended at the latest, by `performance.now()`. */
  until: number
}

interface CancelledCall {
  caller: Caller
  until: number
}

export class ActiveCallers {
  readonly #callers = new Map<string, Caller>()
  /** By the ids of the requests, oldest first. */
  readonly #cancelled = new BoundedMap<number, CancelledCall>(MAX_PRESENT, settle)
  /** When calls of forgotten callers have ended at the latest. */
  #others = 0

  begin(id: number, principal: string): void {
    const key = callerOf(id, principal)
    const caller = this.#callers.get(key)
    if (caller) {
      caller.running++
      return
    }
    if (this.#callers.size >= MAX_PRESENT) this.#forgetOver()
    this.#callers.set(key, { running: 1, cancelled: 0, until: 0 })
  }

  end(id: number, principal: string, answered: boolean): void {
    const caller = this.#callers.get(callerOf(id, principal))
    if (!caller) return
    caller.running--
    if (answered) return extendUntil(caller, performance.now() + GRACE.answered)
    caller.cancelled++
    this.#cancelled.set(id, { caller, until: performance.now() + GRACE.cancelled })
  }

  /** Notes that the server has answered a cancelled call. */
  answeredLate(id: number): void {
    const given = this.#cancelled.get(id)
    if (!given) return
    given.until = performance.now() + GRACE.answered
    this.#settle(id)
  }

  /** Whether all calls that may be running belong to one caller. */
  get isSingle(): boolean {
    const now = performance.now()
    for (const [id, { until }] of this.#cancelled) {
      if (until > now) break
      this.#settle(id)
    }
    if (this.#others > now) return false
    let present = 0
    for (const [key, caller] of this.#callers) {
      if (isPresent(caller, now) && ++present > 1) return false
      if (!isPresent(caller, now)) this.#callers.delete(key)
    }
    return true
  }

  /** Forgets a cancelled call. */
  #settle(id: number): void {
    const given = this.#cancelled.get(id)
    this.#cancelled.delete(id)
    if (given) settle(given)
  }

  /** Forgets callers without a running call, except for the latest of their time limits. */
  #forgetOver(): void {
    for (const id of [...this.#cancelled.keys()]) this.#settle(id)
    for (const [key, { running, until }] of this.#callers) {
      if (running > 0) continue
      this.#others = Math.max(this.#others, until)
      this.#callers.delete(key)
    }
  }
}

/** The key of a caller. Each anonymous call may come from another person. */
function callerOf(id: number, principal: string): string {
  return principal === ANONYMOUS ? `${principal} ${id}` : principal
}

/** Forgets a cancelled call, except for its time limit, which its caller keeps. */
function settle({ caller, until }: CancelledCall): void {
  caller.cancelled--
  extendUntil(caller, until)
}

function extendUntil(caller: Caller, until: number): void {
  caller.until = Math.max(caller.until, until)
}

function isPresent({ running, cancelled, until }: Caller, now: number): boolean {
  return running > 0 || cancelled > 0 || until > now
}
