/**
 * The room of each of the newest calls: where its events stay after they have left the ring. A table of fixed size, because
 * it is written for each call.
 */

import { isFailure } from '../ports/outcome.js'
import type { TraceEvent } from '../recorder/events.js'
import type { CallRoom } from './rooms.js'

type CallTrace = Extract<TraceEvent, { kind: 'call' }>

/** The rooms of calls; without one, events are dropped. The table has indices of this list. */
const FATES: readonly Fate[] = [undefined, 'running', 'failed', 'asked', 'pinned']
type Fate = CallRoom | undefined

export class Fates {
  readonly #mask: number
  readonly #calls: Float64Array
  readonly #fates: Uint8Array

  /** Remembers about this many calls: a later one replaces the one in its slot. */
  constructor(calls: number) {
    const places = 2 ** Math.ceil(Math.log2(Math.max(1, calls)))
    this.#mask = places - 1
    this.#calls = new Float64Array(places)
    this.#fates = new Uint8Array(places)
  }

  /** The room for the events of a call; undefined if they are dropped, or if the call is unknown. */
  of(call: number): Fate {
    const place = call & this.#mask
    return this.#calls[place] === call ? FATES[this.#fates[place] as number] : undefined
  }

  begin(call: number, continues: number | undefined): void {
    const place = call & this.#mask
    this.#calls[place] = call
    const isPart = continues !== undefined
    this.#fates[place] = FATES.indexOf(!isPart ? 'running' : this.of(continues) === 'pinned' ? 'pinned' : 'asked')
  }

  /** A question belongs to the call. */
  ask(call: number): void {
    if (this.of(call) === 'running') this.set(call, 'asked')
  }

  /** A call has ended. Returns its room, unless it is pinned. */
  end(call: number, { outcome }: Pick<CallTrace, 'outcome'>): Fate {
    const before = this.of(call)
    const isOver = isFailure(outcome) || outcome === 'cancelled'
    const fate = isOver ? 'failed' : outcome === 'asks' || before === 'asked' ? 'asked' : undefined
    if (before !== 'pinned') this.set(call, fate)
    return fate
  }

  /** Changes the room of a call that is still remembered. */
  set(call: number, fate: Fate): void {
    const place = call & this.#mask
    if (this.#calls[place] === call) this.#fates[place] = FATES.indexOf(fate)
  }
}
