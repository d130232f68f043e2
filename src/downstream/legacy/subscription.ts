/**
 * The subscription of one legacy session with a modern server: one `subscriptions/listen` for everything. When the client's
 * subscriptions change, opens a new one before it closes the previous one.
 */

import { Fault } from '../../fault/fault.js'
import type { Reservation } from '../../limits/memory.js'
import { isRefusedForGood, Resubscriber } from '../../listening/resubscriber.js'
import type { Log } from '../../log/events.js'
import type { Final, Tell } from '../../protocol/call.js'
import { CHANGING_LISTS, type ChangingList, checkAddresses, isAbout, UPDATED } from '../../protocol/subscriptions.js'
import {
  EMPTY,
  edit,
  isEmpty,
  type Json,
  OWN,
  objectIn,
  type Payload,
  parseObject,
  textUnder,
  value,
} from '../../rpc/splice.js'
import type { HangUp } from '../../time/hang-up.js'

/** Options of the subscription. */
export interface ChangesOptions {
  /** Capabilities of the server, as sent to the client. */
  offered: Payload
  /** Sends a `subscriptions/listen`. */
  listen(params: Payload, controller: HangUp, tell: Tell): Promise<Final>
  /** For the subscribed URIs. */
  reservation: Reservation
  /** Sends a notification to the client. */
  deliver(method: string, params: Payload): void
  log: Pick<Log, 'debug'>
}

/** Milliseconds before a subscription is opened again. */
const REOPEN = { first: 1_000, most: 30_000 }
/** Most subscribed resources of a session. */
const MAX_SESSION_URIS = 1_000

/** Reports changes to one session. */
export class SessionChanges {
  readonly #options: ChangesOptions
  readonly #lists: readonly ChangingList[]
  readonly #subscribes: boolean
  readonly #subscription: Resubscriber
  #uris: ReadonlySet<string> = new Set()
  #order: Promise<unknown> = Promise.resolve()
  #started = false
  /** Another replica had the session, so changes may have been missed in the meantime. */
  #isContinued = false
  #stopped = false

  constructor(options: ChangesOptions) {
    this.#options = options
    this.#lists = CHANGING_LISTS.filter(({ capability }) => {
      const offered = objectIn(options.offered, capability)
      return offered !== undefined && value(offered, 'listChanged') === true
    })
    const resources = objectIn(options.offered, 'resources')
    this.#subscribes = resources !== undefined && value(resources, 'subscribe') === true
    this.#subscription = new Resubscriber({
      listen: options.listen,
      heard: ({ method, params }) => {
        if (this.#wants(method, params)) options.deliver(method, params)
      },
      ended: (filter) => !isEmpty(filter) || this.#uris.size > 0,
      reopen: () =>
        this.#inOrder(async () => {
          if (!this.#subscription.isOpen) await this.#change(this.#uris)
        }),
      failed: (error) => {
        const retries = !isRefusedForGood(error)
        const message = retries ? 'subscription failed; retrying' : 'subscription failed'
        options.log.debug({ event: 'subscription_failed', err: error }, message)
        return retries
      },
      missed: () => this.#tellAll(),
      delays: REOPEN,
    })
  }

  /** Subscribes to changes of lists, now that the client can receive notifications. */
  start(): void {
    if (this.#started || this.#stopped) return
    this.#started = true
    if (this.#lists.length > 0) this.#open()
  }

  /** The resources that the client has subscribed to. */
  get uris(): ReadonlySet<string> {
    return this.#uris
  }

  /** Continues the subscriptions of a session that another replica had. Reports everything as changed. */
  continue(uris: readonly string[]): void {
    this.#isContinued = true
    this.#uris = new Set(uris)
    this.#options.reservation.resize(weightOf(this.#uris))
    if (uris.length > 0) this.#open()
  }

  /** The session goes on at another server: its lists are others, whether or not the first one announced changes. */
  moved(): void {
    for (const { capability, method } of CHANGING_LISTS)
      if (objectIn(this.#options.offered, capability)) this.#options.deliver(method, EMPTY)
    if ((this.#started && this.#lists.length > 0) || this.#uris.size > 0) this.#subscription.renew()
  }

  #open(): void {
    this.#inOrder(() => this.#change(this.#uris))
      .then(() => {
        if (this.#isContinued) this.#tellAll()
      })
      .catch(() => {})
  }

  /**
   * Subscribes to a resource. Rejects with a Fault if the server refuses the subscription; throws one if it supports
   * none.
   */
  subscribe(uri: string): Promise<void> {
    if (!this.#subscribes) throw new Fault('methodNotFound', 'The server does not support resource subscriptions')
    return this.#inOrder(async () => {
      if (this.#uris.has(uri) && this.#subscription.isOpen) return
      if (this.#uris.size >= MAX_SESSION_URIS)
        throw new Fault('invalidParams', `Too many subscribed resources in this session (at most ${MAX_SESSION_URIS})`)
      const uris = new Set([...this.#uris, uri])
      checkAddresses(uris)
      this.#options.reservation.mustResize(weightOf(uris))
      await this.#change(uris, uri).finally(() => this.#options.reservation.resize(weightOf(this.#uris)))
    })
  }

  /** Ends the subscription to a resource. Does not fail if the server does. */
  unsubscribe(uri: string): Promise<void> {
    return this.#inOrder(async () => {
      if (!this.#uris.has(uri)) return
      // If the server does not accept the smaller subscription, its notifications for this resource are dropped.
      const remaining = new Set([...this.#uris].filter((other) => other !== uri))
      await this.#change(remaining).catch(() => {
        this.#uris = remaining
      })
      this.#options.reservation.resize(weightOf(remaining))
    })
  }

  /** Ends everything. */
  stop(): void {
    this.#stopped = true
    this.#options.reservation.end()
    this.#subscription.stop()
  }

  #inOrder<T>(what: () => Promise<T>): Promise<T> {
    const done = this.#order.then(what)
    this.#order = done.catch(() => {})
    return done
  }

  /** Subscribes to other resources. The previous subscription stays open until the server has accepted the new one. */
  async #change(uris: ReadonlySet<string>, wanted?: string): Promise<void> {
    if (this.#stopped) return
    if (uris.size === 0 && (this.#lists.length === 0 || !this.#started)) {
      this.#uris = uris
      this.#subscription.close()
      return
    }
    await this.#subscription.open(this.#filter(uris), (filter) => {
      if (wanted !== undefined && !includesUri(filter, wanted))
        throw new Fault('invalidParams', 'The server did not accept the subscription to this resource')
      this.#uris = uris
    })
  }

  /** Reports everything as changed, because changes may have been missed. */
  #tellAll(): void {
    for (const { method } of this.#lists) this.#options.deliver(method, EMPTY)
    for (const uri of this.#uris) this.#options.deliver(UPDATED, edit(OWN, { uri: JSON.stringify(uri) }))
  }

  #filter(uris: ReadonlySet<string>): Payload {
    const filter: Record<string, Json> = {}
    if (this.#started) for (const list of this.#lists) filter[list.filter] = 'true'
    if (uris.size > 0) filter['resourceSubscriptions'] = JSON.stringify([...uris])
    return parseObject(`{"notifications":{${Object.entries(filter).map(([key, json]) => `"${key}":${json}`)}}}`)
  }

  #wants(method: string, params: Payload): boolean {
    if (method === UPDATED) {
      const uri = textUnder(params, 'uri')
      return [...this.#uris].some((subscribed) => isAbout(uri, subscribed))
    }
    return this.#lists.some((list) => list.method === method)
  }
}

/** Bytes of the URIs. They are in memory twice: here, and as sent to the server. */
function weightOf(uris: ReadonlySet<string>): number {
  let bytes = 0
  for (const { length } of uris) bytes += 2 * length
  return bytes
}

/** Whether the filter that the server has accepted contains the resource. */
function includesUri(filter: Payload, uri: string): boolean {
  const uris = value(filter, 'resourceSubscriptions')
  return Array.isArray(uris) && uris.includes(uri)
}
