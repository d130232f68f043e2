/** What a failure of a channel means to the caller whose call it was. */

import { printable } from '../printable.js'
import type { Call, Reply, Sender } from '../protocol/call.js'
import type { Era } from '../protocol/eras.js'
import { Fault, type FaultOptions } from '../protocol/fault.js'
import { methodTraits } from '../protocol/methods.js'
import { notActedOn, type Refusal, saidIn, saidToCallers } from '../protocol/refusal.js'
import { type Message, parseMessage, type Response } from '../rpc/message.js'
import { sourceOf } from '../rpc/source.js'
import { payloadAt, textUnder, value } from '../rpc/splice.js'
import { TIMED_OUT } from './exchange.js'
import type { ToolCache } from './tools.js'
import { ChannelError } from './transport/channel.js'

const UNKNOWN = 'whether it acted on the call is unknown'
/** Milliseconds: a refusal that asks to wait no longer than this is waited out. */
const PATIENCE = 5_000

/** Why a call is given up, as its server is told and as its channel counts it. Undefined where its client has gone. */
export function givenUpFor({ reason }: AbortSignal): string | undefined {
  return reason instanceof Fault && reason.fault === 'upstreamTimeout' ? TIMED_OUT : undefined
}

/** What is known of a server's era may be no longer so. Nothing has been done for the call that found out. */
export class Contradiction extends Error {
  override name = 'Contradiction'
  /** What the server was taken for. */
  readonly era: Era
  /** What the caller gets where the server, asked again, speaks what it did. Without it the call is made again. */
  readonly instead: Reply | Fault | undefined

  constructor(era: Era, message: string, instead?: Reply | Fault) {
    super(message)
    this.era = era
    this.instead = instead
  }
}

/** Errors that only servers of the modern era give, with HTTP 400 (MCP 2026-07-28, basic/index, error codes). */
const MODERN_ERRORS: ReadonlySet<number> = new Set([-32020, -32021, -32022])
/** What servers of the legacy era say that want a session, or that do not know the version in the header. */
const LEGACY_WORDS = /session|initiali[sz]|protocol.?version/i
/** HTTP statuses with which something answers that knows no modern requests: a modern server would say why in JSON-RPC. */
const UNEXPLAINED: ReadonlySet<number> = new Set([400, 404, 405, 406, 410, 415, 422, 501])

/** The caller's own `Authorization` as a header, where it is to be sent on. */
export function credentialOf(sender: Pick<Sender, 'credential'> | undefined): Readonly<Record<string, string>> {
  return sender?.credential === undefined ? {} : { authorization: sender.credential }
}

/** A failure before anything of the call was sent: the server could not be reached, or would not open a session. */
export function openingFault(error: unknown, name: string): Fault {
  if (error instanceof Fault) return error
  if (!(error instanceof ChannelError)) return Fault.from(error)
  if (error.refusal) return refusalFault(error.refusal, { cause: error })
  const said = saidBehind(error)
  return new Fault('upstreamUnavailable', `The server "${name}" is not available: ${error.message}`, {
    cause: error,
    said,
  })
}

/** What the server said with the refusal that a failure came from, if it came from one. */
function saidBehind(error: unknown): string | undefined {
  if (!(error instanceof ChannelError)) return undefined
  return error.refusal ? saidIn(error.refusal) : saidBehind(error.cause)
}

/** A failure after the call was handed to the channel. */
export function callFault(error: unknown): Fault {
  if (!(error instanceof ChannelError)) return Fault.from(error, true)
  if (error.refusal) return refusedCall(error.refusal, { cause: error })
  const unsent = error.delivered === 'no'
  if (error.noMemory && unsent) return new Fault('overloaded', error.message, { cause: error, retryAfter: 1 })
  if (error.noMemory) return new Fault('answerLost', `${error.message}; it has acted on the call`, { cause: error })
  if (unsent) return new Fault('upstreamUnavailable', error.message, { cause: error })
  if (error.protocol) return new Fault('upstreamProtocol', error.message, { cause: error })
  return new Fault('upstreamClosed', `${error.message}; ${UNKNOWN}`, { cause: error })
}

/** What a refusal means to the caller whose call it answers: only some say that nothing has been done. */
export function refusedCall(refusal: Refusal, { cause }: Pick<FaultOptions, 'cause'> = {}): Fault {
  if (notActedOn(refusal)) return refusalFault(refusal, { cause })
  const { status } = refusal
  const late = status === 408 || status === 504
  const what = late ? `The server did not answer in time (HTTP ${status})` : `The server answered with HTTP ${status}`
  return new Fault(
    late ? 'upstreamTimeout' : 'upstreamProtocol',
    withWords(`${what}; ${UNKNOWN}`, refusal),
    told(refusal, cause),
  )
}

/** What a refusal means where nothing has been done for anybody. */
function refusalFault(refusal: Refusal, { cause }: Pick<FaultOptions, 'cause'>): Fault {
  const { status, retryAfter, challenge } = refusal
  const options = { ...told(refusal, cause), ...(retryAfter !== undefined && { retryAfter }) }
  switch (status) {
    case 401:
    case 403:
      return new Fault(
        'upstreamAuthRequired',
        withWords(`The server wants other credentials than the bridge has (HTTP ${status})`, refusal),
        { ...options, refused: { status, challenge } },
      )
    case 429:
    case 503:
      return new Fault('upstreamBusy', withWords(`The server is busy (HTTP ${status})`, refusal), {
        ...options,
        status,
      })
    case 504:
      return new Fault(
        'upstreamGatewayTimeout',
        withWords('The server did not answer its gateway in time (HTTP 504)', refusal),
        options,
      )
    default:
      return status < 400
        ? new Fault('upstreamRefused', `The server redirects to another address (HTTP ${status})`, options)
        : new Fault('upstreamRefused', withWords(`The server refused the request (HTTP ${status})`, refusal), options)
  }
}

/** What is known of a refusal beside the message. Where a redirect leads to is told to the operator only. */
function told(refusal: Refusal, cause: unknown): FaultOptions {
  const { status, location } = refusal
  const said =
    status < 400 && location !== undefined ? `Location: ${printable(withoutQuery(location), 200)}` : saidIn(refusal)
  return { cause, data: { httpStatus: String(status) }, said }
}

function withWords(message: string, refusal: Refusal): string {
  const said = saidToCallers(refusal)
  return said === undefined ? message : `${message}: ${said}`
}

function withoutQuery(address: string): string {
  return address.split(/[?#]/, 1)[0] as string
}

/** A JSON-RPC error, and what it says. */
export type Said = Response & { code: number; message: string }

/** The JSON-RPC error in the body of a refusal, where there is one. */
export function errorIn({ body }: Refusal): Said | undefined {
  let message: Message
  try {
    message = parseMessage(sourceOf(body))
  } catch {
    return undefined
  }
  if (message.kind !== 'response' || message.outcome.kind !== 'error') return undefined
  const error = payloadAt(message.outcome.source, message.outcome.member)
  if (!error) return undefined
  const code = value(error, 'code')
  const said = value(error, 'message')
  return typeof code === 'number' ? { ...message, code, message: typeof said === 'string' ? said : '' } : undefined
}

/**
 * A refusal may bring the answer in its body: what the server said in JSON-RPC counts, whatever the status. `other` says
 * of a refusal that it is no answer to the call. Rethrows what brings none.
 */
export function answerOf(
  error: unknown,
  other: (error: ChannelError, said: Said | undefined) => Error | undefined,
): Said {
  if (!(error instanceof ChannelError) || !error.refusal) throw error
  const said = errorIn(error.refusal)
  const instead = other(error, said)
  if (instead) throw instead
  const { status } = error.refusal
  if (!said || status === 401 || status === 403) throw error
  return said
}

/** What a refusal says that is no answer to a call of a session: the session is gone, or the server has none any more. */
export function outsideSession(error: ChannelError, said: Said | undefined): Error | undefined {
  if (error.refusal && contradicts(error.refusal, 'legacy', said))
    return new Contradiction('legacy', 'The server answers in words of 2026-07-28')
  return sessionGone(error) ? error : undefined
}

/**
 * Whether a refusal is one that no server of this era gives, so that the server has to be asked again what it speaks. A
 * refusal that is taken for one by mistake costs a question: only the answer to that decides.
 */
export function contradicts(refusal: Refusal, era: Era, said: Said | undefined = errorIn(refusal)): boolean {
  const { status } = refusal
  if (era === 'legacy') return status === 400 && said !== undefined && MODERN_ERRORS.has(said.code)
  if (!said) return UNEXPLAINED.has(status)
  // Codes of the legacy era, which mean nothing in 2026-07-28 (basic/index, error codes).
  if (said.code <= -32000 && said.code >= -32019) return true
  return said.code === -32600 && LEGACY_WORDS.test(said.message)
}

/**
 * Whether a call may be sent twice. Methods that only read may; a tool never, because what it says of itself is the server's
 * word, unless the operator takes that word.
 */
export function repeatable(call: Call, tools: ToolCache | undefined, retry: 'off' | 'safe'): boolean {
  if (methodTraits(call.method).idempotent) return true
  if (retry === 'off' || call.method !== 'tools/call') return false
  return tools?.known(textUnder(call.params, 'name'))?.repeatable ?? false
}

/** Milliseconds after which a call may be sent once more without any risk of doing a thing twice; undefined for never. */
export function worthRepeating(error: unknown, repeatable: boolean): number | undefined {
  if (!(error instanceof ChannelError) || error.protocol || error.noMemory) return undefined
  if (error.refusal) {
    const { status, retryAfter } = error.refusal
    const busy = status === 429 || status === 503
    const wait = busy && retryAfter !== undefined ? retryAfter * 1_000 : Number.POSITIVE_INFINITY
    return repeatable && wait <= PATIENCE ? wait : undefined
  }
  return error.delivered === 'no' || repeatable ? 0 : undefined
}

/**
 * Whether a refusal says that the server has forgotten the session (MCP 2025-11-25, basic/transports): 404, the 400 of a
 * widely copied example, or an error of the other era. In any case nothing has been done for the request.
 */
export function sessionGone(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  const answered = errorIn(error.refusal)
  if (status === 404) return answered?.code !== -32601
  if (status !== 400 || !answered) return false
  if (MODERN_ERRORS.has(answered.code)) return true
  return [-32000, -32001, -32600].includes(answered.code) && /session|initiali[sz]/i.test(answered.message)
}
