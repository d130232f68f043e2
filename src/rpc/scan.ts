/**
 * Finds where the parts of a JSON text stand, without building values. What passes is well-formed JSON (RFC 8259) of
 * bounded depth; what is kept are positions, so that bytes can be carried on exactly as they came in.
 */

export class JsonError extends Error {
  override name = 'JsonError'
  /** Index of the UTF-16 unit that cannot stand where it stands. */
  readonly position: number

  constructor(message: string, position: number) {
    super(`${message} at position ${position}`)
    this.position = position
  }
}

/** Well-formed as far as it was read, but more than is accepted. */
export class JsonBoundError extends JsonError {
  override name = 'JsonBoundError'
}

/** Half-open range of a JSON text: `text.slice(start, end)` is one value. */
export interface Span {
  start: number
  end: number
}

/** One member of an object. `at` is where its key begins, `start` and `end` enclose its value. */
export interface Member extends Span {
  key: string
  at: number
  /** The value's own members, where it is an object that was asked for by key. */
  members?: Member[]
}

export interface ScanOptions {
  /** Levels of nesting that are accepted; the outermost value is level 1. */
  maxDepth?: number
  /** Values that are accepted, counting every level. */
  maxValues?: number
  /** Objects under these keys are taken apart as well, at any level reached through such keys. */
  descend?: ReadonlySet<string>
  /**
   * Refuse raw control characters everywhere. Otherwise they go unnoticed in what lies beyond the first 64 characters
   * of a run of plain text inside a string, which is where the time would go in a large result.
   */
  strict?: boolean
}

const NO_KEYS: ReadonlySet<string> = new Set()
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
const LITERALS = ['true', 'false', 'null'] as const
const NEAR = 64

/** Takes apart the object that `text` consists of, white space around it aside. Throws a JsonError. */
export function scanObject(text: string, options: ScanOptions = {}): Span & { members: Member[] } {
  const scanner = new Scanner(text, options)
  const start = scanner.space(0)
  if (text.charCodeAt(start) !== OPEN_BRACE) throw new JsonError('Expected an object', start)
  const members: Member[] = []
  const end = scanner.object(start, 1, members)
  scanner.expectEnd(end)
  return { start, end, members }
}

/** Takes apart the array that stands at `start`. Throws a JsonError when something else stands there. */
export function arrayAt(text: string, start: number, options: ScanOptions = {}): Span & { elements: Span[] } {
  if (text.charCodeAt(start) !== OPEN_BRACKET) throw new JsonError('Expected an array', start)
  const elements: Span[] = []
  const end = new Scanner(text, options).array(start, 1, elements)
  return { start, end, elements }
}

/** Takes apart the object that stands at `start`. Throws a JsonError when something else stands there. */
export function objectAt(text: string, start: number, options: ScanOptions = {}): Span & { members: Member[] } {
  if (text.charCodeAt(start) !== OPEN_BRACE) throw new JsonError('Expected an object', start)
  const members: Member[] = []
  const end = new Scanner(text, options).object(start, 1, members)
  return { start, end, members }
}

/** The first character that is not white space: what kind of value a text holds, if it is JSON at all. */
export function firstCharacter(text: string): { at: number; character: string } {
  const at = new Scanner(text, {}).space(0)
  return { at, character: text.charAt(at) }
}

/** Checks that `text` is one JSON value and nothing else. Throws a JsonError. */
export function scanValue(text: string, options: ScanOptions = {}): Span {
  const scanner = new Scanner(text, options)
  const start = scanner.space(0)
  const end = scanner.value(start, 1)
  scanner.expectEnd(end)
  return { start, end }
}

class Scanner {
  readonly #text: string
  readonly #maxDepth: number
  readonly #descend: ReadonlySet<string>
  readonly #strict: boolean
  #valuesLeft: number
  // Where the next quote and the next backslash stand, looked up only when passed: linear however many strings there are.
  #quote = -1
  #backslash = -1

  constructor(text: string, options: ScanOptions) {
    const { maxDepth = 256, maxValues = Number.POSITIVE_INFINITY, descend = NO_KEYS, strict = false } = options
    this.#text = text
    this.#maxDepth = maxDepth
    this.#descend = descend
    this.#strict = strict
    this.#valuesLeft = maxValues
  }

  space(from: number): number {
    let i = from
    for (;;) {
      const c = this.#text.charCodeAt(i)
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i
      i++
    }
  }

  expectEnd(from: number): void {
    const i = this.space(from)
    if (i < this.#text.length) throw new JsonError('Unexpected text after the value', i)
  }

  /** Each of these takes the position where something begins and returns the one after its end. */
  value(at: number, depth: number): number {
    if (--this.#valuesLeft < 0) throw new JsonBoundError('More values than are accepted', at)
    const c = this.#text.charCodeAt(at)
    if (c === QUOTE) return this.string(at)
    if (c === OPEN_BRACE) return this.object(at, depth)
    if (c === OPEN_BRACKET) return this.array(at, depth)
    if (c === MINUS || (c >= ZERO && c <= NINE)) return this.number(at)
    for (const literal of LITERALS) if (this.#text.startsWith(literal, at)) return at + literal.length
    throw this.#unexpected(at)
  }

  object(at: number, depth: number, into?: Member[]): number {
    this.#checkDepth(at, depth)
    const text = this.#text
    let i = this.space(at + 1)
    if (text.charCodeAt(i) === CLOSE_BRACE) return i + 1
    for (;;) {
      const keyStart = i
      if (text.charCodeAt(i) !== QUOTE) throw this.#unexpected(i)
      const keyEnd = this.string(i)
      i = this.space(keyEnd)
      if (text.charCodeAt(i) !== COLON) throw this.#unexpected(i)
      const start = this.space(i + 1)
      if (into === undefined) {
        i = this.value(start, depth + 1)
      } else {
        const key = unquote(text, keyStart, keyEnd)
        const member: Member = { key, at: keyStart, start, end: 0 }
        if (text.charCodeAt(start) === OPEN_BRACE && this.#descend.has(key)) {
          member.members = []
          i = this.object(start, depth + 1, member.members)
        } else {
          i = this.value(start, depth + 1)
        }
        member.end = i
        into.push(member)
      }
      i = this.space(i)
      const c = text.charCodeAt(i)
      if (c === CLOSE_BRACE) return i + 1
      if (c !== COMMA) throw this.#unexpected(i)
      i = this.space(i + 1)
    }
  }

  array(at: number, depth: number, into?: Span[]): number {
    this.#checkDepth(at, depth)
    const text = this.#text
    let i = this.space(at + 1)
    if (text.charCodeAt(i) === CLOSE_BRACKET) return i + 1
    for (;;) {
      const start = i
      i = this.value(start, depth + 1)
      into?.push({ start, end: i })
      i = this.space(i)
      const c = text.charCodeAt(i)
      if (c === CLOSE_BRACKET) return i + 1
      if (c !== COMMA) throw this.#unexpected(i)
      i = this.space(i + 1)
    }
  }

  string(at: number): number {
    const text = this.#text
    let i = at + 1
    for (;;) {
      // Most strings are short, and escapes come in crowds: look near first, leap only over long plain text.
      const near = this.#strict ? text.length : Math.min(i + NEAR, text.length)
      while (i < near) {
        const c = text.charCodeAt(i)
        if (c === QUOTE) return i + 1
        if (c < 0x20) throw new JsonError('Control character in a string', i)
        i = c === BACKSLASH ? this.#escape(i) : i + 1
      }
      i = Math.min(this.#nextQuote(i), this.#nextBackslash(i))
    }
  }

  number(at: number): number {
    const text = this.#text
    let i = at
    if (text.charCodeAt(i) === MINUS) i++
    if (text.charCodeAt(i) === ZERO) i++
    else i = this.#digits(i)
    if (text.charCodeAt(i) === 0x2e) i = this.#digits(i + 1)
    const c = text.charCodeAt(i)
    if (c === 0x65 || c === 0x45) {
      const sign = text.charCodeAt(i + 1)
      i = this.#digits(sign === MINUS || sign === 0x2b ? i + 2 : i + 1)
    }
    return i
  }

  #digits(from: number): number {
    let i = from
    for (;;) {
      const c = this.#text.charCodeAt(i)
      if (!(c >= ZERO && c <= NINE)) break
      i++
    }
    if (i === from) throw this.#unexpected(i)
    return i
  }

  #escape(at: number): number {
    const c = this.#text.charAt(at + 1)
    if (c === 'u') {
      if (!/^[0-9a-fA-F]{4}$/.test(this.#text.slice(at + 2, at + 6))) throw new JsonError('Bad escape', at)
      return at + 6
    }
    if (c === '' || !'"\\/bfnrt'.includes(c)) throw new JsonError('Bad escape', at)
    return at + 2
  }

  #nextQuote(from: number): number {
    if (this.#quote < from) this.#quote = this.#text.indexOf('"', from)
    if (this.#quote < 0) throw new JsonError('Unterminated string', this.#text.length)
    return this.#quote
  }

  #nextBackslash(from: number): number {
    if (this.#backslash < from) {
      const found = this.#text.indexOf('\\', from)
      this.#backslash = found < 0 ? Number.POSITIVE_INFINITY : found
    }
    return this.#backslash
  }

  #checkDepth(at: number, depth: number): void {
    if (depth > this.#maxDepth) throw new JsonBoundError(`Nested deeper than ${this.#maxDepth} levels`, at)
  }

  #unexpected(at: number): JsonError {
    return new JsonError(at >= this.#text.length ? 'Unexpected end of text' : 'Unexpected character', at)
  }
}

function unquote(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
}
