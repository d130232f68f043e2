/**
 * Holds a received JSON text, decoded from UTF-8, whose long strings may be set aside as bytes. V8 is fast at searching
 * and slicing strings, but slow at creating large ones. So long strings in a large text stay bytes, and the text to
 * scan has a mark in place of each.
 */
import { BLOCK, Quotes } from './quotes.js'

/** A JSON text with its long strings set aside. */
export interface JsonSource {
  /** JSON, with a mark for every string that was set aside. */
  readonly text: string
  readonly asides: readonly Aside[] | undefined
  /** Whether no string has an escape or a control character, so that each ends at the next quote. Set by the scan. */
  plain: boolean
  /** The number of the message for the inspector; 0 if it has none. */
  event: number
}

/** The exact bytes of a JSON string, quotes included, in the pieces in which they arrived. */
type Aside = readonly Uint8Array[]

/** Whether bytes are valid UTF-8, as `isUtf8` of node:buffer. */
export type IsUtf8 = (bytes: Uint8Array) => boolean

/** A text to send: one string, or several pieces, of which the large ones are bytes. */
export type Wire = string | readonly Piece[]
export type Piece = string | Uint8Array

/** Texts of up to this many bytes are one string. */
const LARGE = 32 * 1024
/** Strings of at least this many bytes are set aside. */
const LONG = 8 * 1024
/** If none of this many strings is long, and they are shorter than AVERAGE on average, no string is set aside. */
const SAMPLE = 64
const AVERAGE = 256

const BYTE_ORDER_MARK = 0xfeff
const MARK = `"aside-${Math.random().toString(36).slice(2)}-`
const MARKS = new RegExp(`${MARK}(\\d+)"`, 'g')
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()
const forgiving = new TextDecoder('utf-8', { ignoreBOM: true })

/** The source of a text, without its byte order mark, and with no string set aside. */
export function sourceOf(text: string): JsonSource {
  // A parser may ignore a byte order mark before the text (RFC 8259, section 8.1).
  const bare = text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text
  return { text: bare, asides: undefined, plain: false, event: 0 }
}

/** The length of a byte order mark in bytes. */
export const MARK_LENGTH = 3

/** Whether bytes begin with others. */
export function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  return bytes.length >= prefix.length && prefix.every((byte, at) => bytes[at] === byte)
}

/** Whether bytes begin with a byte order mark. */
export function startsWithMark([first, second, third]: Uint8Array): boolean {
  return first === 0xef && second === 0xbb && third === 0xbf
}

/** The memory that a text keeps alive, in characters and bytes. A part keeps the whole text alive. */
export function weightOf({ text, asides }: JsonSource): number {
  if (!asides) return text.length
  return asides.reduce((sum, aside) => sum + bytesIn(aside), text.length)
}

/**
 * Copies a text into memory of its own. A substring keeps the whole text in memory, so texts that are stored for long must
 * be copied.
 */
export function detach<T extends string | undefined>(text: T): T {
  // Concatenation is lazy; taking a substring of it makes V8 copy the text.
  return text === undefined ? text : (` ${text}`.slice(1) as T)
}

/** The length of a wire, in characters and bytes. */
export function lengthOf(wire: Wire): number {
  return typeof wire === 'string' ? wire.length : wire.reduce((sum, { length }) => sum + length, 0)
}

/**
 * The source of a text that arrived in pieces of bytes. Throws a TypeError if they are not UTF-8. Strings are set aside
 * only if `isUtf8`, a fast test, is given.
 */
export function sourceOfBytes(pieces: readonly Uint8Array[], isUtf8?: IsUtf8): JsonSource {
  const [only] = pieces
  if (only && pieces.length === 1 && only.length <= LARGE) return sourceOf(utf8.decode(only))
  const length = bytesIn(pieces)
  if (isUtf8 && length > LARGE) {
    const complete = inCompleteCharacters(pieces, length, isUtf8)
    const source = complete && setAside(complete)
    if (source) return source
  }
  return sourceOf(utf8.decode(whole(pieces, length)))
}

/**
 * Pieces each of which is valid UTF-8: all joined, if one ended in the middle of a character. Undefined if they are not
 * UTF-8.
 */
function inCompleteCharacters(
  pieces: readonly Uint8Array[],
  length: number,
  isUtf8: IsUtf8,
): readonly Uint8Array[] | undefined {
  if (pieces.every((piece) => isUtf8(piece))) return pieces
  const joined = whole(pieces, length)
  return isUtf8(joined) ? [joined] : undefined
}

/**
 * The source of a server's bytes, decoded as SDK clients do: invalid UTF-8 becomes U+FFFD, and then `repaired` is true.
 */
export function repairedSourceOf(
  pieces: readonly Uint8Array[],
  isUtf8?: IsUtf8,
): { source: JsonSource; repaired: boolean } {
  try {
    return { source: sourceOfBytes(pieces, isUtf8), repaired: false }
  } catch {
    return { source: sourceOf(forgivingText(pieces)), repaired: true }
  }
}

/** The text of pieces of bytes. Invalid UTF-8 becomes U+FFFD. */
export function forgivingText(pieces: readonly Uint8Array[]): string {
  return forgiving.decode(whole(pieces))
}

/** The text of what is on a wire. Invalid UTF-8 becomes U+FFFD. A character may be split between two pieces. */
export function textOfWire(wire: Wire): string {
  if (typeof wire === 'string') return wire
  return forgivingText(wire.map((piece) => (typeof piece === 'string' ? encoder.encode(piece) : piece)))
}

/** The text between two positions, with the strings that were set aside. */
export function cut({ text, asides }: JsonSource, start: number, end: number): string {
  const part = text.slice(start, end)
  if (!asides || !part.includes(MARK)) return part
  return part.replace(MARKS, (_mark, index: string) => decodeAll(asides[Number(index)] ?? []))
}

/** The whole text, for sending. */
export function wireOf(source: JsonSource): Wire {
  return source.asides ? pieces(source, 0, source.text.length) : source.text
}

/** The pieces between two positions, for sending: strings that were set aside stay bytes. */
export function pieces({ text, asides }: JsonSource, start: number, end: number): Piece[] {
  const part = text.slice(start, end)
  if (!asides || !part.includes(MARK)) return [part]
  // Texts between marks alternate with the numbers of the marks.
  return part
    .split(MARKS)
    .flatMap((between, at): Piece[] => (at % 2 === 0 ? [between] : [...(asides[Number(between)] ?? [])]))
}

/** The whole wire as one text. */
export function join(wire: Wire): string {
  return typeof wire === 'string' ? wire : wire.map((part) => (typeof part === 'string' ? part : decode(part))).join('')
}

/** The number of bytes in pieces. */
export const bytesIn = (pieces: readonly Uint8Array[]) => pieces.reduce((sum, { length }) => sum + length, 0)
const NOTHING = new Uint8Array(0)
const decode = (bytes: Uint8Array) => utf8.decode(bytes)
const decodeAll = (pieces: readonly Uint8Array[]) => pieces.map(decode).join('')

/** All pieces in one array. */
export function whole(pieces: readonly Uint8Array[], length = bytesIn(pieces)): Uint8Array {
  const [only = NOTHING, ...more] = pieces
  if (more.length === 0) return only
  const bytes = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}

/** The source with long strings set aside. Undefined if there are none, or if the strings are too short on average. */
function setAside(chunks: readonly Uint8Array[]): JsonSource | undefined {
  const asides: Aside[] = []
  const quotes = new Quotes()
  const rest = new Cutter(chunks)
  let text = ''
  let strings = 0
  let seen = 0
  /** Where the current string begins; negative outside of strings. */
  let start = -1
  for (const block of blocksOf(chunks)) {
    for (const quote of quotes.next(block)) {
      if (start < 0) {
        start = seen + quote
        continue
      }
      const end = seen + quote + 1
      if (end - start >= LONG) {
        text += `${decodeAll(rest.upTo(start))}${MARK}${asides.length}"`
        asides.push(rest.upTo(end))
      }
      strings++
      start = -1
    }
    seen += block.length
    if (asides.length === 0 && strings > SAMPLE && seen / strings < AVERAGE) return undefined
  }
  // A string without an end is invalid JSON. The scanner reports that.
  if (asides.length === 0 || start >= 0) return undefined
  return { ...sourceOf(text + decodeAll(rest.upTo(seen))), asides }
}

function* blocksOf(pieces: readonly Uint8Array[]): Generator<Uint8Array, void> {
  for (const piece of pieces) for (let at = 0; at < piece.length; at += BLOCK) yield piece.subarray(at, at + BLOCK)
}

/** Cuts pieces of memory into consecutive ranges. */
class Cutter {
  readonly #pieces: readonly Uint8Array[]
  /** The current piece, the position at which it begins, and the end of the last range. */
  #index = 0
  #begin = 0
  #end = 0

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces
  }

  /** The pieces from the end of the last range to a position. */
  upTo(position: number): Uint8Array[] {
    const range: Uint8Array[] = []
    while (this.#end < position) {
      const piece = this.#pieces[this.#index] as Uint8Array
      const next = this.#begin + piece.length
      const end = Math.min(next, position)
      range.push(piece.subarray(this.#end - this.#begin, end - this.#begin))
      this.#end = end
      if (end < next) break
      this.#index++
      this.#begin = next
    }
    return range
  }
}
