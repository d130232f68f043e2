/** One child process as a channel: one JSON-RPC message per line on its pipes (MCP, basic/transports/stdio). */
import { isAscii } from 'node:buffer'
import type { ChildProcess } from 'node:child_process'
import { type Loan, type Memory, NOBODY, SMALL, unlimited } from '../../../protocol/memory.js'
import { encodeLine, type Line, LineDecoder, TOO_LONG } from '../../../rpc/lines.js'
import { repairedSourceOf } from '../../../rpc/source.js'
import {
  answerTooLarge,
  type Channel,
  ChannelError,
  type ChannelErrorOptions,
  type Outgoing,
  type Receiver,
  requestTooLarge,
} from '../channel.js'
import { Slices } from '../slices.js'
import { ProcessGroup } from './process-group.js'
import { StderrTail } from './stderr-tail.js'

export interface StdioChannelOptions {
  /** Bytes of one line, in and out. */
  lineLimit?: number
  /** Milliseconds that the end of a line may keep us waiting. */
  partialLine?: number
  /** Milliseconds from closing its input to SIGTERM, and from there to SIGKILL. */
  grace?: { term: number; kill: number }
  /** What the child writes to stderr, line by line. */
  onStderr?: (line: string) => void
  /** Lends what is read from children, or waits to be written to them. */
  memory?: Memory
  /** The child has ended: because it was told to, or by itself. */
  onExit(wanted: boolean): void
  /** The child has ended, and all that it has started. */
  onGone?(): void
}

const DEFAULTS = { lineLimit: 16 * 1024 * 1024, partialLine: 30_000, grace: { term: 2_000, kill: 3_000 } }
/** The same where there is no time: whoever has started us may kill us within a second. */
const NO_TIME = { term: 0, kill: 300 }
/** Bytes that may wait to be written to a child that does not read. */
const MAX_QUEUED = 8 * 1024 * 1024
/** Characters that are written in one piece, if that many have come together. */
const WRITE_AT_ONCE = 64 * 1024
/** Milliseconds between attempts to borrow for a line. */
const LEND_AGAIN = 50
/** Milliseconds after a child's exit in which what it wrote before can still be read. */
const LAST_WORDS = 100

type Child = ChildProcess & { stdin: NonNullable<ChildProcess['stdin']>; stdout: NonNullable<ChildProcess['stdout']> }

interface Queued {
  line: string
  resolve(): void
  reject(error: ChannelError): void
}

export class StdioChannel implements Channel {
  readonly transport = 'stdio'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  /** Of a line that has not ended, and of what waits to be written. */
  readonly #loans: { line: Loan; queue: Loan }
  readonly #child: Child
  readonly #lineLimit: number
  readonly #decoder: LineDecoder
  readonly #stderr: StderrTail
  readonly #partialLine: number
  readonly #grace: { term: number; kill: number }
  readonly #group: ProcessGroup
  readonly #onGone: () => void
  readonly #lines = new Slices<Line>(
    (line) => this.#take(line),
    () => this.#resume(),
  )
  #receiver: Receiver | undefined
  #queue: Queued[] = []
  #queued = 0
  /** There is no memory for the line that is coming in. */
  #starved = false
  #blocked = false
  #ended = false
  #closing = false
  #partial: NodeJS.Timeout | undefined

  /** The child has to lead a process group of its own, with a pipe for each of its standard streams. */
  constructor(child: ChildProcess, options: StdioChannelOptions) {
    this.memory = options.memory ?? unlimited()
    this.#loans = { line: this.memory.borrow(NOBODY, SMALL), queue: this.memory.borrow(NOBODY, SMALL) }
    this.#child = child as Child
    this.#group = new ProcessGroup(child)
    this.#lineLimit = options.lineLimit ?? DEFAULTS.lineLimit
    this.#decoder = new LineDecoder(this.#lineLimit)
    this.#partialLine = options.partialLine ?? DEFAULTS.partialLine
    this.#grace = options.grace ?? DEFAULTS.grace
    this.#onGone = options.onGone ?? (() => {})
    this.#stderr = new StderrTail(options.onStderr)
    // Unread, a full stderr would stop the child.
    child.stderr?.on('data', (chunk: Buffer) => this.#stderr.push(chunk))
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stdin?.on('drain', () => this.#flush())
    child.stdin?.on('error', () => this.#suspect('The server closed its input'))
    child.stdout?.on('error', () => this.#suspect('The server closed its output'))
    child.stdout?.on('end', () => this.#suspect('The server closed its output'))
    child.stderr?.on('error', () => {})
    child.on('error', () => {})
    // 'exit' rather than 'close': a grandchild may hold the pipes for ever.
    child.once('exit', (code, signal) => {
      options.onExit(this.#closing)
      const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
      const end = () => this.#lines.finish(() => this.#end(`The server ${how}`))
      const timer = setTimeout(end, LAST_WORDS)
      child.once('close', () => {
        clearTimeout(timer)
        end()
      })
    })
  }

  get alive(): boolean {
    return !this.#ended && !this.#closing
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
  }

  send({ text }: Outgoing): Promise<void> {
    const line = encodeLine(text)
    if (!this.alive) return Promise.reject(new ChannelError('The server has exited', { delivered: 'no' }))
    if (this.#queued + line.length > MAX_QUEUED)
      return Promise.reject(new ChannelError('The server does not read its input', { delivered: 'no' }))
    if (this.#loans.queue.hold(this.#queued + line.length)) return Promise.reject(requestTooLarge())
    this.#queued += line.length
    return new Promise((resolve, reject) => {
      this.#queue.push({ line, resolve, reject })
      if (!this.#blocked && this.#queue.length === 1) setImmediate(() => this.#flush())
    })
  }

  abandon(): void {}

  async close(hurry = false): Promise<void> {
    const grace = hurry ? NO_TIME : this.#grace
    if (!this.#closing) {
      this.#closing = true
      if (!this.#blocked) this.#flush()
      this.#refuseQueued()
      this.#child.stdin.end()
    }
    // What the child has started may hold its pipes and live on when the child itself has ended.
    if (!(await this.#group.goneWithin(grace.term))) {
      this.#group.signal('SIGTERM')
      if (!(await this.#group.goneWithin(grace.kill))) {
        this.#group.destroy()
        await this.#group.exited
      }
    }
    this.#onGone()
  }

  #read(chunk: Buffer): void {
    const lines = this.#decoder.push(chunk)
    this.#lines.push(lines)
    if (this.#lines.busy) this.#child.stdout.pause()
    if (this.#decoder.pending > this.#lineLimit) return this.#endTooLong()
    if (this.#decoder.pending === 0) {
      clearTimeout(this.#partial)
      this.#partial = undefined
    } else if (lines.length > 0 || !this.#partial) {
      clearTimeout(this.#partial)
      this.#partial = setTimeout(
        () => this.#end('The server began a line and did not end it', { protocol: true }),
        this.#partialLine,
      )
    }
    this.#lend()
  }

  /** Borrows for the line that is coming in. Where nothing can be lent, the child is not read until something can. */
  #lend(since = performance.now()): void {
    if (this.#ended) return
    this.#starved = this.#loans.line.hold(this.#decoder.pending) !== undefined
    if (!this.#starved) return this.#resume()
    // That the line does not end is not the child's fault.
    clearTimeout(this.#partial)
    this.#partial = undefined
    if (performance.now() - since > this.#partialLine) return this.#end(answerTooLarge().message, { noMemory: true })
    this.#child.stdout.pause()
    setTimeout(() => this.#lend(since), LEND_AGAIN).unref()
  }

  #resume(): void {
    if (!this.#lines.busy && !this.#starved && this.#child.stdout.isPaused()) this.#child.stdout.resume()
  }

  #take(line: Line): void {
    if (line === TOO_LONG) return this.#endTooLong()
    const { source, repaired } = repairedSourceOf(line, isAscii)
    if (repaired) this.#receiver?.repaired('bytes that are not UTF-8')
    this.#receiver?.message(source, undefined)
  }

  #endTooLong(): void {
    this.#end(`The server wrote a line of over ${this.#lineLimit} bytes (limits.lineBytes)`, { protocol: true })
  }

  /** Writes what has come together since the last time, in one piece: it is the number of writes that costs. */
  #flush(): void {
    this.#blocked = false
    while (!this.#blocked && this.#queue.length > 0) {
      let text = ''
      let taken = 0
      while (taken < this.#queue.length && text.length < WRITE_AT_ONCE) text += this.#queue[taken++]?.line
      const written = this.#queue.splice(0, taken)
      this.#queued -= text.length
      this.#loans.queue.hold(this.#queued)
      this.#blocked = !this.#child.stdin.write(text)
      for (const { resolve } of written) resolve()
    }
  }

  /** A pipe has broken: the child is dying, which its exit will tell better, or it is of no use alive. */
  #suspect(why: string): void {
    setTimeout(() => this.#end(why), 2 * LAST_WORDS)
  }

  #end(why: string, options: ChannelErrorOptions = {}): void {
    if (this.#ended) return
    this.#ended = true
    this.#lines.clear()
    clearTimeout(this.#partial)
    this.#refuseQueued()
    for (const loan of Object.values(this.#loans)) loan.end()
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.destroy()
    // What the child has started would live on with nobody to answer to. Whoever closes the channel sees to that gently.
    if (!this.#closing) {
      this.#group.destroy()
      this.#onGone()
    }
    const error = new ChannelError(why, { ...options, stderr: this.#stderr.lines })
    // Those whose message was never written have to hear that before they hear of the end.
    setImmediate(() => this.#receiver?.ended(error))
  }

  #refuseQueued(): void {
    for (const { reject } of this.#queue)
      reject(new ChannelError('The server exited before it took the message', { delivered: 'no' }))
    this.#queue = []
    this.#queued = 0
    this.#loans.queue.hold(0)
  }
}
