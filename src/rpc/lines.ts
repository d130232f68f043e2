/**
 * Newline framing on byte 0x0A (MCP stdio). Bytes, because the line ends of Unicode (U+2028 and its kin, legal inside a
 * JSON string) are none here, and because a character may be cut in two by a chunk.
 */

import { Gathering } from './gathering.js'
import type { Piece, Wire } from './source.js'

const SPACE = 0x20
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NOTHING = new Uint8Array(0)

/** What stands for a line that was too long to keep. */
export const TOO_LONG = Symbol('too long')
/** A line is the pieces of memory in which it came: one, unless a chunk ended in the middle of it. */
export type Line = readonly Uint8Array[] | typeof TOO_LONG

/**
 * Takes bytes in chunks cut anywhere and gives lines without their end; a carriage return before it is taken off, and
 * empty lines are left out. Of a line of over `limit` bytes nothing is kept but the fact.
 */
export class LineDecoder {
  readonly #limit: number
  /** The beginning of a line, unless it is too long already. */
  readonly #rest = new Gathering()
  #restLength = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Bytes of a line that has not ended yet. */
  get pending(): number {
    return this.#restLength
  }

  push(chunk: Uint8Array): Line[] {
    const lines: Line[] = []
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      this.#finish(chunk.subarray(start, end), lines)
      start = end + 1
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start))
    return lines
  }

  /** What stood after the last line end when the stream ended. */
  end(): Line[] {
    const lines: Line[] = []
    if (this.#restLength > 0) this.#finish(NOTHING, lines)
    return lines
  }

  #keep(piece: Uint8Array): void {
    this.#restLength += piece.length
    if (this.#restLength > this.#limit) this.#rest.take()
    else this.#rest.push(piece)
  }

  #finish(piece: Uint8Array, lines: Line[]): void {
    const tooLong = this.#restLength + piece.length > this.#limit
    if (piece.length > 0) this.#rest.push(piece)
    const pieces = this.#rest.take()
    this.#restLength = 0
    const last = pieces.at(-1)
    if (last?.at(-1) === CARRIAGE_RETURN) pieces[pieces.length - 1] = last.subarray(0, -1)
    if (tooLong) lines.push(TOO_LONG)
    else if (pieces.some(({ length }) => length > 0)) lines.push(pieces)
  }
}

/** One message as one line. Raw line breaks, legal between tokens only, become spaces. */
export function encodeLine(message: string): string
export function encodeLine(message: Wire): Wire
export function encodeLine(message: Wire): Wire {
  return typeof message === 'string' ? `${flat(message)}\n` : [...message.map(flat), '\n']
}

/** The same text or bytes without line breaks. */
export function flat<P extends Piece>(part: P): P
export function flat(part: Piece): Piece {
  if (typeof part === 'string')
    return part.includes('\n') || part.includes('\r') ? part.replace(/\r\n|\r|\n/g, ' ') : part
  if (!part.includes(LINE_FEED) && !part.includes(CARRIAGE_RETURN)) return part
  return part.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte))
}
