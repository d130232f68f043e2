/** Sessions of a server's own, whose messages go as they are: whose each of them is, as far as that is remembered. */
import { Fault } from '../../protocol/fault.js'
import type { Records } from '../../protocol/replicas.js'

export interface RelayedSessionsOptions {
  /** Sessions that may be remembered. */
  max: number
  /** What all replicas know, for as many milliseconds as a session may be idle; where there are several. */
  shared?: { server: string; records: Records; idle: number } | undefined
  told(what: 'opened' | 'ended'): void
}

interface Session {
  principal: string
  /** The server keeps none: the id is ours, and it never hears of it. */
  ours: boolean
  /** When the other replicas were last told of it, by this process's monotonic clock. */
  told: number
}

export class RelayedSessions {
  readonly #options: RelayedSessionsOptions
  readonly #sessions = new Map<string, Session>()

  constructor(options: RelayedSessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Whether the id of a session is ours, and means nothing to the server. */
  isOurs(id: string): boolean {
    return this.#sessions.get(id)?.ours === true
  }

  /** Notes whose a session is that has been opened. */
  opened(id: string, session: Pick<Session, 'principal' | 'ours'>): void {
    const noted = { ...session, told: Number.NEGATIVE_INFINITY }
    this.#keep(id, noted)
    this.#share(id, noted)
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
    // Those that have been used last stand last.
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
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
    const session = { ...(JSON.parse(text) as Session), told: performance.now() }
    this.#keep(id, session)
    return session
  }

  /** Tells the other replicas of a session, as long as it is in use. */
  #share(id: string, session: Session): void {
    const { shared } = this.#options
    if (!shared || performance.now() - session.told < shared.idle / 4) return
    session.told = performance.now()
    shared.records.remember('session', `${shared.server} ${id}`, JSON.stringify(session), shared.idle).catch(() => {})
  }

  #keep(id: string, session: Session): void {
    const [oldest] = this.#sessions.keys()
    if (oldest !== undefined && this.#sessions.size >= this.#options.max) this.#drop(oldest)
    this.#sessions.set(id, session)
  }

  #drop(id: string): void {
    if (this.#sessions.delete(id)) this.#options.told('ended')
  }
}
