/**
 * Subscribes to changes for as long as results are cached for one principal. There is one subscription at a time. When
 * more resources are cached, a new one replaces it; the old one ends when the server has accepted the new one.
 */
import type { Call, CallLog, Handler, Reply, Sender } from '../../protocol/call.js'
import { ACKNOWLEDGED, CHANGING_LISTS } from '../../protocol/subscriptions.js'
import { EMPTY, has, isEmpty, objectIn, type Payload, parseObject } from '../../rpc/splice.js'
import type { About } from './results.js'

/** What a Listening needs. */
export interface ListeningOptions {
  next: Handler
  sender: Sender
  /** A change was reported. */
  heard(notice: Reply & { kind: 'notification' }): void
  /** Notifications may have been missed: the server, or the session with it, is gone. */
  lost(): void
  /** Nothing has been cached for a while. */
  idle(): void
}

interface Subscription {
  uris: ReadonlySet<string>
  controller: AbortController
  /** The server has accepted at least part of the subscription. */
  tells: boolean
  /** When the server accepted it. */
  since: number
}

/** Shortest time between two subscriptions, in milliseconds, so that one can cover several new resources. */
const GATHER = 1_000
/**
 * Milliseconds before a new subscription after one failed or ended: doubled each time, until one has lasted
 * SERVED_WELL.
 */
const REOPEN = { first: 1_000, most: 300_000 }
const SERVED_WELL = 30_000
const AGREE_WITHIN = 10_000
/** Milliseconds that a subscription stays open when nothing is cached any more: the same calls may come again. */
const LINGER = 10_000
const MAX_URIS = 256
const MAX_URI = 2_048

const LISTS = CHANGING_LISTS.map(({ filter }) => `"${filter}":true`)
/** The bridge's own subscription is not a call of a client, so it has no line in the log. */
const QUIET: CallLog = { note() {}, warn() {} }

/** The subscription for one scope of the cache. */
export class Listening {
  readonly #options: ListeningOptions
  /** The cached results to keep valid. */
  readonly #kept = new Set<About>()
  #current: Subscription | undefined
  /** Not accepted yet. */
  #opening: Subscription | undefined
  #resting: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined
  #failures = 0
  #tellsOfResources = true
  #stopped = false

  constructor(options: ListeningOptions) {
    this.#options = options
  }

  add(kept: About): void {
    clearTimeout(this.#lingering)
    this.#kept.add(kept)
    this.#attend()
  }

  remove(kept: About): void {
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
    clearTimeout(this.#resting)
    clearTimeout(this.#lingering)
    this.#opening?.controller.abort()
    this.#current?.controller.abort()
  }

  /** Opens a subscription if the current one does not cover everything, unless the last attempt is too recent. */
  #attend(): void {
    if (this.#stopped || this.#opening || this.#resting || this.#kept.size === 0) return
    const uris = this.#uris
    const current = this.#current
    if (!current || uris.some((uri) => !current.uris.has(uri))) this.#open(uris)
  }

  /** The resources to subscribe to: the latest MAX_URIS. */
  get #uris(): string[] {
    if (!this.#tellsOfResources) return []
    const uris = [...this.#kept].flatMap(({ uri }) => (uri === undefined || uri.length > MAX_URI ? [] : [uri]))
    return [...new Set(uris)].slice(-MAX_URIS)
  }

  #open(uris: readonly string[]): void {
    const controller = new AbortController()
    const subscription: Subscription = { uris: new Set(uris), controller, tells: false, since: 0 }
    this.#opening = subscription
    this.#rest(GATHER)
    this.#read(subscription)
      // The reason for the end does not matter.
      .catch(() => {})
      .finally(() => this.#ended(subscription))
  }

  async #read(subscription: Subscription): Promise<void> {
    const { uris, controller } = subscription
    const late = setTimeout(() => controller.abort(), AGREE_WITHIN).unref()
    try {
      for await (const reply of this.#options.next(callOf(this.#options.sender, uris, controller))) {
        if (reply.kind !== 'notification') return
        if (reply.method === ACKNOWLEDGED) {
          clearTimeout(late)
          this.#agreed(subscription, objectIn(reply.params, 'notifications') ?? EMPTY)
        } else this.#options.heard(reply)
      }
    } finally {
      clearTimeout(late)
    }
  }

  #agreed(subscription: Subscription, filter: Payload): void {
    if (this.#opening !== subscription) return
    subscription.tells = !isEmpty(filter)
    subscription.since = performance.now()
    if (subscription.uris.size > 0) this.#tellsOfResources = has(filter, 'resourceSubscriptions')
    this.#opening = undefined
    this.#current?.controller.abort()
    this.#current = subscription
    this.#attend()
  }

  #ended(subscription: Subscription): void {
    if (this.#opening === subscription) {
      this.#opening = undefined
      this.#rest(this.#backoff())
    } else if (this.#current === subscription && subscription.tells && !this.#stopped) {
      // A subscription of which the server accepted nothing is not replaced: another would not report more.
      this.#current = undefined
      if (performance.now() - subscription.since >= SERVED_WELL) this.#failures = 0
      this.#rest(this.#backoff())
      this.#options.lost()
    }
  }

  #backoff(): number {
    return Math.min(REOPEN.first * 2 ** this.#failures++, REOPEN.most)
  }

  #rest(milliseconds: number): void {
    clearTimeout(this.#resting)
    if (this.#stopped) return
    this.#resting = setTimeout(() => {
      this.#resting = undefined
      this.#attend()
    }, milliseconds).unref()
  }
}

function callOf(sender: Sender, uris: ReadonlySet<string>, controller: AbortController): Call {
  const resources = uris.size > 0 ? [`"resourceSubscriptions":${JSON.stringify([...uris])}`] : []
  return {
    ...sender,
    method: 'subscriptions/listen',
    params: parseObject(`{"notifications":{${[...LISTS, ...resources].join(',')}}}`),
    meta: EMPTY,
    progress: false,
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    log: QUIET,
  }
}
