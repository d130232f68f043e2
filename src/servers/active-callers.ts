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
  /** When its calls have ended at the latest, by `performance.now()`, except for cancelled ones. */
  until: number
}

interface CancelledCall {
  caller: Caller
  until: number
}

export class ActiveCallers {
  readonly #callers = new Map<string, Caller>()
  /** By the ids of the requests, oldest first. */
  readonly #cancelled = new BoundedMap<number, CancelledCall>(MAX_PRESENT, stay)
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
    this.#callers.set(key, { running: 1, until: 0 })
  }

  end(id: number, principal: string, answered: boolean): void {
    const caller = this.#callers.get(callerOf(id, principal))
    if (!caller) return
    caller.running--
    const now = performance.now()
    if (answered) caller.until = Math.max(caller.until, now + GRACE.answered)
    else this.#cancelled.set(id, { caller, until: now + GRACE.cancelled })
  }

  answeredLate(id: number): void {
    const call = this.#cancelled.get(id)
    if (!call) return
    this.#cancelled.delete(id)
    stay({ ...call, until: performance.now() + GRACE.answered })
  }

  /** Whether all calls that may be running belong to one caller. */
  get isSingle(): boolean {
    const now = performance.now()
    const present = new Set<Caller>()
    for (const [id, { caller, until }] of this.#cancelled) {
      if (until > now) present.add(caller)
      else this.#cancelled.delete(id)
    }
    for (const [key, caller] of this.#callers) {
      if (caller.running > 0 || caller.until > now) present.add(caller)
      else if (!present.has(caller)) this.#callers.delete(key)
      if (present.size > 1) return false
    }
    return this.#others <= now
  }

  /** Forgets callers without a running call, except for the latest of their time limits. */
  #forgetOver(): void {
    for (const call of this.#cancelled.values()) stay(call)
    this.#cancelled.clear()
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

/** Notes how long a call may continue with its caller alone. */
function stay({ caller, until }: CancelledCall): void {
  caller.until = Math.max(caller.until, until)
}
