/** What has come in for a call and waits for its reader. Notifications are dropped where there are too many of them, or too large ones. */
import { type Loan, SMALL } from '../protocol/memory.js'
import { weightOf } from '../rpc/source.js'
import type { Arrival } from './exchange.js'

/** Notifications that may wait to be read. A reader that slow gets the answer, but not all that came before it. */
const MAX_UNREAD = 1_024

export class Unread {
  readonly #borrow: () => Loan
  #arrivals: Arrival[] = []
  #bytes = 0
  #loan: Loan | undefined
  /** Notifications that were dropped. */
  dropped = 0

  /** What is more than little is lent by what `borrow` gives. */
  constructor(borrow: () => Loan) {
    this.#borrow = borrow
  }

  get length(): number {
    return this.#arrivals.length
  }

  /** Keeps a message. Gives whether there was room for it; there always is for a question, which has a loan of its own. */
  push(arrival: Arrival): boolean {
    const bytes = sizeOf(arrival)
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
    if (arrival && this.#bytes > 0) this.#lose(sizeOf(arrival))
    return arrival
  }

  /** Takes out those of one kind. */
  takeOut<K extends Arrival['kind']>(kind: K): Extract<Arrival, { kind: K }>[] {
    const isOne = (arrival: Arrival): arrival is Extract<Arrival, { kind: K }> => arrival.kind === kind
    const taken = this.#arrivals.filter(isOne)
    this.#arrivals = this.#arrivals.filter((arrival) => !isOne(arrival))
    for (const arrival of taken) this.#lose(sizeOf(arrival))
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

function sizeOf(arrival: Arrival): number {
  switch (arrival.kind) {
    case 'notification':
      return typeof arrival.params === 'string' ? 0 : weightOf(arrival.params.source)
    case 'response':
      return weightOf(arrival.outcome.source)
    case 'question':
      return 0
  }
}
