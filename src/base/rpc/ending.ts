/**
 * Finds out how a call ended from the bytes of a large JSON-RPC response, without parsing it. Reads only a few members, and
 * validates nothing.
 */
import { BLOCK, Quotes } from './quotes.js'

/** Most bytes of a name or text that matter, such as `input_required`, and of the beginning of a key. */
const LONGEST = 32
const BACKSLASH = 0x5c
const encoder = new TextEncoder()

/** How a call ended. */
export type Ended = 'result' | 'tool error' | 'input' | 'error'

/** The ending of one response. Names that are written with escapes are not recognized. */
export class Ending {
  #depth = 0
  readonly #quotes = new Quotes()
  #inString = false
  /** The first bytes of the current or last string. No text is made of them, because a result may have millions of strings. */
  readonly #first = new Uint8Array(LONGEST)
  #length = 0
  /** The member of the response, and the member in it, whose value comes next. */
  #outer = ''
  #key = ''
  /** After the last piece; undefined if neither a result nor an error was recognized. */
  ended: Ended | undefined
  /** In the data of a tool, whose keys are its own. */
  #inData = false
  /** A key in the result begins with `prefix` or is written with escapes, or the result is of another type. */
  hasMarked = false
  readonly #prefix: Uint8Array | undefined

  /** `prefix`: of keys for which `hasMarked` looks, of at most LONGEST ASCII characters. */
  constructor(prefix?: string) {
    this.#prefix = prefix === undefined ? undefined : encoder.encode(prefix)
  }

  /** Reads the next piece. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += BLOCK) this.#readBlock(bytes.subarray(at, at + BLOCK))
  }

  #readBlock(block: Uint8Array): void {
    let at = 0
    for (const quote of this.#quotes.next(block)) {
      this.#readUpTo(block, at, quote)
      if (this.#inString) this.#endString()
      else this.#beginString()
      at = quote + 1
    }
    this.#readUpTo(block, at, block.length)
  }

  /** Reads bytes without a quote that begins or ends a string. */
  #readUpTo(block: Uint8Array, start: number, end: number): void {
    if (!this.#inString) for (let at = start; at < end; at++) this.#read(block[at] as number)
    else if (this.#depth <= 2 || this.#looks())
      for (let at = start; at < end && this.#length < LONGEST; at++) this.#first[this.#length++] = block[at] as number
  }

  /** The beginning of the current or last string. */
  get #text(): string {
    return String.fromCharCode(...this.#first.subarray(0, this.#length))
  }

  #beginString(): void {
    this.#inString = true
    this.#length = 0
  }

  #endString(): void {
    this.#inString = false
    if (this.#depth === 2 && this.#outer === 'result' && this.#key === 'resultType')
      if (this.#text === 'input_required') this.ended = 'input'
      else if (this.#text !== 'complete') this.hasMarked = true
  }

  #read(byte: number): void {
    switch (byte) {
      case 0x7b: // {
      case 0x5b: // [
        if (this.#depth === 1) {
          this.#outer = this.#key
          if (this.#key === 'error' || this.#key === 'result') this.ended = this.#key
        }
        if (this.#depth === 2) this.#inData = this.#key === 'structuredContent'
        this.#depth++
        this.#key = ''
        return
      case 0x7d: // }
      case 0x5d: // ]
        this.#depth--
        this.#key = ''
        return
      case 0x3a: // :
        this.#key = this.#depth <= 2 ? this.#text : ''
        if (this.#prefix !== undefined && this.#looks()) this.hasMarked ||= this.#isMarked(this.#prefix)
        return
      case 0x2c: // ,
        this.#key = ''
        return
      default:
        if (this.#depth === 2 && this.#key !== '') this.#readWord(byte)
    }
  }

  /** Whether a key here may be one that `hasMarked` looks for. */
  #looks(): boolean {
    return (
      this.#prefix !== undefined &&
      this.#outer === 'result' &&
      (this.#depth === 2 || (this.#depth > 2 && !this.#inData))
    )
  }

  /** Whether the last string, which is a key, may be one that `hasMarked` looks for. */
  #isMarked(prefix: Uint8Array): boolean {
    for (let at = 0; at < this.#length; at++) if (this.#first[at] === BACKSLASH) return true
    if (this.#depth <= 2 || this.#length < prefix.length) return false
    for (let at = 0; at < prefix.length; at++) if (this.#first[at] !== prefix[at]) return false
    return true
  }

  /** Reads a character of a number or a word in the result or the error. */
  #readWord(byte: number): void {
    // The `t` of `true`.
    if (this.#outer === 'result' && this.#key === 'isError' && byte === 0x74 && this.ended !== 'input')
      this.ended = 'tool error'
  }
}
