/**
 * The middle form: the bridge's own form of requests and replies (`Call`, `Reply`, `Handler`), independent of era. It
 * follows the modern era, in which each request carries everything that is needed to answer it, but without the modern
 * envelope.
 */

import type { Fault } from '../fault/fault.js'
import type { Log } from '../log/events.js'
import type { Id, Request, Response, RpcError, Sent } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import type { Json, Payload } from '../rpc/splice.js'
import type { Signal } from '../time/hang-up.js'
import type { Encoded, MessageOrigin } from './encoded.js'
import type { Era, LegacyRevision } from './eras.js'
import type { LogLevel } from './methods.js'
import type { HttpRefusal } from './refusal.js'
import type { ShownToken } from './shown-token.js'
import type { TraceContext } from './trace.js'

export type { RpcError } from '../rpc/message.js'

/**
 * What a client states about itself: with each request (modern) or once per session (legacy). JSON texts as received,
 * validated.
 */
export interface Caller {
  revision: string
  clientInfo?: Json | undefined
  /** ClientCapabilities of the modern schema. */
  capabilities: Json
  /** Least severity of the log messages that the caller wants during this call; undefined for none. */
  logLevel?: LogLevel | undefined
}

/** The principal of all callers without a credential, who may be different people. */
export const ANONYMOUS = 'anon'

/** What an identity provider or a proxy states about the caller of one request. */
export interface Grant {
  scopes: ReadonlySet<string>
  /** The caller can get further scopes from its authorization server, so tools that require them are listed. */
  extensible: boolean
  /** The answer to this request cannot be an HTTP status, because it belongs to a batch or to another stream. */
  inBand?: boolean
  /** The caller's identity for the audit log: the issuer, the subject there, and the application. */
  issuer?: string | undefined
  subject?: string | undefined
  application?: string | undefined
  /** The caller's token, if the bridge exchanges it for tokens of servers. */
  shown?: ShownToken | undefined
}

/** One request on its way to the server. */
export interface Call {
  /** The method in modern terms: `server/discover` and `subscriptions/listen` are calls too. */
  method: string
  /** The params without `_meta` and without the members of a retry. */
  params: Payload
  /** `_meta` without the protocol's own keys: trace context, keys of extensions and vendors. */
  meta: Payload
  /** The caller wants `notifications/progress`. Each half handles its own tokens. */
  progress: boolean
  /**
   * Whether the caller is willing to wait for a slow start of a program. Called after a while; other callers get an error
   * then.
   */
  patient?: (() => boolean) | undefined
  caller: Caller
  /** The authenticated caller; `local` on stdio and on a loopback address without authentication. */
  principal: string
  /** The caller's own `Authorization`, if it is to be forwarded. */
  credential?: string | undefined
  /** What the token of this request grants; undefined if the rights come from `auth.tokens`, or are unknown. */
  grant?: Grant | undefined
  /** The answer cannot be an HTTP status, because the client is legacy: it reads only the message. */
  inBand?: boolean | undefined
  /** The group that received the call, for the audit log. */
  group?: string | undefined
  /** In a retry: the answers to the server's questions, and the state that came with them. */
  answers?: Answers | undefined
  /** `Mcp-Param-*` headers by lower-cased name, if the transport has headers and the caller must send these. */
  paramHeaders?: ReadonlyMap<string, string>
  /** Sends the caller the server's notifications before the answer. */
  tell: Tell
  /** Aborts when the client no longer waits for the answer, or when a policy ends the call: then the reason is a Fault. */
  signal: Signal
  abort: (reason?: unknown) => void
  log: CallLog
}

/** The members of a retry, as received (MCP 2026-07-28, basic/patterns/mrtr). */
export interface Answers {
  responses: Json | undefined
  state: Json | undefined
}

/** One reply to a call: any number of notifications, then exactly one of the other kinds. */
export type Reply =
  | { kind: 'notification'; method: string; params: Payload }
  /** `type` is set if it is neither `complete` nor `input_required` but a type of an extension. */
  | {
      kind: 'result'
      result: Payload
      type?: string | undefined
      server?: Json | undefined
      cache?: CacheHint | undefined
    }
  /** The server asks for input before it answers: the result has `inputRequests`, `requestState` or both. */
  | { kind: 'input'; result: Payload; server?: Json | undefined }
  /**
   * An error that the server answered, with its HTTP status if it is modern. The bridge's own failures are thrown as
   * Faults.
   */
  | { kind: 'error'; error: RpcError; server?: Json | undefined; status?: number | undefined }

/** A notification during a call, before its answer. */
export type Told = Extract<Reply, { kind: 'notification' }>

/** The answer to a call. */
export type Final = Exclude<Reply, Told>

/**
 * Sends a notification of a call to its reader, in order. Returns undefined if there is room for more. If the reader is
 * slow, returns a promise that resolves when there is room or when the reader is gone; the sender must wait for it.
 * Notifications after the answer are dropped. If it throws, the handler cancels the call.
 */
export type Tell = (told: Told) => Promise<void> | undefined

/** A `Tell` for callers that want only the answer. */
export const unheard: Tell = () => undefined

/** The log of a call that the bridge makes for itself: no client made it, so it has no line. */
export const unlogged: CallLog = { note() {}, warn() {} }

/** How long a result may be cached, and for whom (MCP 2026-07-28, server/utilities/caching). */
export interface CacheHint {
  ttlMs: number
  scope: 'public' | 'private'
}

/**
 * Answers a call: the promise resolves to the answer. Notifications before the answer go to `call.tell`. Failures reject
 * with a Fault. When `call.signal` aborts, the call is cancelled, and the promise settles soon.
 */
export type Handler = (call: Call) => Promise<Final>
/** Wraps a handler. */
export type Policy = (next: Handler) => Handler

/** The sender of a message that is not a call. */
export type Sender = Pick<Call, 'caller' | 'principal' | 'credential' | 'grant' | 'patient'>

/** A notification from a client, to be forwarded. */
export interface Notice extends Sender {
  method: string
  params: Payload
  meta: Payload
}

/** What a downstream half uses of the upstream side. */
export interface Upstream {
  handle: Handler
  /** Forwards a notification, if the server can receive it. */
  notify(notice: Notice): void
  /** How to serve a legacy client. Rejects with a Fault. */
  legacyRoute(sender: Sender): Promise<LegacyRoute>
  /**
   * Counts a connected client of this principal until the returned function is called. Its programs keep running
   * meanwhile.
   */
  connected?(principal: string): () => void
}

/** How to serve a legacy client: `translate` in a session of the bridge, or `connect` it to a session of the server. */
export type LegacyRoute = 'translate' | { transport: 'stdio' | 'http' | 'sse'; connect: ForwardInitialize }

/** Forwards a client's `initialize` to the server. Resolves to undefined if the server turns out to have no sessions. */
export type ForwardInitialize = (
  opening: Request,
  sender: Sender,
  options: InitializeOptions,
) => Promise<Tunnel | undefined>

interface InitializeOptions {
  /** The client cannot open another session, so the tunnel opens a new one when the server has lost this one. */
  reopens: boolean
  /** The number of the call for the inspector. */
  call?: number | undefined
}

/**
 * A client's own session with a legacy server. Messages are forwarded unchanged, except that request ids and progress
 * tokens are renamed, so that equal ones of two requests in flight are not confused.
 */
export interface Tunnel {
  /** The server's answer to `initialize`, with this id. */
  opened(id: Id): Encoded
  /** The negotiated revision; undefined if the server refused `initialize`. Then no other message can be sent. */
  readonly revision: LegacyRevision | undefined
  /**
   * Sends a request. Passes the messages that belong to it to `say`, the answer last, and then resolves. `say` applies
   * backpressure like a `Tell`. Rejects with a Fault if there will be no answer. `call` is the number of the call for the
   * inspector.
   */
  ask(request: Request, signal: Signal, say: SayTunnelled, call?: number): Promise<void>
  notify(method: string, params: Sent): void
  /** Sends the client's answer to a request of the server. */
  respond(response: Response): void
  /**
   * Sets the listener for the server's own messages and for the end of the session. It gets the earlier messages at once.
   */
  attach(listener: TunnelListener): void
  close(): void
}

/** One message that belongs to a request of the client. */
interface TunnelMessage {
  text: Wire
  origin?: MessageOrigin | undefined
  /** Set if this is the answer, which is the last message. */
  answer?: Response
  /** With the answer: number of notifications dropped because earlier ones had not been read. */
  dropped?: number
}

/** Takes the messages that belong to a request of the client. Applies backpressure like a `Tell`. */
export type SayTunnelled = (message: TunnelMessage) => Promise<void> | undefined

/** About a message, for the inspector: the call to which it probably belongs, and its origin. */
export interface AboutMessage {
  call?: number | undefined
  origin?: MessageOrigin | undefined
}

/** Receives the messages of a session that belong to none of the client's requests. */
export interface TunnelListener {
  /**
   * A notification or a request of the server that cannot be assigned to a request of the client.
   */
  message(text: Wire, about?: AboutMessage): void
  /** Whether the session can end without a connected client noticing. */
  isIdle(): boolean
  ended(): void
}

/** Everything that the relay needs to pass HTTP messages unchanged to an HTTP server. */
export interface Relayed {
  url: URL
  /** Headers sent with every request; names in lower case. */
  headers: Readonly<Record<string, string>>
  /** The connections to the server: resolves to an undici dispatcher after undici is loaded. */
  dispatcher: Promise<unknown>
  /** An empty jar for the cookies of a session. */
  cookies(): SessionCookies
  /** The targets of the server's redirects. */
  redirects: KnownRedirects
  /** The server's era; undefined if it is not known yet. */
  speaks(): Era | undefined
  /** Detects the server's era again, and returns whether it has changed from `era`; false if it cannot be detected. */
  turned(era: Era, sender: Sender): Promise<boolean>
  /** Most bytes of an answer, or of one event of a stream. */
  bodyLimit: number
  /** The Fault for a failed connection. */
  failed(error: Error): Fault
  /** Whether a request of this method can be repeated after such a failure without the server acting on it twice. */
  mayRepeat(error: Error, method: string): boolean
  /**
   * The Fault for an answer that cannot be passed on, because it has an unknown encoding, or because its `bytes` so far
   * exceed `bodyLimit`. Undefined for other answers.
   */
  unusable(headers: Readonly<Record<string, string | string[] | undefined>>, bytes: number): Fault | undefined
  /** The Fault for a refusal; undefined if its body is the server's own JSON-RPC error. */
  refused(refusal: HttpRefusal): Fault | undefined
  /** Whether such a refusal proves that the server is not of this era. */
  contradicts(refusal: HttpRefusal, era: Era): boolean
  /**
   * Whether a refusal of this method means that the server has lost the session. If the refusal leaves that open, sends
   * another request in the session to find out, for this principal and with these headers.
   */
  hasLostSession(
    refusal: HttpRefusal,
    method: string,
    look: { principal: string; headers: Readonly<Record<string, string>> },
  ): Promise<boolean>
}

/** The cookies of one session with a server. */
export interface SessionCookies {
  /** Resolves when all cookies have been stored; undefined if they are stored already. */
  readonly settled: Promise<void> | undefined
  /** The number of answers that have set cookies. */
  readonly taken: number
  /** Whether there are any cookies. */
  readonly any: boolean
  /** All cookies, for `adopt` in another replica; undefined if there are none. Read it after `settled`. */
  readonly text: string | undefined
  /**
   * Replaces the cookies by those of another replica, unless these belong to another origin, or an answer sets cookies in
   * the meantime.
   */
  adopt(text: string): Promise<void>
  /** Stores the cookies that an answer from this path sets. */
  keepFrom(path: string, headers: Readonly<Record<string, string | string[] | undefined>>): void
  /** These headers with the cookies for a request to this path. */
  addTo<T extends Readonly<Record<string, string | string[] | undefined>>>(path: string, headers: T): T
}

/** The known redirects of a server. */
interface KnownRedirects {
  /** The path and query for requests of a principal. */
  pathFor(principal: string): string
  /**
   * The path to which a request has to be sent again; undefined if the answer is final. `asked`: the path where it was
   * sent. `times`: how often it has been sent before.
   */
  next(
    principal: string,
    asked: string,
    answer: { status: number; headers: Readonly<Record<string, string | string[] | undefined>> },
    times: number,
  ): string | undefined
}

/** The log of one call. */
export interface CallLog {
  /** Records the call under a number, if there is a recorder. */
  readonly recorder?: { readonly number: number } | undefined
  /** Adds fields to the line that is written when the call ends. Never a secret, a header value or an argument. */
  note(fields: Record<string, string | number | boolean>): void
  warn: Log['warn']
  /** Starts the span of the request to the server. Absent if calls are not traced or recorded. */
  handedOver?(): UpstreamSpan
}

/** The time from sending a call to the server until its last reply. */
export interface UpstreamSpan {
  /** The trace context to send to the server; undefined without tracing. */
  readonly trace: TraceContext | undefined
  /**
   * Ends the span: with the last reply, with a failure, or without an argument if the client no longer waits. Later calls
   * do nothing.
   */
  over(last?: Reply | Fault): void
}
