/** Types of a legacy client's session, for all transports and for both kinds: translated or direct. */

import type { Fault } from '../../base/fault/fault.js'
import type { Memory } from '../../base/limits/memory.js'
import type { Notification, Request, Response } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import type { Json } from '../../base/rpc/splice.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { RecordedHeaders } from '../../mcp/ports/recorder.js'
import type { CallersHeaders, Grant, Handler, ReceivedOneWay, Sender, SentBatch } from '../../mcp/protocol/call.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import type { LogLevel } from '../../mcp/protocol/methods.js'
import type { ReceivedTrace } from '../../mcp/protocol/trace.js'
import type { AboutMessage, DirectSession, LeftDirectSession, Upstream } from '../../mcp/protocol/upstream.js'
import type { LastFrame, Send } from '../frames.js'
import type { Logger } from '../logger.js'
import type { SortedBatch } from './batch.js'

/** What another replica needs to continue a session. */
export interface SessionRecord {
  revision: LegacyRevision
  clientInfo?: Json | undefined
  capabilities: Json
  reportsRoots?: boolean | undefined
  logLevel?: LogLevel | undefined
  /** Capabilities of the server, as sent to the client. */
  offered: Json
  /** Names of tools whose results are wrapped. */
  wrapped: readonly string[]
  /** Resources that the client has subscribed to. */
  uris: readonly string[]
  /** Whether the client has sent `notifications/initialized`. */
  ready: boolean
  /** Number of requests that were sent to the client. */
  asked: number
  /** The session is one of the server itself. */
  direct?: LeftDirectSession | undefined
}

/** An open session of a legacy client. */
export interface ClientSession {
  readonly revision: LegacyRevision
  /** Identifies the session for the inspector, if there is one. */
  readonly session: string | undefined
  /** The session of the server itself, if it is one. Over HTTP on both sides it keeps ids, and headers of requests go on. */
  readonly direct?: DirectSession
  /** Number of requests in flight. */
  readonly open: number
  /** What another replica needs to continue the session; undefined if no other replica can. */
  readonly record?: SessionRecord | undefined
  /**
   * Answers a request: passes its frames to `send`, and resolves when the last one is sent. Never rejects: a failure is
   * the last frame.
   */
  answerClient(request: Request, send: Send, about?: AboutRequest): Promise<void>
  /**
   * Handles a notification, or the client's answer to a request of the server. The promise is for the client of a `received`
   * one, as that of `DirectSession.notify`.
   */
  take(message: Notification | Response, received?: ReceivedOneWay): Promise<void> | undefined
  /** Begins a batch for what is sent in it; undefined if its messages are sent one by one. */
  batchOf?(batch: SortedBatch, bytes: Uint8Array): SentBatch | undefined
  /** Whether a message belongs to a request in flight in this replica. */
  isFor?(message: Notification | Response): boolean
  /** Opens a stream at the server, if the session is its own and over HTTP on both sides. As `DirectSession.listen`. */
  listen?: DirectSession['listen']
  /** The client can now receive messages that belong to no request. */
  listened(): void
  /**
   * Goes on at another server or group, which the client cannot be told to connect to. Returns the session to use from now on,
   * this one or another; this one then ends with its requests in flight. Undefined if there is no way to go on.
   */
  moved?(to: SessionPlace): ClientSession | undefined
  /** Ends the session and aborts its requests. */
  close(): void
}

/** What the transport knows about one request of a session. */
export interface AboutRequest {
  /** The trace context of the headers. */
  trace?: ReceivedTrace | undefined
  /** All headers, for the inspector. */
  headers?: RecordedHeaders
  /** The headers that go on to the server, and the credential for it, in a session of the server itself over HTTP. */
  forwarded?: Readonly<Record<string, string>> | undefined
  credential?: CallersHeaders | undefined
  /** The batch that it goes on in. */
  batch?: SentBatch | undefined
  /** What the token of this request grants; another request may have opened the session. */
  grant?: Grant | undefined
  /** Aborts when that token ends. */
  ends?: Signal | undefined
  /** Aborts when the client disconnects before the answer. */
  leaves?: Signal | undefined
}

/** Takes the messages for the client that belong to no request. */
export interface Outlet {
  /**
   * Sends a message. While it waits, a later message with the same key replaces it, and the withdrawal of a question drops
   * both.
   */
  deliver(text: Wire, about?: AboutMessage): void
  /** Whether the session can end without a connected client noticing. */
  isIdle(): boolean
  /** The server has ended the session: it is over here as soon as all requests in flight are answered. */
  ended(): void
}

/** Options for opening a session. */
export interface OpenOptions {
  upstream: Upstream
  sender: Omit<Sender, 'caller'>
  outlet: Outlet
  transport: 'http' | 'sse' | 'stdio'
  log: Logger
  memory: Memory
  settings: SessionSettings
  /** The trace context in the headers of `initialize`. */
  trace?: ReceivedTrace | undefined
  /** The headers of `initialize` that go on to a server over HTTP. */
  forwarded?: Readonly<Record<string, string>> | undefined
  /** All headers of `initialize`, for the inspector. */
  headers?: RecordedHeaders
  /** Identifies the session for the inspector. */
  session?: string | undefined
}

/** A server or group, with its log and the settings of sessions with it. */
export type SessionPlace = Pick<OpenOptions, 'upstream' | 'log' | 'settings'>

/** Settings of the sessions of legacy clients. */
export interface SessionSettings {
  /** Remove everything that the schema of the client's revision does not have. */
  strict: boolean
  /** Offer emulated tasks to clients of 2025-11-25. */
  emulateTasks: boolean
  /** Milliseconds for the client's answers in one round, and for a server that asks to be called again. */
  answerWithin: number
  /** The bridge's own Implementation, for servers that do not name themselves. */
  serverInfo: Json
  /** Sends the `subscriptions/listen` of a session, possibly one for several sessions. By default, the upstream does. */
  listen?: Handler
  /**
   * Registers a call that does not pass the policies now, so that it can be aborted when the bridge shuts down. Returns the
   * function that removes it.
   */
  begin(abort: (reason: Fault) => void): () => void
}

/** The answer to `initialize`, and the session unless it failed: with a fault of the bridge, or an error of the server. */
export interface Opened extends LastFrame {
  session?: ClientSession
}
