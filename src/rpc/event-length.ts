/** Measures the events of a stream that passes through in chunks (WHATWG HTML, section 9.2), without storing them. */

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

export function hasLineEnd(bytes: Uint8Array): boolean {
  return bytes.includes(LINE_FEED) || bytes.includes(CARRIAGE_RETURN)
}

/** The length of the current event. */
export class EventLength {
  readonly #limit: number
  #length = 0
  #atLineStart = true
  /** The last byte was a carriage return: a following line feed belongs to the same line end. */
  #carriage = false

  constructor(limit: number) {
    this.#limit = limit
  }

  /**
   * Reads the next bytes. Returns the number of bytes before the one at which an event exceeds the limit; undefined if
   * none does. `hasLineEnd`: whether the bytes contain a line end.
   */
  push(chunk: Uint8Array, hasLineEnd: boolean): number | undefined {
    if (!hasLineEnd && chunk.length > 0 && chunk.length <= this.#limit - this.#length) {
      this.#length += chunk.length
      this.#atLineStart = false
      this.#carriage = false
      return undefined
    }
    let at = this.#carriage && chunk[0] === LINE_FEED ? 1 : 0
    if (chunk.length > 0) this.#carriage = false
    // Each kind of line end is searched again only after the last one found was passed.
    let feed = chunk.indexOf(LINE_FEED, at)
    let carriage = chunk.indexOf(CARRIAGE_RETURN, at)
    while (at < chunk.length) {
      if (feed >= 0 && feed < at) feed = chunk.indexOf(LINE_FEED, at)
      if (carriage >= 0 && carriage < at) carriage = chunk.indexOf(CARRIAGE_RETURN, at)
      const end = feed < 0 ? carriage : carriage < 0 ? feed : Math.min(feed, carriage)
      const next = end < 0 ? chunk.length : end + 1
      const isBlank = end === at && this.#atLineStart
      const room = this.#limit - this.#length
      if (!isBlank && next - at > room) return at + room
      this.#length = isBlank ? 0 : this.#length + next - at
      this.#atLineStart = end >= 0
      at = next
      if (end < 0 || end !== carriage) continue
      if (at === chunk.length) this.#carriage = true
      else if (chunk[at] === LINE_FEED) at++
    }
    return undefined
  }
}
