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

export function sourceOf(text: string): Source {
  return { text, asides: undefined }
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
  const [only = NOTHING, ...more] = pieces
  return sourceOf(utf8.decode(more.length === 0 ? only : concat(pieces, length)))
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

function concat(parts: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

/** Goes from quote to quote and sets the long strings aside; gives up where there are none and looking is not worth it. */
function setAside(chunks: readonly Uint8Array[]): Source | undefined {
  const asides: Aside[] = []
  let text = ''
  let strings = 0
  let seen = 0
  // Where the string or the text between strings began that goes on at the end of a chunk: its pieces so far.
  let kept: Uint8Array[] = []
  let keptLength = 0
  let inString = false
  // Backslashes at the very end of the chunks before: whether the first character of the next one is escaped.
  let trailing = 0

  const end = (piece: Uint8Array) => {
    kept.push(piece)
    keptLength += piece.length
    if (inString) strings++
    if (inString && keptLength >= LONG) {
      text += `${MARK}${asides.length}"`
      asides.push(kept)
    } else {
      for (const part of kept) text += utf8.decode(part)
    }
    kept = []
    keptLength = 0
  }

  for (const chunk of chunks) {
    let start = 0
    let from = 0
    for (;;) {
      const quote = chunk.indexOf(QUOTE, from)
      if (quote < 0) break
      from = quote + 1
      if (inString) {
        const before = backslashesBefore(chunk, quote, start)
        const escaped = (before === quote - start && start === 0 ? before + trailing : before) % 2 === 1
        if (escaped) continue
        end(chunk.subarray(start, quote + 1))
        start = quote + 1
      } else {
        end(chunk.subarray(start, quote))
        start = quote
      }
      inString = !inString
    }
    const rest = chunk.subarray(start)
    if (rest.length > 0) {
      kept.push(rest)
      keptLength += rest.length
      const before = backslashesBefore(chunk, chunk.length, start)
      trailing = before === chunk.length && start === 0 ? before + trailing : before
    } else trailing = 0
    seen += chunk.length
    if (asides.length === 0 && strings > SAMPLE && seen / strings < AVERAGE) return undefined
  }
  end(NOTHING)
  return asides.length === 0 ? undefined : { text, asides }
}

function backslashesBefore(bytes: Uint8Array, end: number, start: number): number {
  let at = end
  while (at > start && bytes[at - 1] === BACKSLASH) at--
  return end - at
}
