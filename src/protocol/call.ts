/**
 * The middle: what every request is while it is in the bridge, whatever era it came from and goes to. A modern request
 * says everything that is needed to answer it, so the middle has its form, without its clothes.
 */
import type { Log } from '../logging.js'
import type { Request, Response, RpcError } from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import type { Json, Payload } from '../rpc/splice.js'
import type { Era, LegacyRevision } from './eras.js'
import type { Fault } from './fault.js'
import type { LogLevel } from './methods.js'
import type { Refusal } from './refusal.js'
import type { TraceContext } from './trace.js'

export type { RpcError } from '../rpc/message.js'

/** Who asks, per request (modern) or once per session (legacy). The texts are as they came in, checked. */
export interface Caller {
  revision: string
  clientInfo?: Json | undefined
  /** ClientCapabilities of the modern schema. */
  capabilities: Json
  /** Least severity of log messages that the caller wants to see with this call; none without it. */
  logLevel?: LogLevel | undefined
}

/** The principal of callers without any credential: two of its calls may come from two people. */
export const ANONYMOUS = 'anon'

export interface Call {
  /** In modern vocabulary: `server/discover` and `subscriptions/listen` are calls too. */
  method: string
  /** What the call is about: the params without `_meta` and without anything of a retry. */
  params: Payload
  /** `_meta` without what belongs to the protocol: trace context, keys of extensions and vendors. */
  meta: Payload
  /** The caller wants `notifications/progress`. Tokens are the halves' own affair. */
  progress: boolean
  caller: Caller
  /** Who asks, as authentication knows it; `local` on stdio and on a loopback without authentication. */
  principal: string
  /** The caller's own `Authorization`, where it is to be sent on. */
  credential?: string | undefined
  /** What this call brings if it is a retry: answers to what the server asked, and the state that it gave with it. */
  answers?: Answers | undefined
  /** `Mcp-Param-*` headers by lower-cased name, where the transport has headers and the caller is to be held to them. */
  paramHeaders?: ReadonlyMap<string, string>
  /** Aborts when nobody waits for the answer any more, or a policy has given it up: then with a Fault for a reason. */
  signal: AbortSignal
  abort: (reason?: unknown) => void
  log: CallLog
}

/** The members of a retry, as they came in (MCP 2026-07-28, basic/patterns/mrtr). */
export interface Answers {
  responses: Json | undefined
  state: Json | undefined
}

export type Reply =
  /** Any number of these, then exactly one of the others. */
  | { kind: 'notification'; method: string; params: Payload }
  /** `type` where it is neither complete nor a question, but of an extension. */
  | {
      kind: 'result'
      result: Payload
      type?: string | undefined
      server?: Json | undefined
      cache?: CacheHint | undefined
    }
  /** The server asks something before it answers: `inputRequests`, `requestState` or both are in the result. */
  | { kind: 'input'; result: Payload; server?: Json | undefined }
  /** What the server answered; our own failures are thrown as Faults. The status is that of a modern server. */
  | { kind: 'error'; error: RpcError; server?: Json | undefined; status?: number | undefined }

/** How long a result may be kept, and by whom (MCP 2026-07-28, server/utilities/caching). */
export interface CacheHint {
  ttlMs: number
  scope: 'public' | 'private'
}

export type Handler = (call: Call) => AsyncIterable<Reply>
export type Policy = (next: Handler) => Handler

/** Who a message is from, where it is no call. */
export type Sender = Pick<Call, 'caller' | 'principal' | 'credential'>

/** A notification that a client sends and that is to be carried on. */
export interface Notice extends Sender {
  method: string
  params: Payload
  meta: Payload
}

/** Everything a downstream half needs of what is behind it. */
export interface Upstream {
  handle: Handler
  /** Carries a notification, as far as there is somebody to carry it to. */
  notify(notice: Notice): void
  /** How a client of the legacy era is served. Rejects with a Fault. */
  legacyRoute(sender: Sender): Promise<LegacyRoute>
  /** Notes that a client of this principal is connected, until the function that it returns is called. Programs stay meanwhile. */
  connected?(principal: string): () => void
}

/** A way to serve a legacy client: out of the bridge's own session, or with a session of the server's. */
export type LegacyRoute = 'translate' | { transport: 'stdio' | 'http' | 'sse'; connect: Connect }

/**
 * Hands a client's `initialize` to the server. Resolves to undefined where the server turns out to have no sessions. Of a
 * client that cannot open another session, `reopens` has the line go on when the server has lost this one.
 */
export type Connect = (opening: Request, sender: Sender, reopens: boolean) => Promise<Tunnel | undefined>

/**
 * A client's own session with a legacy server: its messages are carried as they are. Only the ids of its requests and
 * its progress tokens are others on the other side, so that equal ones in flight at a time cannot be mixed up.
 */
export interface Tunnel {
  /** The server's answer to `initialize`, under the client's id. */
  readonly opened: Wire
  /** What was negotiated; undefined where the server has refused, and nothing else can be sent. */
  readonly revision: LegacyRevision | undefined
  /** Sends a request. Gives what belongs to it, and its answer last. Throws a Fault where none can come. */
  ask(request: Request, signal: AbortSignal): AsyncIterable<TunnelMessage>
  notify(method: string, params: Json | undefined): void
  /** Sends the client's answer to a question of the server. */
  respond(response: Response): void
  /** Whom to tell of the server's own messages, and of the end of the session. What came before is told at once. */
  attach(listener: TunnelListener): void
  close(): void
}

/** One message about a request of the client. */
export interface TunnelMessage {
  text: Wire
  /** What this is, if it is the answer: nothing follows it. */
  answer?: Response
  /** With the answer: notifications that were dropped, because nobody read what had come before them. */
  dropped?: number
}

export interface TunnelListener {
  /** A notification or a request of the server that belongs to no request of the client, as far as one can tell. */
  message(text: Wire): void
  /** Nobody is connected who would notice that the session is gone. */
  isIdle(): boolean
  ended(): void
}

/** What it takes to pass HTTP messages on to an HTTP server as they are. */
export interface Relayed {
  url: URL
  /** Sent with every request, names in lower case. */
  headers: Readonly<Record<string, string>>
  /** The connections to the server: a dispatcher of undici. */
  dispatcher: unknown
  /** The era that the server is known to speak at this moment, if it is. */
  speaks(): Era | undefined
  /** Asks the server again what it speaks. Whether that is something else than `era`; false where it cannot be found out. */
  turned(era: Era, sender: Sender): Promise<boolean>
  /** What it means to the caller that a connection has failed. */
  failed(error: Error): Fault
  /** What a refusal means to the caller; undefined where its body is the server's own JSON-RPC error. */
  refused(refusal: Refusal): Fault | undefined
  /** Whether a refusal is one that no server of this era gives. */
  contradicts(refusal: Refusal, era: Era): boolean
}

export interface CallLog {
  /** Adds to the one line that is written when the call ends. Never a secret, a header value or an argument. */
  note(fields: Record<string, string | number | boolean>): void
  warn: Log['warn']
  /** The call is given to the server. Absent where nobody wants to know. */
  handedOver?(): UpstreamSpan
}

/** A call on its way to the server and back. */
export interface UpstreamSpan {
  /** Where the server is to see itself in a trace, if one is drawn up. */
  readonly trace: TraceContext | undefined
  /** The server has said its last word; or there is none, and nobody waits for one any more. The first time counts. */
  over(last?: Reply | Fault): void
}
