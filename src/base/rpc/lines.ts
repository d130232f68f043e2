/**
 * Newline framing on byte 0x0A (MCP stdio). Works on bytes, because Unicode line ends (such as U+2028, legal in a JSON
 * string) do not end a line, and because a chunk may end in the middle of a character.
 */

import { Gathering } from './gathering.js'
import { Outline } from './outline.js'
import { MARK_LENGTH, type Piece, startsWithMark, type Wire, whole } from './source.js'

const TAB = 0x09
const SPACE = 0x20
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NOTHING = new Uint8Array(0)

/** The pieces of a line: one, unless a chunk ended in the middle of it. Only the outline of a line that is too long. */
export type Line = readonly Uint8Array[] | Outline

/**
 * Turns chunks of bytes into lines, without their leading white space and their line ends (LF or CRLF). Blank lines are
 * skipped. Of a line of more than `limit` bytes, only the outline is kept.
 */
export class LineDecoder {
  /** Bytes of the current, unfinished line. */
  pending = 0
  /** Most bytes of a line. */
  limit: number
  /** The beginning of the current line; its outline, if it is too long. */
  readonly #rest = new Gathering()
  #outline: Outline | undefined

  constructor(limit: number) {
    this.limit = limit
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

  /** Bytes of the unfinished line that are in memory. */
  get kept(): number {
    return this.#rest.length
  }

  /** A copy of the beginning of the unfinished line. */
  beginning(most: number): Uint8Array {
    return this.#outline?.beginning.subarray(0, most) ?? this.#rest.copy(most)
  }

  /** Keeps only the outline of the unfinished line, including the part that has not arrived yet. */
  skip(): void {
    this.#outline ??= new Outline(this.#rest.take())
  }

  /** Returns the rest after the last line end. To be called when the stream has ended. */
  end(): Line[] {
    const lines: Line[] = []
    if (this.pending > 0) this.#finish(NOTHING, lines)
    return lines
  }

  #keep(received: Uint8Array): void {
    const piece = this.pending === 0 ? afterSpace(received) : received
    if (piece.length === 0) return
    this.pending += piece.length
    if (this.pending > this.limit) this.skip()
    if (this.#outline) this.#outline.add(piece)
    else this.#rest.push(piece)
  }

  #finish(received: Uint8Array, lines: Line[]): void {
    const piece = this.pending === 0 ? afterSpace(received) : received
    if (this.pending + piece.length > this.limit) this.skip()
    if (this.#outline) {
      this.#outline.add(piece)
      lines.push(this.#outline)
      this.#outline = undefined
      this.pending = 0
      return
    }
    const length = this.pending + piece.length
    // Most lines arrive in one piece.
    const pieces = this.pending === 0 ? [piece] : this.#gathered(piece)
    const last = pieces.at(-1)
    if (last?.at(-1) === CARRIAGE_RETURN) pieces[pieces.length - 1] = last.subarray(0, -1)
    // One more byte is a carriage return.
    if (length > MARK_LENGTH + 1 || !isBlank(pieces)) lines.push(pieces)
  }

  /** The pieces of the current line, with the last one. */
  #gathered(piece: Uint8Array): Uint8Array[] {
    if (piece.length > 0) this.#rest.push(piece)
    this.pending = 0
    return this.#rest.take()
  }
}

/** Whether a line is empty, or only a byte order mark. */
function isBlank(pieces: readonly Uint8Array[]): boolean {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  return length === 0 || (length === MARK_LENGTH && startsWithMark(whole(pieces, length)))
}

/** The bytes after white space at the beginning: spaces, tabs and carriage returns. */
function afterSpace(bytes: Uint8Array): Uint8Array {
  let start = 0
  let byte = bytes[0]
  while (byte === SPACE || byte === TAB || byte === CARRIAGE_RETURN) byte = bytes[++start]
  return start === 0 ? bytes : bytes.subarray(start)
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
