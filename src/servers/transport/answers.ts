/** Answers over HTTP, and the failures that they and errors mean. */
import { HIDDEN } from '../../base/credentials/forms.js'
import { SseError, type SseEvent } from '../../base/rpc/sse.js'
import { headerOf } from '../../base/texts/headers.js'
import { printable } from '../../base/texts/printable.js'
import { refusalOf } from '../../mcp/protocol/refusal.js'
import { causeOf, whatOf } from './causes.js'
import { ChannelError } from './channel.js'
import { isUndecodable } from './decoding.js'

/** How to read a body: as single events, as a whole, only its beginning, or not at all. */
export type BodyKind = 'events' | 'whole' | 'beginning' | 'nothing'

/** Headers of an answer. Names in lower case. */
export type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

export interface OriginAnswer {
  status: number
  kind: BodyKind
  headers: ResponseHeaders
  /** The pieces of the body, if its beginning or all of it was read. */
  body: readonly Uint8Array[]
  /** The headers of the request, if it was refused. */
  sent?: Readonly<Record<string, string>> | undefined
}

/** Headers that have no secret. */
const PUBLIC = /^(?:accept|content|mcp)-|^(?:accept|user-agent|traceparent|tracestate|baggage)$/
/** Shorter values are in a text by chance. */
const SHORTEST_SECRET = 6

/** A text of the server without the headers that it was sent: it may repeat the key that it refuses. */
function withoutSent(text: string, sent: OriginAnswer['sent'] = {}): string {
  const secrets = Object.entries(sent).flatMap(([name, value]) =>
    PUBLIC.test(name) ? [] : [value, value.replace(/^\S+ /, '')],
  )
  return secrets
    .filter(({ length }) => length >= SHORTEST_SECRET)
    .reduce((shown, secret) => shown.replaceAll(secret, HIDDEN), text)
}

/** Bytes that are read of a text for people: of a refusal, or of an answer that is not a message. */
export const MAX_QUOTED_BYTES = 64 * 1024

/** The failure of an answer in an unknown encoding; undefined if the answer has no encoding or was decoded. */
export function undecodedIn(headers: ResponseHeaders): ChannelError | undefined {
  const encoding = headerOf(headers, 'content-encoding')?.trim().toLowerCase() || 'identity'
  if (encoding === 'identity') return undefined
  const said = printable(encoding)
  return new ChannelError(`The server compressed its answer (${said}), which the request does not allow`, {
    protocol: true,
  })
}

/** The failure of an answer of more than `bytes`. */
export function overLimit(bytes: number): ChannelError {
  return new ChannelError(
    `The server sent an answer of more than ${bytes} bytes (limits.answerBytes), also where results.cut is set`,
    {
      protocol: true,
    },
  )
}

/** The failure of a call whose answer is an event that was dropped; undefined if that was for lack of memory. */
export function lengthError({ tooLong }: SseEvent): ChannelError | undefined {
  return tooLong === undefined ? undefined : new ChannelError(tooLong, { protocol: true })
}

/** The failure of a request that was answered with a status of 300 or more. */
export function refused(answer: OriginAnswer): ChannelError {
  const { status, headers, sent } = answer
  const refusal = refusalOf(status, (name) => headerOf(headers, name), textIn(answer))
  return new ChannelError(`The server answered with HTTP ${status}`, {
    refusal: { ...refusal, text: withoutSent(refusal.body, sent), headers },
  })
}

export function textIn({ body }: OriginAnswer): string {
  return Buffer.concat(body).toString('utf8', 0, MAX_QUOTED_BYTES)
}

/**
 * Turns an error of undici or of the system into a ChannelError, which says whether the server may have received the
 * request.
 */
export function channelError(error: Error): ChannelError {
  if (error instanceof ChannelError) return error
  if (error instanceof SseError) return new ChannelError(error.message, { cause: error, protocol: true })
  if (isUndecodable(error))
    return new ChannelError('The answer of the server is not in the encoding that its Content-Encoding names', {
      cause: error,
      protocol: true,
    })
  return new ChannelError(whatOf(error), { cause: error, delivered: causeOf(error)?.notSent ? 'no' : 'maybe' })
}
