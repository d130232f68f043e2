/**
 * A channel to one child process: one JSON-RPC message per line on its pipes (MCP, basic/transports/stdio). Ends it in
 * steps: closes its input, then SIGTERM, then SIGKILL.
 */
import type { ChildProcess } from 'node:child_process'
import { type Memory, NOBODY, type Reservation, SMALL, unlimited } from '../../../base/limits/memory.js'
import { encodeLine, type Line, LineDecoder } from '../../../base/rpc/lines.js'
import { Outline } from '../../../base/rpc/outline.js'
import { Deadline } from '../../../base/time/time.js'
import { Lanes } from '../../lanes.js'
import {
  type Channel,
  ChannelError,
  type ChannelErrorOptions,
  type OutgoingMessage,
  type Receiver,
  requestTooLarge,
} from '../channel.js'
import { Slices } from '../slices.js'
import { ProcessGroup } from './process-group.js'
import { StderrTail } from './stderr-tail.js'

export interface StdioChannelOptions {
  /** Maximum bytes of one received line. */
  lineLimit?: number
  /** Milliseconds without a further part of an incomplete line after which the call that it answers fails. */
  partialLine?: number
  /** Milliseconds from closing the child's input to SIGTERM, and from there to SIGKILL. */
  grace?: { term: number; kill: number }
  /** The child may download what it runs, without any output, before it writes to stdout. */
  downloads?: boolean
  onStderr?: (line: string) => void
  /** The ledger for bytes that have been read from the child, or wait to be written to it. */
  memory?: Memory
  /** Several clients may call the server. */
  isShared?: boolean
  /** Called when the child has ended. `wanted`: the channel was being closed. */
  onExit(wanted: boolean): void
  /** Called when the child and its descendants have ended, or have been killed. */
  onGone?(): void
}

const DEFAULTS = { lineLimit: 16 * 1024 * 1024, partialLine: 30_000, grace: { term: 2_000, kill: 3_000 } }
/** The grace if the bridge has to end at once, because its parent may kill it within a second. */
const NO_TIME = { term: 0, kill: 300 }
/** Maximum bytes that wait to be written to a child. */
const MAX_QUEUED_BYTES = 8 * 1024 * 1024
/** Characters after which a write is not joined with further lines. */
const WRITE_AT_ONCE = 64 * 1024
/** A line of so many times the limit has no end: the program is ended. Of a shorter one, the rest is read and dropped. */
const MOST_SKIPPED = 16
/** Bytes of an incomplete line that show which call it answers. */
const BEGINNING = 4_096
/** Milliseconds after the exit of a child for which its remaining output is read. */
const LAST_WORDS = 100

type Child = ChildProcess & { stdin: NonNullable<ChildProcess['stdin']>; stdout: NonNullable<ChildProcess['stdout']> }

/** Lines that are written together, and a promise that resolves when they are written. */
interface Write {
  text: string
  written?: Promise<void>
  resolve: () => void
  reject: (error: ChannelError) => void
}

export class StdioChannel implements Channel {
  readonly transport = 'stdio'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  readonly lanes: Lanes | undefined
  /** Reservations for the incomplete line, and for lines that wait to be written. */
  readonly #reservations: { line: Reservation; queue: Reservation }
  readonly #child: Child
  readonly #options: StdioChannelOptions & typeof DEFAULTS
  readonly #decoder: LineDecoder
  readonly #stderr: StderrTail
  readonly #group: ProcessGroup
  readonly #lines: Slices<Line>
  #receiver: Receiver | undefined
  #queue: Write[] = []
  #queued = 0
  #blocked = false
  #ended = false
  #closing = false
  #partial: Deadline | undefined
  readonly #startedAt = performance.now()
  /** When the child last wrote something, by `performance.now()`. */
  #wroteAt = this.#startedAt
  #downloads: boolean

  /** `child` has to lead a process group, and to have a pipe for each of its standard streams. */
  constructor(child: ChildProcess, options: StdioChannelOptions) {
    this.memory = options.memory ?? unlimited()
    this.lanes = options.isShared ? new Lanes(this.memory) : undefined
    this.#reservations = { line: this.memory.reserve(NOBODY, SMALL), queue: this.memory.reserve(NOBODY, SMALL) }
    this.#child = child as Child
    this.#group = new ProcessGroup(child)
    this.#options = { ...DEFAULTS, ...options }
    this.#decoder = new LineDecoder(this.#options.lineLimit)
    this.#downloads = options.downloads ?? false
    this.#lines = new Slices(this.#takeLine, () => this.#resume())
    this.#stderr = new StderrTail(options.onStderr)
    // If stderr were not read, its pipe would fill up and block the child.
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#wroteAt = performance.now()
      this.#stderr.push(chunk)
    })
    child.stdout?.on('data', this.#readChunk)
    child.stdin?.on('drain', this.#flush)
    child.stdin?.on('error', () => this.#suspect('The server closed its input'))
    child.stdout?.on('error', () => this.#suspect('The server closed its output'))
    child.stdout?.on('end', () => this.#suspect('The server closed its output'))
    child.stderr?.on('error', () => {})
    child.on('error', () => {})
    // 'exit' rather than 'close', because a descendant may keep the pipes open forever.
    child.once('exit', (code, signal) => {
      options.onExit(this.#closing)
      const exited = code === 0 ? 'exited with code 0, without an error' : `exited with code ${code}`
      const how = signal === null ? exited : `was ended by ${signal}`
      const end = () => this.#lines.finish(() => this.#end(`The server ${how}`))
      const timer = setTimeout(end, LAST_WORDS)
      child.once('close', () => {
        clearTimeout(timer)
        end()
      })
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  get alive(): boolean {
    return !this.#ended && !this.#closing
  }

  /** Bounds the lines that the child writes from now on. */
  set lineLimit(bytes: number) {
    this.#options.lineLimit = bytes
    this.#decoder.limit = bytes
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
  }

  sendMessage({ text }: OutgoingMessage): Promise<void> {
    const line = encodeLine(text)
    if (this.#ended || this.#closing)
      return Promise.reject(new ChannelError('The server has exited', { delivered: 'no' }))
    if (this.#queued + line.length > MAX_QUEUED_BYTES)
      return Promise.reject(new ChannelError('The server does not read its input', { delivered: 'no' }))
    if (this.#reservations.queue.resize(this.#queued + line.length)) return Promise.reject(requestTooLarge())
    this.#queued += line.length
    const last = this.#queue.at(-1)
    if (last?.written && last.text.length < WRITE_AT_ONCE) {
      last.text += line
      return last.written
    }
    const written = new Promise<void>((resolve, reject) => {
      this.#queue.push({ text: line, resolve, reject })
    })
    const write = this.#queue.at(-1)
    if (write) write.written = written
    if (!this.#blocked && this.#queue.length === 1) setImmediate(this.#flush)
    return written
  }

  abandon(): void {}

  startingUntil(silence: number, most: number): number {
    if (!this.alive) return 0
    return this.#startedAt + (this.#downloads ? most : Math.min(most, this.#wroteAt - this.#startedAt + silence))
  }

  async close(hurry = false): Promise<void> {
    const grace = hurry ? NO_TIME : this.#options.grace
    if (!this.#closing) {
      this.#closing = true
      if (!this.#blocked) this.#flush()
      this.#refuseQueued()
      this.#child.stdin.end()
    }
    // Descendants may keep running when the child itself has ended.
    if (!(await this.#group.goneWithin(grace.term))) {
      this.#group.signal('SIGTERM')
      if (!(await this.#group.goneWithin(grace.kill))) {
        this.#group.destroy()
        await this.#group.exited
      }
    }
    this.#options.onGone?.()
  }

  readonly #readChunk = (chunk: Buffer): void => {
    this.#wroteAt = performance.now()
    this.#downloads = false
    const lines = this.#decoder.push(chunk)
    if (this.#lines.deliver(lines)) this.#child.stdout.pause()
    const { pending } = this.#decoder
    if (pending > MOST_SKIPPED * this.#options.lineLimit) return this.#endTooLong()
    if (pending === 0 && !this.#partial) return
    this.#watchPartial()
    this.#reserve()
  }

  /**
   * Reserves memory for the incomplete line. Without memory, the rest of the line is read and dropped. If reading paused
   * instead, all callers of the child would wait for the holders of the memory.
   */
  #reserve(): void {
    const { line } = this.#reservations
    if (line.resize(this.#decoder.kept) === undefined) return
    this.#decoder.skip()
    line.resize(0)
  }

  /** Restarts the time limit for the next part of an incomplete line. A line may take long while its parts arrive. */
  #watchPartial(): void {
    this.#partial?.clear()
    this.#partial = undefined
    if (this.#decoder.pending === 0) return
    const stalled = () => this.#receiver?.stalled(this.#decoder.beginning(BEGINNING))
    this.#partial = new Deadline(this.#options.partialLine, stalled)
  }

  #resume(): void {
    if (!this.#lines.busy && this.#child.stdout.isPaused()) this.#child.stdout.resume()
  }

  readonly #takeLine = (line: Line): void => {
    if (!(line instanceof Outline)) return this.#receiver?.receive(line, undefined)
    const { lineLimit } = this.#options
    const tooLong = `The server wrote a line of more than ${lineLimit} bytes (limits.lineBytes)`
    const why = line.length > lineLimit ? new ChannelError(tooLong, { protocol: true }) : undefined
    this.#receiver?.dropped(line, undefined, why)
  }

  #endTooLong(): void {
    this.#end('The server wrote a line without an end (limits.lineBytes)', { protocol: true })
  }

  /** Writes the waiting lines together, because the cost is per write. */
  readonly #flush = (): void => {
    this.#blocked = false
    while (!this.#blocked && this.#queue.length > 0) {
      const { text, resolve } = this.#queue.shift() as Write
      this.#queued -= text.length
      this.#reservations.queue.resize(this.#queued)
      this.#blocked = !this.#child.stdin.write(text)
      resolve()
    }
  }

  /** Ends the channel because a pipe has broken. Waits a little first, because the exit of the child explains it better. */
  #suspect(why: string): void {
    setTimeout(() => this.#end(why), 2 * LAST_WORDS)
  }

  #end(why: string, options: ChannelErrorOptions = {}): void {
    if (this.#ended) return
    this.#ended = true
    this.#lines.clear()
    this.#partial?.clear()
    this.#refuseQueued()
    for (const reservation of Object.values(this.#reservations)) reservation.end()
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.destroy()
    // Kills the child and its descendants, which would keep running otherwise. `close` ends them gracefully itself.
    if (!this.#closing) {
      this.#group.destroy()
      this.#options.onGone?.()
    }
    const error = new ChannelError(why, { ...options, stderr: this.#stderr.lines })
    // The rejections of unwritten messages have to arrive before the end of the channel.
    setImmediate(() => this.#receiver?.ended(error))
  }

  #refuseQueued(): void {
    for (const { reject } of this.#queue)
      reject(new ChannelError('The server exited before it received the message', { delivered: 'no' }))
    this.#queue = []
    this.#queued = 0
    this.#reservations.queue.resize(0)
  }
}
