/** Finds out whether the events of a stream (WHATWG HTML, section 9.2) have ids, while it passes in chunks. */
import { startsWith, whole } from './source.js'

const LINE_ENDS = [0x0a, 0x0d]
const encoder = new TextEncoder()
/** How a line with an id begins; also the first line, after a byte order mark. */
const BEGINNINGS = ['id:', '\ufeffid:'].map((text) => encoder.encode(text))
/** Bytes of the longest, with the end of the line before it, that can come before the last. */
const EDGE = 6

export class EventIds {
  /** The last bytes before the next chunk: such a line may begin in them. A stream begins like a line. */
  #before = Uint8Array.of(0x0a)
  /** Whether an event had an id. */
  found = false

  /** Reads a chunk. `hasLineEnd`: whether there is a line end in it. */
  push(chunk: Uint8Array, hasLineEnd: boolean): void {
    if (this.found) return
    // Most chunks of a large event are the middle of a line.
    this.found = hasId(whole([this.#before, chunk.subarray(0, EDGE)])) || (hasLineEnd && hasId(chunk))
    this.#before = whole([this.#before, chunk.subarray(-EDGE)]).slice(-EDGE)
  }
}

function hasId(bytes: Uint8Array): boolean {
  return LINE_ENDS.some((end) => {
    for (let at = bytes.indexOf(end); at >= 0; at = bytes.indexOf(end, at + 1)) {
      const line = bytes.subarray(at + 1, at + 1 + EDGE)
      if (BEGINNINGS.some((beginning) => startsWith(line, beginning))) return true
    }
    return false
  })
}
