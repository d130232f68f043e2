/**
 * What the upstream side offers to the downstream half: calls, and direct sessions, in which
 * messages pass unchanged between peers of the same era.
 */
import type { Fault } from '../../base/fault/fault.js'
import type { Batch, Id, Request, Response, Sent } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import type { Json, Payload } from '../../base/rpc/splice.js'
import type { PassedEvent, PassedStream } from '../../base/rpc/sse.js'
import type { UnreadResponse } from '../../base/rpc/unread-response.js'
import type { Signal } from '../../base/time/hang-up.js'
import type {
  AskedClient,
  Call,
  Handler,
  Notice,
  ReceivedHead,
  ReceivedOneWay,
  Sender,
  SentBatch,
  ServerNotification,
} from './call.js'
import type { Encoded, MessageOrigin } from './encoded.js'
import type { Era, LegacyRevision } from './eras.js'
import type { LogLevel } from './methods.js'

/** What a downstream half uses of the upstream side. */
export interface Upstream {
  handle: Handler
  /**
   * Forwards a notification, if the server can receive it. The promise is for the client of a `received` one, if the server
   * answers it: resolves when the answer is complete, and rejects with a Fault if the server has not accepted it.
   */
  notify(notice: Notice): Promise<void> | undefined
  /** Whether notifications of this sender that the bridge does not know go to the server; by default they do. */
  carriesUnknown?(sender: Pick<Sender, 'principal' | 'grant'>): boolean
  /**
   * Whether the server has the tool of a call, but lists it only to callers with further scopes; by default it has none. The call
   * would be refused for that reason.
   */
  withholds?(call: Call): Promise<boolean>
  /** Policies may ask a client during its calls, so it has to be known what the client can be asked. */
  readonly asks?: boolean
  /** How to serve a legacy client; with an address, one whose session is there. Rejects with a Fault. */
  legacyRoute(sender: Sender, address?: string): Promise<LegacyRoute>
  /**
   * Counts a connected client of this principal until the returned function is called. Its programs keep running
   * meanwhile, unless they may sleep when they are idle, and servers may ask `client` beside its calls.
   */
  connected?(principal: string, client?: AskedClient, maySleep?: boolean): () => void
}

/** How to serve a legacy client: `translate` in a session of the bridge, or `connect` it to a session of the server. */
export type LegacyRoute =
  | 'translate'
  | {
      transport: 'stdio' | 'http' | 'sse'
      connect: ForwardInitialize
      /** Goes on with a session that another replica has left, of a client with these capabilities. Only over HTTP. */
      resume?: ((left: LeftDirectSession, sender: Sender, capabilities: Json) => Promise<DirectSession>) | undefined
    }

/** Forwards a client's `initialize` to the server. Resolves to undefined if the server turns out to have no sessions. */
export type ForwardInitialize = (
  opening: Request,
  sender: Sender,
  options: InitializeOptions,
) => Promise<DirectSession | undefined>

interface InitializeOptions {
  /** The client cannot open another session, so a new one is opened for it when the server has lost this one. */
  reopens: boolean
  /** The number of the call for the inspector. */
  call?: number | undefined
  /** Headers of the client's request that go on to a server over HTTP. */
  forwarded?: Readonly<Record<string, string>> | undefined
}

/** The server's answer to `initialize` for the client, and its result; without one if it is an error. */
export interface AnsweredInitialize extends Encoded {
  result: Payload | undefined
  /** The head that the server has sent with it. */
  http?: ReceivedHead | undefined
}

/**
 * A client's own session with a legacy server. Messages are forwarded unchanged, except that request ids and progress
 * tokens are renamed, so that equal ones of two requests in flight are not confused.
 */
export interface DirectSession {
  /** The server's answer to `initialize`, with this id. */
  opened(id: Id): AnsweredInitialize
  /** The negotiated revision; undefined if the server refused `initialize`. Then no other message can be sent. */
  readonly revision: LegacyRevision | undefined
  /**
   * Sends a request. Passes the messages that belong to it to `say`, the answer last, and then resolves. `say` applies
   * backpressure like a `Notify`. Rejects with a Fault if there will be no answer.
   */
  ask(request: Request, signal: Signal, say: TakeSessionMessage, about?: AboutAsked): Promise<void>
  /** Sends a notification. The promise is for the client of a `received` one over HTTP, as that of `Upstream.notify`. */
  notify(method: string, params: Sent, received?: ReceivedOneWay): Promise<void> | undefined
  /** Sends the client's answer to a request of the server, in the same way. */
  respond(response: Response, received?: ReceivedOneWay): Promise<void> | undefined
  /**
   * Sets the listener for the server's own messages and for the end of the session. It gets the earlier messages at once.
   */
  attach(listener: SessionListener): void
  /**
   * Opens a stream for the client, which gets its events as they come; only if messages keep their ids. Resolves when the server
   * has begun it. Rejects with a Fault.
   */
  listen?: ((stream: PassedStream, opening: StreamOpening) => Promise<void>) | undefined
  /** Over HTTP, messages keep the ids of the client and of the server. */
  readonly keepsIds?: boolean
  /** Begins a batch for what is sent in it; undefined if the server gets single messages. */
  batchOf?(received: ReceivedBatch): SentBatch | undefined
  /** What another replica needs to go on with the session; undefined if none can. */
  readonly left?: LeftDirectSession | undefined
  /** Leaves the session to another replica: `close` does not end it any more. */
  leave?(): void
  /** What client and server have agreed on, if the direct session remembers it: a direct session that reopens does. */
  readonly agreed?: AgreedSettings | undefined
  /** Ends the session. */
  close(): void
  /** After `close`, over HTTP: resolves to the status with which the server has answered that, if it has. */
  readonly closed?: Promise<number | undefined> | undefined
}

/**
 * What belongs to a request of a client, beside its message. `forwarded` and `credential` are for servers over HTTP, `grant` has the
 * token of which the bridge may exchange.
 */
export interface AboutAsked extends Pick<Call, 'forwarded' | 'credential' | 'grant'>, Pick<ReceivedOneWay, 'batch'> {
  /**
   * For the client's own request over HTTP, whose events pass to it: aborts when it disconnects before the answer. It may resume the
   * stream, and has not cancelled the call.
   */
  leaves?: Signal | undefined
  /** It is a request of the bridge's own in the session: a policy reads a list. */
  ofBridge?: boolean | undefined
  /** The number of the call for the inspector. */
  call?: number | undefined
  /** Its connection has been closed before. */
  again?: boolean | undefined
}

/** A batch as its client sent it, with the ids of its requests. */
export interface ReceivedBatch {
  principal: string
  bytes: Uint8Array
  message: Batch
  ids: readonly Id[]
}

/** How a client opens a stream. */
export interface StreamOpening extends Pick<Call, 'forwarded' | 'credential' | 'grant'> {
  lastEventId: string | undefined
  /** Aborts when the client has gone. */
  signal: Signal
}

/** What another channel over HTTP needs to go on with a session at the server. */
export interface ServerSession {
  /** The server's id of the session, if it has given one. */
  session?: string | undefined
  /** The path and query of the session, if the server has redirected it. */
  path?: string | undefined
  /** `Cookies.text` */
  cookies?: string | undefined
  /** Which address of the server has it, if there are several. */
  address?: string | undefined
}

/** A session of a client over HTTP, for another replica. */
export interface LeftDirectSession extends ServerSession {
  revision: LegacyRevision
  /** The capabilities of the server, as sent to the client. */
  offered: Json
  /** Whether the client has sent `notifications/initialized`. */
  ready: boolean
}

/** What a legacy client and its server have agreed on in a session. */
export interface AgreedSettings {
  /** The capabilities of the server, as sent to the client. */
  offered: Json
  /** Whether the client has sent `notifications/initialized`. */
  ready: boolean
  logLevel: LogLevel | undefined
  /** Resources that the client has subscribed to. */
  uris: readonly string[]
}

/** One message that belongs to a request of the client. */
interface SessionMessage {
  text: Wire
  origin?: MessageOrigin | undefined
  /** Set if this is the answer, which is the last message. */
  answer?: Response | UnreadResponse
  /** Set if it is not: the notification, as the client gets it. */
  notification?: Pick<ServerNotification, 'method' | 'params'>
  /** The event that has brought the message, or has none; or the status with which the server has ended the stream before the answer. */
  event?: PassedEvent | number | undefined
  /** With the answer: number of notifications dropped because earlier ones had not been read. */
  dropped?: number
}

/** Takes the messages that belong to a request of the client. Applies backpressure like a `Notify`. */
export type TakeSessionMessage = (message: SessionMessage) => Promise<void> | undefined

/** What a message of a server to its client says, if it belongs to no call. */
export interface DeliveryKind {
  /** A request to the client, or the notification that withdraws it. */
  kind?: 'question' | 'withdrawal' | undefined
  /** What the message is about. Of two messages with the same key, the client needs only the later one. */
  key?: string | undefined
}

/** About a message. For the inspector: the call to which it probably belongs, and its origin. */
export interface AboutMessage extends DeliveryKind {
  call?: number | undefined
  origin?: MessageOrigin | undefined
  /** The event that has brought it, on a stream that the client has opened. */
  event?: PassedEvent | undefined
  /** It may be anything, also an answer to a call that nobody knows. */
  isUnknown?: boolean
}

/** Receives the messages of a session that belong to none of the client's requests. */
export interface SessionListener {
  /**
   * A notification or a request of the server that cannot be assigned to a request of the client.
   */
  message(text: Wire, about?: AboutMessage): void
  /** Whether the session can end without a connected client noticing. */
  isIdle(): boolean
  ended(): void
}

/** Revises a result that passes unchanged otherwise. Returns the same one if nothing changes. */
export type Revise = (result: Payload) => Payload | Promise<Payload>

/** A server that is reached over Streamable HTTP. */
export interface OverHttp {
  url: URL
  /** The connections to the server: resolves to an undici dispatcher after undici is loaded. */
  dispatcher: Promise<unknown>
  /** The server's era; undefined if it is not known yet. */
  speaks(): Era | undefined
  /** The Fault for a failed connection. */
  failed(error: Error): Fault
}
