/**
 * Types of a client of the inspector: what it needs, and the events that it reports, for the page and the command line
 * alike.
 */
import type { Era } from '../../mcp/protocol/eras.js'

/** A JSON object of MCP, as `JSON.parse` makes it. */
export type JsonRecord = { [key: string]: unknown }

/** A request of Streamable HTTP, without its address. */
interface TryRequest {
  method: 'POST' | 'GET' | 'DELETE'
  headers: Record<string, string>
  body?: string
  signal: AbortSignal
}

/** The members of a `fetch` response that are read. */
export interface TryResponse {
  status: number
  headers: { get(name: string): string | null }
  body: ReadableStream<Uint8Array> | null
}

type TrySend = (request: TryRequest) => Promise<TryResponse>

/** A question of the server: `elicitation/create`, `sampling/createMessage` or `roots/list`. */
export interface TryQuestion {
  method: string
  params: JsonRecord
  /** The call that it belongs to, as far as the client knows. */
  call: number | undefined
}

export type TryEvent =
  | { kind: 'sent' | 'received'; message: JsonRecord }
  | { kind: 'progress'; call: number; progress: number; total?: number; message?: string }
  | { kind: 'log'; level: string; logger?: string; data: unknown }
  /** A state of a task that a call has become. */
  | { kind: 'task'; call: number; task: JsonRecord }
  /** A list or a resource has changed. */
  | { kind: 'changed'; method: string; params: JsonRecord }

export interface TryClientOptions {
  send: TrySend
  /** 2026-07-28, or a legacy revision to ask for. */
  revision: string
  /** An open session to go on with, for a legacy revision. */
  session?: TrySession | undefined
  /** The declared capabilities; by default, all of the revision. */
  capabilities?: JsonRecord | undefined
  /** Resolves to the result for a question; if it rejects, the server gets an error. The signal aborts when the answer is no longer needed. */
  ask(question: TryQuestion, signal: AbortSignal): Promise<JsonRecord>
  on?: ((event: TryEvent) => void) | undefined
}

export interface TryCallOptions {
  /** Cancels the call, also at the server. */
  signal?: AbortSignal | undefined
  /** Asks for a task; legacy servers only make one if asked. */
  task?: boolean
  /** The called tool, as listed: its schema names the arguments that headers repeat. */
  tool?: JsonRecord | undefined
  /** The lowest level of log messages to get; of a legacy server, from now on. */
  logLevel?: string
  /** Called with the number that the events of this call have. */
  begun?: (call: number) => void
}

/** The identity of a server, and what it offers. */
interface TryServer {
  info?: JsonRecord
  capabilities: JsonRecord
  instructions?: string
}

/** An open session of a legacy client. */
export interface TrySession {
  id: string
  /** The revision that both speak. */
  revision: string
  server: TryServer
}

export interface TryClient {
  readonly era: Era
  /** The session of a legacy client. */
  readonly session?: TrySession | undefined
  /** The revision that both speak. */
  readonly revision: string
  readonly server: TryServer
  /** Resolves to the result, also of a task. Rejects with a TryError, or with the reason of the signal. */
  call(method: string, params?: JsonRecord, options?: TryCallOptions): Promise<JsonRecord>
  /** Opens the stream of messages outside calls. Resolves when it ends. */
  listen(): Promise<void>
  /** Cancels the calls that run, and closes the streams. A session stays open. */
  leave(): Promise<void>
  /** Ends everything, also the session. */
  close(): Promise<void>
}

/** The name that servers see. */
export const CLIENT = { name: 'mcp-bridge-inspector', version: '1' }

/** An error of JSON-RPC, or an HTTP status without one. */
export class TryError extends Error {
  override name = 'TryError'

  /** The code of JSON-RPC; undefined if there was only an HTTP status. */
  readonly code: number | undefined
  readonly status: number
  readonly data: unknown

  constructor(message: string, code: number | undefined, status: number, data?: unknown) {
    super(message)
    this.code = code
    this.status = status
    this.data = data
  }
}

/** An error as it is in an answer. */
export function errorOf({
  code,
  message,
  data,
}: Partial<Pick<TryError, 'code' | 'data'>> & { message: string }): JsonRecord {
  return { ...(code !== undefined && { code }), message, ...(data !== undefined && { data }) }
}
