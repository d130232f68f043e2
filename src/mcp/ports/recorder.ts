/**
 * What the bridge reports to the recorder of an inspector, which is optional: calls of clients, messages on both wires, and events.
 * The code that reports knows nothing else of an inspector.
 */
import type { Fault } from '../../base/fault/fault.js'
import type { Id, Notification, Request, Response } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import type { Json } from '../../base/rpc/splice.js'
import type { Answers, Final } from '../protocol/call.js'
import type { MessageOrigin } from '../protocol/encoded.js'
import type { Era } from '../protocol/eras.js'
import type { HttpRefusal } from '../protocol/refusal.js'
import type { Observe } from './events.js'
import type { Cancelled, Outcome } from './outcome.js'

/** The number of a call that is not recorded because there are too many. */
export const UNRECORDED = 0

/** The recorder of a bridge. It never throws, and keeps no reference to what it gets. */
export interface Recorder {
  /** Records the events that are counted as metrics. */
  readonly observe: Observe
  /** Records a change of the configuration, or of the trust in a server. */
  note(kind: 'config' | 'trust', text: string, server?: string): void
  /** Records a line that the program of a server wrote to stderr. */
  stderr(server: string, line: string): void
  /** Records what clients of a server or group do. */
  clientsOf(server: string): ClientRecorder
  /** Records the messages with a server. */
  serverOf(server: string): ServerRecorder
}

/** Records what the clients of one server or group do. */
export interface ClientRecorder {
  /** Begins to record a call. `started` is its `performance.now()`. */
  call(fields: Readonly<CallFields>, whose: Whose, started: number): CallRecorder
  /** Records a notification or response of a client. */
  received(message: Notification | Response, context: RecordedContext): void
  /** Records a message to a client that belongs to no call. */
  sent(text: Wire, origin: MessageOrigin, era: Era, session: string | undefined): void
  /** Records the messages outside of calls in a session of a legacy client with a legacy server. */
  session(session: string | undefined): SessionRecorder
  /** Records that a stream of a session was connected or disconnected. `request`: the id of the request that it answers. */
  stream(
    what: 'opened' | 'left' | 'resumed' | 'ended',
    stream: string,
    request: Id | undefined,
    session: string | undefined,
  ): void
}

/** What a message belongs to. */
export interface RecordedContext {
  call?: number | undefined
  session?: string | undefined
}

/** Headers of a request, with names in lower case. */
export type RecordedHeaders = Readonly<Record<string, string | string[] | undefined>> | undefined

/** Whose call it is, for the log and the recorder. */
export interface Whose {
  principal: string
  /** The session of a legacy client. */
  session?: string | undefined
}

/** What is known about a call when it comes in. More fields are added until it ends. */
export interface CallFields {
  clientEra: Era
  method: string
  serverEra?: Era
  /** The server of a group that the call is for. */
  server?: string
  [further: string]: unknown
}

/** How a call ended. */
export interface CallEnd {
  outcome: Outcome
  /** Why, if it was cancelled. */
  cancelled?: Cancelled | undefined
  fault?: Fault | undefined
  /** The code of the error. */
  code?: number | undefined
  why?: string | undefined
  /** Milliseconds that the server took, if it got the call. */
  upstreamMs?: number | undefined
}

/** Records one call: its start, its messages with the client, and its end. */
export interface CallRecorder {
  /** The number of the call; UNRECORDED if it is not recorded. */
  readonly number: number
  /** The call has these answers. If it continues a recorded call, it is recorded, too. */
  continues(answers: Answers): void
  /**
   * The call began with this message of the client. `answers`: those of a call that continues another one. `clientInfo`: that
   * of the client, if it is known.
   */
  began(request: Request, answers?: Answers, headers?: RecordedHeaders, clientInfo?: Json): void
  /** The call opened this session, and belongs to it from now on. */
  opened(session: string): void
  /** A message of the client that belongs to the call. */
  received(message: Request | Notification | Response): void
  /** A message is sent to the client. `origin` is what it was made of, `status` its HTTP status, unless that is 200. */
  sent(text: Wire, origin?: MessageOrigin, status?: number): void
  /** The server's reply is sent: `text` is the answer, `origin` and `status` are as in `sent`. */
  answered(reply: Final, text: Wire | undefined, origin: MessageOrigin | undefined, status?: number): void
  /** The call ended: now, or with the recorded answer. */
  ended(end: CallEnd): void
  /** The call ends here without an answer, because it is answered as another call, or by another replica. */
  left(why: string, upstreamMs: number | undefined): void
}

/** Records the messages outside of calls in a direct session. */
export interface SessionRecorder {
  /** A message of the server is sent to the client. `call` is the call that it seems to belong to. */
  sent(text: Wire, call: number | undefined, origin: MessageOrigin | undefined): void
  /** A message of the client. `call` is the call that it cancels. */
  received(message: Notification | Response, call: number | undefined): void
}

/** Records the messages with one server. */
export interface ServerRecorder {
  /** Records the messages on a new channel. `isHttp`: they have headers. */
  channel(isHttp: boolean): ChannelRecorder
}

/** What a message to a server is. */
export interface SentMessage {
  form: 'request' | 'result' | 'error' | 'notification'
  method?: string | undefined
  id?: string | number | undefined
}

/** What a message was made of, and its headers, if the transport has any. */
export interface SentWith {
  origin?: MessageOrigin | undefined
  headers: Readonly<Record<string, string>>
}

/** The head of an HTTP response. Names of headers are in lower case. */
export interface ResponseHead {
  status: number
  headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Records the messages on one channel to a server. */
export interface ChannelRecorder {
  /** A message is sent to the server, for this call. `now` is its `performance.now()`, if it is known. */
  sent(message: SentMessage, text: string, call: number | undefined, sentWith: SentWith, now?: number): void
  /** The answer to a request of the server is sent. Returns the call that has asked, if it is known. */
  answered(form: 'result' | 'error', id: Id, text: string, sentWith: SentWith): number | undefined
  /** The server answered a message of this call with an HTTP status and a body that is not a message. */
  refused(refusal: HttpRefusal, call: number | undefined): void
  /** A message of the server arrived, for this call. `http` is the head of its HTTP response. */
  received(message: Request | Notification | Response, call: number | undefined, http: ResponseHead | undefined): void
}
