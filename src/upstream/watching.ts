/** What a legacy server says that has changed, for all who want to hear of it: one subscription for each resource. */
import { CHANGING_LISTS, UPDATED } from '../protocol/subscriptions.js'
import type { Params } from '../rpc/message.js'
import { EMPTY, type Payload, value } from '../rpc/splice.js'

/** Somebody who wants to hear of changes. */
export interface Watcher {
  changed(method: string, params: Payload): void
  /** Nothing will be heard any more: the session is gone, or deaf. */
  lost(): void
}

export interface WatchingOptions {
  /** Sends `resources/subscribe` or `resources/unsubscribe`. Rejects where the server refuses. */
  send(method: string, uri: string): Promise<void>
}

interface Subscription {
  watchers: number
  agreed: Promise<boolean>
  ending: NodeJS.Timeout | undefined
}

/** Milliseconds for which a subscription stays that nobody wants any more: clients that change theirs make anew before. */
const GRACE = 2_000
/** Milliseconds in which several changes of one list are one. */
const TOGETHER = 100
const LIST_CHANGED: ReadonlySet<string> = new Set(CHANGING_LISTS.map(({ method }) => method))

export class Watching {
  readonly #options: WatchingOptions
  readonly #watchers = new Set<Watcher>()
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #together = new Map<string, NodeJS.Timeout>()

  constructor(options: WatchingOptions) {
    this.#options = options
  }

  add(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  remove(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** Resolves to whether the server tells of changes to this resource. */
  async subscribe(uri: string): Promise<boolean> {
    let subscription = this.#subscriptions.get(uri)
    if (!subscription) {
      const agreed = this.#options.send('resources/subscribe', uri).then(
        () => true,
        () => false,
      )
      subscription = { watchers: 0, agreed, ending: undefined }
      this.#subscriptions.set(uri, subscription)
    }
    clearTimeout(subscription.ending)
    subscription.watchers++
    if (await subscription.agreed) return true
    if (this.#subscriptions.get(uri) === subscription) this.#subscriptions.delete(uri)
    return false
  }

  unsubscribe(uri: string): void {
    const subscription = this.#subscriptions.get(uri)
    if (!subscription || --subscription.watchers > 0) return
    subscription.ending = setTimeout(() => {
      this.#subscriptions.delete(uri)
      this.#options.send('resources/unsubscribe', uri).catch(() => {})
    }, GRACE).unref()
  }

  notified(method: string, params: Params): void {
    const payload = typeof params === 'string' ? EMPTY : params
    if (method === UPDATED) {
      if (typeof value(payload, 'uri') === 'string') this.#tell(method, payload)
    } else if (LIST_CHANGED.has(method) && !this.#together.has(method)) {
      const tell = () => {
        this.#together.delete(method)
        this.#tell(method, payload)
      }
      this.#together.set(method, setTimeout(tell, TOGETHER).unref())
    }
  }

  /** Tells everybody that there is nothing more to hear. */
  lose(): void {
    for (const timer of this.#together.values()) clearTimeout(timer)
    for (const { ending } of this.#subscriptions.values()) clearTimeout(ending)
    for (const watcher of [...this.#watchers]) watcher.lost()
    this.#watchers.clear()
  }

  #tell(method: string, params: Payload): void {
    for (const watcher of this.#watchers) watcher.changed(method, params)
  }
}
