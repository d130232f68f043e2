/** What a legacy server says that has changed, for all who want to hear of it: one subscription for each resource. */
import { MAX_ADDRESS, MAX_NAME } from '../../protocol/lengths.js'
import { isChange, UPDATED } from '../../protocol/subscriptions.js'
import type { Params } from '../../rpc/message.js'
import { EMPTY, type Payload, value } from '../../rpc/splice.js'
import { within } from '../../time.js'

/** Somebody who wants to hear of changes. */
export interface Watcher {
  changed(method: string, params: Payload): void
  /** For a while nothing could be heard: anything may have changed. */
  missed(): void
  /** Nothing will be heard any more: the session is gone, or deaf. */
  lost(): void
}

export interface WatchingOptions {
  /** Sends `resources/subscribe` or `resources/unsubscribe`. Rejects where the server refuses. */
  send(method: string, uri: string): Promise<void>
  /** Tells the other replicas, where there are any, of what has been heard. */
  told?: ((method: string, params: Payload) => void) | undefined
}

interface Subscription {
  watchers: number
  agreed: Promise<boolean>
  ending: NodeJS.Timeout | undefined
}

/** Milliseconds for which a subscription stays that nobody wants any more: clients that change theirs make anew before. */
const GRACE = 2_000
/** Milliseconds that a server has to agree again to what it has agreed to in another session. */
const AGREE_AGAIN_WITHIN = 1_000
/** Milliseconds in which several changes of one list are one. */
const TOGETHER = 100
/** Milliseconds in which a change that has been heard here is the same as one that another replica has heard. */
const SAME = 1_000
const MAX_HEARD = 1_000

export class ChangeFeed {
  readonly #options: WatchingOptions
  readonly #watchers = new Set<Watcher>()
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #together = new Map<string, NodeJS.Timeout>()
  /** When what has been heard, where there are other replicas that may have heard it, too. */
  readonly #heard = new Map<string, number>()
  /** What was subscribed to when the session was lost. */
  #lost: readonly string[] | undefined

  constructor(options: WatchingOptions) {
    this.#options = options
  }

  add(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  remove(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** Resources that somebody wants to hear of, or wanted until the session was lost. */
  get wanted(): readonly string[] {
    return this.#lost ?? [...this.#subscriptions].filter(([, { watchers }]) => watchers > 0).map(([uri]) => uri)
  }

  /** Subscribes to what was subscribed to in a session before this one, for those who will want that again at once. */
  async keep(uris: readonly string[]): Promise<void> {
    if (uris.length === 0) return
    const agreed = uris.map(async (uri) => {
      if (await this.subscribe(uri)) this.unsubscribe(uri)
    })
    await within(Promise.all(agreed), AGREE_AGAIN_WITHIN)
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
    if (!subscription || --subscription.watchers > 0 || this.#lost) return
    subscription.ending = setTimeout(() => {
      this.#subscriptions.delete(uri)
      this.#options.send('resources/unsubscribe', uri).catch(() => {})
    }, GRACE).unref()
  }

  notified(method: string, params: Params): void {
    const payload = typeof params === 'string' ? EMPTY : params
    if (method === UPDATED) {
      const uri = value(payload, 'uri')
      // Nobody can have subscribed to a longer one, nor to one that it lies below.
      if (typeof uri === 'string' && uri.length <= 2 * MAX_ADDRESS) this.#tell(method, payload)
    } else if (isChange(method) && !this.#together.has(method)) {
      const tell = () => {
        this.#together.delete(method)
        this.#tell(method, payload)
      }
      this.#together.set(method, setTimeout(tell, TOGETHER).unref())
    }
  }

  /** Tells of what another replica has heard of the server; once, where it is the `same` that is heard here as well. */
  heardElsewhere(method: string, params: Payload, same: boolean): void {
    const at = this.#heard.get(changeOf(method, params))
    if (same && at !== undefined && performance.now() - at < SAME) return
    for (const watcher of this.#watchers) watcher.changed(method, params)
  }

  missed(): void {
    for (const watcher of this.#watchers) watcher.missed()
  }

  /** Tells everybody that there is nothing more to hear. */
  lose(): void {
    this.#lost ??= this.wanted
    for (const timer of this.#together.values()) clearTimeout(timer)
    for (const { ending } of this.#subscriptions.values()) clearTimeout(ending)
    for (const watcher of [...this.#watchers]) watcher.lost()
    this.#watchers.clear()
  }

  #tell(method: string, params: Payload): void {
    const { told } = this.#options
    if (told) {
      const [oldest] = this.#heard.keys()
      if (oldest !== undefined && this.#heard.size >= MAX_HEARD) this.#heard.delete(oldest)
      const change = changeOf(method, params)
      if (change.length <= MAX_NAME) this.#heard.set(change, performance.now())
      told(method, params)
    }
    for (const watcher of this.#watchers) watcher.changed(method, params)
  }
}

function changeOf(method: string, params: Payload): string {
  return method === UPDATED ? `${method} ${value(params, 'uri')}` : method
}
