/**
 * Keeps direct sessions whose client has left, or got the error that the program is starting. The next equal `initialize` of the
 * same principal gets such a direct session. Otherwise, a client with a timeout shorter than the start would never be served.
 */

import { jsonOf, type Request } from '../../base/rpc/message.js'
import type { Sender } from '../../mcp/protocol/call.js'
import type { DirectSession } from '../../mcp/protocol/upstream.js'
import { inTime, type TimeToStart } from '../era/starting.js'

type Opening = Promise<DirectSession | undefined>

/** The maximum number of such direct sessions, and characters of their principal and `initialize`. */
const MAX_STARTING = 100
const MAX_STARTING_KEY = 8 * 1024
/** Milliseconds for which an open direct session waits for its client. */
const KEPT = 60_000

export class StartingSessions {
  /** By opening: the principal and what its client sent. */
  readonly #unclaimed = new Map<Opening, string>()

  /**
   * Opens a direct session, or takes one that waits for its client. Rejects with a Fault if it is not open `startWait` milliseconds
   * after `since`.
   */
  async open(
    opening: Request,
    { principal, patient }: Sender,
    open: () => Opening,
    time: Pick<TimeToStart, 'since' | 'startWait'>,
  ): Opening {
    const key = `${principal} ${jsonOf(opening.params)}`
    const direct = this.#claimed(key) ?? open()
    let waiting = true
    const settled = () => {
      waiting = false
    }
    direct.then(settled, settled)
    try {
      return await inTime(direct, { ...time, patient })
    } catch (error) {
      if (waiting) this.#keep(key, direct)
      throw error
    }
  }

  #claimed(key: string): Opening | undefined {
    for (const [direct, other] of this.#unclaimed) {
      if (other !== key) continue
      this.#unclaimed.delete(direct)
      return direct
    }
    return undefined
  }

  #keep(key: string, direct: Opening): void {
    const keeps = this.#unclaimed.size < MAX_STARTING && key.length <= MAX_STARTING_KEY
    if (keeps) this.#unclaimed.set(direct, key)
    const end = () => {
      if (!keeps || this.#unclaimed.delete(direct)) direct.then((opened) => opened?.close()).catch(() => {})
    }
    direct.then(
      () => (keeps ? setTimeout(end, KEPT).unref() : end()),
      () => this.#unclaimed.delete(direct),
    )
  }
}
