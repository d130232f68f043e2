/** Appends lines of the audit log to a file, or to stdout. */
import { close, constants, fstat, open, stat, statfs, write } from 'node:fs'
import { promisify } from 'node:util'
import type { AuditSink, AuditText } from './audit-lines.js'

/** Where the lines go: the path of a file, or a descriptor. */
export type AuditTarget = { file: string } | { fd: number }

/** Milliseconds between two looks at whether the file has been moved away. */
const LOOK_EVERY = 1_000
const [openFile, closeFile, statFile, statOpen] = [promisify(open), promisify(close), promisify(stat), promisify(fstat)]
const spaceAround = promisify(statfs)

export class AuditFile implements AuditSink {
  readonly #target: AuditTarget
  #fd: number | undefined
  #looked = Number.NEGATIVE_INFINITY

  constructor(target: AuditTarget) {
    this.#target = target
  }

  async open(): Promise<void> {
    const fd = await this.#opened()
    // A device that takes nothing refuses even this.
    await writeSome(fd, Buffer.alloc(0), 0)
    if ('file' in this.#target && (await isFull(this.#target.file))) throw noSpace()
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
    // To open a pipe that nobody reads would never end. To open it like this fails.
    if (await isPipe(file)) await closeFile(await openFile(file, constants.O_WRONLY | constants.O_NONBLOCK))
    // Nobody else may read it: it says who did what.
    this.#fd = await openFile(file, 'a', 0o600)
    return this.#fd
  }
}

/** The error of a write to a full disk, before the first line. */
function noSpace(): Error {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
}

async function isPipe(file: string): Promise<boolean> {
  return (await statFile(file).catch(() => undefined))?.isFIFO() === true
}

/** Whether the disk of a regular file has no block left for this user. Some file systems say nothing about their blocks. */
async function isFull(file: string): Promise<boolean> {
  if (!(await statFile(file)).isFile()) return false
  const { blocks, bfree, bavail } = await spaceAround(file)
  return blocks > 0 && (process.getuid?.() === 0 ? bfree : bavail) === 0
}

async function writeWhole(fd: number, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += await writeSome(fd, bytes, at)
}

function writeSome(fd: number, bytes: Buffer, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, at, bytes.length - at, null, (error, written) => (error ? reject(error) : resolve(written)))
  })
}
