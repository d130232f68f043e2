/**
 * Keeps a subscription (`subscriptions/listen`) open. Opens it again after it has ended. A replacement is opened before
 * the current subscription is closed, so that no change is missed.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Payload } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { type Backoff, backoff, pause } from '../../base/time/pause.js'
import { within } from '../../base/time/time.js'
import type { Final, Notify, ServerNotification } from '../protocol/call.js'
import { ACKNOWLEDGED, filterIn, isNothing, NOTHING, type SubscriptionFilter } from '../protocol/subscriptions.js'
import { REOPEN } from './keep-open.js'

/** Whether the server does not support subscriptions or refuses this one, so that a retry would not help. */
export function isRefusedForGood(error: unknown): boolean {
  return error instanceof Fault && (error.fault === 'methodNotFound' || error.fault === 'invalidParams')
}

export interface ResubscriberOptions {
  /** Sends a `subscriptions/listen` with these params. */
  listen(params: Payload, controller: HangUp, notify: Notify): Promise<Final>
  /** Receives the notifications of the current subscription. */
  heard(notice: ServerNotification): void
  /**
   * Called when the current subscription has ended. `filter` is what the server had acknowledged. Returns whether to open
   * it again; by default if that is not nothing, because otherwise another one would not report more.
   */
  ended?(filter: SubscriptionFilter): boolean
  /** Opens the subscription, also again; has to call `open`. */
  reopen(): Promise<unknown>
  /** Called when `reopen` has failed. Returns whether to try again. */
  failed(error: unknown): boolean
  /** Called when a subscription is open again after a gap, in which changes may have been missed. */
  missed?(): void
  /** Milliseconds before it is opened again, by default REOPEN. They start over after a subscription that was open for LASTING milliseconds. */
  delays?: Backoff
}

/** Milliseconds in which the server has to acknowledge a subscription, and after which the delays start over. */
const ACKNOWLEDGE_WITHIN = 10_000
const LASTING = 30_000

export class Resubscriber {
  readonly #options: ResubscriberOptions
  /** Subscriptions that the server has not acknowledged yet. */
  readonly #opening = new Set<HangUp>()
  #current: HangUp | undefined
  /** When the current subscription was acknowledged, by `performance.now()`. */
  #since = 0
  /** Aborts the attempts to open it again. */
  #reopening: HangUp | undefined
  #failures = 0
  /** Changes may have been missed since the last subscription. */
  #missed = false
  #stopped = false

  constructor(options: ResubscriberOptions) {
    this.#options = options
  }

  /** Whether there is an acknowledged subscription that has not ended. */
  get isOpen(): boolean {
    return this.#current !== undefined
  }

  /** Whether a subscription is being opened, or will be opened after a delay. */
  get isOpening(): boolean {
    return this.#opening.size > 0 || this.#reopening !== undefined
  }

  /**
   * Opens a subscription and then closes the current one. Resolves to the filter of the acknowledgement. `acknowledged`
   * receives it at once and may throw to refuse it; then the new subscription is closed, the current one stays, and the
   * promise rejects with that error. Rejects with a Fault if the server does not acknowledge the subscription.
   */
  open(params: Payload, acknowledged?: (filter: SubscriptionFilter) => void): Promise<SubscriptionFilter> {
    const controller = new HangUp()
    this.#opening.add(controller)
    const opened = new Promise<SubscriptionFilter>((resolve, reject) => {
      const take = (filter: SubscriptionFilter) => {
        try {
          acknowledged?.(filter)
        } catch (error) {
          controller.abort()
          reject(error as Error)
          return
        }
        this.#replaceBy(controller)
        resolve(filter)
      }
      this.#read(controller, params, take).then(
        () => reject(new Fault('upstreamClosed', 'The server has ended the subscription')),
        reject,
      )
    })
    const expire = () => {
      controller.abort()
      throw new Fault('upstreamTimeout', 'The server did not answer the subscription in time')
    }
    return within(opened, ACKNOWLEDGE_WITHIN, expire).finally(() => this.#opening.delete(controller))
  }

  /** Opens the subscription at once; if that fails, as `retry`. `gap`: changes may have been missed before. */
  begin(gap = false): void {
    this.#missed ||= gap
    this.#options.reopen().catch((error: unknown) => this.#options.failed(error) && this.retry())
  }

  /**
   * Opens the subscription again after a delay, and again after each failure. Replaces earlier attempts. `gap`: changes may be
   * missed until then.
   */
  retry(gap = true): void {
    if (this.#stopped) return
    this.#missed ||= gap
    this.#reopening?.abort()
    this.#reopening = new HangUp()
    this.#reopen(this.#reopening).catch(() => {})
  }

  /** Closes the current subscription, which may have missed changes, and opens it again. */
  renew(): void {
    this.#replaceBy(undefined)
    this.#failures = 0
    this.retry()
  }

  async #reopen(reopening: HangUp): Promise<void> {
    while (await pause(backoff(this.#failures++, this.#options.delays ?? REOPEN), reopening)) {
      try {
        await this.#options.reopen()
        break
      } catch (error) {
        this.#missed = true
        if (reopening.aborted || !this.#options.failed(error)) break
      }
    }
    if (this.#reopening === reopening) this.#reopening = undefined
  }

  /** Closes the current subscription, and does not open it again. */
  close(): void {
    this.#missed = false
    this.#replaceBy(undefined)
  }

  /** Closes all subscriptions, including those that are not acknowledged yet. Nothing is opened again. */
  stop(): void {
    this.#stopped = true
    this.close()
    for (const controller of this.#opening) controller.abort()
    this.#opening.clear()
  }

  /** Makes a subscription the current one and closes the previous one. */
  #replaceBy(controller: HangUp | undefined): void {
    const before = this.#current
    this.#current = controller
    this.#since = performance.now()
    this.#reopening?.abort()
    this.#reopening = undefined
    before?.abort()
    if (!controller) return
    this.#opening.delete(controller)
    if (!this.#missed) return
    this.#missed = false
    this.#options.missed?.()
  }

  async #read(controller: HangUp, params: Payload, take: (filter: SubscriptionFilter) => void): Promise<void> {
    let filter = NOTHING
    let gap = true
    const notify = (notification: ServerNotification) => {
      if (notification.method !== ACKNOWLEDGED) {
        if (this.#current === controller) this.#options.heard(notification)
      } else if (this.#opening.has(controller)) {
        filter = filterIn(notification.params)
        take(filter)
      }
      return undefined
    }
    try {
      const last = await this.#options.listen(params, controller, notify)
      if (last.kind === 'error') throw new Fault('methodNotFound', last.error.message)
      gap = false
    } finally {
      if (this.#current === controller) this.#lost(filter, gap)
    }
  }

  #lost(filter: SubscriptionFilter, gap: boolean): void {
    this.#current = undefined
    if (performance.now() - this.#since >= LASTING) this.#failures = 0
    if (this.#options.ended?.(filter) ?? !isNothing(filter)) this.retry(gap)
  }
}
