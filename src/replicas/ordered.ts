/** Parts that arrive in order and once, over a way that may lose, repeat and shuffle what goes over it. */

/** Bytes that may be on their way before whoever makes them waits. */
const WINDOW = 1024 * 1024
/** What is sent again at once. */
const AGAIN = { parts: 32, bytes: 256 * 1024 }
/** Parts that may come before those that stand before them. */
const MAX_EARLY = 4_096

/** What has been sent and may have to be sent again. */
export class Outgoing {
  readonly #parts: Uint8Array[] = []
  #acknowledged = 0
  #bytes = 0
  /** When something of what is waited for was last sent, or has arrived. */
  #since = 0
  #waiting: (() => void)[] = []
  /** The other side cannot take more at the moment. */
  full = false

  get empty(): boolean {
    return this.#parts.length === 0
  }

  /** Adds a part, and gives its number. */
  add(part: Uint8Array): number {
    if (this.empty) this.#since = performance.now()
    this.#parts.push(part)
    this.#bytes += part.length
    return this.#acknowledged + this.#parts.length
  }

  /** All parts up to this one have arrived. */
  acknowledge(number: number): void {
    while (this.#acknowledged < number && this.#parts.length > 0) {
      this.#bytes -= this.#parts.shift()?.length ?? 0
      this.#acknowledged++
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

  /** The oldest parts that have not been acknowledged, where nothing has been for so many milliseconds. */
  again(milliseconds = 0): { number: number; part: Uint8Array }[] {
    const now = performance.now()
    if (now - this.#since < milliseconds) return []
    this.#since = now
    let bytes = 0
    return this.#parts.slice(0, AGAIN.parts).flatMap((part, at) => {
      if (at > 0 && bytes + part.length > AGAIN.bytes) return []
      bytes += part.length
      return [{ number: this.#acknowledged + at + 1, part }]
    })
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
