/** Keeps a client's subscription to one server of a group open: opens it again when it breaks. */

import type { Payload } from '../../base/rpc/splice.js'
import type { HangUp } from '../../base/time/hang-up.js'
import { isRefusedForGood, Resubscriber } from '../../mcp/listening/resubscriber.js'
import type { Call, CallLog, Final, Notify, ServerNotification } from '../../mcp/protocol/call.js'
import { isNothing, NOTHING, paramsOf, type SubscriptionFilter } from '../../mcp/protocol/subscriptions.js'
import type { Member } from './member.js'

export interface MemberStreamOptions {
  member: Member
  /** The subscription of the client. */
  call: Call
  filter: SubscriptionFilter
  heard(notification: ServerNotification): void
  /** The server was added or removed, or changes may have been missed. */
  missed(): void
}

/** Milliseconds before the subscription is opened again. */
const REOPEN = { first: 1_000, most: 30_000 }

export class MemberStream {
  /** The first acknowledgement of the server, empty if it refuses subscriptions; undefined if it was unreachable. */
  readonly agreed: Promise<SubscriptionFilter | undefined>
  readonly #options: MemberStreamOptions
  readonly #subscription: Resubscriber
  #settle: (filter: SubscriptionFilter | undefined) => void = () => {}
  /** The server is unreachable, and the client has been notified. */
  #isGone = false
  #stopped = false

  constructor(options: MemberStreamOptions) {
    this.#options = options
    this.agreed = new Promise((resolve) => {
      this.#settle = resolve
    })
    this.#subscription = new Resubscriber({
      listen: (params, controller, tell) => this.#listen(params, controller, tell),
      heard: options.heard,
      // A server that accepts nothing ends the subscription. Opening it again would change nothing.
      ended: (filter) => !isNothing(filter),
      reopen: () => this.#open(),
      failed: (error) => {
        this.#gone()
        return !isRefusedForGood(error)
      },
      missed: options.missed,
      delays: REOPEN,
    })
  }

  open(): void {
    this.#open().catch((error: unknown) => {
      const isRefused = isRefusedForGood(error)
      this.#settle(isRefused ? NOTHING : undefined)
      if (this.#stopped || isRefused) return
      this.#isGone = true
      this.#subscription.retry()
    })
  }

  /** To be called when the server did not answer a call: retries until the server is back, even if it reports no changes. */
  expect(): void {
    if (this.#stopped || this.#subscription.isOpen || this.#subscription.isOpening) return
    this.#isGone = true
    this.#subscription.retry()
  }

  stop(): void {
    this.#stopped = true
    this.#subscription.stop()
    this.#settle(undefined)
  }

  #open(): Promise<void> {
    return this.#subscription.open(paramsOf(this.#options.filter), (filter) => {
      this.#settle(filter)
      if (!this.#isGone) return
      this.#isGone = false
      this.#options.missed()
    })
  }

  #gone(): void {
    if (this.#isGone || this.#stopped) return
    this.#isGone = true
    this.#options.missed()
  }

  #listen(params: Payload, controller: HangUp, notify: Notify): Promise<Final> {
    const { member, call } = this.#options
    const abort = (reason?: unknown) => controller.abort(reason)
    // Notes of this server must not appear in the log line of the client's call.
    const log: CallLog = {
      recorder: call.log.recorder,
      note() {},
      warn: (fields, message) => call.log.warn(fields, message),
    }
    return member.upstream.handle({ ...call, params, progress: false, notify, signal: controller, abort, log })
  }
}
