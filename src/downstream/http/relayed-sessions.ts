/** Sessions of a server's own, whose messages go as they are: whose each of them is, as far as that is remembered. */

import type { Store } from '../../ports/replicas.js'
import { Bound } from '../../protocol/bound.js'
import { Fault } from '../../protocol/fault.js'
import { Occupancy, type Occupant } from '../../protocol/occupancy.js'

export interface RelayedSessionsOptions {
  /** Sessions that may be remembered. */
  max: number
  /** The part of what the others leave that one principal may have; 1 by default. */
  share?: number
  /** What all replicas know, for as many milliseconds as a session may be idle; where there are several. */
  shared?: { server: string; records: Store; idle: number } | undefined
  told(what: 'opened' | 'ended'): void
}

/** What replicas share about a session. */
interface Noted {
  principal: string
  /** The server keeps none: the id is ours, and it never hears of it. */
  ours: boolean
}

type Session = Noted &
  Occupant & {
    /** When the other replicas were last told of it, by `performance.now()`. */
    told: number
    idleSince: number
  }

export class RelayedSessions {
  readonly #options: RelayedSessionsOptions
  readonly #sessions = new Map<string, Session>()
  readonly #occupancy: Occupancy

  constructor(options: RelayedSessionsOptions) {
    this.#options = options
    this.#occupancy = new Occupancy(new Bound(options), 'relayed sessions')
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Whether the id of a session is ours, and means nothing to the server. */
  isOurs(id: string): boolean {
    return this.#sessions.get(id)?.ours === true
  }

  /** Notes whose a session is that has been opened. */
  opened(id: string, session: Noted): void {
    this.#share(id, this.#keep(id, session, Number.NEGATIVE_INFINITY))
    this.#options.told('opened')
  }

  /**
   * Whether a session is known to be this principal's. Throws a Fault where it is somebody else's, and where that cannot be
   * found out though it matters: unless anybody may use a session that is known to nobody.
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

  /** It is over. */
  forget(id: string): void {
    const { shared } = this.#options
    shared?.records.forget('session', `${shared.server} ${id}`)
    this.#drop(id)
  }

  /** A session that another replica knows of. */
  async #recall(id: string, open: boolean): Promise<Session | undefined> {
    const { shared } = this.#options
    const recalled = shared?.records.recall('session', `${shared.server} ${id}`)
    const text = await recalled?.catch((error: unknown) => {
      if (!open) throw error
    })
    if (text === undefined) return undefined
    return this.#keep(id, JSON.parse(text) as Noted, performance.now())
  }

  /** Tells the other replicas of a session, as long as it is in use. */
  #share(id: string, session: Session): void {
    const { shared } = this.#options
    if (!shared || performance.now() - session.told < shared.idle / 4) return
    session.told = performance.now()
    const { principal, ours } = session
    const noted: Noted = { principal, ours }
    shared.records.remember('session', `${shared.server} ${id}`, JSON.stringify(noted), shared.idle).catch(() => {})
  }

  /** Remembers a session. Where the bound is reached, the least recently used one of the principal with most is forgotten. */
  #keep(id: string, { principal, ours }: Noted, told: number): Session {
    this.#drop(id)
    const session: Session = { principal, ours, told, idleSince: performance.now(), end: () => this.#drop(id) }
    this.#occupancy.enter(session)
    this.#sessions.set(id, session)
    return session
  }

  #drop(id: string): void {
    const session = this.#sessions.get(id)
    if (!session) return
    this.#sessions.delete(id)
    this.#occupancy.leave(session)
    this.#options.told('ended')
  }
}
