/** URL elicitations of a session that the server has reported as complete, and who waits for them. */
import { MAX_NAME } from '../../protocol/lengths.js'
import type { Params } from '../../rpc/message.js'
import { value } from '../../rpc/splice.js'
import { within } from '../../time.js'

/** The maximum number of remembered ids of completed URL elicitations. */
const MAX_VISITED = 1_000

export class Visits {
  readonly #isAlive: () => boolean
  /** The ids of completed elicitations. */
  readonly #ids = new Set<string>()
  /** Callbacks of those who wait for one. */
  readonly #waiting = new Set<() => void>()

  /** `isAlive`: whether the server can still report anything. */
  constructor(isAlive: () => boolean) {
    this.#isAlive = isAlive
  }

  /** Takes a `notifications/elicitation/complete`. */
  completed(params: Params): void {
    const id = typeof params === 'string' ? undefined : value(params, 'elicitationId')
    if (typeof id !== 'string' || id.length > MAX_NAME) return
    if (this.#ids.size >= MAX_VISITED) this.#ids.clear()
    this.#ids.add(id)
    for (const changed of this.#waiting) changed()
  }

  /** Resolves when all these elicitations are complete, or after so many milliseconds. Then it forgets them. */
  async wait(ids: readonly string[], milliseconds: number): Promise<void> {
    let changed = () => {}
    const deadline = performance.now() + milliseconds
    while (this.#isAlive() && !ids.every((id) => this.#ids.has(id)) && performance.now() < deadline) {
      const visit = new Promise<void>((resolve) => {
        changed = resolve
        this.#waiting.add(changed)
      })
      await within(visit, deadline - performance.now())
      this.#waiting.delete(changed)
    }
    for (const id of ids) this.#ids.delete(id)
  }
}
