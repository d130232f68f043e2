/** Removes fields from an event stream (WHATWG HTML, section 9.2) that passes through in chunks. */
import { MARK_LENGTH, startsWith, startsWithMark, whole } from './source.js'

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
/** To recognize the beginning of a byte order mark. */
const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf)

/** Removes the lines of some fields. It delays nothing else and changes no other byte. */
export class FieldFilter {
  readonly #fields: readonly Uint8Array[]
  readonly #longest: number
  /** The start of a line that may have one of the fields. */
  #held: Uint8Array = new Uint8Array(0)
  /** A byte order mark may come first. */
  #mayBeMark = true
  #atStart = true
  #dropping = false
  /** The last byte was a carriage return: a following line feed belongs to the same line end. */
  #carriage: 'passed' | 'dropped' | undefined
  /** Whether there was a line with one of the fields. */
  found = false

  constructor(fields: readonly string[]) {
    const encoder = new TextEncoder()
    this.#fields = fields.map((field) => encoder.encode(`${field}:`))
    this.#longest = Math.max(...this.#fields.map(({ length }) => length))
  }

  /** The parts of a chunk to pass on. `hasLineEnd`: whether there is a line end in it. */
  push(chunk: Uint8Array, hasLineEnd: boolean): Uint8Array[] {
    // Most chunks of a large event are the middle of a line.
    if (!hasLineEnd && !this.#atStart && chunk.length > 0) return this.#dropping ? [] : [chunk]
    const bytes = this.#held.length === 0 ? chunk : whole([this.#held, chunk])
    this.#held = new Uint8Array(0)
    const passed: Uint8Array[] = []
    if (this.#mayBeMark && bytes.length < MARK_LENGTH && startsWith(BYTE_ORDER_MARK, bytes)) {
      this.#held = bytes.slice()
      return []
    }
    let start = this.#carriage !== undefined && bytes[0] === LINE_FEED ? 1 : 0
    if (this.#mayBeMark && startsWithMark(bytes)) start = MARK_LENGTH
    this.#mayBeMark = false
    let from = this.#carriage === 'dropped' ? start : 0
    if (bytes.length > 0) this.#carriage = undefined
    let feed = bytes.indexOf(LINE_FEED, start)
    let carriage = bytes.indexOf(CARRIAGE_RETURN, start)
    while (start < bytes.length) {
      if (this.#atStart) {
        const line = bytes.subarray(start, start + this.#longest)
        if (this.#fields.some((field) => startsWith(line, field))) {
          passed.push(bytes.subarray(from, start))
          this.#dropping = true
          this.found = true
        } else if (line.length < this.#longest && this.#fields.some((field) => startsWith(field, line))) {
          this.#held = line.slice()
          break
        }
      }
      if (feed >= 0 && feed < start) feed = bytes.indexOf(LINE_FEED, start)
      if (carriage >= 0 && carriage < start) carriage = bytes.indexOf(CARRIAGE_RETURN, start)
      const end = feed < 0 ? carriage : carriage < 0 ? feed : Math.min(feed, carriage)
      this.#atStart = end >= 0
      start = end < 0 ? bytes.length : end + 1
      if (end >= 0 && end === carriage) {
        if (bytes[start] === LINE_FEED) start++
        else if (start === bytes.length) this.#carriage = this.#dropping ? 'dropped' : 'passed'
      }
      if (!this.#dropping) continue
      from = start
      this.#dropping = end < 0
    }
    if (!this.#dropping) passed.push(bytes.subarray(from, start))
    return passed.filter(({ length }) => length > 0)
  }
}
