/**
 * Finds the positions of the parts of a JSON text without building values. It checks that the text is well-formed (RFC
 * 8259) and of bounded depth. Positions allow bytes to be forwarded exactly as received.
 */
import { cut, type JsonSource } from './source.js'

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

/** The text exceeds a bound. It is well-formed up to there. */
export class JsonBoundError extends JsonError {
  override name = 'JsonBoundError'
}

/** A half-open range of a JSON text. */
export interface JsonRange {
  start: number
  end: number
}

/** A member of an object. `at` is the start of its key; `start` and `end` enclose its value. */
export interface JsonMember extends JsonRange {
  key: string
  at: number
  /** The members of the value, if it is an object and its key is in `descend`. */
  members: JsonMember[] | undefined
}

/** Bounds, and what to look into. */
export interface ScanOptions {
  /** Most levels of nesting; the outermost value is level 1. */
  maxDepth?: number
  /** Most values on all levels together. */
  maxValues?: number
  /** Keys of objects whose members are listed too, if the enclosing object is the outermost one or such an object. */
  descend?: ReadonlySet<string>
  /**
   * Check every character of every string in large texts too. Otherwise raw control characters and invalid escapes in
   * strings of texts of more than 16 Ki characters go unnoticed: checking these would take most of the time for a large
   * result.
   */
  strict?: boolean
}

const MAX_DEPTH = 256
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const MINUS = 0x2d
const ZERO = 0x30
const NINE = 0x39
/** Texts up to this length are always checked character by character. */
const SMALL = 16 * 1024
/** Skipping from quote to quote pays off if it advances by at least this many characters on average. */
const WORTH_LEAPING = 48
const NO_KEYS: ReadonlySet<string> = new Set()
/** Escapes and control characters: with one of these, a string may be invalid or not end at the next quote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that a string must not have
const SPECIAL = /[\\\x00-\x1f]/
/** The second characters of all escapes except `\u`. */
const ESCAPES: ReadonlySet<number> = new Set(Array.from('"\\/bfnrt', (character) => character.charCodeAt(0)))
const WORDS: Readonly<Record<number, string>> = { 116: 'true', 102: 'false', 110: 'null' }

/** The members of the object that the text consists of, apart from white space. Throws a JsonError. */
export function scanObject(source: JsonSource, options: ScanOptions = {}): JsonRange & { members: JsonMember[] } {
  const object = objectFrom(source, space(source.text, 0), begin(source, options, true), options.descend)
  expectEnd(source.text, object.end)
  return object
}

/** The members of the object at `start`. Throws a JsonError if there is no object. */
export function objectAt(
  source: JsonSource,
  start: number,
  options: ScanOptions = {},
): JsonRange & { members: JsonMember[] } {
  return objectFrom(source, start, begin(source, options), options.descend)
}

function objectFrom(
  source: JsonSource,
  start: number,
  scan: Scan,
  descend = NO_KEYS,
): JsonRange & { members: JsonMember[] } {
  if (source.text.charCodeAt(start) !== OPEN_BRACE) throw new JsonError('Expected an object', start)
  const members: JsonMember[] = []
  const end = takeApart(source, start, 1, members, scan, descend)
  return { start, end, members }
}

/** The elements of the array that the text consists of, at most the first `most`. Throws a JsonError. */
export function scanArray(source: JsonSource, most: number, options?: ScanOptions): JsonRange[] {
  const { elements, end } = arrayAt(source, space(source.text, 0), options, most)
  if (elements.length < most) expectEnd(source.text, end)
  return elements
}

/**
 * The positions of the elements of the array at `start`. Throws a JsonError if there is no array. Stops after `most`
 * elements, even in the middle of the array.
 */
export function arrayAt(
  source: JsonSource,
  start: number,
  options: ScanOptions = {},
  most = Number.POSITIVE_INFINITY,
): JsonRange & { elements: JsonRange[] } {
  const { text } = source
  if (text.charCodeAt(start) !== OPEN_BRACKET) throw new JsonError('Expected an array', start)
  const scan = begin(source, options)
  count(scan, start, 1)
  const elements: JsonRange[] = []
  let i = space(text, start + 1)
  if (text.charCodeAt(i) === CLOSE_BRACKET) return { start, end: i + 1, elements }
  for (;;) {
    const end = skip(text, i, 2, scan)
    elements.push({ start: i, end })
    if (elements.length >= most) return { start, end, elements }
    i = space(text, end)
    if (text.charCodeAt(i) === CLOSE_BRACKET) return { start, end: i + 1, elements }
    if (text.charCodeAt(i) !== COMMA) throw unexpected(text, i)
    i = space(text, i + 1)
  }
}

/** The first character that is not white space. It determines the kind of value. */
export function firstCharacter({ text }: JsonSource): { at: number; character: string } {
  const at = space(text, 0)
  return { at, character: text.charAt(at) }
}

/** Checks that the text is exactly one JSON value. Throws a JsonError. */
export function scanValue(source: JsonSource, options: ScanOptions = {}): JsonRange {
  const { text } = source
  const start = space(text, 0)
  const end = skip(text, start, 1, begin(source, options, true))
  expectEnd(text, end)
  return { start, end }
}

/** The state of a scan. */
interface Scan {
  maxDepth: number
  valuesLeft: number
  strict: boolean
  /** The text has no escape and no control character: each string ends at the next quote. */
  plain: boolean
  /** For each level that is being skipped: whether it is an object (otherwise an array). */
  open: boolean[]
}

/**
 * Starts a scan. `whole`: the whole text will be scanned, so one search in all of it is cheap in comparison. Later scans
 * of its parts use what the search found.
 */
function begin(source: JsonSource, options: ScanOptions, whole = false): Scan {
  const { text, asides } = source
  const { maxDepth = MAX_DEPTH, maxValues = Number.POSITIVE_INFINITY, strict = text.length <= SMALL } = options
  if (whole && strict && !asides) source.plain = !SPECIAL.test(text)
  return { maxDepth, valuesLeft: maxValues, strict, plain: source.plain, open: [] }
}

/** Lists the members of the object at `at`. Like the functions below, returns the position after its end. */
function takeApart(
  source: JsonSource,
  at: number,
  depth: number,
  into: JsonMember[],
  scan: Scan,
  descend: ReadonlySet<string>,
): number {
  const { text } = source
  count(scan, at, depth)
  let i = space(text, at + 1)
  if (text.charCodeAt(i) === CLOSE_BRACE) return i + 1
  for (;;) {
    if (text.charCodeAt(i) !== QUOTE) throw unexpected(text, i)
    const keyEnd = skipString(text, i, scan)
    const start = skipColon(text, keyEnd)
    const key = scan.plain ? text.slice(i + 1, keyEnd - 1) : unquote(source, i, keyEnd)
    const member: JsonMember = { key, at: i, start, end: 0, members: undefined }
    if (text.charCodeAt(start) === OPEN_BRACE && descend.has(key)) {
      member.members = []
      member.end = takeApart(source, start, depth + 1, member.members, scan, descend)
    } else {
      member.end = skip(text, start, depth + 1, scan)
    }
    into.push(member)
    i = space(text, member.end)
    if (text.charCodeAt(i) === CLOSE_BRACE) return i + 1
    if (text.charCodeAt(i) !== COMMA) throw unexpected(text, i)
    i = space(text, i + 1)
  }
}

/** Skips the value at `at`, checking its grammar. */
function skip(text: string, at: number, depth: number, scan: Scan): number {
  const { open } = scan
  let i = at
  let level = 0
  for (;;) {
    // A value starts at i.
    const c = text.charCodeAt(i)
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      count(scan, i, depth + level)
      i = space(text, i + 1)
      if (c === OPEN_BRACE && text.charCodeAt(i) !== CLOSE_BRACE) {
        open[level++] = true
        i = skipKey(text, i, scan)
        continue
      }
      if (c === OPEN_BRACKET && text.charCodeAt(i) !== CLOSE_BRACKET) {
        open[level++] = false
        continue
      }
      i++
    } else {
      if (--scan.valuesLeft < 0) throw tooMany(i)
      i = c === QUOTE ? skipString(text, i, scan) : skipPlain(text, i)
    }
    // A value has ended before i.
    for (;;) {
      if (level === 0) return i
      i = space(text, i)
      const inObject = open[level - 1]
      if (text.charCodeAt(i) === COMMA) {
        i = space(text, i + 1)
        if (inObject) i = skipKey(text, i, scan)
        break
      }
      if (text.charCodeAt(i) !== (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) throw unexpected(text, i)
      level--
      i++
    }
  }
}

/** Skips a key and its colon; returns the start of the value. */
function skipKey(text: string, at: number, scan: Scan): number {
  if (text.charCodeAt(at) !== QUOTE) throw unexpected(text, at)
  return skipColon(text, skipString(text, at, scan))
}

function skipColon(text: string, at: number): number {
  const colon = space(text, at)
  if (text.charCodeAt(colon) !== COLON) throw unexpected(text, colon)
  return space(text, colon + 1)
}

function skipString(text: string, at: number, scan: Scan): number {
  if (scan.plain) {
    const quote = text.indexOf('"', at + 1)
    if (quote < 0) throw new JsonError('Unterminated string', text.length)
    return quote + 1
  }
  if (!scan.strict) return leap(text, at + 1)
  let i = at + 1
  while (i < text.length) {
    const c = text.charCodeAt(i)
    // Most characters are lower-case letters, which are above all that need a check.
    if (c > BACKSLASH) i++
    else if (c === QUOTE) return i + 1
    else if (c < 0x20) throw new JsonError('Control character in a string', i)
    else i = c === BACKSLASH ? skipEscape(text, i) : i + 1
  }
  throw new JsonError('Unterminated string', text.length)
}

/** Finds the end of a string by jumping from quote to quote; character by character if quotes are frequent. */
function leap(text: string, from: number): number {
  let i = from
  for (let leaps = 1; ; leaps++) {
    const quote = text.indexOf('"', i)
    if (quote < 0) throw new JsonError('Unterminated string', text.length)
    if (text.charCodeAt(quote - 1) !== BACKSLASH) return quote + 1
    let before = quote
    while (before > i && text.charCodeAt(before - 1) === BACKSLASH) before--
    i = quote + 1
    if ((quote - before) % 2 === 0) return i
    if (i - from < leaps * WORTH_LEAPING) return plod(text, i)
  }
}

function plod(text: string, from: number): number {
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
  const c = text.charCodeAt(at)
  if (c === MINUS || (c >= ZERO && c <= NINE)) return skipNumber(text, at)
  const word = WORDS[c]
  if (word === undefined || !text.startsWith(word, at)) throw unexpected(text, at)
  return at + word.length
}

function skipNumber(text: string, at: number): number {
  let i = at
  if (text.charCodeAt(i) === MINUS) i++
  i = text.charCodeAt(i) === ZERO ? i + 1 : skipDigits(text, i)
  if (text.charCodeAt(i) === 0x2e) i = skipDigits(text, i + 1)
  if (text.charCodeAt(i) !== 0x65 && text.charCodeAt(i) !== 0x45) return i
  const sign = text.charCodeAt(i + 1)
  return skipDigits(text, sign === MINUS || sign === 0x2b ? i + 2 : i + 1)
}

function skipDigits(text: string, from: number): number {
  let i = from
  let c = text.charCodeAt(i)
  while (c >= ZERO && c <= NINE) c = text.charCodeAt(++i)
  if (i === from) throw unexpected(text, i)
  return i
}

function space(text: string, from: number): number {
  let i = from
  let c = text.charCodeAt(i)
  while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = text.charCodeAt(++i)
  return i
}

function expectEnd(text: string, from: number): void {
  const i = space(text, from)
  if (i < text.length) throw new JsonError('Unexpected text after the value', i)
}

function count(scan: Scan, at: number, depth: number): void {
  if (depth > scan.maxDepth) throw new JsonBoundError(`Nested deeper than ${scan.maxDepth} levels`, at)
  if (--scan.valuesLeft < 0) throw tooMany(at)
}

function tooMany(at: number): JsonBoundError {
  return new JsonBoundError('More values than are accepted', at)
}

function unexpected(text: string, at: number): JsonError {
  return new JsonError(at >= text.length ? 'Unexpected end of text' : 'Unexpected character', at)
}

/** The value of the string that stands, with its quotes, between two positions. */
export function unquote(source: JsonSource, start: number, end: number): string {
  const raw = cut(source, start, end)
  return raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1)
}
