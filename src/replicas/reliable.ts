/** Delivers parts once and in order over a channel that may lose, repeat and reorder them. */

/** Bytes that may be in transit, and bytes that may wait, before the sender is paused. */
const WINDOW = 1024 * 1024
/** The most that is sent again at once. */
const AGAIN = { parts: 32, bytes: 256 * 1024 }
/** Parts that may arrive ahead of missing ones. */
const MAX_EARLY = 65_536

/** A part and its number. */
export interface Numbered {
  number: number
  part: Uint8Array
}

/** Parts to send, and parts that may have to be sent again. */
export class Outgoing {
  readonly #parts: Uint8Array[] = []
  #acknowledged = 0
  #bytes = 0
  /** Parts sent but not acknowledged, and their bytes. */
  #sent = 0
  #sentBytes = 0
  /** When one of them was last sent or acknowledged. */
  #since = 0
  #waiting: (() => void)[] = []
  /** The other side accepts no more for now. */
  full = false

  get empty(): boolean {
    return this.#parts.length === 0
  }

  add(part: Uint8Array): void {
    this.#parts.push(part)
    this.#bytes += part.length
  }

  /** All parts up to this one have arrived. */
  acknowledge(number: number): void {
    while (this.#acknowledged < number && this.#sent > 0) {
      const { length } = this.#parts.shift() as Uint8Array
      this.#acknowledged++
      this.#bytes -= length
      this.#sent--
      this.#sentBytes -= length
      this.#since = performance.now()
    }
    this.wake()
  }

  /** Resolves when there is room for more, or when the link has ended. */
  async room(): Promise<void> {
    if (this.#hasRoom) return
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Resumes senders that wait for room, if there is some. */
  wake(over = false): void {
    if (over || this.#hasRoom) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** The parts that may be sent now. They count as sent. */
  next(): Numbered[] {
    const found: Numbered[] = []
    while (!this.full && this.#sent < this.#parts.length && this.#sentBytes < WINDOW) {
      const part = this.#parts[this.#sent++] as Uint8Array
      this.#sentBytes += part.length
      found.push({ number: this.#acknowledged + this.#sent, part })
    }
    if (found.length > 0) this.#since = performance.now()
    return found
  }

  /** The oldest unacknowledged parts, if nothing was sent or acknowledged for so many milliseconds. */
  again(milliseconds: number): Numbered[] {
    const now = performance.now()
    if (now - this.#since < milliseconds) return []
    this.#since = now
    let bytes = 0
    const found: Numbered[] = []
    for (const part of this.#parts.slice(0, Math.min(this.#sent, AGAIN.parts))) {
      bytes += part.length
      if (found.length > 0 && bytes > AGAIN.bytes) break
      found.push({ number: this.#acknowledged + found.length + 1, part })
    }
    return found
  }

  get #hasRoom(): boolean {
    return !this.full && this.#bytes < WINDOW
  }
}

/** Received parts. */
export class Incoming {
  readonly #early = new Map<number, Uint8Array>()
  /** The number up to which all parts have arrived. */
  arrived = 0

  /** Takes a part. Returns all parts that are now complete, in order. */
  take(number: number, part: Uint8Array): Uint8Array[] {
    if (number <= this.arrived || number > this.arrived + MAX_EARLY) return []
    this.#early.set(number, part)
    const complete: Uint8Array[] = []
    for (let next = this.#early.get(this.arrived + 1); next; next = this.#early.get(this.arrived + 1)) {
      this.#early.delete(++this.arrived)
      complete.push(next)
    }
    return complete
  }
}
