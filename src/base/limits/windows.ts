/** Counts by name in windows of time. A window ends so many milliseconds after its first count. */

import { BoundedMap } from './bounded.js'

/** The count in the current window of a name, and the milliseconds until the window ends. */
export interface Counted {
  current: number
  ttl: number
}

export class Windows {
  /** In the order in which they began. */
  readonly #open: BoundedMap<string, { current: number; until: number }>

  /** `max`: most names with a window. For one more, the oldest window ends early. */
  constructor(max: number) {
    this.#open = new BoundedMap(max)
  }

  /** Counts one more. `now` is in milliseconds of a monotonic clock. */
  count(name: string, milliseconds: number, now = performance.now()): Counted {
    const window = this.#open.get(name)
    if (window && window.until > now) {
      window.current++
      return { current: window.current, ttl: window.until - now }
    }
    this.#open.set(name, { current: 1, until: now + milliseconds })
    return { current: 1, ttl: milliseconds }
  }
}
