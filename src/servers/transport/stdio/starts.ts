/** Limits how fast processes are started for one principal (`limits.startsPerMinute`): a burst, then a steady rate. */
import { Fault } from '../../../base/fault/fault.js'
import { afterOneMore, waitFor } from '../../../base/limits/pace.js'
import { personOf } from '../../../base/texts/principal.js'
import { pause } from '../../../base/time/pause.js'

export interface StartsOptions {
  burst: number
  /** Processes that may be started per minute after the burst. */
  perMinute: number
}

/** Maximum milliseconds that a start waits. */
const PATIENCE = 5_000
/** With this many remembered principals, those that may start a full burst again are forgotten. */
const MAX_STARTERS = 1_000

export class Starts {
  #options: StartsOptions
  /** By principal: when the steady rate will have caught up with its starts so far, by `performance.now()`. */
  readonly #paidUntil = new Map<string, number>()

  constructor(options: StartsOptions) {
    this.#options = options
  }

  /** Applies another rate. Earlier starts count. */
  change(options: StartsOptions): void {
    this.#options = options
  }

  /** Waits until a principal may start a process. Rejects with a Fault if that would take too long. */
  async turn(principal: string): Promise<void> {
    const person = personOf(principal)
    const { burst, perMinute } = this.#options
    const pace = { burst, every: 60_000 / perMinute }
    const now = performance.now()
    const paidUntil = this.#paidUntil.get(person) ?? now
    const wait = waitFor(pace, paidUntil, now)
    if (wait > PATIENCE)
      throw new Fault('rateLimited', 'This caller has started too many processes of the server lately', {
        retryAfter: Math.ceil((wait - PATIENCE) / 1_000),
      })
    if (this.#paidUntil.size >= MAX_STARTERS) this.#forget(now)
    this.#paidUntil.set(person, afterOneMore(pace, paidUntil, now))
    if (wait > 0) await pause(wait)
  }

  #forget(now: number): void {
    for (const [person, paidUntil] of this.#paidUntil) if (paidUntil <= now) this.#paidUntil.delete(person)
  }
}
