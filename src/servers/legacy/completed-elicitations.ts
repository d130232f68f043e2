/** Remembers the URL elicitations of a session that the server has reported as complete, and lets calls wait for them. */

import { BoundedSet } from '../../base/limits/bounded.js'
import { MAX_NAME } from '../../base/limits/constants.js'
import type { Params } from '../../base/rpc/message.js'
import { value } from '../../base/rpc/splice.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { pause } from '../../base/time/pause.js'

/** The maximum number of remembered ids of completed URL elicitations. */
const MAX_VISITED = 1_000

export class CompletedElicitations {
  readonly #isAlive: () => boolean
  readonly #ids = new BoundedSet<string>(MAX_VISITED)
  readonly #waiting = new Set<() => void>()

  /** `isAlive`: whether the server can still report anything. */
  constructor(isAlive: () => boolean) {
    this.#isAlive = isAlive
  }

  /** Takes a `notifications/elicitation/complete`. */
  completed(params: Params): void {
    const id = typeof params === 'string' ? undefined : value(params, 'elicitationId')
    if (typeof id !== 'string' || id.length > MAX_NAME) return
    this.#ids.add(id)
    for (const changed of this.#waiting) changed()
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  /** Forgets that these are complete, because the server requires them again. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#ids.delete(id)
  }

  /** Resolves when one of these is complete, after `milliseconds`, or when `signal` aborts. */
  async next(ids: readonly string[], milliseconds: number, signal: Signal): Promise<void> {
    const waits = new HangUp(signal)
    const changed = () => {
      if (!this.#isAlive() || ids.some((id) => this.#ids.has(id))) waits.abort()
    }
    this.#waiting.add(changed)
    changed()
    await pause(milliseconds, waits)
    this.#waiting.delete(changed)
    waits.abort()
  }
}
