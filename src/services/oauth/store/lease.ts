/**
 * A lease in a record, which ends with the process that holds it. The holder changes it again and again, and others watch that:
 * one that stays the same belongs to a process that was killed. No clocks are compared, because those of replicas differ.
 */
import { randomUUID } from 'node:crypto'
import { Fault } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import { pause } from '../../../base/time/pause.js'
import { unavailable } from '../failure.js'
import type { Holder, TokenRecord } from './record.js'
import type { TokenStore } from './store.js'

/** Where the lease is. */
export interface LeasePlace {
  store: TokenStore
  key: string
  holder: Holder
  now?: (() => number) | undefined
  signal?: Signal | undefined
}

type RecordedLease = NonNullable<TokenRecord['lease']>

/** All in milliseconds. Between two signs of life. */
const BEAT = 200
/** Between two looks at a lease, and looks in a row without a sign of life after which its holder counts as killed. */
const LOOK = 100
const LOOKS = 12
/** For which a holder can be sure that it does not count as killed. */
const SURE = 1_000
/** For which there are signs of life: longer than a renewal takes (metadata, and two requests if the issuer wants a nonce). */
const HELD = 40_000
/** For which others wait for a holder that lives. */
const PATIENCE = 45_000

/** How often a sign of life that took longer than SURE is shown again. */
const AGAIN = 3

export class Lease {
  readonly #place: LeasePlace
  readonly #owner = randomUUID()
  /** When others last could see a sign of life at the earliest, by the monotonic clock. */
  #shown = Number.NEGATIVE_INFINITY
  #isLost = false

  constructor(place: LeasePlace) {
    this.#place = place
  }

  /** Whether another process has taken over. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Puts it into a record. */
  enter(record: TokenRecord): void {
    this.#shown = performance.now()
    record.lease = { owner: this.#owner, until: this.#until(0) }
  }

  /** Removes it from a record, if it is still there. */
  leave(record: TokenRecord): void {
    if (record.lease?.owner === this.#owner) delete record.lease
  }

  /** Shows signs of life until the signal aborts. */
  async live(signal: AbortSignal): Promise<void> {
    const end = performance.now() + HELD
    while (performance.now() < end && !this.#isLost && (await pause(BEAT, signal))) await this.#show().catch(() => {})
  }

  /** Rejects if another process may have taken over: before a request that must not be made twice. */
  async check(): Promise<void> {
    const sinceShown = () => performance.now() - this.#shown
    if (sinceShown() > BEAT) await this.#show()
    for (let again = 0; again < AGAIN && sinceShown() > SURE; again++) await this.#show()
    if (this.#isLost || sinceShown() > SURE)
      throw unavailable('Another process may have begun to renew the token for this server', { retryAfter: 1 })
  }

  async #show(): Promise<void> {
    const { store, key, holder } = this.#place
    const at = performance.now()
    const isMine = await store.change(key, holder, ({ lease }) => {
      if (lease?.owner !== this.#owner) return false
      lease.until = this.#until(lease.until)
      return true
    })
    if (isMine) this.#shown = at
    else this.#isLost = true
  }

  /** Another time than before, whatever the clock says. */
  #until(before: number): number {
    return Math.max(before + 1, (this.#place.now ?? Date.now)() + SURE)
  }
}

/**
 * Waits until a lease is over. Resolves to the lease if its holder was killed; to undefined if that has given it back. Rejects with a Fault.
 */
export async function leaseOver({ store, key, signal }: LeasePlace): Promise<RecordedLease | undefined> {
  const deadline = performance.now() + PATIENCE
  let seen: RecordedLease | undefined
  for (let looks = 0; performance.now() < deadline; looks++) {
    const lease = await leaseIn(store, key)
    if (lease === undefined) return undefined
    if (lease === 'unknown' || !isSame(lease, seen)) looks = 0
    else if (looks >= LOOKS) return lease
    seen = lease === 'unknown' ? undefined : lease
    await pause(LOOK, signal)
    signal?.throwIfAborted()
  }
  throw unavailable('Another process is renewing the token for this server and has not finished')
}

/** Whether two leases are the same, with no sign of life between them. */
export function isSame(one: RecordedLease | undefined, other: RecordedLease | undefined): boolean {
  return one?.owner === other?.owner && one?.until === other?.until
}

/** What a store that cannot be reached has remembered says nothing about a process. */
async function leaseIn(store: TokenStore, key: string): Promise<RecordedLease | undefined | 'unknown'> {
  try {
    return (await store.read(key, { certain: true }))?.lease
  } catch (error) {
    if (error instanceof Fault && error.fault === 'storeUnavailable') return 'unknown'
    throw error
  }
}
