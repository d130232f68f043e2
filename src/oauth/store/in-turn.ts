/**
 * Renews a token in one process at a time: two that redeem one refresh token lose the whole grant. Whoever renews holds a
 * lease in the record; the others wait for what comes of it. The lease of a process that was killed runs out.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { unavailable } from '../failure.js'
import type { Holder, Token, TokenRecord } from './record.js'
import type { Store } from './store.js'

export interface Renewal {
  store: Store
  key: string
  holder: Holder
  /** The access token that will not do; any other one that is there will. */
  known: string | undefined
  /** Whether there is anything to renew by. */
  isRenewable(record: TokenRecord): boolean
  /** Asks for another token. Resolves to what is to be changed in the record, where it is still as it was. */
  renew(record: TokenRecord): Promise<(record: TokenRecord) => void>
  now?: () => number
  signal?: AbortSignal | undefined
}

/** Milliseconds. */
const LEASE = 20_000
/** Longer than a lease, so that a process that was killed costs time and no call. */
const PATIENCE = 25_000
const INTERVAL = 100

/** Resolves to a token other than the one known; undefined where there is none after all. Rejects with a Fault. */
export async function renewInTurn(renewal: Renewal): Promise<Token | undefined> {
  const { store, key, holder, known, now = Date.now, signal } = renewal
  const owner = randomUUID()
  const other = (token: Token | undefined) => (token?.access === known ? undefined : token)
  const deadline = now() + PATIENCE
  for (;;) {
    const turn = await store.change(key, holder, (record) => {
      const token = other(record.token)
      if (token || !renewal.isRenewable(record)) return { token }
      if (record.lease && record.lease.until > now()) return 'taken'
      record.lease = { owner, until: now() + LEASE }
      return { own: structuredClone(record) }
    })
    if (turn === 'taken') {
      await leaseOver(renewal, deadline)
      signal?.throwIfAborted()
    } else if (turn.own) {
      return other(await takeTurn(renewal, turn.own, owner))
    } else {
      return turn.token
    }
  }
}

async function takeTurn(
  { store, key, holder, renew }: Renewal,
  before: TokenRecord,
  owner: string,
): Promise<Token | undefined> {
  const finish = (apply: (record: TokenRecord) => void) =>
    store.change(key, holder, (record) => {
      if (record.lease?.owner === owner) delete record.lease
      // What somebody else has put there meanwhile, or taken away, stays as it is.
      if (record.token?.access === before.token?.access) apply(record)
      return record.token
    })
  let change: (record: TokenRecord) => void
  try {
    change = await renew(before)
  } catch (error) {
    await finish(() => {})
    throw error
  }
  return finish(change)
}

async function leaseOver({ store, key, now = Date.now, signal }: Renewal, deadline: number): Promise<void> {
  let stamp: string | undefined
  let until = Number.POSITIVE_INFINITY
  for (;;) {
    const current = store.stamp(key)
    if (current !== stamp) {
      stamp = current
      until = (await store.read(key))?.lease?.until ?? 0
    }
    if (until <= now()) return
    if (now() > deadline)
      throw unavailable('Another process is getting a token for the server, and does not come to an end')
    await sleep(INTERVAL, undefined, { signal })
  }
}
