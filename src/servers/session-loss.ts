/**
 * Judges by the answers of a server whether it has lost a session. Few servers answer 404 as the specification requires
 * (MCP 2025-11-25, basic/transports), so most answers only raise a doubt, which `SessionCheck` resolves with a look.
 */

import type { Response } from '../base/rpc/message.js'
import { cut } from '../base/rpc/source.js'
import type { Final } from '../mcp/protocol/call.js'
import { notActedOn } from '../mcp/protocol/refusal.js'
import { type ErrorResponse, errorIn, errorResponseOf, MODERN_ERRORS } from './failure.js'
import { ChannelError } from './transport/channel.js'

/** An answer of a server that may mean that it no longer knows the session. */
export interface Doubt {
  /** The HTTP status; 200 for a JSON-RPC error that came as an answer, over any transport. */
  status: number
  code: number | undefined
  /** The server's text, without the parts that differ between requests. */
  text: string
  /** It mentions a session or initialization. */
  speaks: boolean
}

/** How a lost session was found: `unacted` if the server has certainly not acted on the request that it refused. */
export type Loss = 'acted' | 'unacted'

/** The failure of a call because the server has lost the session. */
export class SessionLost extends Error {
  override name = 'SessionLost'
  readonly loss: Loss
  /** The server's own error, for a caller whose call is not repeated. Without it, `cause` is the failure. */
  readonly answer: Final | undefined

  constructor(loss: Loss, { cause, answer }: { cause?: unknown; answer?: Final | undefined }) {
    super('The server has lost the session', { cause })
    this.loss = loss
    this.answer = answer
  }
}

/** Codes of servers for a lost session: of the SDKs, and -32002 of LSP for a server that has not been initialized. */
const CODES: ReadonlySet<number> = new Set([-32001, -32002, -32600])
/** A code for any error: it raises a doubt, but is not specific to sessions. */
const ANY = -32000
/** The Python SDK's answer to requests before `initialize`, and to malformed ones (mcp 1.12, shared/session.py). */
const BEFORE_INITIALIZE = /"Invalid request parameters"/
/**
 * Session and initialization in the languages of servers' messages. If a language is missing, some calls are not repeated;
 * whether a session is lost is decided by a look.
 */
const WORDS =
  /session|sesi|sessão|sessie|sesja|sitzung|сесс|сеанс|会话|會話|セッション|세션|initiali[sz]|inicializ|handshake|инициализ|初始化|初期化|초기화/iu
/** Statuses that never mean a lost session, because they say what else is wrong. */
const OTHER_REASONS: ReadonlySet<number> = new Set([307, 308, 407, 408, 413, 414, 425, 429, 431])
/** Statuses of gateways. They are about the session only if their text says so. */
const OF_GATEWAYS: ReadonlySet<number> = new Set([502, 503, 504])
/** Characters of a text that are read. */
const READ = 10_000

/**
 * What an answer to a request of this method shows about the session: that it is lost, a doubt, or nothing (undefined).
 * `failure` is an error of a channel or a JSON-RPC answer. `lost` means that the server has not acted on the request.
 */
export function doubtIn(failure: ChannelError | Response, method: string): Doubt | 'lost' | undefined {
  if (failure instanceof ChannelError) return doubtAbout(failure, method)
  const said = errorResponseOf(failure)
  return said && isAboutSession(said, method) ? doubtOf(200, said.code, textOf(said), method) : undefined
}

/**
 * Whether the answer to a look shows that the server has lost the session in which `doubt` arose; undefined if not. A call
 * must not run twice: if the server may have acted on it, only an equal refusal of the look shows that it has not.
 */
export function lossShownBy(doubt: Doubt, found: Doubt | 'lost'): Loss | undefined {
  const { status } = doubt
  const isRefusal = status >= 300
  const isUnacted = isRefusal && notActedOn({ status, retryAfter: undefined })
  if (found === 'lost') return isUnacted ? 'unacted' : 'acted'
  const isSame = found.status === status && found.code === doubt.code && found.text === doubt.text
  const isSameStatus = isRefusal && found.status === status
  const blamesClient = isOfClient(status) && isOfClient(found.status)
  if (!isSame && !isSameStatus && !blamesClient && !found.speaks) return undefined
  return isUnacted || (isSame && doubt.speaks) || (isSameStatus && blamesClient) ? 'unacted' : 'acted'
}

function doubtAbout({ refusal, said }: ChannelError, method: string): Doubt | 'lost' | undefined {
  if (said !== undefined) return doubtOf(200, undefined, said, method)
  if (!refusal) return undefined
  const { status, challenge } = refusal
  const answered = errorIn(refusal)
  if (status === 404) return answered?.code === -32601 ? undefined : 'lost'
  if (status === 400 && answered && MODERN_ERRORS.has(answered.code)) return 'lost'
  if (OTHER_REASONS.has(status) || challenge !== undefined) return undefined
  // An error with the id of the request is about the request, unless its text is about the session.
  if (answered?.id !== undefined && !isAboutSession(answered, method)) return undefined
  const text = answered ? textOf(answered) : refusal.body
  const doubt = doubtOf(status, answered?.code, text, method)
  if (OF_GATEWAYS.has(status) && !doubt.speaks) return undefined
  const mayBeOfTool = answered && answered.code !== ANY && !CODES.has(answered.code)
  return status === 400 && hasWords(text) && !mayBeOfTool ? 'lost' : doubt
}

/** Whether a JSON-RPC error may be about the session rather than about the request. */
function isAboutSession(said: ErrorResponse, method: string): boolean {
  return said.code === ANY || speaks(said.code, textOf(said), method)
}

function speaks(code: number | undefined, text: string, method: string): boolean {
  // Servers of the legacy era also say -32002 of a resource that does not exist (MCP 2025-11-25, server/resources).
  const byCode = code !== undefined && CODES.has(code) && !(code === -32002 && method === 'resources/read')
  return byCode || (code === -32602 && BEFORE_INITIALIZE.test(text)) || hasWords(text)
}

function hasWords(text: string): boolean {
  return WORDS.test(readable(text))
}

function doubtOf(status: number, code: number | undefined, text: string, method: string): Doubt {
  return { status, code, text: comparable(text, method), speaks: speaks(code, text, method) }
}

/** The text of the error as the server wrote it, with its data. */
function textOf({ outcome: { source, start, end } }: ErrorResponse): string {
  return cut(source, start, end)
}

/** The beginning of a text, with JSON's escapes of characters decoded. */
function readable(text: string): string {
  const unescaped = text
    .slice(0, READ)
    .replace(/\\u([0-9a-f]{4})/gi, (_escape, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
  return unescaped.normalize('NFC')
}

/** A text without the method and without words that contain digits, such as ids and times. */
function comparable(text: string, method: string): string {
  return text
    .slice(0, READ)
    .replaceAll(method, '')
    .replace(/[\p{L}\d_-]+/gu, (word) => (/\d/.test(word) ? '' : word))
    .replace(/\s+/g, ' ')
}

function isOfClient(status: number): boolean {
  return status >= 400 && status < 500
}
