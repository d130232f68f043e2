/**
 * Counts and logs invalid messages of a server, which are skipped. Too many of them end the channel.
 */
import type { Log } from '../base/log/events.js'

/** Limits of invalid messages in a row: UTF-16 units, and milliseconds while a request is open. */
const MOST = { length: 16 * 1024 * 1024, time: 600_000 }
/** Milliseconds after which the count starts again while no request is open: an idle program may print for hours. */
const WHILE_IDLE = 60_000
/** Minimum milliseconds between two lines of the log. */
const LOG_EVERY = 10_000

export class InvalidMessages {
  readonly #log: Pick<Log, 'warn'>
  readonly #now: () => number
  #length = 0
  #since = 0
  /** No request was open when the count started. */
  #idle = false
  #skipped = 0
  #logged = Number.NEGATIVE_INFINITY

  constructor(log: Pick<Log, 'warn'>, now: () => number = () => performance.now()) {
    this.#log = log
    this.#now = now
  }

  /** Notes that a message was received: the count starts again. */
  clear(): void {
    this.#length = 0
  }

  /**
   * Counts an invalid message of this length. Its text is never logged, because it may contain an argument or a result.
   * Returns whether a limit is exceeded.
   */
  add(what: string, length: number, requestOpen: boolean): boolean {
    const now = this.#now()
    const idle = !requestOpen || this.#idle
    if (this.#length === 0 || (idle && now - this.#since > WHILE_IDLE)) {
      this.#length = 0
      this.#since = now
      this.#idle = !requestOpen
    }
    this.#length += length
    this.#skipped++
    if (now - this.#logged >= LOG_EVERY) {
      this.#logged = now
      const fields = { what, skipped: this.#skipped }
      this.#log.warn({ event: 'message_skipped', ...fields }, 'server sent an invalid message; skipped')
    }
    return this.#length > MOST.length || (requestOpen && now - this.#since > MOST.time)
  }
}
