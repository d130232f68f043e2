/**
 * The middle: what every request is while it is in the bridge, whatever era it came from and goes to. A modern request
 * says everything that is needed to answer it, so the middle has its form, without its clothes.
 */
import type { RpcError } from '../rpc/message.js'
import type { Json, Payload } from '../rpc/splice.js'
import type { LogLevel } from './methods.js'

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
  /** `Mcp-Param-*` headers by lower-cased name, where the transport has headers and the caller is to be held to them. */
  paramHeaders?: ReadonlyMap<string, string>
  /** Aborts when nobody waits for the answer any more, or a policy has given it up: then with a Fault for a reason. */
  signal: AbortSignal
  abort: (reason?: unknown) => void
  log: CallLog
}

export type Reply =
  /** Any number of these, then exactly one of the others. */
  | { kind: 'notification'; method: string; params: Payload }
  | { kind: 'result'; result: Payload; server?: Json | undefined; cache?: CacheHint | undefined }
  /** What the server answered; our own failures are thrown as Faults. */
  | { kind: 'error'; error: RpcError; server?: Json | undefined }

/** How long a result may be kept, and by whom (MCP 2026-07-28, server/utilities/caching). */
export interface CacheHint {
  ttlMs: number
  scope: 'public' | 'private'
}

export type Handler = (call: Call) => AsyncIterable<Reply>
export type Policy = (next: Handler) => Handler

/** A notification that a client sends and that is to be carried on. */
export interface Notice {
  method: string
  params: Payload
  meta: Payload
  caller: Caller
  principal: string
}

/** Everything a downstream half needs of what is behind it. */
export interface Upstream {
  handle: Handler
  /** Carries a notification, as far as there is somebody to carry it to. */
  notify(notice: Notice): void
}

export interface CallLog {
  /** Adds to the one line that is written when the call ends. Never a secret, a header value or an argument. */
  note(fields: Record<string, string | number | boolean>): void
  debug(fields: object, message: string): void
  warn(fields: object, message: string): void
}
