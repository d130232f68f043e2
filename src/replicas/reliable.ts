/** Delivers parts once and in order over a channel that may lose, repeat and reorder them. */

/** Bytes that may be in transit, and bytes that may wait, before the sender is paused. */
const WINDOW = 1024 * 1024
/** The most that is sent again before some of it is acknowledged. */
const AGAIN = { parts: 32, bytes: 256 * 1024 }
/** Parts that may arrive ahead of missing ones. */
const MAX_EARLY = 65_536

/** A part and its number. */
export interface Numbered {
  number: number
  part: Uint8Array
}

const NONE: readonly Numbered[] = []

/** Parts to send, and parts that may have to be sent again. */
export class Outgoing {
  readonly #parts: Uint8Array[] = []
  #acknowledged = 0
  #bytes = 0
  /** Parts sent but not acknowledged, and their bytes. */
  #sent = 0
  #sentBytes = 0
  /** When the oldest of them was sent, or some were acknowledged. */
  #since = 0
  /** Some parts up to this one were lost; they have been sent again up to the other. */
  #lostTo = 0
  #againTo = 0
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
    // Later parts do not make the oldest one younger.
    if (this.#sent === 0) this.#since = performance.now()
    while (!this.full && this.#sent < this.#parts.length && this.#sentBytes < WINDOW) {
      const part = this.#parts[this.#sent++] as Uint8Array
      this.#sentBytes += part.length
      found.push({ number: this.#acknowledged + this.#sent, part })
    }
    return found
  }

  /** The oldest sent parts, if none was acknowledged for so many milliseconds. They count as lost. */
  again(milliseconds: number): readonly Numbered[] {
    const now = performance.now()
    if (this.#sent === 0 || now - this.#since < milliseconds) return NONE
    this.#since = now
    this.#lostTo = this.#acknowledged + this.#sent
    this.#againTo = this.#acknowledged
    return this.repair()
  }

  /** The lost parts that may be sent again now. */
  repair(): readonly Numbered[] {
    if (this.#acknowledged >= this.#lostTo) return NONE
    let bytes = 0
    const found: Numbered[] = []
    const last = Math.min(this.#lostTo - this.#acknowledged, AGAIN.parts)
    for (let at = 0; at < last; at++) {
      const part = this.#parts[at] as Uint8Array
      bytes += part.length
      if (at > 0 && bytes > AGAIN.bytes) break
      const number = this.#acknowledged + at + 1
      if (number <= this.#againTo) continue
      this.#againTo = number
      found.push({ number, part })
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
