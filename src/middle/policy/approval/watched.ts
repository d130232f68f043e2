/** Looks, where questions were asked, whether they are still open when it is too late to answer them, or when the bridge ends. */
import { BoundedMap } from '../../../base/limits/bounded.js'
import { Deadline } from '../../../base/time/time.js'

/** Milliseconds after the time to answer: the clocks of replicas differ, and an answer may be on its way. */
export const AFTER = 5_000
/** Most questions that are watched: as many as are remembered. */
const MAX_WATCHED = 11_000

/** A look at a question, and when it is due. */
interface Look {
  look: () => Promise<unknown>
  deadline: Deadline
}

export class Watched {
  readonly #looks = new BoundedMap<string, Look>(MAX_WATCHED, ({ deadline }) => deadline.clear())

  /** Calls `look` when a question of this name has been open for longer than so many milliseconds. A failure is ignored. */
  watch(name: string, milliseconds: number, look: () => Promise<unknown>): void {
    const deadline = new Deadline(milliseconds + AFTER, () => {
      this.#looks.delete(name)
      look().catch(() => {})
    })
    this.#looks.set(name, { look, deadline: deadline.unref() })
  }

  forget(name: string): void {
    this.#looks.get(name)?.deadline.clear()
    this.#looks.delete(name)
  }

  /** Looks at all of them now. Nobody can answer them any more. */
  async end(): Promise<void> {
    const looks = [...this.#looks]
    for (const [name] of looks) this.forget(name)
    await Promise.allSettled(looks.map(([, { look }]) => look()))
  }
}
