/** Changes that wait until a client can be told of them: bounded, and merged for a while if that is wanted. */
import { MAX_UNREAD } from '../../base/limits/constants.js'
import type { Reservation } from '../../base/limits/memory.js'
import { sizeOf } from '../../base/rpc/splice.js'
import { pause } from '../../base/time/pause.js'
import type { Call, ServerNotification } from '../protocol/call.js'
import { subjectOf } from '../protocol/subscriptions.js'

export interface PendingOptions {
  /** The subscription of the client. */
  call: Call
  /** Milliseconds for which changes are gathered: of several about the same subject, only the last is told. */
  gather?: number
  /** For changes that wait. Small amounts are free. */
  reservation?: Reservation
}

export class PendingChanges {
  readonly #options: PendingOptions
  readonly #waiting = new Map<unknown, ServerNotification>()
  #bytes = 0
  #dropped = false
  #ended = false
  #wake = () => {}

  constructor(options: PendingOptions) {
    this.#options = options
  }

  /** Drops a change, and logs that once, if too many wait. */
  add(notification: ServerNotification): void {
    const { call, gather, reservation } = this.#options
    const key = gather === undefined ? notification : subjectOf(notification)
    const before = this.#waiting.get(key)
    const bytes = this.#bytes + sizeOf(notification.params) - (before ? sizeOf(before.params) : 0)
    if ((!before && this.#waiting.size >= MAX_UNREAD) || reservation?.resize(bytes)) {
      if (!this.#dropped) call.log.warn({ event: 'changes_dropped' }, 'changes dropped: the client reads too slowly')
      this.#dropped = true
      return
    }
    this.#bytes = bytes
    this.#waiting.set(key, notification)
    this.#wake()
  }

  /** Tells changes until `end`, and what still waits then; or until the call is cancelled. */
  async tellAll(): Promise<void> {
    const { call, gather, reservation } = this.#options
    const { signal, notify } = call
    const wake = () => this.#wake()
    signal.addEventListener('abort', wake)
    try {
      while (!signal.aborted) {
        if (this.#waiting.size > 0) {
          if (gather !== undefined) await pause(gather, signal)
          for (const [key, told] of this.#waiting) {
            if (signal.aborted) return
            this.#waiting.delete(key)
            this.#bytes -= sizeOf(told.params)
            reservation?.resize(this.#bytes)
            await notify(told)
          }
        } else if (this.#ended) return
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
      }
    } finally {
      signal.removeEventListener('abort', wake)
    }
  }

  /** No more changes will come. */
  end(): void {
    this.#ended = true
    this.#wake()
  }
}
