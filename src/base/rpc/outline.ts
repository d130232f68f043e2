/** Keeps the beginning and the end of a text that is too large to store: enough to find which request it answers. */
import { whole } from './source.js'

const BEGINNING = 4 * 1024
const ENDING = 1024
const NOTHING = new Uint8Array(0)
/** An id that is the last member of a message, or the last before its version. It cannot be within a string or a value. */
const ID_AT_END = /"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/
const decoder = new TextDecoder()

/** The outline of one text. */
export class Outline {
  /** Bytes of the whole text. */
  length = 0
  #beginning: Uint8Array = NOTHING
  #ending: Uint8Array = NOTHING

  constructor(pieces: readonly Uint8Array[] = []) {
    for (const piece of pieces) this.add(piece)
  }

  /** Adds the next piece. Keeps copies, so that the piece itself can be freed. */
  add(piece: Uint8Array): void {
    this.length += piece.length
    if (this.#beginning.length < BEGINNING) this.#beginning = whole([this.#beginning, piece]).slice(0, BEGINNING)
    this.#ending = piece.length < ENDING ? whole([this.#ending, piece]).slice(-ENDING) : piece.slice(-ENDING)
  }

  get beginning(): Uint8Array {
    return this.#beginning
  }

  /** The id with which a JSON-RPC message ends, as JSON; undefined if the id is at another place, or missing. */
  get idAtEnd(): string | undefined {
    return ID_AT_END.exec(decoder.decode(this.#ending))?.[1]
  }
}
