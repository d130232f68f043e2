/**
 * A queue of messages that have arrived for a call and wait for its reader. Drops notifications beyond a number, or if
 * there is no memory.
 */
import { MAX_UNREAD } from '../base/limits/constants.js'
import { type Reservation, SMALL } from '../base/limits/memory.js'

export class Unread<Arrival extends { kind: string }> {
  readonly #weigh: (arrival: Arrival) => number
  readonly #reserve: () => Reservation
  #arrivals: Arrival[] = []
  #bytes = 0
  #reservation: Reservation | undefined

  /** `weigh` returns the bytes of a message. `reserve` begins the reservation, when more than a small amount waits. */
  constructor(weigh: (arrival: Arrival) => number, reserve: () => Reservation) {
    this.#weigh = weigh
    this.#reserve = reserve
  }

  get length(): number {
    return this.#arrivals.length
  }

  /** Adds a message. Returns whether there was room. A question has its own reservation, so there is always room for it. */
  push(arrival: Arrival): boolean {
    const bytes = this.#weigh(arrival)
    const full = (arrival.kind === 'notification' || arrival.kind === 'event') && this.#arrivals.length >= MAX_UNREAD
    if (full || !this.#hold(this.#bytes + bytes)) return false
    this.#bytes += bytes
    this.#arrivals.push(arrival)
    return true
  }

  shift(): Arrival | undefined {
    const arrival = this.#arrivals.shift()
    if (arrival && this.#bytes > 0) this.#lose(this.#weigh(arrival))
    return arrival
  }

  takeOut<K extends Arrival['kind']>(kind: K): Extract<Arrival, { kind: K }>[] {
    const isOne = (arrival: Arrival): arrival is Extract<Arrival, { kind: K }> => arrival.kind === kind
    const taken = this.#arrivals.filter(isOne)
    this.#arrivals = this.#arrivals.filter((arrival) => !isOne(arrival))
    for (const arrival of taken) this.#lose(this.#weigh(arrival))
    return taken
  }

  /** Drops all messages, because there is no reader any more. */
  clear(): void {
    this.#arrivals = []
    this.#bytes = 0
    this.#reservation?.end()
    this.#reservation = undefined
  }

  #lose(bytes: number): void {
    this.#bytes -= bytes
    this.#hold(this.#bytes)
  }

  #hold(bytes: number): boolean {
    if (bytes <= SMALL && !this.#reservation) return true
    this.#reservation ??= this.#reserve()
    return this.#reservation.resize(bytes) === undefined
  }
}
