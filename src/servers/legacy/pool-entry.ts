/** A place in the pool of sessions: its session, open or being opened, and whether that is idle. */
import type { Occupant } from '../../base/limits/occupancy.js'

/** The key of a session, and the principal to whose share of the bound it counts. */
export interface PoolKey {
  key: string
  principal: string
  /** The key of the clients that use it, if they are known by another one. */
  clients?: string
}

interface PoolEntryOptions {
  limit(): number | undefined
  isSpare(): boolean
  end(): void
}

export class PoolEntry<S extends { readonly users: number; readonly lastUsed: number }> implements Occupant {
  readonly key: string
  readonly principal: string
  readonly clients: string
  readonly end: () => void
  readonly #options: PoolEntryOptions
  opening: Promise<S> | undefined
  session: S | undefined
  /** Settles when the next client can use it; undefined if it can. */
  takingOver: Promise<void> | undefined
  /** Calls that wait for it to open. */
  waiting = 0
  /** When its last connected client left, by `performance.now()`; undefined if it has had none. */
  leftAt: number | undefined

  constructor({ key, principal, clients = key }: PoolKey, options: PoolEntryOptions) {
    this.key = key
    this.principal = principal
    this.clients = clients
    this.#options = options
    this.end = options.end
  }

  get isUnused(): boolean {
    return this.session ? this.session.users === 0 : this.waiting === 0
  }

  get idleSince(): number | undefined {
    return this.session?.users === 0 ? Math.max(this.session.lastUsed, this.leftAt ?? 0) : undefined
  }

  get idleLimit(): number | undefined {
    return this.#options.limit()
  }

  get isSpare(): boolean {
    return this.idleSince !== undefined && this.#options.isSpare()
  }
}
