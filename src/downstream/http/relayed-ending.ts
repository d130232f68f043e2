/**
 * Finds out how a call ended from a JSON-RPC response that is too large to store, while its bytes pass. Reads only a few
 * members, and validates nothing.
 */
import type { Final } from '../../protocol/call.js'
import { BLOCK, Quotes } from '../../rpc/quotes.js'
import { EMPTY, parseObject } from '../../rpc/splice.js'

/** Most characters of a name or text that matter. */
const LONGEST = 'input_required'.length
const TOOL_ERROR = parseObject('{"isError":true}')

/** The ending of one response. Names that are written with escapes are not recognized. */
export class RelayedEnding {
  #depth = 0
  readonly #quotes = new Quotes()
  #inString = false
  /** The beginning of the current or last string. */
  #text = ''
  /** The member of the response, and the member in it, whose value comes next. */
  #outer = ''
  #key = ''
  #code = ''
  #kind: 'result' | 'tool error' | 'input' | 'error' | undefined

  /** How the call ended, after the last piece; undefined if neither a result nor an error was recognized. */
  get final(): Final | undefined {
    if (this.#kind === undefined) return undefined
    if (this.#kind === 'error') return { kind: 'error', error: { code: Number(this.#code) || -32603, message: '' } }
    if (this.#kind === 'input') return { kind: 'input', result: EMPTY }
    return { kind: 'result', result: this.#kind === 'tool error' ? TOOL_ERROR : EMPTY }
  }

  /** Reads the next piece. */
  push(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    for (let at = 0; at < piece.length; at += BLOCK) this.#readBlock(piece.subarray(at, at + BLOCK))
  }

  #readBlock(block: Buffer): void {
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
  #readUpTo(block: Buffer, start: number, end: number): void {
    if (!this.#inString) for (let at = start; at < end; at++) this.#read(block[at] as number)
    else if (this.#depth <= 2 && this.#text.length <= LONGEST)
      this.#text += block.toString('latin1', start, Math.min(end, start + LONGEST + 1))
  }

  #beginString(): void {
    this.#inString = true
    this.#text = ''
  }

  #endString(): void {
    this.#inString = false
    if (this.#depth === 2 && this.#outer === 'result' && this.#key === 'resultType')
      if (this.#text === 'input_required') this.#kind = 'input'
  }

  #read(byte: number): void {
    switch (byte) {
      case 0x7b: // {
      case 0x5b: // [
        if (this.#depth === 1) {
          this.#outer = this.#key
          if (this.#key === 'error' || this.#key === 'result') this.#kind = this.#key
        }
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
        return
      case 0x2c: // ,
        this.#key = ''
        return
      default:
        if (this.#depth === 2 && this.#key !== '') this.#readWord(byte)
    }
  }

  /** Reads a character of a number or a word in the result or the error. */
  #readWord(byte: number): void {
    if (this.#outer === 'error' && this.#key === 'code') this.#code += String.fromCharCode(byte)
    // The `t` of `true`.
    else if (this.#outer === 'result' && this.#key === 'isError' && byte === 0x74)
      this.#kind = this.#kind === 'input' ? 'input' : 'tool error'
  }
}
