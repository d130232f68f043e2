/** What has come in for a call and waits for its reader. Notifications are dropped where there are too many of them, or too large ones. */
import { type Loan, SMALL } from '../protocol/memory.js'

/** Notifications that may wait to be read. A reader that slow gets the answer, but not all that came before it. */
const MAX_UNREAD = 1_024

export class Unread<Arrival extends { kind: string }> {
  readonly #weigh: (arrival: Arrival) => number
  readonly #borrow: () => Loan
  #arrivals: Arrival[] = []
  #bytes = 0
  #loan: Loan | undefined
  /** Notifications that were dropped. */
  dropped = 0

  /** `weigh` gives the bytes of a message. More than a few bytes are lent by what `borrow` gives. */
  constructor(weigh: (arrival: Arrival) => number, borrow: () => Loan) {
    this.#weigh = weigh
    this.#borrow = borrow
  }

  get length(): number {
    return this.#arrivals.length
  }

  /** Keeps a message. Gives whether there was room for it; there always is for a question, which has a loan of its own. */
  push(arrival: Arrival): boolean {
    const bytes = this.#weigh(arrival)
    const full = arrival.kind === 'notification' && this.#arrivals.length >= MAX_UNREAD
    if (full || !this.#hold(this.#bytes + bytes)) {
      if (arrival.kind === 'notification') this.dropped++
      return false
    }
    this.#bytes += bytes
    this.#arrivals.push(arrival)
    return true
  }

  shift(): Arrival | undefined {
    const arrival = this.#arrivals.shift()
    if (arrival && this.#bytes > 0) this.#lose(this.#weigh(arrival))
    return arrival
  }

  /** Takes out those of one kind. */
  takeOut<K extends Arrival['kind']>(kind: K): Extract<Arrival, { kind: K }>[] {
    const isOne = (arrival: Arrival): arrival is Extract<Arrival, { kind: K }> => arrival.kind === kind
    const taken = this.#arrivals.filter(isOne)
    this.#arrivals = this.#arrivals.filter((arrival) => !isOne(arrival))
    for (const arrival of taken) this.#lose(this.#weigh(arrival))
    return taken
  }

  /** Nobody reads any more. */
  clear(): void {
    this.#arrivals = []
    this.#bytes = 0
    this.#loan?.end()
    this.#loan = undefined
  }

  #lose(bytes: number): void {
    this.#bytes -= bytes
    this.#hold(this.#bytes)
  }

  #hold(bytes: number): boolean {
    if (bytes <= SMALL && !this.#loan) return true
    this.#loan ??= this.#borrow()
    return this.#loan.hold(bytes) === undefined
  }
}
