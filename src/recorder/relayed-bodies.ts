/** Reads the relayed bodies that the recorder needs. Unreadable and very large bodies yield nothing. */
import type { Answers } from '../protocol/call.js'
import { cancelledId } from '../protocol/cancelled.js'
import type { LegacyRevision } from '../protocol/eras.js'
import { negotiated } from '../protocol/legacy-server.js'
import { idValue, type Message, parseMessage } from '../rpc/message.js'
import { lengthOf, sourceOfBytes } from '../rpc/source.js'
import { raw } from '../rpc/splice.js'
import type { Calls } from './calls.js'

/** Most bytes of a message that are read. */
export const MAX_READ = 64 * 1024
/** Members of requests that continue another one. */
const RETRY = ['"requestState"', '"inputResponses"'].map((member) => Buffer.from(member))

/** The negotiated revision in an answer to `initialize`. */
export function revisionIn(answer: readonly Uint8Array[]): LegacyRevision | undefined {
  return read(answer, (message) => (message.kind === 'response' ? negotiated(message) : undefined))
}

/** The id of the request that a server cancels. */
export function withdrawnIn(cancellation: readonly Uint8Array[]): string | number | undefined {
  const id = read(cancellation, (message) =>
    message.kind === 'notification' ? cancelledId(message.params) : undefined,
  )
  return id && idValue(id)
}

/** The client's name for itself in `initialize`. */
export function clientIn(calls: Calls, body: Uint8Array): string | undefined {
  return read([body], (message) => (message.kind === 'request' ? calls.clientOf(message, undefined) : undefined))
}

/** The answers in a request that continues another one. */
export function answersIn(body: Uint8Array): Answers | undefined {
  // Most requests have none and need not be parsed.
  if (!(body instanceof Buffer) || !RETRY.some((member) => body.includes(member))) return undefined
  return read([body], (message) => {
    if (message.kind !== 'request' || typeof message.params === 'string') return undefined
    const [responses, state] = [raw(message.params, 'inputResponses'), raw(message.params, 'requestState')]
    return responses === undefined && state === undefined ? undefined : { responses, state }
  })
}

/** Reads a message. Invalid strings of a large message are found only when they are read. */
function read<T>(body: readonly Uint8Array[], what: (message: Message) => T): T | undefined {
  if (lengthOf(body) > MAX_READ) return undefined
  try {
    return what(parseMessage(sourceOfBytes(body)))
  } catch {
    return undefined
  }
}
