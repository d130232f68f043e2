/** Reads what a client sends: strictly, and within bounds. */
import { Fault } from '../protocol/fault.js'
import { type Id, type Message, parseMessage, type Request } from '../rpc/message.js'
import { JsonBoundError, JsonError } from '../rpc/scan.js'
import { sourceOfBytes } from '../rpc/source.js'
import { EMPTY, objectIn, type Payload } from '../rpc/splice.js'

const BOUNDS = { strict: true, maxDepth: 64, maxValues: 200_000 }

/** The message that a client has sent. Throws a Fault that says what is wrong with it. */
export function readMessage(bytes: readonly Uint8Array[]): Message {
  try {
    return parseMessage(sourceOfBytes(bytes), BOUNDS)
  } catch (cause) {
    if (cause instanceof JsonBoundError) throw new Fault('invalidRequest', cause.message, { cause })
    if (cause instanceof JsonError) throw new Fault('notJson', `Not JSON: ${cause.message}`, { cause })
    throw new Fault('notJson', 'Not UTF-8', { cause })
  }
}

/** The `_meta` of a request that has not been taken apart. */
export function metaOf({ params }: Request): Payload {
  return (typeof params === 'string' ? undefined : objectIn(params, '_meta')) ?? EMPTY
}

/** The id to answer a message under, where it has one that can be answered. */
export function idToAnswer(message: Message | undefined): Id | undefined {
  return message?.kind === 'request' || message?.kind === 'invalid' ? message.id : undefined
}

/** The same of a message that nobody has read, because it was to pass as it is. */
export function idIn(body: unknown): Id | undefined {
  if (!(body instanceof Uint8Array)) return undefined
  try {
    return idToAnswer(readMessage([body]))
  } catch {
    return undefined
  }
}
