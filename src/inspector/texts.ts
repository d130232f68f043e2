/** The newest texts of messages, in a buffer of fixed size: each new text overwrites the oldest ones. */

import { lengthOf, type Wire } from '../base/rpc/source.js'
import type { KeptText } from './recorder/events.js'
import { bytesOf } from './recorder/message.js'

/** Most stored characters of a text, and most bytes they can take. */
const MAX_TEXT = 16 * 1024
const MAX_TEXT_BYTES = 3 * MAX_TEXT
/** Bytes before each text: its length, and the number of characters cut from its end. */
const HEAD = 12

/** The start of a text, counted from the first byte ever written. */
export type TextPosition = number

export class Texts {
  readonly #size: number
  #memory: Buffer | undefined
  #written = 0

  /** Allocates this many bytes with the first text. */
  constructor(size: number) {
    this.#size = size
  }

  /** Bytes in use. */
  get bytes(): number {
    return Math.min(this.#written, this.#size)
  }

  /** Approximate bytes ever written. */
  get written(): TextPosition {
    return this.#written
  }

  /**
   * Copies the beginning of a text of so many bytes, which may be less than all of it. Returns its position; undefined if
   * there is no room for any text.
   */
  add(wire: Wire, bytes = 0): TextPosition | undefined {
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

  /** Copies a text from another store. Returns its position; undefined if it was overwritten. */
  copy(texts: Texts, position: TextPosition): TextPosition | undefined {
    const found = texts.#at(position)
    const at = found && this.#begin()
    if (at === undefined || !found || !this.#memory) return undefined
    this.#memory.set(found.bytes, (at % this.#size) + HEAD)
    return this.#end(at, found.bytes.length, found.cut)
  }

  /** The text at a position; undefined if it was overwritten. */
  read(position: TextPosition): KeptText | undefined {
    const found = this.#at(position)
    return found && { text: found.bytes.toString('utf8'), cut: found.cut, hidden: 0 }
  }

  #at(position: TextPosition): { bytes: Buffer; cut: number } | undefined {
    if (!this.#memory || position + this.#size < this.#written) return undefined
    const start = position % this.#size
    const length = this.#memory.readUInt32LE(start)
    return {
      bytes: this.#memory.subarray(start + HEAD, start + HEAD + length),
      cut: this.#memory.readDoubleLE(start + 4),
    }
  }

  /** The start of the next text. Texts are never split: if the room at the end may not suffice, it starts over at 0. */
  #begin(): TextPosition | undefined {
    const most = HEAD + MAX_TEXT_BYTES
    if (this.#size < most) return undefined
    this.#memory ??= Buffer.alloc(this.#size)
    const left = this.#size - (this.#written % this.#size)
    if (left < most) this.#written += left
    return this.#written
  }

  #end(at: TextPosition, length: number, cut: number): TextPosition {
    const start = at % this.#size
    this.#memory?.writeUInt32LE(length, start)
    this.#memory?.writeDoubleLE(cut, start + 4)
    this.#written += HEAD + length
    return at
  }
}
