/**
 * Reads how a call ended from a JSON-RPC response that is too large to keep, as its bytes pass. It looks only at a few
 * members, and checks nothing.
 */
import type { Final } from '../../protocol/call.js'
import { EMPTY, parseObject } from '../../rpc/splice.js'

const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Most characters of a name or text that matter. */
const LONGEST = 'input_required'.length
const TOOL_ERROR = parseObject('{"isError":true}')

/** The ending of one response. Names that are written with escapes are not recognized. */
export class RelayedEnding {
  #depth = 0
  #inString = false
  /** Whether the last byte of the previous piece escapes the first one of the next. */
  #escapes = false
  /** The current or last string, as far as it may matter. */
  #text = ''
  /** The member of the response, and the member in it, whose value comes next. */
  #outer = ''
  #key = ''
  #code = ''
  #kind: 'result' | 'tool error' | 'input' | 'error' | undefined

  /** How the call ended, once all pieces have come; undefined if no result and no error was recognized. */
  get final(): Final | undefined {
    if (this.#kind === undefined) return undefined
    if (this.#kind === 'error') return { kind: 'error', error: { code: Number(this.#code) || -32603, message: '' } }
    if (this.#kind === 'input') return { kind: 'input', result: EMPTY }
    return { kind: 'result', result: this.#kind === 'tool error' ? TOOL_ERROR : EMPTY }
  }

  /** Reads the next piece. */
  push(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    for (let at = 0; at < piece.length; at++) {
      if (this.#inString) at = this.#readString(piece, at)
      else this.#read(piece[at] as number)
    }
  }

  /** Reads to the end of a string. Returns the position of its last quote, or the end of the piece. */
  #readString(piece: Buffer, from: number): number {
    const start = this.#escapes ? from + 1 : from
    this.#escapes = false
    let at = piece.indexOf(QUOTE, start)
    while (at >= 0 && isEscaped(piece, at, start)) at = piece.indexOf(QUOTE, at + 1)
    const end = at < 0 ? piece.length : at
    if (this.#depth <= 2 && this.#text.length <= LONGEST)
      this.#text += piece.toString('latin1', start, Math.min(end, start + LONGEST + 1))
    if (at < 0) {
      this.#escapes = isEscaped(piece, end, start)
      return end
    }
    this.#inString = false
    if (this.#depth === 2 && this.#outer === 'result' && this.#key === 'resultType')
      if (this.#text === 'input_required') this.#kind = 'input'
    return end
  }

  #read(byte: number): void {
    switch (byte) {
      case QUOTE:
        this.#inString = true
        this.#text = ''
        return
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

/** Whether an odd number of backslashes stands before a position. */
function isEscaped(piece: Buffer, at: number, start: number): boolean {
  let before = at
  while (before > start && piece[before - 1] === BACKSLASH) before--
  return (at - before) % 2 === 1
}
