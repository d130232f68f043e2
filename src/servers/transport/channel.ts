/**
 * The types of a channel, which carries JSON-RPC messages to and from one server. It knows framing and delivery, but no
 * methods.
 */

import type { Memory } from '../../base/limits/memory.js'
import type { Batch } from '../../base/rpc/message.js'
import type { Outline } from '../../base/rpc/outline.js'
import type { PassedEvent, PassedStream } from '../../base/rpc/sse.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { CallersHeaders } from '../../mcp/protocol/call.js'
import type { HttpRefusal } from '../../mcp/protocol/refusal.js'
import type { ServerSession } from '../../mcp/protocol/upstream.js'
import type { Lanes } from '../lanes.js'
import { excerpt } from './stdio/stderr-tail.js'

export interface OutgoingMessage {
  text: string
  /** The client's own message, which is sent in place of `text`; only over HTTP. */
  bytes?: Uint8Array | undefined
  /** The id of the exchange that a request begins; absent for notifications and answers. */
  exchange?: number
  /** The principal that waits for the answer. Memory for it is reserved in its name. */
  principal?: string | undefined
  /** Headers of this message, if the transport has headers. Names in lower case. */
  headers?: Readonly<Record<string, string>>
  /** Headers of the client's own message that go on with it, unless the bridge sets them itself. */
  forwarded?: Readonly<Record<string, string>> | undefined
  /** The account for the message, if the bridge obtains credentials for it. */
  account?: Account | undefined
  /** Who takes what the server answers to a notification; only over HTTP. */
  heard?: Heard | undefined
  /** The events of the answer pass to a client as they come, and it resumes their stream itself; only over HTTP. */
  passesEvents?: boolean | undefined
}

export interface OpeningStream extends Pick<OutgoingMessage, 'headers' | 'forwarded' | 'account' | 'principal'> {
  /** The last event that the client has got. */
  lastEventId?: string | undefined
  signal: Signal
}

/** Takes the messages in the answer to a notification. */
export interface Heard {
  /** A text of the server: the body of the answer, with its head, or an event of a stream. It may be no message. */
  hear(bytes: readonly Uint8Array[], http?: HttpHead): void
  /** Aborts when the answer is no longer needed. */
  signal: Signal
}

export interface Channel {
  /** The transport, for people. */
  readonly transport: 'stdio' | 'http' | 'sse'
  /**
   * Answers and the server's own messages arrive on one stream. If false, the latter need a separate stream, which may
   * fail.
   */
  readonly shared: boolean
  /** `abandon` alone cancels an exchange, without a cancellation message. */
  readonly stateless: boolean
  /** Whether anything can still be sent. */
  readonly alive: boolean
  /** The ledger for bytes that have been read and not yet delivered. */
  readonly memory: Memory
  /** In which calls take turns, if several clients may call the server: on this channel, or on all channels to its address. */
  readonly lanes?: Lanes | undefined
  /** Sets the receiver. Called once, before anything is sent. */
  attach(receiver: Receiver): void
  /**
   * Sends one message. For a request, resolves when the channel has nothing more to do for it, which may be as soon as it
   * is written. Rejects with a ChannelError if its answer can no longer arrive, and with a Fault if it was not sent for
   * lack of credentials.
   */
  sendMessage(message: OutgoingMessage): Promise<void>
  /** Notes that the answer of this exchange is no longer needed: connections that wait for it are closed. */
  abandon(exchange: number): void
  /**
   * Only for programs: the time, by `performance.now()`, until which a program without an answer counts as starting. It
   * does so while it writes to stdout or stderr at least every `silence` milliseconds, or may be downloading what it runs;
   * but no longer than `most` milliseconds after its start.
   */
  startingUntil?(silence: number, most: number): number
  /** Whether the server has opened a session on the channel. */
  readonly hasSession?: boolean
  /** Whether the server refuses a GET for lack of a session, as servers that support sessions do. */
  wantsSession?(headers: Readonly<Record<string, string>>, account?: Account): Promise<boolean>
  /**
   * Opens the stream for the server's own messages, if it is a separate one. Resolves to whether it is open. `tried` is called
   * earlier if the first attempt fails.
   */
  listen?(headers: Readonly<Record<string, string>>, account?: Account, tried?: () => void): Promise<boolean>
  /**
   * Opens a stream of a client, which gets the events as they come. Resolves when the server has begun it, and rejects with a
   * ChannelError if the server has not. Only over HTTP.
   */
  pass?(stream: PassedStream, opening: OpeningStream): Promise<void>
  /** What another channel needs to go on with its session; only over HTTP. */
  readonly session?: ServerSession
  /** Leaves the session to another channel: listens no more, and does not end the session when it is closed. Only over HTTP. */
  leave?(): void
  /**
   * Closes the channel and ends its session or process: gracefully, or at once with `hurry`. Over HTTP, resolves to the status with
   * which the server has answered that. Never rejects.
   */
  close(hurry?: boolean): Promise<unknown>
}

/** The head of an HTTP response. Names of headers are in lower case. */
export interface HttpHead {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Set by the peer: the array in the answer that has a message. */
  array?: Batch | undefined
  /** The event that is the message, if its client gets it as it came. */
  event?: PassedEvent | undefined
}

export interface Receiver {
  /**
   * A message has arrived, in these pieces of bytes; on the stream of this exchange, if the transport has such streams.
   * `http` is the head of the response that contains it.
   */
  receive(bytes: readonly Uint8Array[], exchange: number | undefined, http?: HttpHead): void
  /** A part of a message has arrived, which may be the answer in this exchange: so many bytes of it so far. */
  arriving?(exchange: number, bytes: number): void
  /** An event without a message has arrived, which passes to a client; on the stream of this exchange, if it is of one. */
  passed?(event: PassedEvent, exchange: number | undefined): void
  /** The server has ended the stream of this exchange with this status: its client may resume it, or gets the answer on another one. */
  left?(exchange: number, status: number): void
  /** A message was dropped for lack of memory, or as `why` says; this is its outline. `exchange` as in `receive`. */
  dropped(outline: Outline, exchange: number | undefined, why?: ChannelError): void
  /** A message that begins with these bytes has stayed incomplete for too long. The call that it answers fails. */
  stalled(beginning: Uint8Array): void
  /** Whether an exchange still waits for its answer. */
  isWaiting(exchange: number): boolean
  /** The stream for the server's own messages has ended and cannot be opened again. */
  streamLost(): void
  /** That stream had broken and is open again: messages may have been lost in between. */
  missed(): void
  /** The channel has ended: it carries no more messages in either direction. Called once. */
  ended(error: ChannelError): void
}

export interface ChannelErrorOptions {
  cause?: unknown
  /** Whether the server may have received the message, which decides whether it may be sent again. */
  delivered?: 'no' | 'maybe'
  /** The HTTP refusal of the message. */
  refusal?: HttpRefusal
  /** The server violated the protocol, so it is to blame, not the connection. */
  protocol?: boolean
  /** The server's text in the place of a message. */
  said?: string
  /** There is no memory for the message, or for what the server answers. */
  noMemory?: boolean
  late?: boolean
  /** Lines of the program's stderr: for the operator, never for a client. */
  stderr?: readonly string[]
}

export class ChannelError extends Error {
  override name = 'ChannelError'
  readonly delivered: 'no' | 'maybe'
  readonly refusal: HttpRefusal | undefined
  readonly protocol: boolean
  readonly said: string | undefined
  readonly noMemory: boolean
  readonly late: boolean
  /** A few lines of the program's stderr, first the one that looks like the reason for its end. */
  readonly stderr: readonly string[]
  readonly #allStderr: readonly string[]

  constructor(message: string, options: ChannelErrorOptions = {}) {
    const { cause, stderr = [] } = options
    super(message, cause === undefined ? undefined : { cause })
    this.delivered = options.delivered ?? 'maybe'
    this.refusal = options.refusal
    this.protocol = options.protocol === true
    this.said = options.said
    this.noMemory = options.noMemory === true
    this.late = options.late === true
    this.stderr = excerpt(stderr)
    this.#allStderr = stderr
  }

  /** All kept lines of the program's stderr. Logs do not include them. */
  get allStderr(): readonly string[] {
    return this.#allStderr
  }
}

/** The failure of a request for which there is no memory. */
export function requestTooLarge(): ChannelError {
  const said = 'The bridge has no memory left for messages (limits.memory)'
  return new ChannelError(said, { noMemory: true, delivered: 'no' })
}

/** The failure of a request for whose answer there is no memory. */
export function noMemoryForAnswer(): ChannelError {
  return new ChannelError('The bridge has no memory left for the answer of the server (limits.memory)', {
    noMemory: true,
  })
}

/** Most bytes of what a server sends: of a line, of an answer over HTTP or an event, and of a stream of events. */
export interface MessageLengths {
  line: number
  answer: number
  stream: number
}

/** Opens channels to one server by one transport. */
export interface Transport {
  readonly kind: Channel['transport']
  /** The address or command of the server, for people. It contains no credentials. */
  readonly target: string
  /** The process ids of its running programs. Only transports with processes have it. */
  readonly programs?: readonly number[]
  /**
   * Starts the program, or opens a channel to the address. Rejects with a ChannelError, or with a Fault if there are no
   * credentials. A stateless channel is for the modern era: over HTTP it has no session, and its streams are not
   * resumed. `account` and the caller's `credential` are used if opening the channel sends a request. `session`, only over
   * HTTP: goes on with it.
   */
  open(options?: {
    stateless?: boolean
    account?: Account | undefined
    credential?: CallersHeaders | undefined
    session?: ServerSession | undefined
  }): Promise<Channel>
  /** Bounds what the server sends from now on, in open channels too. */
  limit?(lengths: MessageLengths): void
  /**
   * Closes all channels, and opens no more: gracefully, or at once with `hurry`. Only transports with processes have
   * it. Never rejects.
   */
  endAll?(hurry?: boolean): Promise<void>
  /**
   * Closes the connections, once all channels are closed: idle ones now, the others when their requests are over, or after some
   * seconds, or at once with `hurry`. Only transports over HTTP have it.
   */
  close?(hurry?: boolean): Promise<void>
}
