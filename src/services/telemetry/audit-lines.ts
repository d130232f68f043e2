/** Writes lines of the audit log in batches to their destination. Reports when that fails, and when it works again. */
import { within } from '../../base/time/time.js'

/** A line of the audit log. */
export interface AuditText {
  /** The time of day in milliseconds. */
  readonly time: number
  /** The line as JSON, with its time, without the end of the line. */
  readonly text: string
}

/** Where lines go. */
export interface AuditSink {
  /** Opens the destination, if that is possible before the first line. Rejects if it fails. */
  open?(): Promise<void>
  /** Resolves when all lines are written. Rejects if one may be missing. Called again only after that. */
  write(lines: readonly AuditText[]): Promise<void>
  close(): Promise<void>
}

/** Most pending lines, and most bytes of them. They are written together. */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 4 * 1024 * 1024
/** Milliseconds for which a call waits for its line while lines cannot be written. The line may still be written later. */
const TRY_WITHIN = 250
/** Milliseconds for the last lines. */
const CLOSE_WITHIN = 3_000

interface Waiting extends AuditText {
  done: (error?: unknown) => void
}

export class AuditLines {
  readonly #sink: AuditSink | Promise<AuditSink>
  readonly #changed: (failure?: unknown) => void
  #waiting: Waiting[] = []
  #bytes = 0
  #writing: Promise<void> | undefined
  #works = true
  /** Set until it is known whether the destination can be opened. */
  opening: Promise<void> | undefined

  /** `changed` is called with an error when lines can no longer be written, and without one when they can be again. */
  constructor(sink: AuditSink | Promise<AuditSink>, changed: (failure?: unknown) => void) {
    this.#sink = sink
    this.#changed = changed
    this.opening = Promise.resolve(sink)
      .then((one) => one.open?.())
      .catch((error: unknown) => this.#report(error))
      .finally(() => (this.opening = undefined))
  }

  get works(): boolean {
    return this.#works
  }

  write(line: Readonly<Record<string, unknown>>): Promise<void> {
    const time = Date.now()
    const text = JSON.stringify({ time: new Date(time).toISOString(), ...line })
    const bytes = Buffer.byteLength(text)
    if (this.#waiting.length >= MAX_WAITING || this.#bytes + bytes > MAX_WAITING_BYTES) {
      const error = new Error('Too many lines of the audit log wait')
      this.#report(error)
      return Promise.reject(error)
    }
    this.#bytes += bytes
    const written = new Promise<void>((resolve, reject) => {
      this.#waiting.push({ time, text, done: (error) => (error === undefined ? resolve() : reject(error as Error)) })
    })
    // All lines of one turn of the event loop are written together.
    this.#writing ??= new Promise((resolve) => setImmediate(resolve)).then(() => this.#writeAll())
    if (this.#works) return written
    return within(written, TRY_WITHIN, () => {
      throw new Error('The audit log has not been written in time')
    })
  }

  /** Writes pending lines, within a few seconds. Never rejects. */
  async close(): Promise<void> {
    if (this.#writing) await within(this.#writing, CLOSE_WITHIN)
    await Promise.resolve(this.#sink)
      .then((sink) => sink.close())
      .catch(() => {})
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#take()
      let failure: unknown
      try {
        const sink = await this.#sink
        await sink.write(lines)
      } catch (error) {
        failure = error ?? new Error('The audit log cannot be written')
        // Their calls have waited as long.
        lines.push(...this.#take())
      }
      this.#report(failure)
      for (const { done } of lines) done(failure)
    }
    this.#writing = undefined
  }

  #take(): Waiting[] {
    this.#bytes = 0
    return this.#waiting.splice(0)
  }

  #report(failure?: unknown): void {
    const works = failure === undefined
    if (works === this.#works) return
    this.#works = works
    this.#changed(failure)
  }
}
