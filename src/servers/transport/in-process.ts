/** The transport to servers in the same process: passes messages as objects, as InMemoryTransport of the SDKs does. */

import { type Memory, NOBODY, type Reservation, SMALL, unlimited } from '../../base/limits/memory.js'
import { Outline } from '../../base/rpc/outline.js'
import type { Serve, SdkTransport as ServerEnd } from '../../mcp/ports/transport.js'
import { Lanes } from '../lanes.js'
import {
  type Channel,
  ChannelError,
  type MessageLengths,
  type OutgoingMessage,
  type Receiver,
  type Transport,
} from './channel.js'
import { Slices } from './slices.js'

export interface InProcessOptions {
  serve: Serve
  /** Maximum bytes of one message of the server. */
  lineLimit: number
  memory?: Memory
  /** Several clients may call the server. */
  isShared?: boolean
}

export class InProcessTransport implements Transport {
  readonly kind = 'stdio'
  readonly target = 'a server in this process'
  readonly #options: InProcessOptions
  readonly #channels = new Set<InProcessChannel>()
  #closed = false

  constructor(options: InProcessOptions) {
    this.#options = { ...options }
  }

  async open(): Promise<Channel> {
    if (this.#closed) throw new ChannelError('The bridge is shutting down', { delivered: 'no' })
    const channel = new InProcessChannel(this.#options, () => this.#channels.delete(channel))
    this.#channels.add(channel)
    try {
      await this.#options.serve(channel.end)
    } catch (cause) {
      await channel.close()
      throw new ChannelError('The server in this process could not be connected', { cause, delivered: 'no' })
    }
    return channel
  }

  limit({ line }: MessageLengths): void {
    this.#options.lineLimit = line
  }

  async endAll(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#channels].map((channel) => channel.close()))
  }
}

/** It behaves as the channel to a program does: one stream in each direction. */
class InProcessChannel implements Channel {
  readonly transport = 'stdio'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  readonly lanes: Lanes | undefined
  readonly end: ServerEnd
  readonly #options: Pick<InProcessOptions, 'lineLimit'>
  readonly #onGone: () => void
  readonly #messages: Slices<Uint8Array>
  #receiver: Receiver | undefined
  /** Bytes of messages that wait because the server sends more without waiting for room. */
  #held = 0
  readonly #reservation: Reservation
  /** Messages for a server that has not started to read. */
  #early: string[] | undefined = []
  /** Senders that wait until their messages have been delivered. */
  #waiting: (() => void)[] = []
  #over = false

  constructor(options: InProcessOptions, onGone: () => void) {
    this.memory = options.memory ?? unlimited()
    this.lanes = options.isShared ? new Lanes(this.memory) : undefined
    this.#options = options
    this.#onGone = onGone
    this.#reservation = this.memory.reserve(NOBODY, SMALL)
    this.#messages = new Slices(
      (bytes) => {
        if (this.#held > 0) {
          this.#held -= bytes.length
          this.#reservation.resize(this.#held)
        }
        this.#receiver?.receive([bytes], undefined)
      },
      () => this.#continue(),
    )
    this.end = {
      start: async () => {
        const early = this.#early ?? []
        this.#early = undefined
        for (const text of early) this.#deliver(text)
      },
      send: (message) => this.#take(message),
      close: async () => this.#end(new ChannelError('The server closed the connection')),
    }
  }

  get alive(): boolean {
    return !this.#over
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
  }

  sendMessage({ text }: OutgoingMessage): Promise<void> {
    if (this.#over) return Promise.reject(new ChannelError('The server has exited', { delivered: 'no' }))
    if (this.#early) this.#early.push(text)
    // Delayed, because the server may answer at once, before the sender is ready for the answer.
    else queueMicrotask(() => this.#deliver(text))
    return Promise.resolve()
  }

  abandon(): void {}

  async close(): Promise<void> {
    this.#end(undefined)
  }

  #deliver(text: string): void {
    if (this.#over) return
    try {
      this.end.onmessage?.(JSON.parse(text))
    } catch (error) {
      this.end.onerror?.(error as Error)
    }
  }

  /** Takes a message of the server. The promise resolves when there is room for more. */
  #take(message: unknown): Promise<void> {
    if (this.#over) return Promise.reject(new Error('The connection is closed'))
    const bytes = Buffer.from(JSON.stringify(message))
    const { lineLimit } = this.#options
    if (bytes.length > lineLimit) {
      const why = `The server sent a message of more than ${lineLimit} bytes (limits.lineBytes)`
      this.#receiver?.dropped(new Outline([bytes]), undefined, new ChannelError(why, { protocol: true }))
      return Promise.resolve()
    }
    if (this.#messages.busy) {
      if (this.#reservation.resize(this.#held + bytes.length)) {
        this.#receiver?.dropped(new Outline([bytes]), undefined)
        return this.#room()
      }
      this.#held += bytes.length
    }
    this.#messages.deliver([bytes])
    return this.#room()
  }

  #room(): Promise<void> {
    return this.#messages.busy ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve()
  }

  #continue(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Ends the channel. If the server caused the end, `error` says why. */
  #end(error: ChannelError | undefined): void {
    if (this.#over) return
    this.#over = true
    const last = () => {
      this.#reservation.end()
      this.#continue()
      const ended = error ?? new ChannelError('The channel is closed')
      // As with a program, rejections of earlier messages arrive first.
      setImmediate(() => this.#receiver?.ended(ended))
    }
    if (error) this.#messages.finish(last)
    else {
      this.#messages.clear()
      last()
    }
    this.#onGone()
    this.end.onclose?.()
  }
}
