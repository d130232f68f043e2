/**
 * Keeps a subscription (`subscriptions/listen`) of a client open while what reports to it is replaced: the process of a
 * program, or the session of a legacy server. The client is told of one acknowledgement. After each gap everything in it is
 * reported as changed.
 */

import { EMPTY } from '../../base/rpc/splice.js'
import { type Backoff, backoff, pause } from '../../base/time/pause.js'
import type { Call, Final, Notify, ServerNotification } from '../protocol/call.js'
import {
  ACKNOWLEDGED,
  everythingIn,
  filterIn,
  includesAll,
  type SubscriptionFilter,
} from '../protocol/subscriptions.js'

export const ENDED: Final = { kind: 'result', result: EMPTY }
/** Milliseconds before a subscription is opened again, unless there is a reason for others. */
export const REOPEN: Backoff = { first: 1_000, most: 30_000 }

/** Tells a client of the first acknowledgement only. */
export class OneAcknowledgement {
  /** What was acknowledged first; undefined before that. */
  agreed: SubscriptionFilter | undefined
  readonly #notify: Notify
  readonly #again: (honoured: SubscriptionFilter) => ReturnType<Notify>

  /** `again` gets the filters of later acknowledgements. */
  constructor(notify: Notify, again: (honoured: SubscriptionFilter) => ReturnType<Notify> = () => undefined) {
    this.#notify = notify
    this.#again = again
  }

  /** Receives what subscriptions behind it say. */
  readonly notify = (notification: ServerNotification): ReturnType<Notify> => {
    if (notification.method !== ACKNOWLEDGED) return this.#notify(notification)
    const honoured = filterIn(notification.params)
    if (this.agreed) return this.#again(honoured)
    this.agreed = honoured
    return this.#notify(notification)
  }

  /** Reports everything as changed, because changes may have been missed. */
  async missed(): Promise<void> {
    if (this.agreed) for (const told of everythingIn(this.agreed)) await this.#notify(told)
  }
}

export interface KeepOpenOptions {
  /** Answers the call once. `agreed`: what the client has been promised; undefined for the first time. Rejects if the subscription breaks. */
  listen(call: Call, agreed: SubscriptionFilter | undefined): Promise<Final>
  /** What a replacement has to accept, of what was accepted first. */
  lasting?(agreed: SubscriptionFilter): SubscriptionFilter
  /** Milliseconds between attempts, by default REOPEN: none before the first one. */
  delays?: Backoff
}

/** Milliseconds after which to stop opening it again, and after which an open subscription counts as stable. */
const GIVE_UP = 30_000
const STABLE = 30_000

/** Thrown by `notify` to end a subscription that reports less than the first one. */
class ReportsLess extends Error {}

/** Ends with an empty result if a replacement reports less, or none could be opened in time. Rejects before the acknowledgement. */
export async function keepOpen(
  call: Call,
  { listen, lasting = (agreed) => agreed, delays = REOPEN }: KeepOpenOptions,
): Promise<Final> {
  let lostSince = 0
  let openSince = undefined as number | undefined
  let reportsLess = false
  const client = new OneAcknowledgement(call.notify, (honoured) => {
    reportsLess = !includesAll(honoured, lasting(client.agreed as SubscriptionFilter))
    if (reportsLess) throw new ReportsLess()
    return client.missed()
  })
  const notify: Notify = (told) => {
    if (told.method === ACKNOWLEDGED) openSince = performance.now()
    return client.notify(told)
  }
  for (let failures = 0; ; failures++) {
    openSince = undefined as number | undefined
    try {
      const last = await listen({ ...call, notify }, client.agreed)
      return client.agreed && openSince === undefined ? ENDED : last
    } catch (error) {
      if (reportsLess) return ENDED
      if (!client.agreed || call.signal.aborted) throw error
    }
    const now = performance.now()
    if (openSince !== undefined) {
      lostSince = now
      if (now - openSince >= STABLE) failures = 0
    } else if (now - lostSince >= GIVE_UP) return ENDED
    await pause(failures === 0 ? 0 : backoff(failures - 1, delays), call.signal)
  }
}
