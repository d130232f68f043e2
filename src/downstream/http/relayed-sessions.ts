/** Remembers which principal owns each relayed session. */

import type { Store } from '../../ports/replicas.js'
import { Bound } from '../../protocol/bound.js'
import { Fault } from '../../protocol/fault.js'
import { Occupancy, type Occupant } from '../../protocol/occupancy.js'

/** Bounds and sharing of the remembered sessions. */
export interface RelayedSessionsOptions {
  /** Most sessions that are remembered. */
  max: number
  /** One principal's share of what others leave of the bound; 1 by default. */
  share?: number
  /** The store of all replicas, if there are several. `idle`: milliseconds for which it keeps an unused session. */
  shared?: { server: string; records: Store; idle: number } | undefined
  report(what: 'opened' | 'ended', session: string, principal: string): void
}

/** What replicas share about a session. */
interface Owner {
  principal: string
  /** The server opened no session. The bridge created the id and never sends it to the server. */
  ours: boolean
}

type Session = Owner &
  Occupant & {
    /** When it was last written to the shared store, by `performance.now()`. */
    shared: number
    idleSince: number
  }

/** The relayed sessions of one server. */
export class RelayedSessions {
  readonly #options: RelayedSessionsOptions
  readonly #sessions = new Map<string, Session>()
  readonly #occupancy: Occupancy

  constructor(options: RelayedSessionsOptions) {
    this.#options = options
    this.#occupancy = new Occupancy(new Bound(options), 'relayed sessions')
  }

  /** Number of remembered sessions. */
  get size(): number {
    return this.#sessions.size
  }

  /** Whether the bridge created the id of the session. The server does not know such an id. */
  isOurs(id: string): boolean {
    return this.#sessions.get(id)?.ours === true
  }

  /** Remembers the owner of a new session. */
  opened(id: string, session: Owner): void {
    this.#share(id, this.#keep(id, session, Number.NEGATIVE_INFINITY))
    this.#options.report('opened', id, session.principal)
  }

  /**
   * Whether the session is known and belongs to this principal. Throws a Fault if it belongs to another principal, or
   * if the shared store is unreachable. With `open`, unknown sessions are open to anybody, so an unreachable store is
   * no error.
   */
  async isOf(principal: string, id: string, open: boolean): Promise<boolean> {
    const session = this.#sessions.get(id) ?? (await this.#recall(id, open))
    if (!session) return false
    if (session.principal !== principal)
      throw new Fault('sessionNotFound', 'Session not found: call initialize to open one')
    session.idleSince = performance.now()
    this.#occupancy.touch(session)
    this.#share(id, session)
    return true
  }

  /** Forgets a session that has ended, in all replicas. */
  forget(id: string): void {
    const { shared } = this.#options
    shared?.records.forget('session', `${shared.server} ${id}`)
    this.#drop(id)
  }

  /** Looks up a session in the shared store. */
  async #recall(id: string, open: boolean): Promise<Session | undefined> {
    const { shared } = this.#options
    const recalled = shared?.records.recall('session', `${shared.server} ${id}`)
    const text = await recalled?.catch((error: unknown) => {
      if (!open) throw error
    })
    if (text === undefined) return undefined
    return this.#keep(id, JSON.parse(text) as Owner, performance.now())
  }

  /** Writes a session to the shared store, and renews it while the session is in use. */
  #share(id: string, session: Session): void {
    const { shared } = this.#options
    if (!shared || performance.now() - session.shared < shared.idle / 4) return
    session.shared = performance.now()
    const { principal, ours } = session
    const owner: Owner = { principal, ours }
    shared.records.remember('session', `${shared.server} ${id}`, JSON.stringify(owner), shared.idle).catch(() => {})
  }

  /** Remembers a session. At the bound, forgets the least recently used session of the principal that has most. */
  #keep(id: string, { principal, ours }: Owner, shared: number): Session {
    this.#drop(id)
    const session: Session = { principal, ours, shared, idleSince: performance.now(), end: () => this.#drop(id) }
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
