/** A server as a child process: one JSON-RPC message per line on its pipes (MCP, basic/transports/stdio). */
import { isAscii } from 'node:buffer'
import { type ChildProcess, spawn } from 'node:child_process'
import { kill, platform } from 'node:process'
import { type Loan, type Memory, NOBODY, SMALL, unlimited } from '../protocol/memory.js'
import { encodeLine, LineDecoder, TOO_LONG } from '../rpc/lines.js'
import { type Source, sourceOfBytes } from '../rpc/source.js'
import { answerTooLarge, type Channel, ChannelError, type Outgoing, type Receiver, type Transport } from './channel.js'
import { Tail } from './tail.js'

export interface StdioOptions {
  command: string
  args: readonly string[]
  /** The child's whole environment: nothing is inherited behind its back. */
  env: Readonly<Record<string, string>>
  cwd?: string | undefined
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
  /** What has become of a child, for whoever counts. It is restarted in place of one that has ended by itself. */
  onChild?: (what: 'started' | 'restarted' | 'ended') => void
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

export class StdioTransport implements Transport {
  readonly kind = 'stdio'
  readonly target: string
  readonly #options: StdioOptions
  /** Children that have ended by themselves, in whose place no other has been started. */
  #missing = 0

  constructor(options: StdioOptions) {
    this.#options = options
    this.target = [options.command, ...options.args].join(' ')
  }

  open(): Promise<Channel> {
    const { command, args, env, cwd } = this.#options
    return new Promise((resolve, reject) => {
      // Never through a shell, and in a group of its own, so that it can be ended together with what it has started.
      const child = spawn(command, args, {
        env,
        stdio: 'pipe',
        shell: false,
        detached: platform !== 'win32',
        ...(cwd && { cwd }),
      })
      child.once('error', (cause: NodeJS.ErrnoException) => {
        const why = cause.code === 'ENOENT' ? notFound(command, cwd) : cause.message
        reject(new ChannelError(`Cannot start ${command}: ${why}`, { cause, delivered: 'no' }))
      })
      child.once('spawn', () => {
        this.#options.onChild?.(this.#missing > 0 ? 'restarted' : 'started')
        this.#missing = Math.max(0, this.#missing - 1)
        const onExit = (wanted: boolean) => {
          if (!wanted) this.#missing++
          this.#options.onChild?.('ended')
        }
        resolve(new StdioChannel(child, this.#options, onExit))
      })
    })
  }
}

function notFound(command: string, cwd: string | undefined): string {
  return `command not found${cwd === undefined ? '' : `, or no such directory: ${cwd}`}${command.includes(' ') ? ' (is it quoted as one word?)' : ''}`
}

type Child = ChildProcess & { stdin: NonNullable<ChildProcess['stdin']> }

interface Queued {
  line: string
  resolve(): void
  reject(error: ChannelError): void
}

class StdioChannel implements Channel {
  readonly transport = 'stdio'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  /** Of a line that has not ended, and of what waits to be written. */
  readonly #loans: { line: Loan; queue: Loan }
  readonly #child: Child
  readonly #lineLimit: number
  readonly #decoder: LineDecoder
  readonly #stderr: Tail
  readonly #partialLine: number
  readonly #grace: { term: number; kill: number }
  readonly #exited: Promise<void>
  #receiver: Receiver | undefined
  #queue: Queued[] = []
  #queued = 0
  #blocked = false
  #ended = false
  #closing = false
  #partial: NodeJS.Timeout | undefined

  constructor(child: ChildProcess, options: StdioOptions, onExit: (wanted: boolean) => void) {
    this.memory = options.memory ?? unlimited()
    this.#loans = { line: this.memory.borrow(NOBODY, SMALL), queue: this.memory.borrow(NOBODY, SMALL) }
    this.#child = child as Child
    this.#lineLimit = options.lineLimit ?? DEFAULTS.lineLimit
    this.#decoder = new LineDecoder(this.#lineLimit)
    this.#partialLine = options.partialLine ?? DEFAULTS.partialLine
    this.#grace = options.grace ?? DEFAULTS.grace
    this.#stderr = new Tail(options.onStderr)
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
    this.#exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        resolve()
        onExit(this.#closing)
        const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`
        const end = () => this.#end(`The server ${how}`)
        const timer = setTimeout(end, LAST_WORDS)
        child.once('close', () => {
          clearTimeout(timer)
          end()
        })
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
    if (this.#queued + line.length > MAX_QUEUED || this.#loans.queue.hold(this.#queued + line.length))
      return Promise.reject(new ChannelError('The server does not read its input', { delivered: 'no' }))
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
    if (await this.#exitsWithin(grace.term)) return
    this.#signal('SIGTERM')
    if (await this.#exitsWithin(grace.kill)) return
    this.#signal('SIGKILL')
    await this.#exited
  }

  #read(chunk: Buffer): void {
    const lines = this.#decoder.push(chunk)
    for (const line of lines) {
      if (line === TOO_LONG) return this.#end('The server wrote a line that is too long', { protocol: true })
      this.#receive(line)
    }
    if (this.#decoder.pending > this.#lineLimit)
      return this.#end('The server wrote a line that is too long', { protocol: true })
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
    if (this.#loans.line.hold(this.#decoder.pending) === undefined) {
      if (this.#child.stdout?.isPaused()) this.#child.stdout.resume()
      return
    }
    // That the line does not end is not the child's fault.
    clearTimeout(this.#partial)
    this.#partial = undefined
    if (performance.now() - since > this.#partialLine) return this.#end(answerTooLarge().message, { noMemory: true })
    this.#child.stdout?.pause()
    setTimeout(() => this.#lend(since), LEND_AGAIN).unref()
  }

  #receive(line: readonly Uint8Array[]): void {
    let source: Source
    try {
      source = sourceOfBytes(line, isAscii)
    } catch {
      this.#receiver?.rubbish('a line that is no UTF-8')
      return
    }
    this.#receiver?.message(source, undefined)
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

  #end(why: string, options: { cause?: unknown; protocol?: boolean; noMemory?: boolean } = {}): void {
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#partial)
    this.#refuseQueued()
    for (const loan of Object.values(this.#loans)) loan.end()
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.destroy()
    // What the child has started would live on with nobody to answer to.
    this.#signal('SIGKILL')
    const stderr = this.#stderr.lines(5)
    const error = new ChannelError(why, { ...options, ...(stderr.length > 0 && { stderr }) })
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

  #exitsWithin(milliseconds: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), milliseconds)
      this.#exited
        .then(() => {
          clearTimeout(timer)
          resolve(true)
        })
        .catch(() => {})
    })
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      if (platform === 'win32') this.#child.kill(signal)
      else kill(-pid, signal)
    } catch {
      // The group is gone, which is what was wanted.
    }
  }
}
