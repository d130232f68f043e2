/**
 * Keeps tunnels whose client has left, or got the error that the program is starting. The next equal `initialize` of the
 * same principal gets such a tunnel. Otherwise, a client with a timeout shorter than the start would never be served.
 */

import { jsonOf, type Request } from '../../base/rpc/message.js'
import type { Sender } from '../../mcp/protocol/call.js'
import type { Tunnel } from '../../mcp/protocol/upstream.js'
import { inTime, type TimeToStart } from '../era/starting.js'

type Opening = Promise<Tunnel | undefined>

/** The maximum number of such tunnels, and characters of their principal and `initialize`. */
const MAX_TUNNELS = 100
const MAX_TUNNEL_KEY = 8 * 1024
/** Milliseconds for which an open tunnel waits for its client. */
const KEPT = 60_000

export class StartingTunnels {
  /** By opening: the principal and what its client sent. */
  readonly #unclaimed = new Map<Opening, string>()

  /**
   * Opens a tunnel, or takes one that waits for its client. Rejects with a Fault if it is not open `startWait` milliseconds
   * after `since`.
   */
  async open(
    opening: Request,
    { principal, patient }: Sender,
    open: () => Opening,
    time: Pick<TimeToStart, 'since' | 'startWait'>,
  ): Opening {
    const key = `${principal} ${jsonOf(opening.params)}`
    const tunnel = this.#claimed(key) ?? open()
    let waiting = true
    const settled = () => {
      waiting = false
    }
    tunnel.then(settled, settled)
    try {
      return await inTime(tunnel, { ...time, patient })
    } catch (error) {
      if (waiting) this.#keep(key, tunnel)
      throw error
    }
  }

  #claimed(key: string): Opening | undefined {
    for (const [tunnel, other] of this.#unclaimed) {
      if (other !== key) continue
      this.#unclaimed.delete(tunnel)
      return tunnel
    }
    return undefined
  }

  #keep(key: string, tunnel: Opening): void {
    const keeps = this.#unclaimed.size < MAX_TUNNELS && key.length <= MAX_TUNNEL_KEY
    if (keeps) this.#unclaimed.set(tunnel, key)
    const end = () => {
      if (!keeps || this.#unclaimed.delete(tunnel)) tunnel.then((opened) => opened?.close()).catch(() => {})
    }
    tunnel.then(
      () => (keeps ? setTimeout(end, KEPT).unref() : end()),
      () => this.#unclaimed.delete(tunnel),
    )
  }
}
