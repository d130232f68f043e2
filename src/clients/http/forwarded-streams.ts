/**
 * Ends forwarded endless streams when this replica shuts down, so that the clients open them again at another replica. The
 * subscriptions in the replicas that own them do not end.
 */
import type { Readable } from 'node:stream'
import { OpenSet } from '../../base/limits/open-set.js'

export class ForwardedStreams {
  readonly #open = new OpenSet<() => void>()
  /** Whether this replica shuts down. */
  ended = false

  /** Registers a stream. */
  add(body: Readable): void {
    const stop = () => body.destroy(new Error('The bridge is shutting down'))
    const place = this.#open.add(stop)
    body.once('close', () => this.#open.delete(place))
    if (this.ended) setImmediate(stop)
  }

  /** Ends all registered and all later streams. */
  end(): void {
    this.ended = true
    for (const stop of [...this.#open]) stop()
  }
}
