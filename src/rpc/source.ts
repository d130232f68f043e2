/**
 * A JSON text as it came in. V8 searches and slices strings fast, and makes large ones slowly: so the long strings inside
 * a large text are set aside as the bytes they are, and the text that is looked through has a mark in place of each.
 */

export interface Source {
  /** JSON, with a mark for every string that was set aside. */
  readonly text: string
  readonly asides: readonly Aside[] | undefined
}

/** A JSON string to the letter, quotes included, as the pieces of memory that it came in. */
type Aside = readonly Uint8Array[]

/** A text on its way out: in one piece, or in several of which the large ones are bytes. */
export type Wire = string | readonly Piece[]
export type Piece = string | Uint8Array

/** Bytes up to which a text is one string, whatever is in it. */
const LARGE = 32 * 1024
/** Bytes from which a string is set aside. */
const LONG = 8 * 1024
/** Strings to look at before giving up where none is long, and their average length below which that is so. */
const SAMPLE = 64
const AVERAGE = 256

const QUOTE = 0x22
const BACKSLASH = 0x5c
const MARK = `"aside-${Math.random().toString(36).slice(2)}-`
const MARKS = new RegExp(`${MARK}(\\d+)"`, 'g')
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const forgiving = new TextDecoder('utf-8', { ignoreBOM: true })

export function sourceOf(text: string): Source {
  return { text, asides: undefined }
}

/** What a text weighs in memory, in characters and bytes. A part of it weighs as much as all of it. */
export function weightOf({ text, asides }: Source): number {
  if (!asides) return text.length
  return asides.reduce((sum, aside) => sum + aside.reduce((bytes, { length }) => bytes + length, 0), text.length)
}

/** What a wire weighs, in characters and bytes. */
export function lengthOf(wire: Wire): number {
  return typeof wire === 'string' ? wire.length : wire.reduce((sum, { length }) => sum + length, 0)
}

/**
 * Takes bytes in the pieces in which they came. Throws a TypeError where they are no UTF-8. Strings are set aside only
 * where the caller has a fast way to tell whether bytes are ASCII, and they are.
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
 * Takes bytes of a server as SDK clients take them: what is not UTF-8 becomes U+FFFD. `repaired` says whether there was
 * any such byte.
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

/** The text between two positions, with everything in it that was set aside. */
export function cut({ text, asides }: Source, start: number, end: number): string {
  const part = text.slice(start, end)
  if (!asides || !part.includes(MARK)) return part
  return part.replace(MARKS, (_mark, index: string) => (asides[Number(index)] ?? []).map(decode).join(''))
}

/** The pieces between two positions of a wire: what was set aside remains bytes. */
export function pieces({ text, asides }: Source, start: number, end: number): Piece[] {
  const part = text.slice(start, end)
  if (!asides || !part.includes(MARK)) return [part]
  // What stands between the marks alternates with their numbers.
  return part
    .split(MARKS)
    .flatMap((between, at): Piece[] => (at % 2 === 0 ? [between] : [...(asides[Number(between)] ?? [])]))
}

/** The whole of a wire as a text. */
export function join(wire: Wire): string {
  return typeof wire === 'string' ? wire : wire.map((part) => (typeof part === 'string' ? part : decode(part))).join('')
}

const NOTHING = new Uint8Array(0)
const decode = (bytes: Uint8Array) => utf8.decode(bytes)

/** All pieces in one. */
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

/** Goes from quote to quote and sets the long strings aside; gives up where there are none and looking is not worth it. */
function setAside(chunks: readonly Uint8Array[]): Source | undefined {
  const asides: Aside[] = []
  let text = ''
  let strings = 0
  let seen = 0
  let inString = false
  // What has been read of the string that goes on at the end of a chunk: as characters only while it may be a short one.
  let bytes: Uint8Array[] = []
  let length = 0
  let characters = ''
  // Backslashes at the very end of what has been read: whether the first character of the next chunk is escaped.
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
    // ASCII: characters are where bytes are, and a string of 64 KiB is searched faster than as many bytes.
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
  // A string without an end is no JSON, which is for the scanner to say.
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
