/** A large result that passes unchanged: its bytes are parsed only if somebody reads it. */
import { type Ended, Ending } from './ending.js'
import { headIn } from './head.js'
import { type Id, idKey, idValue, parseMessage, type Response } from './message.js'
import { Outline } from './outline.js'
import { bytesIn, type IsUtf8, MARK_LENGTH, repairedSourceOf, startsWithMark } from './source.js'

/** Results of more bytes are not parsed. */
const LARGE = 64 * 1024
/** Bytes at the beginning of a message in which its kind and id are looked for. */
const BEGINNING = 4 * 1024

type Unread = { pieces: readonly Uint8Array[]; length: number; ended: Ended }

/**
 * A response that has not been parsed. Reading `outcome` parses it, and throws a SyntaxError if it is no valid response.
 *
 * The getter is a member of its own, so that a copy has what it returns, and it is one function for all responses: for each
 * object literal with a getter V8 makes a hidden class in the old generation, which kept the bytes until the next major
 * collection.
 */
export class UnreadResponse implements Response {
  readonly kind = 'response'
  readonly id: Id
  readonly unread: Unread
  http: Response['http']
  declare readonly outcome: Response['outcome']
  readonly #isUtf8: IsUtf8
  #parsed: Response['outcome'] | undefined

  static readonly #outcome: PropertyDescriptor & ThisType<UnreadResponse> = {
    enumerable: true,
    get() {
      this.#parsed ??= outcomeIn(this.unread.pieces, this.#isUtf8)
      return this.#parsed
    },
  }

  constructor(id: Id, unread: Unread, isUtf8: IsUtf8) {
    this.id = id
    this.unread = unread
    this.#isUtf8 = isUtf8
    Object.defineProperty(this, 'outcome', UnreadResponse.#outcome)
  }
}

/**
 * The response to the request with this id in these bytes; undefined if they are not large, or are something else, or if the
 * result may have keys with this prefix.
 */
export function unreadResponse(
  bytes: readonly Uint8Array[],
  { id, prefix }: { id: Id; prefix: string },
  isUtf8: IsUtf8,
): UnreadResponse | undefined {
  const length = bytesIn(bytes)
  const [first] = bytes
  if (!first || length <= LARGE) return undefined
  const head = headIn(first.subarray(0, BEGINNING))
  if (head?.form !== 'result') return undefined
  // Some servers write the id last.
  if (head.id === undefined) {
    const last = new Outline(bytes).idAtEnd
    if (last === undefined || idKey(last as Id) !== idKey(id)) return undefined
  } else if (head.id !== idValue(id)) return undefined
  const ending = new Ending(prefix)
  for (const piece of bytes) ending.push(piece)
  const { ended } = ending
  if (!ended || ended === 'error' || ending.hasMarked) return undefined
  const pieces = startsWithMark(first) ? [first.subarray(MARK_LENGTH), ...bytes.slice(1)] : bytes
  return new UnreadResponse(id, { pieces, length, ended }, isUtf8)
}

function outcomeIn(pieces: readonly Uint8Array[], isUtf8: IsUtf8): Response['outcome'] {
  const message = parseMessage(repairedSourceOf(pieces, isUtf8).source)
  if (message.kind === 'response') return message.outcome
  throw new SyntaxError('The message is not a response')
}
