/**
 * The retention class of each of the newest calls: how its events stay after they have left the ring. A table of fixed size, because
 * it is written for each call.
 */

import { isFailure } from '../mcp/ports/outcome.js'
import type { CallTrace } from './recorder/events.js'
import type { CallRetentionClass } from './retained-events.js'

/** The classes of calls; without one, events are dropped. The table has indices of this list. */
const RETENTIONS: readonly RetentionOfCall[] = [undefined, 'running', 'failed', 'asked', 'pinned']
type RetentionOfCall = CallRetentionClass | undefined

export class CallRetention {
  readonly #mask: number
  readonly #calls: Float64Array
  readonly #retentions: Uint8Array

  /** Remembers about this many calls: a later one replaces the one in its slot. */
  constructor(calls: number) {
    const places = 2 ** Math.ceil(Math.log2(Math.max(1, calls)))
    this.#mask = places - 1
    this.#calls = new Float64Array(places)
    this.#retentions = new Uint8Array(places)
  }

  /** The class of the events of a call; undefined if they are dropped, or if the call is unknown. */
  of(call: number): RetentionOfCall {
    const place = call & this.#mask
    return this.#calls[place] === call ? RETENTIONS[this.#retentions[place] as number] : undefined
  }

  begin(call: number, continues: number | undefined): void {
    const place = call & this.#mask
    this.#calls[place] = call
    const isPart = continues !== undefined
    this.#retentions[place] = RETENTIONS.indexOf(
      !isPart ? 'running' : this.of(continues) === 'pinned' ? 'pinned' : 'asked',
    )
  }

  /** A question belongs to the call. */
  ask(call: number): void {
    if (this.of(call) === 'running') this.set(call, 'asked')
  }

  /** A call has ended. Returns its class, unless it is pinned. */
  end(call: number, { outcome }: Pick<CallTrace, 'outcome'>): RetentionOfCall {
    const before = this.of(call)
    const isOver = isFailure(outcome) || outcome === 'cancelled'
    const retention = isOver ? 'failed' : outcome === 'asks' || before === 'asked' ? 'asked' : undefined
    if (before !== 'pinned') this.set(call, retention)
    return retention
  }

  /** Changes the class of a call that is still remembered. */
  set(call: number, retention: RetentionOfCall): void {
    const place = call & this.#mask
    if (this.#calls[place] === call) this.#retentions[place] = RETENTIONS.indexOf(retention)
  }
}
