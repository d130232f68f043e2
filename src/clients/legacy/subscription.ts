/**
 * The subscription of one legacy session with a modern server: one `subscriptions/listen` for everything. When the client's
 * subscriptions change, opens a new one before it closes the previous one.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Reservation } from '../../base/limits/memory.js'
import type { Log } from '../../base/log/events.js'
import { objectIn, type Payload } from '../../base/rpc/splice.js'
import type { HangUp } from '../../base/time/hang-up.js'
import { isRefusedForGood, Resubscriber } from '../../mcp/listening/resubscriber.js'
import type { Final, Notify } from '../../mcp/protocol/call.js'
import {
  CHANGING_LISTS,
  type ChangingList,
  changesIn,
  checkAddresses,
  everythingIn,
  isNothing,
  paramsOf,
  type Reportable,
  wants,
} from '../../mcp/protocol/subscriptions.js'

export interface ChangesOptions {
  /** Capabilities of the server, as sent to the client. */
  offered: Payload
  /** Sends a `subscriptions/listen`. */
  listen(params: Payload, controller: HangUp, notify: Notify): Promise<Final>
  /** For the subscribed URIs. */
  reservation: Reservation
  /** Sends a notification to the client. */
  deliver(method: string, params: Payload): void
  log: Pick<Log, 'debug'>
}

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
    const { lists, subscribes } = changesIn(options.offered)
    this.#lists = lists
    this.#subscribes = subscribes
    this.#subscription = new Resubscriber({
      listen: options.listen,
      heard: (told) => {
        if (wants(this.#wanted, told)) options.deliver(told.method, told.params)
      },
      ended: (filter) => !isNothing(filter) || this.#uris.size > 0,
      reopen: () => this.#inOrder(() => this.#change(this.#uris)),
      failed: (error) => {
        const retries = !isRefusedForGood(error)
        const message = retries ? 'subscription failed; retrying' : 'subscription failed'
        options.log.debug({ event: 'subscription_failed', err: error }, message)
        return retries
      },
      missed: () => this.#tell(this.#wanted),
    })
  }

  /** Subscribes to changes of lists, now that the client can receive notifications. */
  start(): void {
    if (this.#started || this.#stopped) return
    this.#started = true
    if (this.#lists.length > 0) this.#subscription.begin(this.#isContinued)
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
    if (uris.length > 0) this.#subscription.begin(true)
  }

  /** The session goes on at another server: its lists are others, whether or not the first one announced changes. */
  moved(): void {
    const lists = CHANGING_LISTS.filter(({ capability }) => objectIn(this.#options.offered, capability))
    this.#tell({ lists, uris: [] })
    if ((this.#started && this.#lists.length > 0) || this.#uris.size > 0) this.#subscription.renew()
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
    const filter = { lists: this.#started ? this.#lists : [], uris: [...uris], tasks: [] }
    await this.#subscription.open(paramsOf(filter), (agreed) => {
      if (wanted !== undefined && !agreed.uris.includes(wanted))
        throw new Fault('invalidParams', 'The server did not accept the subscription to this resource')
      this.#uris = uris
    })
  }

  /** What the client wants to know. */
  get #wanted() {
    return { lists: this.#lists, uris: [...this.#uris] }
  }

  /** Reports everything as changed, because changes may have been missed. */
  #tell(changed: Reportable): void {
    for (const { method, params } of everythingIn(changed)) this.#options.deliver(method, params)
  }
}

/** Bytes of the URIs. They are in memory twice: here, and as sent to the server. */
function weightOf(uris: ReadonlySet<string>): number {
  let bytes = 0
  for (const { length } of uris) bytes += 2 * length
  return bytes
}
