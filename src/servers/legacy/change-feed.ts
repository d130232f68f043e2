/**
 * Passes changes that a legacy server reports to all watchers of a session, with one subscription for each resource.
 */
import { BoundedMap } from '../../base/limits/bounded.js'
import { MAX_ADDRESS, MAX_NAME } from '../../base/limits/constants.js'
import type { Params } from '../../base/rpc/message.js'
import { EMPTY, type Payload, value } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'
import { isChange, subjectOf, UPDATED } from '../../mcp/protocol/subscriptions.js'

export interface Watcher {
  changed(method: string, params: Payload): void
  /** Changes may have been lost, so anything may have changed. */
  missed(): void
  /** No more changes will arrive: the session or its stream is lost. */
  lost(): void
}

export interface ChangeFeedOptions {
  /** Sends `resources/subscribe` or `resources/unsubscribe`. Rejects if the server refuses. */
  send(method: string, uri: string): Promise<void>
  /** Reports a change to the other replicas, if there are any. */
  onChange?: ((method: string, params: Payload) => void) | undefined
}

interface Subscription {
  watchers: number
  agreed: Promise<boolean>
  ending: NodeJS.Timeout | undefined
}

/** Milliseconds for which an unused subscription stays. A client may replace its subscription in that time. */
const GRACE = 2_000
/** Milliseconds to wait until a server has accepted the renewed subscriptions of a lost session. */
const AGREE_AGAIN_WITHIN = 1_000
/** Milliseconds within which changes of the same list are reported once. */
const TOGETHER = 100
/** Milliseconds within which equal changes received here and by another replica count as the same change. */
const SAME = 1_000
/** The maximum number of remembered changes. */
const MAX_HEARD = 1_000

export class ChangeFeed {
  readonly #options: ChangeFeedOptions
  readonly #watchers = new Set<Watcher>()
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #together = new Map<string, NodeJS.Timeout>()
  /** When each change last arrived, by `performance.now()`. Used only if there are other replicas. */
  readonly #heard = new BoundedMap<string, number>(MAX_HEARD)
  /** The subscriptions at the time when the session was lost. */
  #lost: readonly string[] | undefined

  constructor(options: ChangeFeedOptions) {
    this.#options = options
  }

  add(watcher: Watcher): void {
    this.#watchers.add(watcher)
  }

  remove(watcher: Watcher): void {
    this.#watchers.delete(watcher)
  }

  /** URIs of resources with a watcher, now or at the time when the session was lost. */
  get wanted(): readonly string[] {
    return this.#lost ?? [...this.#subscriptions].filter(([, { watchers }]) => watchers > 0).map(([uri]) => uri)
  }

  /** Renews the subscriptions of a lost session, because their watchers will soon ask for them again. */
  async keep(uris: readonly string[]): Promise<void> {
    if (uris.length === 0) return
    const agreed = uris.map(async (uri) => {
      if (await this.subscribe(uri)) this.unsubscribe(uri)
    })
    await within(Promise.all(agreed), AGREE_AGAIN_WITHIN)
  }

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
      // A longer URI cannot belong to any subscription, not even as a sub-resource.
      if (typeof uri === 'string' && uri.length <= 2 * MAX_ADDRESS) this.#report(method, payload)
    } else if (isChange(method) && !this.#together.has(method)) {
      const report = () => {
        this.#together.delete(method)
        this.#report(method, payload)
      }
      this.#together.set(method, setTimeout(report, TOGETHER).unref())
    }
  }

  /**
   * Passes on a change that another replica received. `same`: the server reports the same changes to this replica, so
   * duplicates are dropped.
   */
  onReplicaChange(method: string, params: Payload, same: boolean): void {
    const at = this.#heard.get(subjectOf({ method, params }))
    if (same && at !== undefined && performance.now() - at < SAME) return
    for (const watcher of this.#watchers) watcher.changed(method, params)
  }

  missed(): void {
    for (const watcher of this.#watchers) watcher.missed()
  }

  /** Ends the feed: reports to all watchers that the session is lost. */
  lose(): void {
    this.#lost ??= this.wanted
    for (const timer of this.#together.values()) clearTimeout(timer)
    for (const { ending } of this.#subscriptions.values()) clearTimeout(ending)
    for (const watcher of [...this.#watchers]) watcher.lost()
    this.#watchers.clear()
  }

  #report(method: string, params: Payload): void {
    const { onChange } = this.#options
    if (onChange) {
      const subject = subjectOf({ method, params })
      if (subject.length <= MAX_NAME) this.#heard.set(subject, performance.now())
      onChange(method, params)
    }
    for (const watcher of this.#watchers) watcher.changed(method, params)
  }
}
