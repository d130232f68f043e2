/** Keeps a client's subscription to one server of a group open: opens it again when it breaks. */

import type { Payload } from '../../base/rpc/splice.js'
import type { HangUp } from '../../base/time/hang-up.js'
import { isRefusedForGood, Resubscriber } from '../../mcp/listening/resubscriber.js'
import type { Call, CallLog, Final, Notify, ServerNotification } from '../../mcp/protocol/call.js'
import { NOTHING, paramsOf, type SubscriptionFilter } from '../../mcp/protocol/subscriptions.js'
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

export class MemberStream {
  /** The first acknowledgement of the server, empty if it refuses subscriptions; undefined if it was unreachable. */
  readonly agreed: Promise<SubscriptionFilter | undefined>
  readonly #subscription: Resubscriber
  /** The server is not there, as far as the client knows. */
  #isGone = true

  constructor({ member, call, filter, heard, missed }: MemberStreamOptions) {
    const open = async () => {
      const agreed = await this.#subscription.open(paramsOf(filter))
      this.#isGone = false
      return agreed
    }
    this.#subscription = new Resubscriber({
      listen: (params, controller, notify) => listenAt(member, call, { params, controller, notify }),
      heard,
      reopen: open,
      failed: (error) => {
        if (!this.#isGone) missed()
        this.#isGone = true
        return !isRefusedForGood(error)
      },
      missed,
    })
    this.agreed = open().catch((error: unknown) => {
      if (isRefusedForGood(error)) return NOTHING
      this.#subscription.retry()
      return undefined
    })
  }

  /** To be called when the server did not answer a call: retries until the server is back, even if it reports no changes. */
  expect(): void {
    if (this.#subscription.isOpen || this.#subscription.isOpening) return
    this.#isGone = true
    this.#subscription.retry()
  }

  stop(): void {
    this.#subscription.stop()
  }
}

interface Listened {
  params: Payload
  controller: HangUp
  notify: Notify
}

function listenAt({ upstream }: Member, call: Call, { params, controller, notify }: Listened): Promise<Final> {
  const abort = (reason?: unknown) => controller.abort(reason)
  // Notes of this server must not appear in the log line of the client's call.
  const log: CallLog = {
    recorder: call.log.recorder,
    note() {},
    warn: (fields, message) => call.log.warn(fields, message),
  }
  return upstream.handle({ ...call, params, progress: false, notify, signal: controller, abort, log })
}
