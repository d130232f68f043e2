/**
 * Hears of what changes, in the name of somebody for whom results are kept: notices come only to who listens, and whoever
 * has asked for a result need not. It is one subscription, replaced by another when more resources are kept; the first is
 * heard until the second is agreed to.
 */
import type { Call, CallLog, Handler, Reply, Sender } from '../../protocol/call.js'
import { ACKNOWLEDGED, CHANGING_LISTS } from '../../protocol/subscriptions.js'
import { EMPTY, has, isEmpty, objectIn, type Payload, parseObject } from '../../rpc/splice.js'
import type { About } from './results.js'

export interface ListeningOptions {
  next: Handler
  sender: Sender
  /** Something has changed. */
  heard(notice: Reply & { kind: 'notification' }): void
  /** What was heard is heard no longer: the server, or a session with it, is gone. */
  lost(): void
  /** For a while there has been nothing to listen for. */
  idle(): void
}

interface Subscription {
  uris: ReadonlySet<string>
  controller: AbortController
  /** The server has agreed to tell of something. */
  tells: boolean
  /** When it has agreed. */
  since: number
}

/** Milliseconds between one subscription and the next, in which further resources may come to be kept. */
const GATHER = 1_000
/** Milliseconds to wait after one has failed or ended: doubled each time, until one has served well. */
const REOPEN = { first: 1_000, most: 300_000 }
const SERVED_WELL = 30_000
const AGREE_WITHIN = 10_000
/** Milliseconds that a subscription is held for which there is nothing to hear: what has expired may be asked for again. */
const LINGER = 10_000
const MAX_URIS = 256
const MAX_URI = 2_048

const LISTS = CHANGING_LISTS.map(({ filter }) => `"${filter}":true`)
/** A subscription of the bridge's own is no call of anybody's, so that no line of the log is for it. */
const QUIET: CallLog = { note() {}, warn() {} }

export class Listening {
  readonly #options: ListeningOptions
  /** What is listened for. */
  readonly #kept = new Set<About>()
  #current: Subscription | undefined
  /** Not agreed to yet. */
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

  /** Opens a subscription where not all that can be heard is heard, unless it is too soon for that. */
  #attend(): void {
    if (this.#stopped || this.#opening || this.#resting || this.#kept.size === 0) return
    const uris = this.#uris
    const current = this.#current
    if (!current || uris.some((uri) => !current.uris.has(uri))) this.#open(uris)
  }

  /** The resources to listen for: those that have come last, if there are too many. */
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
      // Why it has ended makes no difference.
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
      // One that had nothing to tell stays: all there is to hear is heard.
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
