/**
 * Newline framing on byte 0x0A (MCP stdio). Works on bytes, because Unicode line ends (such as U+2028, legal in a JSON
 * string) do not end a line, and because a chunk may end in the middle of a character.
 */

import { Gathering } from './gathering.js'
import type { Piece, Wire } from './source.js'

const SPACE = 0x20
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NOTHING = new Uint8Array(0)

/** Replaces a line that was too long. */
export const TOO_LONG = Symbol('too long')
/** The pieces of memory of a line: one, unless a chunk ended in the middle of it. */
export type Line = readonly Uint8Array[] | typeof TOO_LONG

/**
 * Turns chunks of bytes into lines, without their line ends (LF or CRLF). Empty lines are dropped. A line of more than
 * `limit` bytes is not kept: it becomes TOO_LONG.
 */
export class LineDecoder {
  /** Bytes of the current, unfinished line. */
  pending = 0
  readonly #limit: number
  /** The beginning of the current line, unless it is already too long. */
  readonly #rest = new Gathering()

  constructor(limit: number) {
    this.#limit = limit
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

  /** The rest after the last line end, when the stream has ended. */
  end(): Line[] {
    const lines: Line[] = []
    if (this.pending > 0) this.#finish(NOTHING, lines)
    return lines
  }

  #keep(piece: Uint8Array): void {
    this.pending += piece.length
    if (this.pending > this.#limit) this.#rest.take()
    else this.#rest.push(piece)
  }

  #finish(piece: Uint8Array, lines: Line[]): void {
    const tooLong = this.pending + piece.length > this.#limit
    // Most lines arrive in one piece.
    const pieces = this.pending === 0 ? [piece] : this.#gathered(piece)
    const last = pieces.at(-1)
    if (last?.at(-1) === CARRIAGE_RETURN) pieces[pieces.length - 1] = last.subarray(0, -1)
    if (tooLong) lines.push(TOO_LONG)
    else if (pieces.length > 1 || pieces[0]?.length) lines.push(pieces)
  }

  /** The pieces of the current line, with the last one. */
  #gathered(piece: Uint8Array): Uint8Array[] {
    if (piece.length > 0) this.#rest.push(piece)
    this.pending = 0
    return this.#rest.take()
  }
}

/** A message as one line. Raw line breaks, which are legal only between tokens, become spaces. */
export function encodeLine(message: string): string
export function encodeLine(message: Wire): Wire
export function encodeLine(message: Wire): Wire {
  return typeof message === 'string' ? `${flat(message)}\n` : [...message.map(flat), '\n']
}

/** The text or bytes with line breaks replaced by spaces. */
export function flat<P extends Piece>(part: P): P
export function flat(part: Piece): Piece {
  if (typeof part === 'string')
    return part.includes('\n') || part.includes('\r') ? part.replace(/\r\n|\r|\n/g, ' ') : part
  if (!part.includes(LINE_FEED) && !part.includes(CARRIAGE_RETURN)) return part
  return part.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? SPACE : byte))
}
