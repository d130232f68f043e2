/**
 * Collects bytes that arrive in pieces. It keeps large pieces as they are, and copies small ones together, because the
 * overhead of a small piece is larger than its content.
 */

/** The size of blocks for small pieces, and the length from which a piece is large. */
const BLOCK = 64 * 1024
const LARGE = 4 * 1024

/** The collected pieces. */
export class Gathering {
  #pieces: Uint8Array[] = []
  /** The block for small pieces, which is also the last piece; only its beginning is used. */
  #block: Uint8Array | undefined
  #used = 0
  #length = 0

  /** Bytes collected. */
  get length(): number {
    return this.#length
  }

  push(piece: Uint8Array): void {
    this.#length += piece.length
    // The first piece is not copied: most messages arrive in one piece.
    if (piece.length >= LARGE || this.#pieces.length === 0) {
      this.#close()
      this.#pieces.push(piece)
      return
    }
    if (!this.#block || this.#used + piece.length > BLOCK) {
      this.#close()
      this.#block = new Uint8Array(BLOCK)
      this.#pieces.push(this.#block)
    }
    this.#block.set(piece, this.#used)
    this.#used += piece.length
  }

  /** A copy of the first bytes, `most` at most. */
  copy(most: number): Uint8Array {
    const copied = new Uint8Array(Math.min(most, this.#length))
    let at = 0
    for (const piece of this.#pieces) {
      const used = piece === this.#block ? this.#used : piece.length
      const room = copied.length - at
      if (room === 0) break
      copied.set(piece.subarray(0, Math.min(used, room)), at)
      at += Math.min(used, room)
    }
    return copied
  }

  /** Returns everything, and starts again. */
  take(): Uint8Array[] {
    this.#close()
    const pieces = this.#pieces
    this.#pieces = []
    this.#length = 0
    return pieces
  }

  /** Cuts the last block to its used part. */
  #close(): void {
    if (this.#block) this.#pieces[this.#pieces.length - 1] = this.#block.subarray(0, this.#used)
    this.#block = undefined
    this.#used = 0
  }
}
