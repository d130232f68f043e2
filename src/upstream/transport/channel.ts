/** A channel carries JSON-RPC messages to and from one server. It knows framing and delivery, and no method. */

import type { Account } from '../../protocol/account.js'
import type { Memory } from '../../protocol/memory.js'
import type { Refusal } from '../../protocol/refusal.js'
import type { Source } from '../../rpc/source.js'
import { excerpt } from './stdio/stderr-tail.js'

/** One message on its way to the server. */
export interface Outgoing {
  text: string
  /** Names the exchange that a request begins; absent for notifications and answers. */
  exchange?: number
  /** Who waits for the answer, and borrows for it. */
  principal?: string | undefined
  /** Headers of this message, where the transport has such a thing. Names in lower case. */
  headers?: Readonly<Record<string, string>>
  /** In whose name it is sent, where the transport has credentials and the bridge obtains them. */
  account?: Account | undefined
}

export interface Channel {
  /** How messages travel, for people. */
  readonly transport: 'stdio' | 'http' | 'sse'
  /** The server's own messages share one way in with all answers, rather than coming on a stream that may be missing. */
  readonly shared: boolean
  /** Who gives up an exchange does it by abandoning it; nothing is said, because there is nobody to say it to. */
  readonly stateless: boolean
  /** Whether anything can still be sent. */
  readonly alive: boolean
  /** Lends what is read from the server and not taken yet. */
  readonly memory: Memory
  /** Whom to tell what comes in. Called once, before anything is sent. */
  attach(receiver: Receiver): void
  /**
   * Sends one message. For a request, settles when nothing more will come of it on this channel by itself, which may
   * be as soon as it is written; rejects with a ChannelError where its answer can no longer come, and with a Fault where it
   * was not sent because there are no credentials for it.
   */
  send(message: Outgoing): Promise<void>
  /** Nobody waits for this exchange any more: what is still open for it can be closed. */
  abandon(exchange: number): void
  /** Whether the server has given the channel a session. */
  readonly hasSession?: boolean
  /** Whether the server says that it misses a session on a channel without one, as servers do that keep sessions. */
  wantsSession?(headers: Readonly<Record<string, string>>, account?: Account): Promise<boolean>
  /** Opens the stream for the server's own messages, where that takes opening. Resolves to whether there is one. */
  listen?(headers: Readonly<Record<string, string>>, account?: Account): Promise<boolean>
  /** Ends the channel and whatever is behind it: gently, or at once if there is no time. Never rejects. */
  close(hurry?: boolean): Promise<void>
}

export interface Receiver {
  /** A message has come in; on the stream of this exchange, where there are such streams. */
  message(source: Source, exchange: number | undefined): void
  /** Whether an exchange still waits for its answer. */
  waiting(exchange: number): boolean
  /** The stream for the server's own messages was open, and cannot be had any more. */
  streamLost(): void
  /** That stream had broken and is open again: what was said in between is not known. */
  missed(): void
  /** Something has come in that could be read only after it had been repaired. */
  repaired(what: string): void
  /** The channel has come to its end: nothing will come in on it any more, and nothing go out. Called once. */
  ended(error: ChannelError): void
}

export interface ChannelErrorOptions {
  cause?: unknown
  /** Whether the server may have seen the message: decides whether it may be sent again. */
  delivered?: 'no' | 'maybe'
  /** What an HTTP server refused the message with. */
  refusal?: Refusal
  /** What the far side did is no MCP: it is to blame, not the line. */
  protocol?: boolean
  /** There is no memory for the message, or for what the server answers. */
  noMemory?: boolean
  /** The last lines that a child wrote to stderr: for the operator, never for a client. */
  /** No answer came in time. */
  late?: boolean
  /** What a child wrote to stderr: for the operator, never for a client. */
  stderr?: readonly string[]
}

export class ChannelError extends Error {
  override name = 'ChannelError'
  readonly delivered: 'no' | 'maybe'
  readonly refusal: Refusal | undefined
  readonly protocol: boolean
  readonly noMemory: boolean
  readonly late: boolean
  /** A few lines of what a child wrote to stderr: first what looks like the reason of its end. */
  readonly stderr: readonly string[]
  readonly #allStderr: readonly string[]

  constructor(message: string, options: ChannelErrorOptions = {}) {
    const {
      cause,
      delivered = 'maybe',
      refusal,
      protocol = false,
      noMemory = false,
      late = false,
      stderr = [],
    } = options
    super(message, cause === undefined ? undefined : { cause })
    this.delivered = delivered
    this.refusal = refusal
    this.protocol = protocol
    this.noMemory = noMemory
    this.late = late
    this.stderr = excerpt(stderr)
    this.#allStderr = stderr
  }

  /** All that was kept of what the child wrote to stderr. Logs leave it out. */
  get allStderr(): readonly string[] {
    return this.#allStderr
  }
}

/** What becomes of a request that there is no memory for. */
export function requestTooLarge(): ChannelError {
  const said = 'The bridge has no memory left for messages (limits.memory)'
  return new ChannelError(said, { noMemory: true, delivered: 'no' })
}

/** What becomes of an answer that there is no memory for. */
export function answerTooLarge(): ChannelError {
  return new ChannelError('The bridge has no memory left for the answer of the server (limits.memory)', {
    noMemory: true,
  })
}

/** Opens channels to one server by one transport. */
export interface Transport {
  readonly kind: Channel['transport']
  /** Where the server is, for people: no credentials in it. */
  readonly target: string
  /**
   * Starts the child, or reaches for the server. Rejects with a ChannelError. A stateless channel is for the modern era:
   * over HTTP it has no session, and its streams are not taken up again. `account` is whose credentials it takes to open it.
   */
  open(options?: { stateless?: boolean; account?: Account | undefined }): Promise<Channel>
  /**
   * Ends every channel that is still open, whoever has it, and opens none any more: gently, or at once if there is no time.
   * Only where something would live on otherwise. Never rejects.
   */
  endAll?(hurry?: boolean): Promise<void>
}
