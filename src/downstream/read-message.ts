/** Parses messages of clients, strictly and within bounds. */
import { Fault } from '../fault/fault.js'
import { type Id, type Message, parseMessage, type Request } from '../rpc/message.js'
import { JsonBoundError, JsonError } from '../rpc/scan.js'
import { sourceOfBytes } from '../rpc/source.js'
import { EMPTY, objectIn, type Payload } from '../rpc/splice.js'

const BOUNDS = { strict: true, maxDepth: 64, maxValues: 200_000 }

/**
 * Parses one message. Throws a Fault that states what is invalid in the JSON; an invalid JSON-RPC message is returned
 * as such.
 */
export function readMessage(bytes: readonly Uint8Array[]): Message {
  try {
    return parseMessage(sourceOfBytes(bytes), BOUNDS)
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw new Fault('invalidRequest', cause.message, { cause })
    if (cause instanceof JsonError) throw new Fault('notJson', `Not JSON: ${cause.message}`, { cause })
    throw new Fault('notJson', 'Not UTF-8', { cause })
  }
}

/** The `_meta` of a request that has not been decoded. */
export function metaOf({ params }: Request): Payload {
  return (typeof params === 'string' ? undefined : objectIn(params, '_meta')) ?? EMPTY
}

/** The id for the answer to a message; undefined if it has no valid one or needs no answer. */
export function idToAnswer(message: Message | undefined): Id | undefined {
  return message?.kind === 'request' || message?.kind === 'invalid' ? message.id : undefined
}

/** The same for the body of a request, which has not been parsed; undefined if it cannot be parsed. */
export function idIn(body: unknown): Id | undefined {
  if (!(body instanceof Uint8Array)) return undefined
  try {
    return idToAnswer(readMessage([body]))
  } catch {
    return undefined
  }
}
