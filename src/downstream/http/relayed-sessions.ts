/** Remembers which principal owns each relayed session. */

import { Fault } from '../../fault/fault.js'
import { Bound } from '../../limits/bound.js'
import { BoundedSet } from '../../limits/bounded.js'
import { Occupancy, type Occupant } from '../../limits/occupancy.js'
import type { SharedStore } from '../../ports/replicas.js'
import type { SessionCookies } from '../../protocol/upstream.js'
import { lookEvery } from '../../time/time.js'

/** Bounds of the remembered sessions. They can change. */
export interface RelayedBounds {
  /** Most sessions that are remembered. */
  max: number
  /** One principal's share of the room that others leave; 1 by default. */
  share?: number
  /** Milliseconds without a request and without an open stream after which a session is forgotten; never by default. */
  idle?: number
}

/** Bounds and sharing of the remembered sessions. */
export interface RelayedSessionsOptions extends RelayedBounds {
  /** The shared store, if there are several replicas. `idle`: milliseconds for which it keeps an unused session. */
  shared?: { server: string; records: SharedStore; idle: number } | undefined
  /** An empty jar, for the cookies of a session that another replica has opened. */
  cookies?(): SessionCookies
  report(what: 'opened' | 'ended', session: string, principal: string): void
}

interface Owner {
  principal: string
  /** The server opened no session. The bridge created the id and never sends it to the server. */
  ours: boolean
}

/** What replicas share about a session. */
interface Shared extends Owner {
  /** The cookies that the server has set in it: `SessionCookies.text`. */
  cookies?: string | undefined
}

type Session = Owner &
  Occupant & {
    cookies: SessionCookies | undefined
    /** `SessionCookies.taken` when the cookies were last written to the shared store. */
    cookiesShared: number
    /** When it was last written to the shared store, by `performance.now()`. */
    shared: number
    /** Requests whose answers are not complete, streams included. */
    open: number
    idleSince: number
    idleLimit: number | undefined
  }

/** Milliseconds between two writes of a session in use: the longest time for which it is missing in a store that lost it. */
const RENEW = 5_000
/** Milliseconds after which sessions that could not be written are written again. */
const RETRY = 1_000
/** Most milliseconds between two searches for idle sessions. */
const LOOK = 10_000
/** Sessions that are written at once when the store may have lost all. */
const TOGETHER = 100

/** Ids of lost sessions that are remembered. */
const MAX_LOST_SESSIONS = 1_000
const NOT_FOUND = 'Session not found: call initialize to open one'

/** The relayed sessions of one server. */
export class RelayedSessions {
  readonly #options: RelayedSessionsOptions
  readonly #sessions = new Map<string, Session>()
  readonly #occupancy: Occupancy
  /** Ids of sessions that the server has lost, and that its refusals do not show. */
  readonly #lost = new BoundedSet<string>(MAX_LOST_SESSIONS)
  #retry: NodeJS.Timeout | undefined
  #looking: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: RelayedSessionsOptions) {
    this.#options = { ...options }
    this.#occupancy = new Occupancy(new Bound(options), 'relayed sessions')
    this.#lookForIdle()
  }

  /** Applies other bounds. Sessions stay. */
  change(bounds: RelayedBounds): void {
    const { max, share = 1, idle, shared } = Object.assign(this.#options, bounds)
    Object.assign(this.#occupancy.bound, { max, share })
    if (shared && idle !== undefined) shared.idle = idle
    for (const session of this.#sessions.values()) session.idleLimit = idle
    this.#lookForIdle()
  }

  #lookForIdle(): void {
    const { idle } = this.#options
    clearInterval(this.#looking)
    this.#looking = idle === undefined ? undefined : lookEvery(Math.min(idle / 4, LOOK), () => this.#look())
  }

  /** Number of remembered sessions. */
  get size(): number {
    return this.#sessions.size
  }

  /** Whether the bridge created the id of the session. The server does not know such an id. */
  isOurs(id: string): boolean {
    return this.#sessions.get(id)?.ours === true
  }

  /** The cookies of a session that is remembered. */
  cookiesOf(id: string): SessionCookies | undefined {
    return this.#sessions.get(id)?.cookies
  }

  /**
   * Remembers the owner of a new session, and the cookies that were set when it was opened. Resolves when all replicas know
   * it, or when the shared store has failed; returns undefined without such a store.
   */
  opened(
    id: string,
    { cookies, ...session }: Owner & { cookies?: SessionCookies | undefined },
  ): Promise<void> | undefined {
    this.#lost.delete(id)
    const written = this.#share(id, this.#keep(id, session, Number.NEGATIVE_INFINITY, cookies))
    this.#options.report('opened', id, session.principal)
    return written
  }

  /** Writes all sessions to the shared store, which may have lost them. */
  shareAgain(): Promise<void> {
    for (const session of this.#sessions.values()) session.shared = Number.NEGATIVE_INFINITY
    return this.#shareMissing()
  }

  /** Notes that a request in a session has begun. The returned function notes that its answer is complete. */
  begin(id: string): () => void {
    const session = this.#sessions.get(id)
    if (!session) return () => {}
    session.open++
    return () => {
      session.open--
      session.idleSince = performance.now()
    }
  }

  /** Writes nothing more to the shared store after a failure. */
  close(): void {
    this.#closed = true
    clearInterval(this.#looking)
    clearTimeout(this.#retry)
  }

  /**
   * Whether the session is known and belongs to this principal. Throws a Fault if it belongs to another principal, or if
   * the shared store is unreachable. With `open`, anybody may use unknown sessions, so an unreachable store is not an
   * error.
   */
  async isOf(principal: string, id: string, open: boolean): Promise<boolean> {
    if (this.#lost.has(id)) throw new Fault('sessionNotFound', NOT_FOUND)
    const session = this.#sessions.get(id) ?? (await this.#recall(id, open))
    if (!session) return false
    if (session.principal !== principal) throw new Fault('foreignSession', NOT_FOUND)
    session.idleSince = performance.now()
    const caughtUp = this.#catchUp(id, session)
    if (session.cookies?.any) await caughtUp
    this.#shareAfter(caughtUp, id, session)?.catch(() => {})
    return true
  }

  /**
   * Shares the cookies that an answer in the session has set. Resolves when all replicas know them, or when the shared store
   * has failed; returns undefined if there are none to share.
   */
  cookiesTaken(id: string): Promise<void> | undefined {
    const session = this.#sessions.get(id)
    if (!this.#options.shared || !session?.cookies || session.cookies.taken === session.cookiesShared) return undefined
    return this.#write(id, session)
  }

  /** Forgets a session that the server has lost, in all replicas. Its id stays unknown here. */
  lose(id: string): void {
    this.#lost.add(id)
    this.forget(id)
  }

  /** Forgets a session that has ended, in all replicas. */
  forget(id: string): void {
    const { shared } = this.#options
    shared?.records.forget('session', `${shared.server} ${id}`)
    this.#drop(id)
  }

  /** Forgets idle sessions. A session with an open stream is in use, and is renewed in the shared store. */
  #look(): void {
    for (const [id, session] of this.#sessions) {
      if (session.open === 0) continue
      session.idleSince = performance.now()
      this.#shareAfter(this.#catchUp(id, session), id, session)?.catch(() => {})
    }
    this.#occupancy.endIdle()
  }

  /** Looks up a session in the shared store. */
  async #recall(id: string, open: boolean): Promise<Session | undefined> {
    const recalled = this.#read(id)
    const record = await recalled?.catch((error: unknown) => {
      if (!open) throw error
    })
    if (!record) return undefined
    const cookies = this.#options.cookies?.()
    if (record.cookies !== undefined) await cookies?.adopt(record.cookies)
    return this.#sessions.get(id) ?? this.#keep(id, record, performance.now(), cookies)
  }

  async #read(id: string): Promise<Shared | undefined> {
    const { shared } = this.#options
    const text = await shared?.records.recall('session', `${shared.server} ${id}`)
    return text === undefined ? undefined : (JSON.parse(text) as Shared)
  }

  /**
   * Takes the cookies that have been set in other replicas: before each request if the session has cookies, and before its
   * record is renewed. If the store is unreachable, the known cookies stay. Returns undefined if there is nothing to do.
   */
  #catchUp(id: string, session: Session): Promise<void> | undefined {
    const { cookies } = session
    if (!cookies || !this.#options.shared || !(cookies.any || this.#isDue(session))) return undefined
    const read = async () => {
      await cookies.settled
      const { taken } = cookies
      const record = await this.#read(id).catch(() => undefined)
      const isNewer = record?.cookies !== undefined && cookies.taken === taken && session.cookiesShared === taken
      if (isNewer) await cookies.adopt(record.cookies as string)
    }
    return read()
  }

  #isDue({ shared }: Session): boolean {
    const { idle = 0 } = this.#options.shared ?? {}
    return performance.now() - shared >= Math.min(RENEW, idle / 4)
  }

  /** Writes a session to the shared store, and renews it while the session is in use. */
  #share(id: string, session: Session): Promise<void> | undefined {
    return this.#options.shared && this.#isDue(session) ? this.#write(id, session) : undefined
  }

  #shareAfter(caughtUp: Promise<void> | undefined, id: string, session: Session): Promise<void> | undefined {
    const share = () => (this.#sessions.has(id) ? this.#share(id, session) : undefined)
    return caughtUp ? caughtUp.then(share) : share()
  }

  #write(id: string, session: Session): Promise<void> {
    const { principal, ours, cookies } = session
    const began = performance.now()
    session.shared = began
    const taken = cookies?.taken ?? 0
    const write = async () => {
      const { server, records, idle } = this.#options.shared as NonNullable<RelayedSessionsOptions['shared']>
      const record: Shared = { principal, ours, cookies: cookies?.text }
      const worked = await records.remember('session', `${server} ${id}`, JSON.stringify(record), idle)
      if (worked) session.cookiesShared = Math.max(session.cookiesShared, taken)
      else if (session.shared === began) {
        session.shared = Number.NEGATIVE_INFINITY
        this.#shareLater()
      }
    }
    return cookies?.settled ? cookies.settled.then(write) : write()
  }

  #shareLater(): void {
    if (this.#closed) return
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined
      this.#shareMissing().catch(() => {})
    }, RETRY).unref()
  }

  /** Writes the sessions that the shared store lacks. */
  async #shareMissing(): Promise<void> {
    const missing = [...this.#sessions].filter(([, { shared }]) => shared === Number.NEGATIVE_INFINITY)
    for (let from = 0; from < missing.length; from += TOGETHER)
      await Promise.all(
        missing
          .slice(from, from + TOGETHER)
          .map(([id, session]) => this.#shareAfter(this.#catchUp(id, session), id, session)),
      )
  }

  /** Remembers a session. At the bound, forgets the least recently used session of the principal that has most. */
  #keep(id: string, { principal, ours }: Owner, shared: number, cookies?: SessionCookies): Session {
    this.#drop(id)
    const session: Session = {
      principal,
      ours,
      cookies,
      cookiesShared: 0,
      shared,
      open: 0,
      idleSince: performance.now(),
      idleLimit: this.#options.idle,
      end: () => this.#drop(id),
    }
    this.#occupancy.enter(session)
    this.#sessions.set(id, session)
    return session
  }

  #drop(id: string): void {
    const session = this.#sessions.get(id)
    if (!session) return
    this.#sessions.delete(id)
    this.#occupancy.leave(session)
    this.#options.report('ended', id, session.principal)
  }
}
