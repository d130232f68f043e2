/**
 * Newline framing on byte 0x0A (MCP stdio). Bytes, because the line ends of Unicode (U+2028 and its kin, legal inside a
 * JSON string) are none here, and because a character may be cut in two by a chunk.
 */

const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const NOTHING = new Uint8Array(0)

/** A line, or what is wrong with it. */
export type Line = string | BadLine

export class BadLine {
  readonly why: 'too long' | 'not UTF-8'
  constructor(why: 'too long' | 'not UTF-8') {
    this.why = why
  }
}

/**
 * Takes bytes in chunks cut anywhere and gives lines without their end; a carriage return before it is taken off, and
 * empty lines are left out. Of a line of over `limit` bytes nothing is kept but the fact.
 */
export class LineDecoder {
  readonly #limit: number
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  #rest: Uint8Array[] = []
  #restLength = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Bytes of a line that has not ended yet. */
  get pending(): number {
    return this.#restLength
  }

  push(chunk: Uint8Array): Line[] {
    const last = chunk.lastIndexOf(LINE_FEED)
    if (last < 0) {
      this.#keep(chunk)
      return []
    }
    const lines: Line[] = []
    let complete = chunk.subarray(0, last)
    if (this.#restLength > 0) {
      const first = complete.indexOf(LINE_FEED)
      const end = first < 0 ? complete.length : first
      this.#add(this.#finish(complete.subarray(0, end)), lines)
      complete = complete.subarray(Math.min(end + 1, complete.length))
    }
    this.#split(complete, lines)
    if (last + 1 < chunk.length) this.#keep(chunk.subarray(last + 1))
    return lines
  }

  /** What stood after the last line end when the stream ended. */
  end(): Line[] {
    const lines: Line[] = []
    if (this.#restLength > 0) this.#add(this.#finish(NOTHING), lines)
    return lines
  }

  #keep(piece: Uint8Array): void {
    this.#restLength += piece.length
    if (this.#restLength > this.#limit) this.#rest = []
    else this.#rest.push(piece)
  }

  /** The line that has been kept so far, with its end. */
  #finish(piece: Uint8Array): Uint8Array | BadLine {
    const length = this.#restLength + piece.length
    const parts = [...this.#rest, piece]
    this.#rest = []
    this.#restLength = 0
    if (length > this.#limit) return new BadLine('too long')
    const line = new Uint8Array(length)
    let at = 0
    for (const part of parts) {
      line.set(part, at)
      at += part.length
    }
    return line
  }

  /** Several lines are decoded at once, and one by one only where something among them is no UTF-8. */
  #split(bytes: Uint8Array, lines: Line[]): void {
    if (bytes.length === 0) return
    const text = this.#decode(bytes)
    if (text instanceof BadLine) {
      for (const line of splitBytes(bytes)) this.#add(line, lines)
      return
    }
    for (const line of text.split('\n')) {
      if (line.length > this.#limit) lines.push(new BadLine('too long'))
      else if (line.endsWith('\r')) this.#push(line.slice(0, -1), lines)
      else this.#push(line, lines)
    }
  }

  #add(line: Uint8Array | BadLine, lines: Line[]): void {
    if (line instanceof BadLine) lines.push(line)
    else if (line.length > this.#limit) lines.push(new BadLine('too long'))
    else this.#push(this.#decode(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line), lines)
  }

  #push(line: Line, lines: Line[]): void {
    if (line !== '') lines.push(line)
  }

  #decode(bytes: Uint8Array): Line {
    try {
      return this.#utf8.decode(bytes)
    } catch {
      return new BadLine('not UTF-8')
    }
  }
}

function splitBytes(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = []
  let start = 0
  for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
    lines.push(bytes.subarray(start, end))
    start = end + 1
  }
  lines.push(bytes.subarray(start))
  return lines
}

/** One message as one line. Raw line breaks, legal between tokens only, become spaces. */
export function encodeLine(json: string): string {
  return json.includes('\n') || json.includes('\r') ? `${json.replace(/\r\n|\r|\n/g, ' ')}\n` : `${json}\n`
}
