/**
 * Stores the sessions of legacy clients over HTTP by id: makes the ids, checks their principals, idle timeouts and bound, and names
 * the replica that owns one.
 */
import { randomBytes } from 'node:crypto'
import { Fault } from '../../base/fault/fault.js'
import { Bound } from '../../base/limits/bound.js'
import { Occupancy, type Occupant } from '../../base/limits/occupancy.js'
import { lookEvery } from '../../base/time/time.js'
import { OwnedByReplica, type Replicas } from '../../mcp/ports/replicas.js'

export interface KeptSession {
  readonly principal: string
  /** Whether the client is connected or waits for an answer. Such a session is not idle. */
  readonly busy: boolean
  /** The number of requests without an answer yet. */
  readonly unanswered: number
  /** Whether the client has closed its last GET stream. */
  readonly gone?: boolean
  /** Sends a keep-alive on its streams. */
  keepAlive(): void
  /** Ends endless streams. Requests in flight may still be answered. */
  drain(): void
  /** Ends everything that belongs to it. Called once. */
  close(): void
}

/** Bounds and timeouts of sessions. They can change. */
export interface SessionBounds {
  max: number
  /** One principal's share of the room that others leave; 1 by default. */
  share?: number
  /** Milliseconds without a request and without an open stream after which a session ends. */
  idle: number
  /** The same, for a session with `gone`; `idle` by default. */
  gone?: number
  /** Milliseconds between keep-alives. */
  keepAlive: number
}

export interface SessionsOptions<S extends KeptSession = KeptSession> extends SessionBounds {
  /** Called when a session has ended, unless it may continue in another replica. */
  ended?: ((session: S) => void) | undefined
  /** The other replicas, if there are several. Session ids name the replica that owns the session. */
  replicas?: Pick<Replicas, 'sessionId' | 'ownerOf'> | undefined
}

/** 192 random bits, which cannot be guessed. */
const ID_BYTES = 24

/** The part of Sessions that requests use. */
export type SessionStore<S extends KeptSession> = Pick<
  Sessions<S>,
  'add' | 'has' | 'find' | 'isForeign' | 'end' | 'makeRoom' | 'draining' | 'cut'
>

/** All sessions of one server and one transport. */
export class Sessions<S extends KeptSession> {
  readonly #options: SessionsOptions<S>
  readonly #sessions = new Map<string, Entry<S>>()
  readonly #occupancy: Occupancy
  #timer: NodeJS.Timeout
  /** Whether the bridge is shutting down. */
  draining = false
  /** Whether the bridge is about to listen no more. */
  cut = false

  constructor(options: SessionsOptions<S>) {
    this.#options = { ...options }
    this.#occupancy = new Occupancy(new Bound(options), 'sessions of clients', 'limits.clientSessions')
    this.#timer = this.#ticking()
  }

  /** Applies other bounds and times. Sessions go on. */
  change(bounds: SessionBounds): void {
    const { max, share = 1 } = Object.assign(this.#options, bounds)
    Object.assign(this.#occupancy.bound, { max, share })
    clearInterval(this.#timer)
    this.#timer = this.#ticking()
  }

  get size(): number {
    return this.#sessions.size
  }

  *[Symbol.iterator](): IterableIterator<S> {
    for (const { session } of this.#sessions.values()) yield session
  }

  has(id: string): boolean {
    return this.#sessions.has(id)
  }

  /**
   * Adds a session, with a `known` id or a new one, which it returns. If there is no room, ends an idle one; throws a Fault if
   * none is idle.
   */
  add(session: S, known?: string): string {
    this.makeRoom(session.principal)
    const id = known ?? this.#options.replicas?.sessionId() ?? randomBytes(ID_BYTES).toString('base64url')
    const entry = new Entry(session, this.#options, () => this.end(id))
    this.#occupancy.enter(entry)
    this.#sessions.set(id, entry)
    return id
  }

  /**
   * The session with this id, if it belongs to the principal; undefined for an unknown session or one of another
   * principal. Throws OwnedByReplica if another replica owns it, which then checks the principal.
   */
  find(id: string, principal: string): S | undefined {
    const entry = this.#sessions.get(id)
    const owner = entry ? undefined : this.#options.replicas?.ownerOf(id)
    if (owner !== undefined) throw new OwnedByReplica(owner, 'session')
    if (entry?.session.principal !== principal) return undefined
    entry.lastUsed = performance.now()
    return entry.session
  }

  /** Whether this replica has a session with this id that belongs to another principal. */
  isForeign(id: string, principal: string): boolean {
    const entry = this.#sessions.get(id)
    return entry !== undefined && entry.session.principal !== principal
  }

  /** Ends a session, if it exists. */
  end(id: string): void {
    const entry = this.#sessions.get(id)
    if (!entry) return
    this.#sessions.delete(id)
    this.#occupancy.leave(entry)
    entry.session.close()
    if (!this.draining) this.#options.ended?.(entry.session)
  }

  /** A store with these sessions and the remaining ones of `others`. New sessions are added to these. */
  beside(others: Sessions<S>): SessionStore<S> {
    const own = this
    return {
      add: (session, known) => this.add(session, known),
      has: (id) => this.has(id) || others.has(id),
      find: (id, principal) => this.find(id, principal) ?? others.find(id, principal),
      isForeign: (id, principal) => this.isForeign(id, principal) || others.isForeign(id, principal),
      end: (id) => {
        this.end(id)
        others.end(id)
      },
      makeRoom: (principal) => this.makeRoom(principal),
      get draining() {
        return own.draining
      },
      get cut() {
        return own.cut
      },
    }
  }

  /** The number of requests without an answer yet, of all sessions. */
  get unanswered(): number {
    let sum = 0
    for (const { unanswered } of this) sum += unanswered
    return sum
  }

  /** Accepts no new sessions. Requests in flight may end. */
  drain(): void {
    this.draining = true
    for (const session of [...this]) session.drain()
  }

  close(): void {
    clearInterval(this.#timer)
    for (const id of [...this.#sessions.keys()]) this.end(id)
  }

  /** Makes room for one more session: ends an idle one if necessary. Throws a Fault if none is idle. */
  makeRoom(principal: string): void {
    if (this.draining) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    this.#occupancy.makeRoom(principal)
  }

  #ticking(): NodeJS.Timeout {
    return lookEvery(this.#options.keepAlive, () => this.#tick())
  }

  #tick(): void {
    for (const entry of this.#sessions.values()) if (entry.session.busy) entry.lastUsed = performance.now()
    this.#occupancy.endIdle()
    for (const session of this) session.keepAlive()
  }
}

class Entry<S extends KeptSession> implements Occupant {
  readonly session: S
  readonly end: () => void
  readonly #options: SessionBounds
  lastUsed = performance.now()

  constructor(session: S, options: SessionBounds, end: () => void) {
    this.session = session
    this.#options = options
    this.end = end
  }

  get principal(): string {
    return this.session.principal
  }

  get idleSince(): number | undefined {
    return this.session.busy ? undefined : this.lastUsed
  }

  get idleLimit(): number {
    const { idle, gone = idle } = this.#options
    return this.session.gone ? Math.min(gone, idle) : idle
  }
}
