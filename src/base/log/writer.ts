/**
 * Writes lines to a descriptor that may be slow, full or unread. It never blocks, keeps a bounded amount, and counts
 * dropped lines.
 */
import { fstatSync, write } from 'node:fs'
import type { Writable } from 'node:stream'
import { within } from '../time/time.js'

/** The descriptor, and bounds. */
export interface LineWriterOptions {
  fd: number
  /**
   * The process's own stream for the descriptor. It is used for pipes and sockets, because it writes to them without
   * blocking. `fs.write` would block a thread until the other side reads, and keep the process from exiting.
   */
  stream(): Writable
  /** Most bytes that may wait. */
  max?: number
  /** Milliseconds until another attempt after the descriptor has refused a write. */
  retry?: number
  /** Milliseconds after a write in which lines are gathered for the next one. */
  gather?: number
  /** Other processes write lines to the same descriptor. */
  isShared?: boolean
}

/** Writes bytes, and calls back with the number written, if it is not all of them, or with the error. */
type Write = (bytes: Buffer, done: (error: Error | null | undefined, written?: number) => void) => void

const DEFAULTS = { max: 1024 * 1024, retry: 1_000, gather: 20, isShared: false }
/** Most bytes in one write. */
const AT_ONCE = 64 * 1024
/** Most characters where others write, too: a pipe keeps 4,096 bytes together (PIPE_BUF), and a character has at most three. */
const WHOLE = Math.floor(4_096 / 3)
/** Milliseconds until another attempt if a non-blocking descriptor is full. */
const NO_ROOM = 50

/** The writer. */
export class LineWriter {
  readonly #options: Required<LineWriterOptions>
  readonly #write: Write
  #lines: string[] = []
  /** Bytes waiting, including those being written. */
  #waiting = 0
  #dropped = 0
  /** A write is in progress or scheduled, or lines are gathered. */
  #busy = false
  /** Ends the time in which lines are gathered. */
  #gathering: NodeJS.Timeout | undefined
  #refused = false
  /** A write is in progress. */
  #writing = false
  readonly #flushed = new Set<() => void>()
  /** There is room again after so many lines were dropped. To be reported with the next line. */
  onRoom: (lines: number) => void = () => {}

  constructor(options: LineWriterOptions) {
    this.#options = { ...DEFAULTS, ...options }
    this.#write = writerFor(options)
  }

  /** Takes a line, including its line break, or drops it. Never blocks and never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line)
    // After a dropped line, further lines are dropped until that is reported.
    if (this.#dropped > 0 || this.#waiting + bytes > this.#options.max) {
      this.#dropped++
      return
    }
    this.#lines.push(line)
    this.#waiting += bytes
    if (this.#gathering && this.#waiting >= AT_ONCE) return this.#next()
    if (this.#busy) return
    this.#busy = true
    // All lines of one turn of the event loop go into one write.
    setImmediate(this.#next)
  }

  /**
   * Resolves when everything is written, when the descriptor refuses, or after so many milliseconds: to whether no
   * write is in progress.
   */
  async flush(milliseconds: number): Promise<boolean> {
    if (this.#busy && !this.#refused) {
      let done = () => {}
      const flushed = new Promise<void>((resolve) => {
        done = resolve
      })
      this.#flushed.add(done)
      if (this.#gathering) this.#next()
      await within(flushed, milliseconds)
      this.#flushed.delete(done)
    }
    return !this.#writing
  }

  /** Writes the next lines, without gathering more of them. */
  readonly #next = (): void => {
    clearTimeout(this.#gathering)
    this.#gathering = undefined
    if (this.#lines.length === 0) {
      this.#busy = false
      this.#settle()
      return
    }
    let text = this.#lines[0] as string
    let taken = 1
    while (taken < this.#lines.length && this.#goesWith(text, this.#lines[taken] as string))
      text += this.#lines[taken++]
    this.#lines.splice(0, taken)
    this.#send(Buffer.from(text))
  }

  /** Whether a line goes into the same write as a text. */
  #goesWith(text: string, line: string): boolean {
    return this.#options.isShared ? text.length + line.length <= WHOLE : text.length < AT_ONCE
  }

  #send(bytes: Buffer): void {
    this.#writing = true
    this.#write(bytes, (error, written = bytes.length) => {
      this.#writing = false
      if (error) return this.#tryLater(bytes, error)
      this.#refused = false
      this.#waiting -= written
      if (written < bytes.length) return this.#send(bytes.subarray(written))
      const dropped = this.#dropped
      this.#dropped = 0
      if (dropped > 0) this.onRoom(dropped)
      if (this.#flushed.size > 0 || this.#waiting >= AT_ONCE) this.#next()
      // A write costs more than many lines: under load, lines go together.
      else this.#gathering = setTimeout(this.#next, this.#options.gather)
    })
  }

  /** The disk is full, or the reader has gone: both may be temporary. */
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
  if (!isPipe(fd)) return (bytes, done) => write(fd, bytes, 0, bytes.length, null, done)
  const pipe = stream()
  // Each write reports its own error.
  pipe.on('error', () => {})
  return (bytes, done) => pipe.write(bytes, done)
}

/** Windows cannot always tell: then the stream writes, which works for all kinds. */
function isPipe(fd: number): boolean {
  try {
    const kind = fstatSync(fd)
    return kind.isFIFO() || kind.isSocket()
  } catch {
    return true
  }
}
