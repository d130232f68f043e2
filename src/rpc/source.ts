/**
 * A received JSON text. V8 is fast at searching and slicing strings, but slow at creating large ones. So long strings
 * in a large text are set aside as bytes, and the text to scan has a mark in place of each.
 */

/** A JSON text with its long strings set aside. */
export interface Source {
  /** JSON, with a mark for every string that was set aside. */
  readonly text: string
  readonly asides: readonly Aside[] | undefined
}

/** The exact bytes of a JSON string, quotes included, in the pieces in which they arrived. */
type Aside = readonly Uint8Array[]

/** A text to send: one string, or several pieces, of which the large ones are bytes. */
export type Wire = string | readonly Piece[]
export type Piece = string | Uint8Array

/** Texts of up to this many bytes are one string. */
const LARGE = 32 * 1024
/** Strings of at least this many bytes are set aside. */
const LONG = 8 * 1024
/** Number of strings to examine before giving up if none is long, and the average length below which to give up. */
const SAMPLE = 64
const AVERAGE = 256

const QUOTE = 0x22
const BACKSLASH = 0x5c
const MARK = `"aside-${Math.random().toString(36).slice(2)}-`
const MARKS = new RegExp(`${MARK}(\\d+)"`, 'g')
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const forgiving = new TextDecoder('utf-8', { ignoreBOM: true })

/** A Source without any string set aside. */
export function sourceOf(text: string): Source {
  return { text, asides: undefined }
}

/** The memory that a text keeps alive, in characters and bytes. A part keeps the whole text alive. */
export function weightOf({ text, asides }: Source): number {
  if (!asides) return text.length
  return asides.reduce((sum, aside) => sum + aside.reduce((bytes, { length }) => bytes + length, 0), text.length)
}

/** The length of a wire, in characters and bytes. */
export function lengthOf(wire: Wire): number {
  return typeof wire === 'string' ? wire.length : wire.reduce((sum, { length }) => sum + length, 0)
}

/**
 * A Source from the pieces of bytes in which a text arrived. Throws a TypeError if they are not UTF-8. Strings are set
 * aside only if `isAscii` is given, a fast test for ASCII, and they are ASCII.
 */
export function sourceOfBytes(pieces: readonly Uint8Array[], isAscii?: (bytes: Uint8Array) => boolean): Source {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (isAscii && length > LARGE && pieces.every((piece) => isAscii(piece))) {
    const source = setAside(pieces)
    if (source) return source
  }
  return sourceOf(utf8.decode(whole(pieces, length)))
}

/**
 * A Source from a server's bytes, decoded as SDK clients do: invalid UTF-8 becomes U+FFFD. `repaired` tells whether
 * there was any.
 */
export function repairedSourceOf(
  pieces: readonly Uint8Array[],
  isAscii?: (bytes: Uint8Array) => boolean,
): { source: Source; repaired: boolean } {
  try {
    return { source: sourceOfBytes(pieces, isAscii), repaired: false }
  } catch {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    return { source: sourceOf(forgiving.decode(whole(pieces, length))), repaired: true }
  }
}

/** The text between two positions, with the strings that were set aside. */
export function cut({ text, asides }: Source, start: number, end: number): string {
  const part = text.slice(start, end)
  if (!asides || !part.includes(MARK)) return part
  return part.replace(MARKS, (_mark, index: string) => (asides[Number(index)] ?? []).map(decode).join(''))
}

/** The pieces between two positions, for sending: strings that were set aside stay bytes. */
export function pieces({ text, asides }: Source, start: number, end: number): Piece[] {
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

const NOTHING = new Uint8Array(0)
const decode = (bytes: Uint8Array) => utf8.decode(bytes)

/** All pieces in one array. */
function whole(pieces: readonly Uint8Array[], length: number): Uint8Array {
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

/**
 * Goes from quote to quote and sets long strings aside. Undefined if there are none or if the strings are too short on
 * average.
 */
function setAside(chunks: readonly Uint8Array[]): Source | undefined {
  const asides: Aside[] = []
  let text = ''
  let strings = 0
  let seen = 0
  let inString = false
  // The part of an unfinished string that was read: as characters only while the string may still be short.
  let bytes: Uint8Array[] = []
  let length = 0
  let characters = ''
  // Number of backslashes at the end of the last chunk: whether the first character of the next one is escaped.
  let trailing = 0

  for (const chunk of chunks) {
    if (inString && length >= LONG && !chunk.includes(QUOTE)) {
      bytes.push(chunk)
      length += chunk.length
      const before = backslashesAtEnd(chunk)
      trailing = before === chunk.length ? before + trailing : before
      seen += chunk.length
      continue
    }
    // The text is ASCII, so characters and bytes have the same positions, and a string is searched faster than bytes.
    const part = utf8.decode(chunk)
    let start = 0
    for (let quote = part.indexOf('"'); quote >= 0; quote = part.indexOf('"', quote + 1)) {
      if (!inString) {
        text += part.slice(start, quote)
        start = quote
        inString = true
        continue
      }
      const before = backslashesBefore(part, quote, start)
      if ((before === quote && start === 0 ? before + trailing : before) % 2 === 1) continue
      const end = quote + 1
      strings++
      length += end - start
      if (length < LONG) {
        text += characters + part.slice(start, end)
      } else {
        text += `${MARK}${asides.length}"`
        asides.push([...bytes, chunk.subarray(start, end)])
      }
      bytes = []
      length = 0
      characters = ''
      start = end
      inString = false
    }
    if (inString) {
      bytes.push(chunk.subarray(start))
      length += part.length - start
      characters = length < LONG ? characters + part.slice(start) : ''
      const before = backslashesBefore(part, part.length, start)
      trailing = before === part.length ? before + trailing : before
    } else {
      text += part.slice(start)
      trailing = 0
    }
    seen += chunk.length
    if (asides.length === 0 && strings > SAMPLE && seen / strings < AVERAGE) return undefined
  }
  // A string without an end is invalid JSON. The scanner reports that.
  return asides.length === 0 || inString ? undefined : { text, asides }
}

function backslashesBefore(text: string, end: number, start: number): number {
  let at = end
  while (at > start && text.charCodeAt(at - 1) === BACKSLASH) at--
  return end - at
}

function backslashesAtEnd(bytes: Uint8Array): number {
  let at = bytes.length
  while (at > 0 && bytes[at - 1] === BACKSLASH) at--
  return bytes.length - at
}
