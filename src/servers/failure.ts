/**
 * Translates failures of channels into Faults for callers, and decides when a call may be sent again, such as after a
 * short `Retry-After`.
 */

import { Fault, type FaultOptions } from '../base/fault/fault.js'
import { faults } from '../base/fault/faults.js'
import { messageOrNone, type Response } from '../base/rpc/message.js'
import { sourceOf } from '../base/rpc/source.js'
import { textUnder, value } from '../base/rpc/splice.js'
import { printable } from '../base/texts/printable.js'
import type { Signal } from '../base/time/hang-up.js'
import type { Call, CallersHeaders, Final, Sender } from '../mcp/protocol/call.js'
import type { Era } from '../mcp/protocol/eras.js'
import { CALL_TOOL, methodTraits } from '../mcp/protocol/methods.js'
import { type HttpRefusal, notActedOn, saidIn, saidToCallers } from '../mcp/protocol/refusal.js'
import { TIMED_OUT } from './exchange.js'
import type { ToolCache } from './tools.js'
import { ChannelError } from './transport/channel.js'

const UNKNOWN = 'the server may have executed the call'
const DROPPED = 'the server executed the call, but its response was dropped'
/** Maximum milliseconds of `Retry-After` for which the bridge itself waits and repeats a call. */
const PATIENCE = 5_000

/** The reason for cancelling an aborted call: that of the client, TIMED_OUT after its timeout, otherwise undefined. */
export function cancelReason({ reason }: Signal): string | undefined {
  if (typeof reason === 'string') return reason
  return reason instanceof Fault && reason.fault === 'upstreamTimeout' ? TIMED_OUT : undefined
}

/** Thrown if a server seems to be of another era than its verdict says. The server has not acted on the call. */
export class Contradiction extends Error {
  override name = 'Contradiction'
  /** The era of the verdict. */
  readonly era: Era
  /** The reply for the caller if detection confirms the era. Without it, the call is repeated. */
  readonly instead: Final | Fault | undefined

  constructor(era: Era, message: string, instead?: Final | Fault) {
    super(message)
    this.era = era
    this.instead = instead
  }
}

/** Errors that only modern servers send, with HTTP 400 (MCP 2026-07-28, basic/index, error codes). */
export const MODERN_ERRORS: ReadonlySet<number> = new Set(
  [faults.headerMismatch, faults.missingCapability, faults.unsupportedRevision].map(({ code }) => code),
)
/** Words in errors of legacy servers that require a session, or do not support the version in the header. */
const LEGACY_WORDS = /session|initiali[sz]|protocol.?version/i
/** HTTP statuses that contradict the modern era without a JSON-RPC error: a modern server would send one. */
const UNEXPLAINED: ReadonlySet<number> = new Set([400, 404, 405, 406, 410, 415, 422, 501])

/** The headers of the caller that the server gets. */
export function credentialOf(sender: Pick<Sender, 'credential'> | undefined): CallersHeaders {
  return sender?.credential ?? {}
}

/**
 * The Fault for a failure before the call was sent: the server is unreachable or refused a session. `name` is its name.
 */
export function openingFault(error: unknown, name: string): Fault {
  if (error instanceof Fault) return error
  if (!(error instanceof ChannelError)) return Fault.from(error)
  if (error.refusal) return refusalFault(error.refusal, { cause: error })
  const said = refusalTextOf(error)
  return new Fault('upstreamUnavailable', `The server "${name}" is not available: ${error.message}`, {
    cause: error,
    said,
  })
}

function refusalTextOf(error: unknown): string | undefined {
  if (!(error instanceof ChannelError)) return undefined
  return error.refusal ? saidIn(error.refusal) : refusalTextOf(error.cause)
}

/**
 * The Fault for a failure after the call was handed to the channel. `asServer`: with the status of a refusal, for a client of the
 * same era.
 */
export function callFault(error: unknown, asServer = false): Fault {
  // The scan does not check the strings of a large message, and reading one has shown that it is invalid.
  if (error instanceof SyntaxError)
    return new Fault('upstreamProtocol', 'The server sent an invalid answer: it is not JSON', { cause: error })
  if (!(error instanceof ChannelError)) return Fault.from(error, true)
  if (error.refusal) return refusedCall(error.refusal, { cause: error, asServer })
  const unsent = error.delivered === 'no'
  if (error.noMemory && unsent) return new Fault('overloaded', error.message, { cause: error, retryAfter: 1 })
  if (error.noMemory) return new Fault('answerLost', `${error.message}; ${DROPPED}`, { cause: error })
  if (unsent) return new Fault('upstreamUnavailable', error.message, { cause: error })
  if (error.protocol) {
    const said = error.said === undefined ? undefined : saidIn({ body: error.said })
    return new Fault('upstreamProtocol', error.message, { cause: error, said })
  }
  return new Fault('upstreamClosed', `${error.message}; ${UNKNOWN}`, { cause: error })
}

interface AboutRefusal extends Pick<FaultOptions, 'cause'> {
  asServer?: boolean | undefined
}

/** The Fault for an HTTP refusal of a call. Only some refusals show that the server has not acted on the call. */
function refusedCall(refusal: HttpRefusal, { cause, asServer }: AboutRefusal = {}): Fault {
  if (notActedOn(refusal)) return refusalFault(refusal, { cause, asServer })
  const { status } = refusal
  const late = status === 408 || status === 504
  const what = late ? `The server did not answer in time (HTTP ${status})` : `The server answered with HTTP ${status}`
  return new Fault(
    late ? 'upstreamTimeout' : 'upstreamProtocol',
    withText(`${what}; ${UNKNOWN}`, refusal),
    optionsOf(refusal, cause),
  )
}

/** The Fault for a refusal of a request that the server has not acted on. */
function refusalFault(refusal: HttpRefusal, { cause, asServer }: AboutRefusal): Fault {
  const { status, retryAfter, challenge } = refusal
  const options = { ...optionsOf(refusal, cause), ...(retryAfter !== undefined && { retryAfter }) }
  switch (status) {
    case 401:
    case 403:
      return new Fault(
        'upstreamAuthRequired',
        withText(`The server requires other credentials than the bridge sent (HTTP ${status})`, refusal),
        { ...options, refused: { status, challenge } },
      )
    case 407:
      return new Fault(
        'upstreamRefused',
        'A proxy before the server requires a user and a password, or refuses the given ones (HTTP 407)',
        options,
      )
    case 429:
    case 503:
      return new Fault('upstreamBusy', withText(`The server is busy (HTTP ${status})`, refusal), {
        ...options,
        status,
      })
    case 504:
      return new Fault(
        'upstreamGatewayTimeout',
        withText('The server did not answer its gateway in time (HTTP 504)', refusal),
        options,
      )
    default:
      return status < 400
        ? new Fault('upstreamRefused', `The server redirects to another address (HTTP ${status})`, options)
        : new Fault('upstreamRefused', withText(`The server refused the request (HTTP ${status})`, refusal), {
            ...options,
            ...(asServer && { status }),
          })
  }
}

/** Options of a Fault for a refusal. The target of a redirect goes to the operator only. */
function optionsOf(refusal: HttpRefusal, cause: unknown): FaultOptions {
  const { status, location } = refusal
  const said =
    status < 400 && location !== undefined ? `Location: ${printable(withoutQuery(location), 200)}` : saidIn(refusal)
  return { cause, data: { httpStatus: status }, said }
}

/** Appends the server's text, if callers may see it. */
function withText(message: string, refusal: HttpRefusal): string {
  const said = saidToCallers(refusal)
  return said === undefined ? message : `${message}: ${said}`
}

function withoutQuery(address: string): string {
  return address.split(/[?#]/, 1)[0] as string
}

export type ErrorResponse = Response & { code: number; message: string }

/** The JSON-RPC error in the body of a refusal, if there is one. */
export function errorIn({ body }: HttpRefusal): ErrorResponse | undefined {
  const message = messageOrNone(sourceOf(body))
  return message?.kind === 'response' ? errorResponseOf(message) : undefined
}

/** An answer as a JSON-RPC error; undefined if it is a result, or a malformed error. */
export function errorResponseOf(answer: Response): ErrorResponse | undefined {
  const { kind, payload } = answer.outcome
  const error = kind === 'error' ? payload : undefined
  const code = error && value(error, 'code')
  const said = error && value(error, 'message')
  return typeof code === 'number' ? { ...answer, code, message: typeof said === 'string' ? said : '' } : undefined
}

/**
 * The JSON-RPC error in the body of a refusal, as the answer to the call; for any status but 401 and 403. `other` returns
 * an error to throw instead if the refusal is not about the call. Rethrows errors without an answer.
 */
export function answerOf(
  error: unknown,
  other?: (error: ChannelError, said: ErrorResponse | undefined) => Error | undefined,
): ErrorResponse {
  if (!(error instanceof ChannelError) || !error.refusal) throw error
  const said = errorIn(error.refusal)
  const instead = other?.(error, said)
  if (instead) throw instead
  const { status } = error.refusal
  if (!said || !mayAnswer(status)) throw error
  return { ...said, http: { status, headers: error.refusal.headers ?? {} } }
}

/** Whether a failure is a refusal that `answerOf` takes for an answer. */
export function hasAnswer({ refusal }: ChannelError): boolean {
  return refusal !== undefined && mayAnswer(refusal.status) && errorIn(refusal) !== undefined
}

/** The other ones are about credentials. */
function mayAnswer(status: number): boolean {
  return status !== 401 && status !== 403
}

/**
 * Whether servers of this era do not send such a refusal, so that the era has to be detected again. A wrong guess costs
 * only one probe, whose answer decides.
 */
export function contradicts(
  refusal: HttpRefusal,
  era: Era,
  said: ErrorResponse | undefined = errorIn(refusal),
): boolean {
  const { status } = refusal
  if (era === 'legacy') return status === 400 && said !== undefined && MODERN_ERRORS.has(said.code)
  if (!said) return UNEXPLAINED.has(status)
  // Codes of the legacy era, which mean nothing in 2026-07-28 (basic/index, error codes).
  if (said.code <= -32000 && said.code >= -32019) return true
  return said.code === -32600 && LEGACY_WORDS.test(said.message)
}

/**
 * Whether a call may be sent twice: methods that only read, and tools that declare it, if the operator trusts such
 * declarations (`retry`: `safe`), because a server can declare anything.
 */
export function repeatable(call: Call, tools: ToolCache | undefined, retry: 'off' | 'safe'): boolean {
  if (methodTraits(call.method).idempotent) return true
  if (retry === 'off' || call.method !== CALL_TOOL) return false
  return tools?.known(textUnder(call.params, 'name'))?.repeatable ?? false
}

/**
 * Milliseconds after which a failed call may be repeated without the risk that the server acts on it twice; undefined if
 * it must not be.
 */
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
