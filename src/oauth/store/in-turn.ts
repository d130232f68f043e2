/**
 * Renews a token in one process at a time: redeeming a refresh token twice revokes the whole grant. The process that
 * renews holds a lease in the record; others wait for its result. If a process is killed, its lease expires.
 */
import { randomUUID } from 'node:crypto'
import { pause } from '../../time/pause.js'
import { unavailable } from '../failure.js'
import type { Holder, Token, TokenRecord } from './record.js'
import type { TokenStore } from './store.js'

/** A renewal. */
export interface Renewal {
  store: TokenStore
  key: string
  holder: Holder
  /** The access token to be replaced. Any other token in the record is accepted. */
  known: string | undefined
  /** Whether a record can be renewed. */
  isRenewable(record: TokenRecord): boolean
  /** Requests another token. Resolves to the change of the record, which is applied if its token is still the same. */
  renew(record: TokenRecord): Promise<(record: TokenRecord) => void>
  now?: () => number
  signal?: AbortSignal | undefined
}

/** All in milliseconds. */
/** Longer than a renewal takes: metadata, and two requests if the issuer wants a nonce. */
const LEASE = 40_000
/** Longer than a lease, so that a killed process delays calls but does not fail them. */
const PATIENCE = 45_000
const INTERVAL = 100

/** Resolves to a token other than `known`; undefined if there is none. Rejects with a Fault. */
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
      // A token that another process stored or removed meanwhile stays so.
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
      throw unavailable('Another process is renewing the token for this server and has not finished')
    await pause(INTERVAL, signal)
    signal?.throwIfAborted()
  }
}
