/**
 * Aborts a call: an AbortController and its signal in one light object. Almost every call ends without an abort, so
 * it allocates nothing until there is a listener.
 */

/** Ends waiting early. An AbortSignal implements it. */
export interface Signal {
  readonly aborted: boolean
  /** Why it has aborted; undefined before that. */
  readonly reason: unknown
  throwIfAborted(): void
  addEventListener(type: 'abort', listener: () => void, options?: { once: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/** A Signal that aborts when its owner aborts it, or when its parent aborts. */
export class HangUp implements Signal {
  #aborted = false
  #reason: unknown
  #listeners: (() => void)[] | undefined
  #unlink: (() => void) | undefined

  constructor(parent?: Signal) {
    if (parent) this.#unlink = this.follow(parent)
  }

  /** Aborts when another signal does, until the returned function is called. */
  follow(other: Signal): () => void {
    const follow = () => this.abort(other.reason)
    if (other.aborted) follow()
    else other.addEventListener('abort', follow)
    return () => other.removeEventListener('abort', follow)
  }

  get aborted(): boolean {
    return this.#aborted
  }

  get reason(): unknown {
    return this.#reason
  }

  /**
   * Aborts, leaves its parent and calls all listeners, once. Later calls do nothing. The reason is an AbortError unless
   * one is given.
   */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#aborted) return
    this.#aborted = true
    this.#reason = reason
    this.#unlink?.()
    this.#unlink = undefined
    const listeners = this.#listeners
    this.#listeners = undefined
    if (listeners) for (const listener of listeners) listener()
  }

  throwIfAborted(): void {
    if (this.#aborted) throw this.#reason
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    if (this.#aborted) return
    if (this.#listeners) this.#listeners.push(listener)
    else this.#listeners = [listener]
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1
    if (at >= 0) this.#listeners?.splice(at, 1)
  }
}
