/** Counts per name in windows, of one minute unless another time is named: in all replicas together where they share a store, otherwise in this process. */

import { type Counted, Windows } from '../../base/limits/windows.js'

/** Counts one more in a window that all replicas share. The window ends so many milliseconds after its first count. */
export type CountShared = (name: string, milliseconds: number) => Promise<Counted>

/** Milliseconds of a window. */
export const WINDOW = 60_000
/** Most names with an open window. */
const MAX_WINDOWS = 10_000

/** The windows of all names. */
export class CountedWindows {
  readonly #here = new Windows(MAX_WINDOWS)
  readonly #shared: CountShared | undefined
  readonly #now: () => number

  /** `now` is in milliseconds. */
  constructor(shared?: CountShared, now: () => number = () => performance.now()) {
    this.#shared = shared
    this.#now = now
  }

  /**
   * Counts one more, in a window of so many milliseconds. While the shared store is unavailable, each replica counts for
   * itself. Never rejects.
   */
  async count(name: string, milliseconds = WINDOW): Promise<Counted> {
    const countHere = () => this.#here.count(name, milliseconds, this.#now())
    return this.#shared?.(name, milliseconds).catch(countHere) ?? countHere()
  }
}
