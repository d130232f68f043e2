/** Writes lines to a descriptor that may be slow, full or unread: it never waits, keeps a bounded amount, and counts what it drops. */
import { fstatSync, write } from 'node:fs'
import type { Writable } from 'node:stream'

export interface LineWriterOptions {
  fd: number
  /**
   * The process's own stream for the descriptor. It is used for pipes and sockets, to which it writes without blocking;
   * `fs.write` would block a thread there until somebody reads, and keep the process from exiting.
   */
  stream(): Writable
  /** Bytes that may wait to be written. */
  max?: number
  /** Milliseconds before another attempt, after the descriptor has refused to take anything. */
  retry?: number
}

/** Writes bytes, and calls back with how many were taken, or with the reason why none were. */
type Write = (bytes: Buffer, done: (error: Error | null | undefined, written: number) => void) => void

const DEFAULTS = { max: 1024 * 1024, retry: 1_000 }
/** Bytes of one write, if that many wait. */
const AT_ONCE = 64 * 1024
/** Milliseconds before another attempt where a descriptor that does not block has no room. */
const NO_ROOM = 50

export class LineWriter {
  readonly #options: Required<LineWriterOptions>
  readonly #write: Write
  #lines: string[] = []
  /** Bytes of all that waits, of what is being written as well. */
  #waiting = 0
  #dropped = 0
  /** Something is being written, or will be at the next opportunity. */
  #busy = false
  #refused = false
  /** A write is under way. */
  #writing = false
  readonly #flushed = new Set<() => void>()
  /** There is room again, after so many lines have been dropped: the place to say so. */
  onRoom: (lines: number) => void = () => {}

  constructor(options: LineWriterOptions) {
    this.#options = { ...DEFAULTS, ...options }
    this.#write = writerFor(options)
  }

  /** Takes a line, with its line break, or drops it. Never waits and never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    // After one that is missing there is none before that has been said.
    if (this.#dropped > 0 || this.#waiting + bytes > this.#options.max) {
      this.#dropped++
      return
    }
    this.#lines.push(line)
    this.#waiting += bytes
    if (this.#busy) return
    this.#busy = true
    // All lines of one turn of the event loop are one write.
    setImmediate(() => this.#next())
  }

  /**
   * Resolves when everything is written, when the descriptor refuses to take it, or after so many milliseconds: to
   * whether no write is under way.
   */
  async flush(milliseconds: number): Promise<boolean> {
    if (this.#busy && !this.#refused) {
      let done = () => {}
      const flushed = new Promise<void>((resolve) => {
        done = resolve
      })
      this.#flushed.add(done)
      const timer = setTimeout(done, milliseconds)
      await flushed
      clearTimeout(timer)
      this.#flushed.delete(done)
    }
    return !this.#writing
  }

  #next(): void {
    if (this.#lines.length === 0) {
      this.#busy = false
      this.#settle()
      return
    }
    let text = ''
    let taken = 0
    while (taken < this.#lines.length && text.length < AT_ONCE) text += this.#lines[taken++]
    this.#lines.splice(0, taken)
    this.#send(Buffer.from(text))
  }

  #send(bytes: Buffer): void {
    this.#writing = true
    this.#write(bytes, (error, written) => {
      this.#writing = false
      if (error) return this.#tryLater(bytes, error)
      this.#refused = false
      this.#waiting -= written
      if (written < bytes.length) return this.#send(bytes.subarray(written))
      const dropped = this.#dropped
      this.#dropped = 0
      if (dropped > 0) this.onRoom(dropped)
      this.#next()
    })
  }

  /** The disk is full, or the reader has gone: both may change. */
  #tryLater(bytes: Buffer, error: Error): void {
    const hasNoRoom = 'code' in error && error.code === 'EAGAIN'
    if (!hasNoRoom) {
      this.#refused = true
      this.#settle()
    }
    setTimeout(() => this.#send(bytes), hasNoRoom ? NO_ROOM : this.#options.retry).unref()
  }

  #settle(): void {
    for (const done of [...this.#flushed]) done()
  }
}

function writerFor({ fd, stream }: LineWriterOptions): Write {
  const kind = fstatSync(fd)
  if (!kind.isFIFO() && !kind.isSocket()) return (bytes, done) => write(fd, bytes, 0, bytes.length, null, done)
  const pipe = stream()
  // Each write reports its own failure.
  pipe.on('error', () => {})
  return (bytes, done) => pipe.write(bytes, (error) => done(error, bytes.length))
}
