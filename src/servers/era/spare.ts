/** The channel that has been used only for the probe: the next session or call can use it. */

import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'

export class Spare {
  readonly #options: ServerOptions
  readonly #isStarting: () => boolean
  #peer: Peer | undefined
  #timer: NodeJS.Timeout | undefined

  /** `isStarting`: a program that is slow to start is not idle. */
  constructor(options: ServerOptions, isStarting: () => boolean) {
    this.#options = options
    this.#isStarting = isStarting
  }

  get isUsable(): boolean {
    return this.#peer?.channel.alive === true && this.#peer.end === undefined
  }

  is(peer: Peer): boolean {
    return this.#peer === peer
  }

  /** Keeps a channel. If no session or call comes, the program ends like one with an idle session. */
  keep(peer: Peer): void {
    this.#peer = peer
    const { idle } = this.#options.timeouts
    if (idle === undefined) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (this.#isStarting()) return this.keep(peer)
      this.#peer = undefined
      peer.channel.close().catch(() => {})
    }, idle).unref()
  }

  /** Gives the channel away, if it is usable. */
  take(): Peer | undefined {
    if (!this.isUsable) return undefined
    const peer = this.#peer
    this.#peer = undefined
    clearTimeout(this.#timer)
    return peer
  }
}
