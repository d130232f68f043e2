/**
 * The middle form: the bridge's own form of requests and replies (`Call`, `Reply`, `Handler`), independent of era. It
 * follows the modern era, in which each request carries everything that is needed to answer it, but without the modern
 * envelope.
 */

import type { Fault } from '../../base/fault/fault.js'
import type { Log } from '../../base/log/events.js'
import type { Batch, Id, RpcError } from '../../base/rpc/message.js'
import type { JsonSource, Wire } from '../../base/rpc/source.js'
import type { Json, Payload } from '../../base/rpc/splice.js'
import type { PassedEvent } from '../../base/rpc/sse.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { MessageOrigin } from './encoded.js'
import type { Era, LegacyRevision } from './eras.js'
import type { LogLevel } from './methods.js'
import type { ShownToken } from './shown-token.js'
import type { TraceContext } from './trace.js'

export type { RpcError } from '../../base/rpc/message.js'

/**
 * What a client states about itself: with each request (modern) or once per session (legacy). JSON texts as received,
 * validated.
 */
export interface Caller {
  revision: string
  clientInfo?: Json | undefined
  /** ClientCapabilities of the modern schema. */
  capabilities: Json
  /** A client with a session that reports changes of its roots. */
  reportsRoots?: boolean | undefined
  /** Least severity of the log messages that the caller wants during this call; undefined for none. */
  logLevel?: LogLevel | undefined
}

/** The principal of all callers without a credential, who may be different people. */
export const ANONYMOUS = 'anon'

/** Headers of a caller by name in lower case. Their values are secret. */
export type CallersHeaders = Readonly<Record<string, string>>

/** What an identity provider or a proxy states about the caller of one request. */
export interface Grant {
  scopes: ReadonlySet<string>
  /** The caller can get further scopes from its authorization server, so tools that require them are listed. */
  extensible: boolean
  /** The name by which the caller requests a scope there; undefined if it cannot get it. By default the scope itself. */
  nameOf?: ((scope: string) => string | undefined) | undefined
  /** The answer to this request cannot be an HTTP status, because it belongs to a batch or to another stream. */
  inBand?: boolean
  /** The caller's identity for the audit log: the issuer, the subject there, and the application. */
  issuer?: string | undefined
  subject?: string | undefined
  application?: string | undefined
  /** The caller's token, if the bridge exchanges it for tokens of servers. */
  shown?: ShownToken | undefined
}

/** Whether a caller can get these scopes from its authorization server. */
export function canGet(scopes: readonly string[], { extensible, nameOf }: Grant): boolean {
  return extensible && (nameOf === undefined || scopes.every((scope) => nameOf(scope) !== undefined))
}

/**
 * A request as the client sent it. A server of the same era gets it unchanged, where each answer comes on a stream of its
 * own, so that equal ids of two clients cannot be confused.
 */
type Received = ReceivedModern | { era: 'legacy'; id: Id; bytes?: undefined; nameHeader?: undefined }

interface ReceivedModern {
  era: 'modern'
  id: Id
  progressToken: Json | undefined
  /** The whole message and `Mcp-Name`, if it came over HTTP. */
  bytes?: Uint8Array | undefined
  source?: JsonSource | undefined
  nameHeader?: string | undefined
  /** What was decoded of it, to see whether anything has edited the call since. */
  decoded: Pick<Call, 'method' | 'params' | 'meta' | 'caller' | 'answers'>
}

/** The bytes of the client's request; undefined if it has none, or if anything has edited the call. */
export function unchangedBytes({ received, method, params, meta, caller, answers }: Call): Uint8Array | undefined {
  if (received?.era !== 'modern') return undefined
  const { bytes, decoded } = received
  if (decoded.method !== method || decoded.params !== params || decoded.meta !== meta) return undefined
  return decoded.caller === caller && decoded.answers === answers ? bytes : undefined
}

/** An answer as the server sent it, for a legacy client with its id. A client of the same era gets it unchanged. */
export interface ReceivedReply {
  era: Era
  id: Id | undefined
  message: Wire
  origin: MessageOrigin
  /** That of the legacy session which clients of several revisions share. */
  revision?: LegacyRevision
  /** The reply that was made of it: another one has been edited. */
  reply: Final
  http?: ReceivedHead | undefined
}

/** The answer as the server sent it; undefined if it has another origin, or if policies have edited it, and not only made another reply of it. */
export function uneditedOf(reply: Final): ReceivedReply | undefined {
  const { received } = reply
  if (!received || reply === received.reply) return received
  const isSame =
    reply.kind === 'error'
      ? received.reply.kind === 'error' && received.reply.error === reply.error
      : received.reply.kind !== 'error' && received.reply.result === reply.result
  return isSame ? received : undefined
}

/** A notification as the server sent it, to be passed on as a ReceivedReply is. */
type ReceivedNotification = {
  /** The notification that was made of it: another one has been edited. */
  notification: ServerNotification
} & (
  | { era: 'modern'; source: JsonSource }
  | { era: 'legacy'; text: Wire; origin?: MessageOrigin; event?: PassedEvent | undefined }
)

/**
 * The session of a legacy client with its legacy server. A call in it goes to no other session of the server. Its params are
 * those of the message, with `_meta`.
 */
export interface Link {
  /** Sends the call in the session: as the client sent it, unless it has been edited. */
  ask(call: Call): Promise<Final>
  /** What client and server speak; a policy that adds to an answer has to know it. Undefined while the session opens. */
  readonly revision?: LegacyRevision
}

/** Who calls what, for the audit log. Undefined members are omitted. */
export type AuditedCall = Readonly<Record<string, string | number | object | undefined>>

/** One request on its way to the server. */
export interface Call {
  /** The method in modern terms: `server/discover` and `subscriptions/listen` are calls too. */
  method: string
  /** The params without `_meta` and without the members of a retry. */
  params: Payload
  /** The name or URI by which the client has called, if that in `params` is another one. For messages. */
  called?: string | undefined
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
  /** Headers of the caller that the server gets: its own `Authorization`, and those of `forward`. They make the principal. */
  credential?: CallersHeaders | undefined
  /** What the token of this request grants; undefined if the rights come from `auth.tokens`, or are unknown. */
  grant?: Grant | undefined
  /** The answer cannot be an HTTP status, because the client is legacy: it reads only the message. */
  inBand?: boolean | undefined
  /** The client, if it can be asked beside its calls. */
  client?: AskedClient | undefined
  /** The group that received the call, for the audit log: set if something behind the group has to know it. */
  group?: string | undefined
  /** Tells the audit log that the call uses what belongs to another principal; undefined without one. */
  foreign?: ((what: Foreign) => void) | undefined
  /** Tells the audit log how a person has approved the call, or that nobody has; undefined without one. */
  approval?: ((what: ApprovalStep) => void) | undefined
  /** What the audit log says of the call in each of its lines; undefined without one. */
  audited?: (() => AuditedCall) | undefined
  /** In a retry: the answers to the server's questions, and the state that came with them. */
  answers?: Answers | undefined
  /** It continues a call that has begun, like a retry: it is admitted while the bridge shuts down. */
  continues?: boolean | undefined
  /** Undefined for calls that the bridge makes or changes. */
  received?: Received | undefined
  /** The session that it is made in; undefined if the server has none for this client. */
  link?: Link | undefined
  /** Headers of the client's request that go on to the server (`forwardedHeadersIn`). */
  forwarded?: Readonly<Record<string, string>> | undefined
  /** `Mcp-Param-*` headers by lower-cased name, if the transport has headers and the caller must send these. */
  paramHeaders?: ReadonlyMap<string, string>
  /** Sends the caller the server's notifications before the answer. */
  notify: Notify
  /** Aborts when the client no longer waits for the answer, or when a policy ends the call: then the reason is a Fault. */
  signal: Signal
  abort: (reason?: unknown) => void
  log: CallLog
}

/**
 * What a caller has of another principal: the state of a parked call, the id of a task, a cursor of events, a subscription to
 * them, or the URI of a kept result.
 */
export type Foreign = 'foreignState' | 'foreignTask' | 'foreignCursor' | 'foreignSubscription' | 'foreignResult'

/** How a call was approved: by a form, at the page, for a while, or before a sign-in. Or what has become of it instead. */
export type ApprovalStep =
  | 'form'
  | 'page'
  | 'window'
  | 'kept'
  | 'asked'
  | 'impossible'
  | 'refused'
  | 'cancelled'
  | 'expired'
  | 'used'

/** A connected client that servers can ask beside its calls: a legacy one. */
export interface AskedClient extends Pick<Call, 'principal' | 'caller'> {
  /** It has been asked beside its calls, and has not answered. Its calls may be silent meanwhile. */
  readonly isThinking: boolean
  /** It has disconnected, and answers nothing more. */
  readonly isGone: boolean
  /**
   * Asks beside all calls. `input` has `inputRequests`, as the result of a call that asks. Rejects with an Unanswered, with a
   * Fault, or as soon as `signal` aborts: then the client is told that no answer is needed.
   */
  ask(input: Payload, signal: Signal): Promise<Answers>
}

/** The members of a retry, as received (MCP 2026-07-28, basic/patterns/mrtr). */
export interface Answers {
  responses: Json | undefined
  state: Json | undefined
}

/** One reply to a call: any number of notifications, then exactly one of the other kinds. */
export type Reply =
  | { kind: 'notification'; method: string; params: Payload; received?: ReceivedNotification }
  /** `type` is set if it is neither `complete` nor `input_required` but a type of an extension. */
  | {
      kind: 'result'
      result: Payload
      type?: string | undefined
      server?: Json | undefined
      cache?: CacheHint | undefined
      /** Whether the result has `isError`; undefined if only its content says so. */
      isToolError?: boolean
      received?: ReceivedReply
    }
  /**
   * The server asks for input before it answers: the result has `inputRequests`, `requestState` or both. `over` aborts when
   * no answer is needed any more, because the server has withdrawn its questions or answered the call without.
   */
  | { kind: 'input'; result: Payload; server?: Json | undefined; over?: Signal | undefined; received?: ReceivedReply }
  /**
   * An error that the server answered, with its HTTP status if it is modern. The bridge's own failures are thrown as
   * Faults.
   */
  | {
      kind: 'error'
      error: RpcError
      server?: Json | undefined
      status?: number | undefined
      received?: ReceivedReply
    }

/** A notification during a call, before its answer. */
export type ServerNotification = Extract<Reply, { kind: 'notification' }>

/** The answer to a call. */
export type Final = Exclude<Reply, ServerNotification>

/** The answer with its result changed; the same answer if that changes nothing, so that it passes as the server has sent it. */
export function withResult(last: Final, change: (result: Payload) => Payload): Final {
  if (last.kind !== 'result') return last
  const result = change(last.result)
  return result === last.result ? last : { ...last, result }
}

/**
 * Sends a notification of a call to its reader, in order. Returns undefined if there is room for more. If the reader is
 * slow, returns a promise that resolves when there is room or when the reader is gone; the sender must wait for it.
 * Notifications after the answer are dropped. If it throws, the handler cancels the call.
 */
export type Notify = (notification: ServerNotification) => Promise<void> | undefined

/** A `Notify` for callers that want only the answer. */
export const ignoreNotifications: Notify = () => undefined

/** The log of a call that the bridge makes for itself: no client made it, so it has no line. */
export const unlogged: CallLog = { note() {}, warn() {} }

/** How long a result may be cached, and for whom (MCP 2026-07-28, server/utilities/caching). */
export interface CacheHint {
  ttlMs: number
  scope: 'public' | 'private'
}

/**
 * Answers a call: the promise resolves to the answer. Notifications before the answer go to `call.notify`. Failures reject
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
  /** Undefined if it did not come over HTTP, or if the bridge has made it. */
  received?: ReceivedNotice | undefined
}

/**
 * A notification as a modern client sent it over HTTP. A modern server over HTTP gets it unchanged, and its client gets what
 * the server answers.
 */
export interface ReceivedNotice {
  /** The whole message; undefined if something has been left out of it. */
  bytes: Uint8Array | undefined
  source: JsonSource | undefined
  /** Headers of the client's request that go on to the server. */
  forwarded: Readonly<Record<string, string>> | undefined
  /** No other server gets it: for that, it would have to be translated, and it means nothing there. */
  onlyUnchanged: boolean
  /** Takes a message of the answer: all of it, with the head of the response, or an event of a stream. */
  hear(message: Wire, http?: ReceivedHead): void
  /** Aborts when the client disconnects. */
  signal: Signal
}

/** A message of a legacy client over HTTP that gets no answer: a legacy server over HTTP gets its bytes, and its client what that says. */
export interface ReceivedOneWay
  extends Pick<ReceivedNotice, 'bytes' | 'forwarded' | 'hear' | 'signal'>,
    Pick<Call, 'credential' | 'grant'> {
  /** The batch in which it goes on. */
  batch?: SentBatch | undefined
}

/** A batch of a client on its way to the server: one array, as it came if nothing has edited or withheld a part of it. */
export interface SentBatch {
  /** It is known what of a request goes on, without an id of everything else: then the batch does not wait for it. */
  decided(id?: Id): void
}

/** The head of an HTTP response. Names of headers are in lower case. */
export interface ReceivedHead {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The array that has the answer among others. */
  array?: Batch | undefined
  /** The event that has brought the message, if its client gets it as it came. */
  event?: PassedEvent | undefined
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
