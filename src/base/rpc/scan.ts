/**
 * Reads a JSON text once: checks that it is well-formed (RFC 8259) and of bounded depth, and writes the positions of its
 * parts into a flat table. No values are built. Positions allow bytes to be forwarded exactly as received.
 */
import type { JsonSource } from './source.js'
import { END, isWrittenAsRead, keyAt, NEXT, ROW, type Table } from './table.js'

/** A text is not well-formed JSON. */
export class JsonError extends Error {
  override name = 'JsonError'
  /** Index of the first invalid UTF-16 unit. */
  readonly position: number

  constructor(message: string, position: number) {
    super(`${message} at position ${position}`)
    this.position = position
  }
}

/** The text exceeds a bound. It is well-formed up to that position. */
export class JsonBoundError extends JsonError {
  override name = 'JsonBoundError'
}

/** Bounds of a scan. */
export interface ScanOptions {
  /** Most levels of nesting; the outermost value is level 1. */
  maxDepth?: number
  /** Most values on all levels together. */
  maxValues?: number
  /** Most members and elements that the table lists: each of them takes memory and is looked at. MAX_SCANNED by default. */
  maxListed?: number
  /**
   * Check every character of every string in large texts too. Otherwise raw control characters and invalid escapes in
   * strings of texts of more than 16 Ki characters go unnoticed: checking these would take most of the time for a large
   * result.
   */
  strict?: boolean
}

/** What the table lists in addition to the members of the outermost value, and where it stops. */
export interface Listing {
  /** Keys of objects whose members are listed too, if the enclosing object is the outermost one or such an object. */
  descend?: ReadonlySet<string>
  /** The key of arrays whose elements are listed too, in such objects: all, or none if there are more than MAX_ELEMENTS. */
  elements?: string
  /** The scan of an array stops after this many elements. Then its END is 0. */
  most?: number
}

const MAX_DEPTH = 256
/** Most elements that are listed of an inner array: positions take more memory than short elements. */
export const MAX_ELEMENTS = 32
/** Most members and elements that are listed of a text, or of an object or array in it. */
export const MAX_SCANNED = 250_000
/** More values than the longest text can have. An integer of 31 bits is counted fastest. */
const NO_LIMIT = 2 ** 30
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const ZERO = 0x30
const NINE = 0x39
/** Texts up to this length are always checked character by character. */
const SMALL = 16 * 1024
/** Skipping from quote to quote pays off if it advances by at least this many characters on average. */
const WORTH_LEAPING = 48
const NO_BOUNDS: ScanOptions = {}
const NO_LISTING: Listing = {}
/** Escapes and control characters: with one of these, a string may be invalid or not end at the next quote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that a string must not have
const SPECIAL = /[\\\x00-\x1f]/
/** The second characters of all escapes except `\u`. */
const ESCAPES: ReadonlySet<number> = new Set(Array.from('"\\/bfnrt', (character) => character.charCodeAt(0)))
/** A number, `true`, `false` or `null`, at `lastIndex`. */
const PLAIN_VALUE = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null/y
/** How the strings of a text are read. */
const PLAIN = 0
const STRICT = 1
const LEAPING = 2
/** For each open object or array of the current scan: the character that closes it, and its row. */
const open: number[] = []

/** Scans a text that is one JSON value, apart from white space around it. Throws a JsonError. */
export function scan(source: JsonSource, bounds = NO_BOUNDS, listing = NO_LISTING): Table {
  const { text, asides } = source
  // One search in the whole text is cheap in comparison. Later scans of its parts use what it found.
  if (!asides && (bounds.strict ?? text.length <= SMALL)) source.plain = !SPECIAL.test(text)
  const table = scanAt(source, 0, bounds, listing)
  const end = table[END] as number
  const rest = space(text, end)
  if (end > 0 && rest < text.length) throw new JsonError('Unexpected text after the value', rest)
  return table
}

/** Scans the value that begins at a position of a text that was scanned before, or at white space before it. */
export function scanAt(source: JsonSource, from: number, bounds = NO_BOUNDS, listing = NO_LISTING): Table {
  const { text } = source
  const { maxDepth = MAX_DEPTH, strict = text.length <= SMALL } = bounds
  const { descend, elements, most = NO_LIMIT } = listing
  const strings = source.plain ? PLAIN : strict ? STRICT : LEAPING
  const table: number[] = []
  const maxTable = (bounds.maxListed ?? MAX_SCANNED) * ROW
  let valuesLeft = bounds.maxValues ?? NO_LIMIT
  let elementsLeft = most
  let depth = 0
  /** How many of the open objects and arrays are listed, counted from the outermost one. */
  let listed = 0
  /** The character that closes the innermost open object or array; 0 if none is open. */
  let close = 0
  let i = space(text, from)
  for (;;) {
    // A member, an element or the outermost value begins at i.
    const at = i
    let keyEnd = i
    if (close === CLOSE_BRACE) {
      if (text.charCodeAt(i) !== QUOTE) throw unexpected(text, i)
      keyEnd = skipString(text, i, strings)
      i = space(text, keyEnd)
      if (text.charCodeAt(i) !== COLON) throw unexpected(text, i)
      i = space(text, i + 1)
    }
    if (close === CLOSE_BRACKET && depth > 1 && depth === listed) {
      const array = open[2 * depth - 1] as number
      if (table.length > array + MAX_ELEMENTS * ROW) {
        table.length = array + ROW
        listed--
      }
    }
    let row = -1
    if (depth === listed) {
      row = table.length
      if (row > maxTable) throw new JsonBoundError('More members than are accepted', i)
      const isVerbatim = strings === PLAIN || isWrittenAsRead(source, at, keyEnd)
      // Keys are read later by code that expects them to be valid.
      if (!isVerbatim && strings === LEAPING) skipString(text, at, STRICT)
      table.push(at, isVerbatim ? keyEnd : -keyEnd, i, 0, row + ROW)
    }
    const c = text.charCodeAt(i)
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (depth >= maxDepth) throw new JsonBoundError(`Nested deeper than ${maxDepth} levels`, i)
      if (--valuesLeft < 0) throw tooMany(i)
      const first = space(text, i + 1)
      // The code of each closing character is that of its opening one and two.
      if (text.charCodeAt(first) !== c + 2) {
        const key = row >= 0 && depth > 0 ? keyAt(source, table, row) : ''
        if (row >= 0 && (depth === 0 || (c === OPEN_BRACE ? descend?.has(key) : key === elements))) listed++
        open[2 * depth] = close
        open[2 * depth + 1] = row
        depth++
        close = c + 2
        i = first
        continue
      }
      i = first + 1
    } else {
      if (--valuesLeft < 0) throw tooMany(i)
      i = c === QUOTE ? skipString(text, i, strings) : skipPlain(text, i)
    }
    // A value has ended before i.
    for (;;) {
      if (row >= 0) {
        table[row + END] = i
        table[row + NEXT] = table.length
      }
      if (depth === 0) return table
      if (depth === 1 && close === CLOSE_BRACKET && --elementsLeft === 0) {
        table[NEXT] = table.length
        return table
      }
      i = space(text, i)
      const c = text.charCodeAt(i)
      if (c === COMMA) {
        i = space(text, i + 1)
        break
      }
      if (c !== close) throw unexpected(text, i)
      i++
      depth--
      if (listed > depth) listed = depth
      close = open[2 * depth] as number
      row = open[2 * depth + 1] as number
    }
  }
}

function skipString(text: string, at: number, strings: number): number {
  if (strings === LEAPING) return skipByQuotes(text, at + 1)
  if (strings === PLAIN) {
    const quote = text.indexOf('"', at + 1)
    if (quote >= 0) return quote + 1
  }
  let i = at + 1
  while (i < text.length) {
    const c = text.charCodeAt(i)
    // Most characters are lower-case letters, whose codes are above all that need a check.
    if (c > BACKSLASH) i++
    else if (c === QUOTE) return i + 1
    else if (c < 0x20) throw new JsonError('Control character in a string', i)
    else i = c === BACKSLASH ? skipEscape(text, i) : i + 1
  }
  throw new JsonError('Unterminated string', text.length)
}

/** Finds the end of a string by jumping from quote to quote; character by character if quotes are frequent. */
function skipByQuotes(text: string, from: number): number {
  let i = from
  for (let leaps = 1; ; leaps++) {
    const quote = text.indexOf('"', i)
    if (quote < 0) throw new JsonError('Unterminated string', text.length)
    if (text.charCodeAt(quote - 1) !== BACKSLASH) return quote + 1
    let before = quote
    while (before > i && text.charCodeAt(before - 1) === BACKSLASH) before--
    i = quote + 1
    if ((quote - before) % 2 === 0) return i
    if (i - from < leaps * WORTH_LEAPING) return skipByCharacters(text, i)
  }
}

function skipByCharacters(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c > BACKSLASH) continue
    if (c === QUOTE) return i + 1
    if (c === BACKSLASH) i++
  }
  throw new JsonError('Unterminated string', text.length)
}

function skipEscape(text: string, at: number): number {
  const c = text.charCodeAt(at + 1)
  if (ESCAPES.has(c)) return at + 2
  if (c === 0x75) {
    let i = at + 2
    while (i < at + 6 && isHex(text.charCodeAt(i))) i++
    if (i === at + 6) return i
  }
  throw new JsonError('Bad escape', at)
}

function isHex(c: number | undefined): boolean {
  return c !== undefined && ((c >= ZERO && c <= NINE) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66))
}

/** Skips a number, `true`, `false` or `null`. */
function skipPlain(text: string, at: number): number {
  // Nearly all are short integers.
  let i = at
  let c = text.charCodeAt(i)
  if (c === ZERO) c = text.charCodeAt(++i)
  else while (c >= ZERO && c <= NINE) c = text.charCodeAt(++i)
  if (i > at && (c === COMMA || c === CLOSE_BRACKET || c === CLOSE_BRACE)) return i
  PLAIN_VALUE.lastIndex = at
  if (!PLAIN_VALUE.test(text)) throw unexpected(text, at)
  return PLAIN_VALUE.lastIndex
}

function space(text: string, from: number): number {
  let i = from
  let c = text.charCodeAt(i)
  while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = text.charCodeAt(++i)
  return i
}

function tooMany(at: number): JsonBoundError {
  return new JsonBoundError('More values than are accepted', at)
}

function unexpected(text: string, at: number): JsonError {
  return new JsonError(at >= text.length ? 'Unexpected end of text' : 'Unexpected character', at)
}
