/**
 * Bytes that come in pieces. Large pieces stay the memory that they came in; small ones are put together, because each of
 * them would cost more than what is in it.
 */

/** Bytes of a block into which small pieces are copied, and from which on a piece is not small. */
const BLOCK = 64 * 1024
const LARGE = 4 * 1024

export class Gathering {
  #pieces: Uint8Array[] = []
  /** Where small pieces go: the last piece, of which only the beginning is used. */
  #block: Uint8Array | undefined
  #used = 0
  #length = 0

  /** Bytes that have been gathered. */
  get length(): number {
    return this.#length
  }

  push(piece: Uint8Array): void {
    this.#length += piece.length
    // What comes in one piece, as most does, is not copied.
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

  /** Gives everything, and begins anew. */
  take(): Uint8Array[] {
    this.#close()
    const pieces = this.#pieces
    this.#pieces = []
    this.#length = 0
    return pieces
  }

  /** Nothing more goes into the last block. */
  #close(): void {
    if (this.#block) this.#pieces[this.#pieces.length - 1] = this.#block.subarray(0, this.#used)
    this.#block = undefined
    this.#used = 0
  }
}
