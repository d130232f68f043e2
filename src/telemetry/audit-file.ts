/** Appends lines of the audit log to a file, or to stdout. */
import { close, fstat, open, stat, write } from 'node:fs'
import { promisify } from 'node:util'
import type { AuditSink, AuditText } from './audit-lines.js'

/** Where the lines go: the path of a file, or a descriptor. */
export type AuditTarget = { file: string } | { fd: number }

/** Milliseconds between two looks at whether the file has been moved away. */
const LOOK_EVERY = 1_000
const [openFile, closeFile, statFile, statOpen] = [promisify(open), promisify(close), promisify(stat), promisify(fstat)]

export class AuditFile implements AuditSink {
  readonly #target: AuditTarget
  #fd: number | undefined
  #looked = Number.NEGATIVE_INFINITY

  constructor(target: AuditTarget) {
    this.#target = target
  }

  async open(): Promise<void> {
    await this.#opened()
  }

  async write(lines: readonly AuditText[]): Promise<void> {
    try {
      await writeWhole(await this.#opened(), Buffer.from(lines.map(({ text }) => `${text}\n`).join('')))
    } catch (error) {
      this.#looked = Number.NEGATIVE_INFINITY
      throw error
    }
  }

  async close(): Promise<void> {
    if (this.#fd !== undefined && 'file' in this.#target) await closeFile(this.#fd).catch(() => {})
    this.#fd = undefined
  }

  /** The descriptor. A file that was moved away or deleted is created again, as programs that rotate logs expect. */
  async #opened(): Promise<number> {
    if ('fd' in this.#target) return this.#target.fd
    const { file } = this.#target
    if (this.#fd !== undefined && performance.now() - this.#looked < LOOK_EVERY) return this.#fd
    this.#looked = performance.now()
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
