/**
 * Subscribes to changes while results are cached for one principal. There is one subscription at a time. When more
 * resources are cached, a new subscription replaces it; the old one ends when the server has accepted the new one.
 */

import { MAX_ADDRESS, MAX_URIS } from '../../../base/limits/constants.js'
import { Resubscriber } from '../../../mcp/listening/resubscriber.js'
import { bridgeCall } from '../../../mcp/protocol/bridge-call.js'
import type { Handler, Sender, ServerNotification } from '../../../mcp/protocol/call.js'
import { LISTEN } from '../../../mcp/protocol/methods.js'
import { CHANGING_LISTS, isNothing, paramsOf } from '../../../mcp/protocol/subscriptions.js'
import type { ResultKey } from './results.js'

export interface ListeningOptions {
  next: Handler
  sender: Sender
  /** A change was reported. */
  heard(notice: ServerNotification): void
  /** Notifications may have been missed: the server, or the session with it, is gone. */
  lost(): void
  /** Nothing has been cached for a while. */
  idle(): void
}

/** Shortest time between two subscriptions, in milliseconds, so that one can cover several new resources. */
const GATHER = 1_000
/** Milliseconds before a new subscription after one failed or ended. */
const REOPEN = { first: 1_000, most: 300_000 }
/** Milliseconds that a subscription stays open after the last result has expired: the same calls may come again. */
const LINGER = 10_000

/** The subscription for one scope of the cache. */
export class Listening {
  readonly #options: ListeningOptions
  /** The cached results to keep valid. */
  readonly #kept = new Set<ResultKey>()
  readonly #subscription: Resubscriber
  /** The resources of the last accepted subscription; undefined after it was lost. */
  #asked: ReadonlySet<string> | undefined
  #gathering: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined
  #tellsOfResources = true
  #stopped = false

  constructor(options: ListeningOptions) {
    this.#options = options
    this.#subscription = new Resubscriber({
      listen: (params, controller, tell) =>
        options.next({ ...bridgeCall(LISTEN, options.sender, controller), params, notify: tell }),
      heard: options.heard,
      ended: (filter) => {
        // A subscription of which the server accepted nothing is not replaced: another would not report more.
        if (isNothing(filter)) return false
        this.#asked = undefined
        options.lost()
        return true
      },
      reopen: () => this.#open(),
      failed: () => true,
      delays: REOPEN,
    })
  }

  add(kept: ResultKey): void {
    clearTimeout(this.#lingering)
    this.#kept.add(kept)
    this.#attend()
  }

  remove(kept: ResultKey): void {
    this.#kept.delete(kept)
    if (this.#kept.size > 0 || this.#stopped) return
    clearTimeout(this.#lingering)
    this.#lingering = setTimeout(() => {
      this.stop()
      this.#options.idle()
    }, LINGER).unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#gathering)
    clearTimeout(this.#lingering)
    this.#subscription.stop()
  }

  /** Opens a subscription if the current one does not cover everything, unless the last attempt is too recent. */
  #attend(): void {
    if (this.#stopped || this.#gathering || this.#subscription.isOpening) return
    this.#subscription.begin()
  }

  async #open(): Promise<void> {
    const asked = this.#asked
    const uris = this.#uris
    if (this.#kept.size === 0 || (asked && uris.every((uri) => asked.has(uri)))) return
    this.#gather()
    await this.#subscription.open(paramsOf({ lists: CHANGING_LISTS, uris, tasks: [] }), (filter) => {
      if (uris.length > 0) this.#tellsOfResources = filter.uris.length > 0
      this.#asked = new Set(uris)
    })
    this.#attend()
  }

  #gather(): void {
    clearTimeout(this.#gathering)
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined
      this.#attend()
    }, GATHER).unref()
  }

  /** The resources to subscribe to: the latest MAX_URIS. */
  get #uris(): string[] {
    if (!this.#tellsOfResources) return []
    const uris = [...this.#kept].flatMap(({ uri }) => (uri === undefined || uri.length > MAX_ADDRESS ? [] : [uri]))
    return [...new Set(uris)].slice(-MAX_URIS)
  }
}
