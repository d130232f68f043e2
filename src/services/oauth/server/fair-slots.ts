/**
 * Gives out the slots for requests to an identity provider. Nobody who sends such requests has shown who it is yet, so no
 * address can have all slots, and a part of them is only for those who are known. Whoever gets none waits for a while:
 * those who are known come first, and addresses take turns.
 */
import { Bound } from '../../../base/limits/bound.js'
import { Deadline } from '../../../base/time/time.js'

/** Who asks for a slot. */
export interface SlotClient {
  /** The address of the client. */
  from: string
  /** It has shown something that only a client of this provider has. */
  isKnown: boolean
}

export interface FairSlotsOptions {
  /** Most slots in use. */
  max: number
  /** Most clients that wait. */
  maxWaiting?: number
  /** Milliseconds for which a client waits. */
  patience?: number
}

interface Waiter extends SlotClient {
  take(): void
  giveUp(): void
}

const MAX_QUEUED = 256
const PATIENCE = 5_000
/** What one address may have of the slots that the others leave. */
const SHARE = 0.5
/** What clients that are not known may have of all slots. */
const STRANGERS = 0.75

export class FairSlots {
  readonly #all: Bound
  readonly #strangers: Bound
  readonly #maxWaiting: number
  readonly #patience: number
  /** By address. The address whose turn it is comes first. */
  readonly #known = new Map<string, Waiter[]>()
  readonly #unknown = new Map<string, Waiter[]>()
  #waiting = 0

  constructor({ max, maxWaiting = MAX_QUEUED, patience = PATIENCE }: FairSlotsOptions) {
    this.#all = new Bound({ max, share: SHARE })
    this.#strangers = new Bound({ max: Math.max(1, Math.floor(max * STRANGERS)), share: SHARE })
    this.#maxWaiting = maxWaiting
    this.#patience = patience
  }

  /** Does `work` in a slot. Rejects with the error of `none` if the client gets none in time. */
  async use<T>(client: SlotClient, work: () => Promise<T>, none: () => Error): Promise<T> {
    if (this.#isFree(client)) this.#occupy(client)
    else if (!(await this.#waited(client))) throw none()
    try {
      return await work()
    } finally {
      this.#vacate(client)
    }
  }

  #isFree(client: SlotClient): boolean {
    const holder = holderOf(client)
    return this.#all.reached(holder) === undefined && (client.isKnown || this.#strangers.reached(holder) === undefined)
  }

  #occupy(client: SlotClient): void {
    this.#all.occupy(holderOf(client))
    if (!client.isKnown) this.#strangers.occupy(holderOf(client))
  }

  #vacate(client: SlotClient): void {
    this.#all.vacate(holderOf(client))
    if (!client.isKnown) this.#strangers.vacate(holderOf(client))
    for (const line of [this.#known, this.#unknown]) this.#serve(line)
  }

  /** Waits for a slot. Resolves to false if there is none in time, or if too many wait. */
  #waited(client: SlotClient): Promise<boolean> {
    const line = client.isKnown ? this.#known : this.#unknown
    if (this.#waiting >= this.#maxWaiting && !this.#makeRoom(client, line)) return Promise.resolve(false)
    return new Promise((resolve) => {
      const leave = (hasSlot: boolean) => {
        timer.clear()
        this.#leave(line, waiter)
        resolve(hasSlot)
      }
      const waiter = { ...client, take: () => leave(true), giveUp: () => leave(false) }
      const timer = new Deadline(this.#patience, waiter.giveUp)
      this.#waiting++
      line.set(client.from, [...(line.get(client.from) ?? []), waiter])
    })
  }

  #leave(line: Map<string, Waiter[]>, waiter: Waiter): void {
    this.#waiting--
    const rest = (line.get(waiter.from) ?? []).filter((one) => one !== waiter)
    if (rest.length > 0) line.set(waiter.from, rest)
    else line.delete(waiter.from)
  }

  /** Gives free slots to those who wait, one address after another. */
  #serve(line: Map<string, Waiter[]>): void {
    for (let found = true; found; ) {
      found = false
      for (const [from, [first]] of [...line]) {
        if (!first || !this.#isFree(first)) continue
        this.#occupy(first)
        first.take()
        found = true
        // The address goes to the end of the line.
        const rest = line.get(from)
        if (line.delete(from) && rest) line.set(from, rest)
      }
    }
  }

  /** Sends somebody away for a client: a stranger for one that is known, or else the newest of an address with more. */
  #makeRoom({ from, isKnown }: SlotClient, line: Map<string, Waiter[]>): boolean {
    const strangers = isKnown ? most(this.#unknown) : []
    const own = line.get(from)?.length ?? 0
    const crowd = strangers.length > 0 ? strangers : most(line)
    if (crowd !== strangers && crowd.length <= own + 1) return false
    crowd.at(-1)?.giveUp()
    return true
  }
}

/** Who holds a slot: behind one address, strangers take none from those who are known. */
function holderOf({ from, isKnown }: SlotClient): string {
  return `${isKnown ? 'known' : 'stranger'} ${from}`
}

/** Those who wait of the address that has most. */
function most(line: ReadonlyMap<string, Waiter[]>): readonly Waiter[] {
  let found: readonly Waiter[] = []
  for (const waiters of line.values()) if (waiters.length > found.length) found = waiters
  return found
}
