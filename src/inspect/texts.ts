/** The newest texts of messages, in memory of a fixed size: each new text is written over the oldest ones. */
import { bytesOf } from '../ports/message-sight.js'
import type { Payload } from '../ports/seen.js'
import { lengthOf, type Wire } from '../rpc/source.js'

/** Most characters kept of a text, and most bytes that they take. */
const MAX_TEXT = 16 * 1024
const MAX_BYTES = 3 * MAX_TEXT
/** Bytes before each text: its length, and the characters that are missing at its end. */
const HEAD = 12

/** Where a text begins, counted from the first byte that was ever written. */
export type Position = number

export class Texts {
  readonly #size: number
  #memory: Buffer | undefined
  #written = 0

  /** Takes this many bytes, from the first text on. */
  constructor(size: number) {
    this.#size = size
  }

  /** Bytes that are in use. */
  get bytes(): number {
    return Math.min(this.#written, this.#size)
  }

  /** Bytes that were ever written, about. */
  get written(): Position {
    return this.#written
  }

  /**
   * Copies the beginning of a text of so many bytes, which may be less than all of it. Returns its position; undefined if
   * there is no room for any text.
   */
  add(wire: Wire, bytes = 0): Position | undefined {
    const at = this.#begin()
    const memory = this.#memory
    if (at === undefined || !memory) return undefined
    const from = (at % this.#size) + HEAD
    let length = 0
    let kept = 0
    for (const piece of typeof wire === 'string' ? [wire] : wire) {
      const room = MAX_TEXT - kept
      if (room <= 0) break
      const part =
        piece.length > room ? (typeof piece === 'string' ? piece.slice(0, room) : piece.subarray(0, room)) : piece
      kept += part.length
      if (typeof part === 'string') length += memory.write(part, from + length, 'utf8')
      else {
        memory.set(part, from + length)
        length += part.length
      }
    }
    return this.#end(at, length, lengthOf(wire) - kept + Math.max(0, bytes - bytesOf(wire)))
  }

  /** Copies a text of others. Returns its position; undefined if it is not there any more. */
  copy(texts: Texts, position: Position): Position | undefined {
    const found = texts.#at(position)
    const at = found && this.#begin()
    if (at === undefined || !found || !this.#memory) return undefined
    this.#memory.set(found.bytes, (at % this.#size) + HEAD)
    return this.#end(at, found.bytes.length, found.cut)
  }

  /** The text at a position; undefined if others were written over it. */
  read(position: Position): Payload | undefined {
    const found = this.#at(position)
    return found && { text: found.bytes.toString('utf8'), cut: found.cut, hidden: 0 }
  }

  #at(position: Position): { bytes: Buffer; cut: number } | undefined {
    if (!this.#memory || position + this.#size < this.#written) return undefined
    const start = position % this.#size
    const length = this.#memory.readUInt32LE(start)
    return {
      bytes: this.#memory.subarray(start + HEAD, start + HEAD + length),
      cut: this.#memory.readDoubleLE(start + 4),
    }
  }

  /** Where the next text begins. A text is never divided: if there may not be enough room at the end, it begins anew. */
  #begin(): Position | undefined {
    const most = HEAD + MAX_BYTES
    if (this.#size < most) return undefined
    this.#memory ??= Buffer.alloc(this.#size)
    const left = this.#size - (this.#written % this.#size)
    if (left < most) this.#written += left
    return this.#written
  }

  #end(at: Position, length: number, cut: number): Position {
    const start = at % this.#size
    this.#memory?.writeUInt32LE(length, start)
    this.#memory?.writeDoubleLE(cut, start + 4)
    this.#written += HEAD + length
    return at
  }
}
