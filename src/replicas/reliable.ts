/** Parts that arrive in order and once, over a way that may lose, repeat and shuffle what goes over it. */

/** Bytes that may be on their way, and that may wait, before whoever makes them waits as well. */
const WINDOW = 1024 * 1024
/** What is sent again at once. */
const AGAIN = { parts: 32, bytes: 256 * 1024 }
/** Parts that may come before those that stand before them. */
const MAX_EARLY = 65_536

export interface Numbered {
  number: number
  part: Uint8Array
}

/** What is to be sent, and what has been and may have to be sent again. */
export class Outgoing {
  readonly #parts: Uint8Array[] = []
  #acknowledged = 0
  #bytes = 0
  /** Parts that have been sent and not acknowledged, and their bytes. */
  #sent = 0
  #sentBytes = 0
  /** When something of that was last sent, or acknowledged. */
  #since = 0
  #waiting: (() => void)[] = []
  /** The other side cannot take more at the moment. */
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

  /** Resolves when there is room for more, or when that does not matter any more. */
  async room(): Promise<void> {
    if (this.#hasRoom) return
    await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Lets those go on who wait for room, if there is some. */
  wake(over = false): void {
    if (over || this.#hasRoom) for (const resolve of this.#waiting.splice(0)) resolve()
  }

  /** Parts that have not been sent yet, as many as may be on their way. They count as sent. */
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

  /** The oldest parts that have been sent, where for so many milliseconds none was, and none has arrived. */
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

/** What has arrived. */
export class Incoming {
  readonly #early = new Map<number, Uint8Array>()
  /** The last part up to which all have arrived. */
  arrived = 0

  /** Takes a part. Gives those that are complete with it, in order. */
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
