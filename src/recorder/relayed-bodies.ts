/** Reads the relayed bodies that the recorder needs. Unreadable and very large bodies yield nothing. */
import { cancelledId } from '../protocol/cancelled.js'
import type { LegacyRevision } from '../protocol/eras.js'
import { negotiated } from '../protocol/legacy-server.js'
import { idValue, type Message, parseMessage } from '../rpc/message.js'
import { lengthOf, sourceOfBytes } from '../rpc/source.js'
import type { Calls } from './calls.js'

/** Most bytes of a message that are read. */
export const MAX_READ = 64 * 1024

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

/** Reads a message. Invalid strings of a large message are found only when they are read. */
function read<T>(body: readonly Uint8Array[], what: (message: Message) => T): T | undefined {
  if (lengthOf(body) > MAX_READ) return undefined
  try {
    return what(parseMessage(sourceOfBytes(body)))
  } catch {
    return undefined
  }
}
