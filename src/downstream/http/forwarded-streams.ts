/**
 * Streams without an end of their own that clients read here and other replicas write. When this replica shuts down it ends
 * them, so that their clients open them again at another one. What the owners have does not end.
 */
import type { Readable } from 'node:stream'
import { OpenSet } from '../../limits/open-set.js'

export class ForwardedStreams {
  readonly #open = new OpenSet<() => void>()
  /** Whether this replica shuts down. */
  ended = false

  /** Notes a stream. */
  add(body: Readable): void {
    const stop = () => body.destroy(new Error('The bridge is shutting down'))
    const place = this.#open.add(stop)
    body.once('close', () => this.#open.delete(place))
    if (this.ended) setImmediate(stop)
  }

  /** Ends all of them, and all later ones. */
  end(): void {
    this.ended = true
    for (const stop of [...this.#open]) stop()
  }
}
