/**
 * Renews a token in one process at a time: redeeming a refresh token twice revokes the whole grant. The process that
 * renews holds a lease in the record; others wait for its result. If it is killed, the next one goes on at once, because
 * many issuers accept a refresh token again for some seconds only.
 */
import { Fault } from '../../../base/fault/fault.js'
import { pause } from '../../../base/time/pause.js'
import { isSame, Lease, type LeasePlace, leaseOver } from './lease.js'
import type { Token, TokenRecord } from './record.js'

/** A renewal. */
export interface Renewal extends LeasePlace {
  /** The access token to be replaced. Any other token in the record is accepted. */
  known: string | undefined
  /** Whether a record can be renewed. */
  isRenewable(record: TokenRecord): boolean
  /**
   * Requests another token. Resolves to the change of the record, which is applied if its token is still the same. `check`
   * rejects if another process may be renewing: it is called before each request for a token.
   */
  renew(record: TokenRecord, check: () => Promise<void>): Promise<Change>
}

type Change = (record: TokenRecord) => void

/** Milliseconds for which storing a token is tried again, and between two attempts: what it replaces may be void. */
const STORING = 10_000
const BETWEEN = 200

/** Resolves to a token other than `known`; undefined if there is none. Rejects with a Fault. */
export async function renewInTurn(renewal: Renewal): Promise<Token | undefined> {
  const { store, key, holder, known } = renewal
  const other = (token: Token | undefined) => (token?.access === known ? undefined : token)
  let killed: TokenRecord['lease']
  for (;;) {
    const lease = new Lease(renewal)
    const turn = await store.change(key, holder, (record) => {
      const token = other(record.token)
      if (token || !renewal.isRenewable(record)) return { token }
      if (record.lease && !isSame(record.lease, killed)) return 'taken'
      lease.enter(record)
      return { own: structuredClone(record) }
    })
    if (turn === 'taken') {
      killed = await leaseOver(renewal)
    } else if (turn.own) {
      const taken = await takeTurn(renewal, turn.own, lease)
      if (taken !== 'lost') return other(taken)
    } else {
      return turn.token
    }
  }
}

async function takeTurn(renewal: Renewal, before: TokenRecord, lease: Lease): Promise<Token | undefined | 'lost'> {
  const ended = new AbortController()
  const finish = (apply: Change) =>
    renewal.store.change(renewal.key, renewal.holder, (record) => {
      lease.leave(record)
      // A token that another process stored or removed meanwhile stays so.
      if (record.token?.access === before.token?.access) apply(record)
      return record.token
    })
  lease.live(ended.signal).catch(() => {})
  try {
    const change = await renewal
      .renew(before, () => lease.check())
      .catch(async (error: unknown) => {
        if (lease.isLost) return 'lost' as const
        // Where this fails, the lease ends by itself.
        await finish(() => {}).catch(() => {})
        throw error
      })
    return change === 'lost' ? change : await stored(() => finish(change))
  } finally {
    ended.abort()
  }
}

/** Stores what the issuer has answered, also if the store cannot be reached for a moment. */
async function stored<T>(store: () => Promise<T>): Promise<T> {
  const end = performance.now() + STORING
  for (;;) {
    try {
      return await store()
    } catch (error) {
      const isForAMoment = error instanceof Fault && error.fault === 'storeUnavailable' && performance.now() < end
      if (!isForAMoment) throw error
      await pause(BETWEEN)
    }
  }
}
