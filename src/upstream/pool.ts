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
  /** Somebody has the session for a call that may be asked something: no other such call gets it. */
  alone: boolean
  /** Taken out of the pool: ends when the last lease is given back. */
  discarded: boolean
}

/** A session for the time of one call. */
export interface Lease {
  session: LegacySession
  /** Nobody else will have the session after this. */
  readonly alone: boolean
  /** Another hold on the same session, which lasts until it is given back as well. */
  share(): Lease
  /** A hold that lets others have the session as well, even where this one had it alone. */
  keep(): Lease
  /** Gives the session back. Calling it again does nothing. */
  release(): void
  /** The server has forgotten the session, or it is broken: nobody else gets it. Who has it may still finish. */
  discard(): void
}

const MAX_WAITING = 100
/** Resources that are subscribed to again in place of a session that was lost. */
const MAX_SUBSCRIBED = 1_000
/** Sessions for one key, where calls need one each. */
const MAX_BESIDE = 8
/** Milliseconds that a call waits for one. */
const ALONE_WITHIN = 30_000

export class SessionPool {
  readonly #options: PoolOptions
  readonly #entries = new Map<string, Entry>()
  /** Calls that wait for a session of their own, by key. */
  readonly #waiters = new Map<string, (() => void)[]>()
  /** Taken out, and on their way to their end. */
  readonly #ending = new Set<LegacySession>()
  /** What was subscribed to in sessions that were lost, by key, for those that take their place. */
  readonly #subscribed = new Map<string, readonly string[]>()
  readonly #sweeper: NodeJS.Timeout
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(options.idle, 30_000)).unref()
  }

  get size(): number {
    return this.#entries.size
  }

  /** All that are open. */
  get sessions(): LegacySession[] {
    return [...this.#entries.values()].flatMap(({ session }) => session ?? [])
  }

  /** Lends the session of a key, opened if need be. */
  async acquire(key: string, open: () => Promise<LegacySession>): Promise<Lease> {
    return this.#lend(key, this.#usable(key) ?? this.#add(key, open))
  }

  /**
   * Lends a session to a call to which everything that the server asks on it will belong: the session that the others share
   * if it can be had, or one beside it. Waits for one where there are as many as there may be.
   */
  async acquireAlone(key: string, open: () => Promise<LegacySession>): Promise<Lease> {
    const deadline = Date.now() + ALONE_WITHIN
    for (;;) {
      const slots = Array.from({ length: MAX_BESIDE }, (_, at) => (at === 0 ? key : `${key} #${at}`))
      const free =
        slots.find((slot) => this.#usable(slot)?.alone === false) ?? slots.find((slot) => !this.#usable(slot))
      if (free !== undefined) {
        const entry = this.#usable(free) ?? this.#add(free, open)
        entry.alone = true
        return this.#lend(free, entry, () => {
          entry.alone = false
          this.#waiters.get(key)?.shift()?.()
        })
      }
      if (!(await this.#freed(key, deadline - Date.now())))
        throw new Fault('overloaded', 'All sessions with the server wait for answers', { retryAfter: 1 })
    }
  }

  async #lend(key: string, entry: Entry, onRelease = () => {}): Promise<Lease> {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    entry.users++
    try {
      const session = entry.session ?? (await this.#opened(entry))
      return this.#lease(key, entry, session, { holds: 1 }, onRelease)
    } catch (error) {
      entry.users--
      onRelease()
      throw error
    }
  }

  /** Resolves to whether a session has become free in time. */
  #freed(key: string, milliseconds: number): Promise<boolean> {
    if (milliseconds <= 0) return Promise.resolve(false)
    return new Promise((resolve) => {
      const waiters = this.#waiters.get(key) ?? []
      this.#waiters.set(key, waiters)
      const wake = () => {
        clearTimeout(timer)
        resolve(true)
      }
      const timer = setTimeout(() => {
        waiters.splice(waiters.indexOf(wake), 1)
        resolve(false)
      }, milliseconds)
      waiters.push(wake)
    })
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

  #lease(key: string, entry: Entry, session: LegacySession, shared: { holds: number }, onRelease: () => void): Lease {
    let held = true
    const discard = () => {
      entry.discarded = true
      if (this.#entries.get(key) === entry) this.#lose(key, session)
    }
    const release = () => {
      if (!held) return
      held = false
      entry.users--
      if (--shared.holds === 0) onRelease()
      if (entry.discarded && entry.users === 0) this.#end(session).catch(() => {})
    }
    const share = () => {
      entry.users++
      shared.holds++
      return this.#lease(key, entry, session, shared, onRelease)
    }
    const keep = () => {
      entry.users++
      return this.#lease(key, entry, session, { holds: 1 }, () => {})
    }
    return {
      session,
      release,
      discard,
      share,
      keep,
      get alone() {
        return entry.discarded
      },
    }
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
    this.#lose(key, entry.session)
    if (entry.users === 0) this.#end(entry.session).catch(() => {})
    return undefined
  }

  #lose(key: string, { watching: { wanted } }: LegacySession): void {
    this.#entries.delete(key)
    if (wanted.length === 0) return
    const [oldest] = this.#subscribed.keys()
    if (oldest !== undefined && this.#subscribed.size >= this.#options.max) this.#subscribed.delete(oldest)
    this.#subscribed.set(key, wanted.slice(0, MAX_SUBSCRIBED))
  }

  /** Opens a session, and has all be as it was in the one before before anybody gets it. */
  async #opening(key: string, open: () => Promise<LegacySession>): Promise<LegacySession> {
    const session = await open()
    const wanted = this.#subscribed.get(key)
    this.#subscribed.delete(key)
    if (wanted) await session.watching.keep(wanted)
    return session
  }

  #add(key: string, open: () => Promise<LegacySession>): Entry {
    this.#makeRoom()
    const entry: Entry = {
      opening: this.#opening(key, open),
      session: undefined,
      waiting: 0,
      users: 0,
      alone: false,
      discarded: false,
    }
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
    if (this.#entries.size + (this.#options.others?.() ?? 0) < this.#options.max || this.evictIdle()) return
    throw new Fault('overloaded', `All ${this.#options.max} sessions with the server are in use`, { retryAfter: 1 })
  }

  /** Ends the session that has been idle longest. Gives whether there is one. */
  evictIdle(): boolean {
    let victim: string | undefined
    let longest = Number.POSITIVE_INFINITY
    for (const [key, { session, users }] of this.#entries) {
      if (!session || users > 0 || session.lastUsed >= longest) continue
      victim = key
      longest = session.lastUsed
    }
    if (victim === undefined) return false
    this.#evict(victim)
    return true
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
