/** Limits how often a server may request input in one call, and how long it may postpone its answer with a mere state. */

import { Fault } from '../../base/fault/fault.js'
import { MAX_ROUNDS } from '../../base/limits/constants.js'
import type { Payload } from '../../base/rpc/splice.js'
import type { Signal } from '../../base/time/hang-up.js'
import { backoff, pause } from '../../base/time/pause.js'
import { asksSomething } from '../../mcp/protocol/input.js'

/** Milliseconds before a server that sent only a state is called again. */
const WAIT = { first: 250, most: 5_000 }

/** The rounds of one call. */
export class Rounds {
  readonly #patience: number
  #rounds = 0
  /** Number of waits since the last input request, and their milliseconds in total. */
  #waits = 0
  #waited = 0

  /** `patience`: milliseconds for which a server may postpone its answer without requesting input. */
  constructor(patience: number) {
    this.#patience = patience
  }

  /**
   * Counts a round of input requests. If the server sent only a state, which means that it wants to be called again, waits
   * before the next call (MCP 2026-07-28, basic/patterns/mrtr). Rejects with a Fault when a limit is reached, and with the
   * signal's reason when it aborts.
   */
  async next(input: Payload, signal: Signal): Promise<void> {
    if (asksSomething(input)) {
      if (++this.#rounds > MAX_ROUNDS)
        throw new Fault('upstreamProtocol', `The server did not answer after ${MAX_ROUNDS} rounds of input requests`)
      this.#waits = 0
      this.#waited = 0
      return
    }
    const wait = backoff(this.#waits++, WAIT)
    if (this.#waited + wait > this.#patience) {
      const seconds = Math.round(this.#waited / 1_000)
      throw new Fault('upstreamTimeout', `The server asked to be called again for ${seconds} s and did not answer`)
    }
    await pause(wait, signal)
    signal.throwIfAborted()
    this.#waited += wait
  }
}
