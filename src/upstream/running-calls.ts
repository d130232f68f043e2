/** The unanswered calls on one channel, and which of them gets a log message that names no call. */
import type { Place } from '../open-set.js'
import type { Call } from '../protocol/call.js'
import { atLeast, isLogLevel } from '../protocol/methods.js'
import type { Notification, Params } from '../rpc/message.js'
import { value } from '../rpc/splice.js'
import type { Exchange } from './exchange.js'
import { Presence } from './presence.js'

export class RunningCalls implements Iterable<[Exchange, Call]> {
  /** Oldest first. See `OpenSet` for why there are places. */
  readonly #calls = new Map<Exchange, Place<Call>>()
  /** Defined if several callers may share the channel. */
  readonly #presence: Presence | undefined

  constructor({ several }: { several: boolean }) {
    if (several) this.#presence = new Presence()
  }

  get size(): number {
    return this.#calls.size
  }

  *[Symbol.iterator](): IterableIterator<[Exchange, Call]> {
    for (const [exchange, { held }] of this.#calls) if (held) yield [exchange, held]
  }

  of(exchange: Exchange): Call | undefined {
    return this.#calls.get(exchange)?.held
  }

  begin(exchange: Exchange, call: Call): void {
    this.#calls.set(exchange, { held: call })
    this.#presence?.begin(exchange.id, call.principal)
  }

  /** Begins another leg of a call. */
  resume(exchange: Exchange, call: Call): void {
    const place = this.#calls.get(exchange)
    if (place) place.held = call
  }

  /**
   * Ends a call. Has to be called before its exchange is released. The log entry of the call gets the number of
   * notifications that were dropped. Further calls do nothing.
   */
  end(exchange: Exchange): void {
    const place = this.#calls.get(exchange)
    const call = place?.held
    if (!call) return
    place.held = undefined
    this.#calls.delete(exchange)
    this.#presence?.end(exchange.id, call.principal, exchange.answered)
    if (exchange.dropped > 0) call.log.note({ dropped: exchange.dropped })
  }

  /** The id for the inspector of the call that gets a log message; undefined for other messages. */
  callFor({ method, params }: Notification): number | undefined {
    return method === 'notifications/message' ? this.forLog(params)?.call : undefined
  }

  /** Notes that the server has answered a call that was given up. */
  answeredLate(id: number): void {
    this.#presence?.answeredLate(id)
  }

  /**
   * Returns the call that gets a log message: the oldest one that asked for its level. Calls whose client waits come
   * before parked ones. Undefined if the message may belong to another caller.
   */
  forLog(params: Params): Exchange | undefined {
    const level = typeof params === 'string' ? undefined : value(params, 'level')
    if (!isLogLevel(level) || this.#presence?.isSingle === false) return undefined
    let found: Exchange | undefined
    for (const [exchange, { caller }] of this) {
      if (caller.logLevel === undefined || !atLeast(level, caller.logLevel)) continue
      if (exchange.read && !exchange.answered) return exchange
      // A parked call gets it in its next leg. A call that was just answered may still wait for late messages.
      if (!found || (found.answered && !exchange.answered)) found = exchange
    }
    return found
  }
}
