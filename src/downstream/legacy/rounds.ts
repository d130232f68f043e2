/** How often, and for how long, a server may come back with something to ask or to wait for before it answers. */
import { Fault } from '../../protocol/fault.js'
import { asksSomething } from '../../protocol/input.js'
import type { Payload } from '../../rpc/splice.js'
import { backoff, pause } from '../../time.js'

/** Rounds of questions in one call; the official clients stop at ten. */
const MAX_ROUNDS = 16
/** Milliseconds before a server that asks nothing is called again. */
const WAIT = { first: 250, most: 5_000 }

export class Rounds {
  readonly #patience: number
  #rounds = 0
  /** Since the server last asked something: how often it was waited for, and for how many milliseconds in all. */
  #waits = 0
  #waited = 0

  /** `patience` is how many milliseconds a server may have itself called again without asking anything. */
  constructor(patience: number) {
    this.#patience = patience
  }

  /**
   * Counts a round of questions. Where the server gives nothing but a state, which says *wait and ask again*, waits before
   * the next call (MCP 2026-07-28, basic/patterns/mrtr). Rejects with a Fault when it is enough, and when the signal aborts.
   */
  async next(input: Payload, signal: AbortSignal): Promise<void> {
    if (asksSomething(input)) {
      if (++this.#rounds > MAX_ROUNDS)
        throw new Fault('upstreamProtocol', `The server did not answer after ${MAX_ROUNDS} rounds of questions`)
      this.#waits = 0
      this.#waited = 0
      return
    }
    const wait = backoff(this.#waits++, WAIT)
    if (this.#waited + wait > this.#patience) {
      const seconds = Math.round(this.#waited / 1_000)
      throw new Fault('upstreamTimeout', `The server has asked to be called again for ${seconds} s without an answer`)
    }
    await pause(wait, signal)
    signal.throwIfAborted()
    this.#waited += wait
  }
}
