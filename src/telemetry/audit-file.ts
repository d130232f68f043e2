/** Appends lines of the audit log to a file, or to stdout. Lines that come together are written together. */
import { close, fstat, open, stat, write } from 'node:fs'
import { promisify } from 'node:util'

/** Where the lines go: the path of a file, or a descriptor. */
export type AuditTarget = { file: string } | { fd: number }

/** Milliseconds between two looks at whether the file has been moved away. */
const LOOK_EVERY = 1_000
const [openFile, closeFile, statFile, statOpen] = [promisify(open), promisify(close), promisify(stat), promisify(fstat)]

interface Waiting {
  text: string
  done: (error?: unknown) => void
}

export class AuditFile {
  readonly #target: AuditTarget
  readonly #now: () => number
  #fd: number | undefined
  #looked = Number.NEGATIVE_INFINITY
  #waiting: Waiting[] = []
  #writing = false
  works = true
  /** Called when lines can no longer be written. */
  onFailure: (error: unknown) => void = () => {}

  /** `now` is the time of day in milliseconds. */
  constructor(target: AuditTarget, now: () => number = Date.now) {
    this.#target = target
    this.#now = now
  }

  write(line: Readonly<Record<string, unknown>>): Promise<void> {
    const text = `${JSON.stringify({ time: new Date(this.#now()).toISOString(), ...line })}\n`
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, done: (error) => (error === undefined ? resolve() : reject(error as Error)) })
      if (this.#writing) return
      this.#writing = true
      // All lines of one turn of the event loop go into one write.
      setImmediate(() => void this.#writeAll())
    })
  }

  /** Closes the file when all is written. */
  async close(): Promise<void> {
    while (this.#writing) await new Promise((resolve) => setImmediate(resolve))
    if (this.#fd !== undefined && 'file' in this.#target) await closeFile(this.#fd).catch(() => {})
    this.#fd = undefined
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const lines = this.#waiting.splice(0)
      let failure: unknown
      try {
        await writeWhole(await this.#opened(), Buffer.from(lines.map(({ text }) => text).join('')))
      } catch (error) {
        failure = error ?? new Error('The audit log cannot be written')
        this.#looked = Number.NEGATIVE_INFINITY
      }
      if (failure !== undefined && this.works) this.onFailure(failure)
      this.works = failure === undefined
      for (const { done } of lines) done(failure)
    }
    this.#writing = false
  }

  /** The descriptor. A file that was moved away or deleted is created again, as programs that rotate logs expect. */
  async #opened(): Promise<number> {
    if ('fd' in this.#target) return this.#target.fd
    const { file } = this.#target
    if (this.#fd !== undefined && this.#now() - this.#looked < LOOK_EVERY) return this.#fd
    this.#looked = this.#now()
    if (this.#fd !== undefined) {
      const [there, own] = await Promise.all([statFile(file).catch(() => undefined), statOpen(this.#fd)])
      if (there?.ino === own.ino && there.dev === own.dev) return this.#fd
      await closeFile(this.#fd).catch(() => {})
      this.#fd = undefined
    }
    // Nobody else may read it: it says who did what.
    this.#fd = await openFile(file, 'a', 0o600)
    return this.#fd
  }
}

async function writeWhole(fd: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, at, bytes.length - at, null, (error, written) => (error ? reject(error) : resolve(written)))
    })
  }
}
