/** Keeps sessions for whom they belong to: one per key, opened once however many ask for it at the same time. */
import { Fault } from '../protocol/fault.js'
import type { LegacySession } from './session.js'

export interface PoolOptions {
  /** Sessions at once; beyond, the one that has been idle longest goes. */
  max: number
  /** Sessions beside those of the pool that count as well. */
  others?: () => number
  /** Milliseconds after which a session that nobody uses is ended. */
  idle: number
  /** Calls that may wait for one session to open. */
  maxWaiting?: number
}

interface Entry {
  opening: Promise<LegacySession>
  session: LegacySession | undefined
  waiting: number
  /** Leases that have not been given back. */
  users: number
  /** Taken out of the pool: ends when the last lease is given back. */
  discarded: boolean
}

/** A session for the time of one call. */
export interface Lease {
  session: LegacySession
  /** Gives the session back. To be called once. */
  release(): void
  /** The server has forgotten the session, or it is broken: nobody else gets it. Who has it may still finish. */
  discard(): void
}

const MAX_WAITING = 100

export class SessionPool {
  readonly #options: PoolOptions
  readonly #entries = new Map<string, Entry>()
  /** Taken out, and on their way to their end. */
  readonly #ending = new Set<LegacySession>()
  readonly #sweeper: NodeJS.Timeout
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(options.idle, 30_000)).unref()
  }

  get size(): number {
    return this.#entries.size
  }

  /** Lends the session of a key, opened if need be. */
  async acquire(key: string, open: () => Promise<LegacySession>): Promise<Lease> {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    const entry = this.#usable(key) ?? this.#add(key, open)
    entry.users++
    try {
      return this.#lease(key, entry, entry.session ?? (await this.#opened(entry)))
    } catch (error) {
      entry.users--
      throw error
    }
  }

  async #opened(entry: Entry): Promise<LegacySession> {
    if (entry.waiting >= (this.#options.maxWaiting ?? MAX_WAITING))
      throw new Fault('overloaded', 'Too many calls wait for a session with the server', { retryAfter: 1 })
    entry.waiting++
    try {
      return await entry.opening
    } finally {
      entry.waiting--
    }
  }

  #lease(key: string, entry: Entry, session: LegacySession): Lease {
    const discard = () => {
      entry.discarded = true
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    const release = () => {
      entry.users--
      if (entry.discarded && entry.users === 0) this.#end(session).catch(() => {})
    }
    return { session, release, discard }
  }

  /** Ends all sessions. Called again in a hurry, it ends those as well that are still being ended gently. */
  async close(hurry = false): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    for (const session of this.#ending) session.close(hurry).catch(() => {})
    await Promise.all(
      entries.map(({ opening }) => opening.then((session) => this.#end(session, hurry)).catch(() => {})),
    )
    await Promise.all([...this.#ending].map((session) => session.close(hurry)))
  }

  async #end(session: LegacySession, hurry = false): Promise<void> {
    this.#ending.add(session)
    await session.close(hurry)
    this.#ending.delete(session)
  }

  #usable(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.session || entry.session.alive) return entry
    entry.discarded = true
    this.#entries.delete(key)
    if (entry.users === 0) this.#end(entry.session).catch(() => {})
    return undefined
  }

  #add(key: string, open: () => Promise<LegacySession>): Entry {
    this.#makeRoom()
    const entry: Entry = { opening: open(), session: undefined, waiting: 0, users: 0, discarded: false }
    this.#entries.set(key, entry)
    entry.opening
      .then((session) => {
        entry.session = session
      })
      .catch(() => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key)
      })
    return entry
  }

  #makeRoom(): void {
    if (this.#entries.size + (this.#options.others?.() ?? 0) < this.#options.max) return
    let victim: string | undefined
    let longest = Number.POSITIVE_INFINITY
    for (const [key, { session, users }] of this.#entries) {
      if (!session || users > 0 || session.lastUsed >= longest) continue
      victim = key
      longest = session.lastUsed
    }
    if (victim === undefined)
      throw new Fault('overloaded', `All ${this.#options.max} sessions with the server are in use`, { retryAfter: 1 })
    this.#evict(victim)
  }

  #sweep(): void {
    const before = Date.now() - this.#options.idle
    for (const [key, { session, users }] of this.#entries) {
      if (session && users === 0 && session.lastUsed <= before) this.#evict(key)
    }
  }

  #evict(key: string): void {
    const session = this.#entries.get(key)?.session
    this.#entries.delete(key)
    if (session) this.#end(session).catch(() => {})
  }
}
