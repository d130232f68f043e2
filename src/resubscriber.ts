/**
 * Keeps a `subscriptions/listen` open: opens it again when it has ended, and replaces it without a gap, because another is made
 * before the first is broken.
 */
import type { Reply } from './protocol/call.js'
import { Fault } from './protocol/fault.js'
import { ACKNOWLEDGED } from './protocol/subscriptions.js'
import { EMPTY, objectIn, type Payload } from './rpc/splice.js'
import { type Backoff, backoff, pause, within } from './time.js'

export interface ResubscriberOptions {
  /** Sends a `subscriptions/listen` with these params. */
  listen(params: Payload, controller: AbortController): AsyncIterable<Reply>
  /** Gets what the current subscription tells. */
  heard(notice: Reply & { kind: 'notification' }): void
  /** The current subscription, for which the server had agreed to this filter, has ended. Returns whether to open it again. */
  ended(filter: Payload): boolean
  /** Opens it again, by `open`. */
  reopen(): Promise<void>
  /** It could not be opened again. Returns whether to try once more. */
  failed(error: unknown): boolean
  /** It is open again, after changes that may have been missed. */
  missed?(): void
  /** Milliseconds before it is opened again. Begins at `first` when a subscription has lasted. */
  delays: Backoff
}

/** Milliseconds that a server has to agree to a subscription, and after which a subscription counts as lasting. */
const AGREE_WITHIN = 10_000
const LASTING = 30_000

export class Resubscriber {
  readonly #options: ResubscriberOptions
  /** Subscriptions that the server has not agreed to yet. */
  readonly #opening = new Set<AbortController>()
  #current: AbortController | undefined
  /** When the server agreed to the current one. */
  #since = 0
  /** Ends the attempts to open it again. */
  #reopening: AbortController | undefined
  #failures = 0
  /** Changes may have gone unheard since there was a subscription. */
  #missed = false
  #stopped = false

  constructor(options: ResubscriberOptions) {
    this.#options = options
  }

  /** Whether the server has agreed to a subscription that has not ended. */
  get isOpen(): boolean {
    return this.#current !== undefined
  }

  /** Whether a subscription is being opened, or will be. */
  get isOpening(): boolean {
    return this.#opening.size > 0 || this.#reopening !== undefined
  }

  /**
   * Opens a subscription in the place of the current one, which stays until the server has agreed. `agreed` gets the filter that
   * the server has agreed to; what it throws refuses it. Rejects with that, or with a Fault where the server does not agree.
   */
  open(params: Payload, agreed: (filter: Payload) => void): Promise<void> {
    const controller = new AbortController()
    this.#opening.add(controller)
    const opened = new Promise<void>((resolve, reject) => {
      const take = (filter: Payload) => {
        try {
          agreed(filter)
        } catch (error) {
          controller.abort()
          reject(error as Error)
          return
        }
        this.#replaceBy(controller)
        resolve()
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
    return within(opened, AGREE_WITHIN, expire).finally(() => this.#opening.delete(controller))
  }

  /** Opens a subscription again after a while, and once more after each failure. Ends the attempts that are under way. */
  retry(): void {
    if (this.#stopped) return
    this.#reopening?.abort()
    this.#reopening = new AbortController()
    this.#reopen(this.#reopening).catch(() => {})
  }

  async #reopen(reopening: AbortController): Promise<void> {
    while (await pause(backoff(this.#failures++, this.#options.delays), reopening.signal)) {
      try {
        await this.#options.reopen()
        break
      } catch (error) {
        this.#missed = true
        if (reopening.signal.aborted || !this.#options.failed(error)) break
      }
    }
    if (this.#reopening === reopening) this.#reopening = undefined
  }

  /** Ends the current subscription, and does not open it again. */
  close(): void {
    this.#missed = false
    this.#replaceBy(undefined)
  }

  /** Ends all subscriptions, also those that the server has not agreed to. */
  stop(): void {
    this.#stopped = true
    this.close()
    for (const controller of this.#opening) controller.abort()
    this.#opening.clear()
  }

  /** From here on this one is heard, and the one before is not. */
  #replaceBy(controller: AbortController | undefined): void {
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

  async #read(controller: AbortController, params: Payload, take: (filter: Payload) => void): Promise<void> {
    let filter: Payload | undefined
    let gap = true
    try {
      for await (const reply of this.#options.listen(params, controller)) {
        if (reply.kind === 'error') throw new Fault('methodNotFound', reply.error.message)
        if (reply.kind !== 'notification') gap = false
        else if (reply.method !== ACKNOWLEDGED) {
          if (this.#current === controller) this.#options.heard(reply)
        } else if (this.#opening.has(controller)) {
          filter = objectIn(reply.params, 'notifications') ?? EMPTY
          take(filter)
        }
      }
    } finally {
      if (this.#current === controller) this.#lost(filter ?? EMPTY, gap)
    }
  }

  #lost(filter: Payload, gap: boolean): void {
    this.#current = undefined
    if (performance.now() - this.#since >= LASTING) this.#failures = 0
    if (!this.#options.ended(filter)) return
    this.#missed ||= gap
    this.retry()
  }
}
