/**
 * What has become of the newest calls. It decides in which room their events are kept when other calls push them out of the
 * ring. A table of fixed size, because it is written for each call.
 */

import { isFailure } from '../ports/outcome.js'
import type { TraceEvent } from '../recorder/events.js'
import type { CallRoom } from './rooms.js'

type CallTrace = Extract<TraceEvent, { kind: 'call' }>

/** The rooms of calls; calls without one leave. A number of the table is an index. */
const FATES: readonly Fate[] = [undefined, 'running', 'failed', 'asked', 'pinned']
type Fate = CallRoom | undefined

export class Fates {
  readonly #mask: number
  readonly #calls: Float64Array
  readonly #fates: Uint8Array

  /** Remembers about so many calls: a later one replaces the one in its place. */
  constructor(calls: number) {
    const places = 2 ** Math.ceil(Math.log2(Math.max(1, calls)))
    this.#mask = places - 1
    this.#calls = new Float64Array(places)
    this.#fates = new Uint8Array(places)
  }

  /** The room for the events of a call; undefined if it ended without anything to see later, or is unknown. */
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

  /** Returns what becomes of the events of a call that has ended, if it is not pinned. */
  end(call: number, { outcome }: Pick<CallTrace, 'outcome'>): Fate {
    const before = this.of(call)
    const isOver = isFailure(outcome) || outcome === 'cancelled'
    const fate = isOver ? 'failed' : outcome === 'asks' || before === 'asked' ? 'asked' : undefined
    if (before !== 'pinned') this.set(call, fate)
    return fate
  }

  /** Changes the fate of a call that is still remembered. */
  set(call: number, fate: Fate): void {
    const place = call & this.#mask
    if (this.#calls[place] === call) this.#fates[place] = FATES.indexOf(fate)
  }
}
