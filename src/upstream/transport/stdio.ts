/** Servers as child processes: started, and all of them ended with the transport. */
import { spawn } from 'node:child_process'
import { platform } from 'node:process'
import { type Channel, ChannelError, type Transport } from './channel.js'
import { StdioChannel, type StdioChannelOptions } from './stdio/channel.js'

export interface StdioOptions extends Omit<StdioChannelOptions, 'onExit'> {
  command: string
  args: readonly string[]
  /** The child's whole environment: nothing is inherited behind its back. */
  env: Readonly<Record<string, string>>
  cwd?: string | undefined
  /** What has become of a child, for whoever counts. It is restarted in place of one that has ended by itself. */
  onChild?: (what: 'started' | 'restarted' | 'ended') => void
}

export class StdioTransport implements Transport {
  readonly kind = 'stdio'
  readonly target: string
  readonly #options: StdioOptions
  readonly #channels = new Set<StdioChannel>()
  /** Children that have ended by themselves, in whose place no other has been started. */
  #missing = 0
  #closed = false

  constructor(options: StdioOptions) {
    this.#options = options
    this.target = [options.command, ...options.args].join(' ')
  }

  open(): Promise<Channel> {
    const { command, args, env, cwd } = this.#options
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new ChannelError('The bridge is shutting down', { delivered: 'no' }))
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
      if (child.pid === undefined) return
      const onExit = (wanted: boolean) => {
        if (!wanted) this.#missing++
        this.#options.onChild?.('ended')
      }
      const channel = new StdioChannel(child, {
        ...this.#options,
        onExit,
        onGone: () => this.#channels.delete(channel),
      })
      // Before anybody has it: whatever ends the bridge ends the child from now on.
      this.#channels.add(channel)
      child.once('spawn', () => {
        this.#options.onChild?.(this.#missing > 0 ? 'restarted' : 'started')
        this.#missing = Math.max(0, this.#missing - 1)
        resolve(channel)
      })
    })
  }

  async endAll(hurry = false): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#channels].map((channel) => channel.close(hurry)))
  }
}

function notFound(command: string, cwd: string | undefined): string {
  return `command not found${cwd === undefined ? '' : `, or no such directory: ${cwd}`}${command.includes(' ') ? ' (is it quoted as one word?)' : ''}`
}
