/** Sessions of legacy clients over HTTP, by their ids: whose they are, how long they last, how many there may be. */
import { randomBytes } from 'node:crypto'
import { Fault } from '../../protocol/fault.js'
import { Elsewhere, type Replicas } from '../../protocol/replicas.js'

/** What a session has to be able to do to be kept here. */
export interface Kept {
  readonly principal: string
  /** Somebody is connected or waits for an answer, so that it is not idle. */
  readonly busy: boolean
  keepAlive(): void
  /** Ends what would stay open for ever; what is being answered may still be. */
  drain(): void
  /** Ends all that belongs to it. Called once. */
  close(): void
}

export interface SessionsOptions {
  max: number
  /** Milliseconds without a request and without an open stream after which a session ends. */
  idle: number
  /** Milliseconds between signs of life. */
  keepAlive: number
  /** The others, where this is one of several: ids say where their sessions live. */
  replicas?: Pick<Replicas, 'sessionId' | 'ownerOf'> | undefined
}

/** 192 bits: nobody guesses one. */
const ID_BYTES = 24

export class Sessions<S extends Kept> {
  readonly #options: SessionsOptions
  readonly #sessions = new Map<string, { session: S; lastUsed: number }>()
  readonly #timer: NodeJS.Timeout
  #draining = false

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), options.keepAlive).unref()
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Keeps a session. Throws a Fault where there is no room, and none of the others can go. */
  add(make: (id: string) => S): { id: string; session: S } {
    this.makeRoom()
    const id = this.#options.replicas?.sessionId() ?? randomBytes(ID_BYTES).toString('base64url')
    const session = make(id)
    this.#sessions.set(id, { session, lastUsed: performance.now() })
    return { id, session }
  }

  /**
   * The session of an id, if it is this principal's: who asks for another's learns nothing. Throws Elsewhere where it lives
   * in another replica, which will see for itself.
   */
  find(id: string, principal: string): S | undefined {
    const entry = this.#sessions.get(id)
    const owner = entry ? undefined : this.#options.replicas?.ownerOf(id)
    if (owner !== undefined) throw new Elsewhere(owner, 'session')
    if (entry?.session.principal !== principal) return undefined
    entry.lastUsed = performance.now()
    // Those that have been used last stand last.
    this.#sessions.delete(id)
    this.#sessions.set(id, entry)
    return entry.session
  }

  end(id: string): void {
    const entry = this.#sessions.get(id)
    this.#sessions.delete(id)
    entry?.session.close()
  }

  /** Lets calls end, and opens nothing new. */
  drain(): void {
    this.#draining = true
    for (const { session } of [...this.#sessions.values()]) session.drain()
  }

  close(): void {
    clearInterval(this.#timer)
    for (const id of [...this.#sessions.keys()]) this.end(id)
  }

  /** Ends the session that has been idle longest, if there are as many as there may be. Throws a Fault where none is. */
  makeRoom(): void {
    if (this.#draining) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    if (this.#sessions.size < this.#options.max) return
    for (const [id, { session }] of this.#sessions) {
      if (!session.busy) return this.end(id)
    }
    throw new Fault('overloaded', `${this.#options.max} sessions are open already`, { retryAfter: 1 })
  }

  #tick(): void {
    const before = performance.now() - this.#options.idle
    for (const [id, entry] of this.#sessions) {
      if (entry.session.busy) entry.lastUsed = performance.now()
      if (entry.lastUsed < before) this.end(id)
      else entry.session.keepAlive()
    }
  }
}
