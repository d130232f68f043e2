/**
 * The stdio transport to servers: starts them as child processes (on Windows also scripts such as npx.cmd), and ends
 * all of them with the transport.
 */
import { platform } from 'node:process'
import { type Channel, ChannelError, type MessageLengths, type Transport } from '../channel.js'
import { begin } from './begin.js'
import { cannotStart, missing, type ProgramStart } from './cannot-start.js'
import { StdioChannel, type StdioChannelOptions } from './channel.js'
import { downloads } from './downloads.js'
import { isProgram } from './on-path.js'

export interface StdioOptions extends Omit<StdioChannelOptions, 'onExit' | 'downloads'>, ProgramStart {
  /**
   * Reports starts and ends of children, and how many run now. `restarted`: in place of a child that ended by itself.
   */
  onChild?: (what: 'started' | 'restarted' | 'ended', pid: number, running: number) => void
}

export class StdioTransport implements Transport {
  readonly kind = 'stdio'
  readonly target: string
  readonly #options: StdioOptions
  readonly #channels = new Set<StdioChannel>()
  /** The number of children that ended by themselves and have not been replaced. */
  #missing = 0
  #running = 0
  #closed = false

  constructor(options: StdioOptions) {
    this.#options = { ...options }
    this.target = [options.command, ...options.args].join(' ')
  }

  get programs(): readonly number[] {
    return [...this.#channels].flatMap(({ pid }) => pid ?? [])
  }

  open(): Promise<Channel> {
    const start = this.#options
    const { command, env, cwd } = start
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new ChannelError('The bridge is shutting down', { delivered: 'no' }))
      // On Windows the error would come late, because cmd.exe starts even if it does not find the program.
      if (platform === 'win32' && !isProgram(command, env, cwd)) return reject(missing(start))
      const { child, hasSpawned } = begin(start)
      child.once('error', (cause: NodeJS.ErrnoException) => reject(cannotStart(start, cause)))
      const { pid } = child
      if (pid === undefined) return
      const onExit = (wanted: boolean) => {
        if (!wanted) this.#missing++
        this.#options.onChild?.('ended', pid, --this.#running)
      }
      const channel = new StdioChannel(child, {
        ...this.#options,
        downloads: downloads(start),
        onExit,
        onGone: () => this.#channels.delete(channel),
      })
      // Added before the child has spawned, so that it ends with the bridge from now on.
      this.#channels.add(channel)
      const onSpawn = () => {
        this.#options.onChild?.(this.#missing > 0 ? 'restarted' : 'started', pid, ++this.#running)
        this.#missing = Math.max(0, this.#missing - 1)
        resolve(channel)
      }
      if (hasSpawned) onSpawn()
      else child.once('spawn', onSpawn)
    })
  }

  limit({ line }: MessageLengths): void {
    this.#options.lineLimit = line
    for (const channel of this.#channels) channel.lineLimit = line
  }

  async endAll(hurry = false): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#channels].map((channel) => channel.close(hurry)))
  }
}
