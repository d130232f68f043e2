/** Sessions of legacy clients over HTTP, by their ids: whose they are, how long they last, how many there may be. */
import { randomBytes } from 'node:crypto'
import { OwnedByReplica, type Replicas } from '../../ports/replicas.js'
import { Bound } from '../../protocol/bound.js'
import { Fault } from '../../protocol/fault.js'
import { Occupancy, type Occupant } from '../../protocol/occupancy.js'

/** What a session has to be able to do to be kept here. */
export interface Kept {
  readonly principal: string
  /** Somebody is connected or waits for an answer, so that it is not idle. */
  readonly busy: boolean
  /** The client had opened a stream for the server's messages, and has closed it. */
  readonly gone?: boolean
  keepAlive(): void
  /** Ends what would stay open for ever; what is being answered may still be. */
  drain(): void
  /** Ends all that belongs to it. Called once. */
  close(): void
}

export interface SessionsOptions {
  max: number
  /** The part of what the others leave that one principal may have; 1 by default. */
  share?: number
  /** Milliseconds without a request and without an open stream after which a session ends. */
  idle: number
  /** The same for a session with `gone`; `idle` by default. */
  gone?: number
  /** Milliseconds between signs of life. */
  keepAlive: number
  /** The others, where this is one of several: ids say where their sessions live. */
  replicas?: Pick<Replicas, 'sessionId' | 'ownerOf'> | undefined
}

/** 192 bits: nobody guesses one. */
const ID_BYTES = 24

export class Sessions<S extends Kept> {
  readonly #options: SessionsOptions
  readonly #sessions = new Map<string, Entry<S>>()
  readonly #occupancy: Occupancy
  readonly #timer: NodeJS.Timeout
  #draining = false

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#occupancy = new Occupancy(new Bound(options), 'sessions of clients')
    this.#timer = setInterval(() => this.#tick(), options.keepAlive).unref()
  }

  get size(): number {
    return this.#sessions.size
  }

  /** Keeps a session of a principal. Ends an idle one if there is no room. Throws a Fault where none is idle. */
  add(principal: string, make: (id: string) => S): { id: string; session: S } {
    this.makeRoom(principal)
    const id = this.#options.replicas?.sessionId() ?? randomBytes(ID_BYTES).toString('base64url')
    const session = make(id)
    const entry = new Entry(session, this.#options, () => this.end(id))
    this.#occupancy.enter(entry)
    this.#sessions.set(id, entry)
    return { id, session }
  }

  /**
   * The session of an id, if it is this principal's: who asks for another's learns nothing. Throws Elsewhere where it lives
   * in another replica, which will see for itself.
   */
  find(id: string, principal: string): S | undefined {
    const entry = this.#sessions.get(id)
    const owner = entry ? undefined : this.#options.replicas?.ownerOf(id)
    if (owner !== undefined) throw new OwnedByReplica(owner, 'session')
    if (entry?.principal !== principal) return undefined
    entry.lastUsed = performance.now()
    this.#occupancy.touch(entry)
    return entry.session
  }

  end(id: string): void {
    const entry = this.#sessions.get(id)
    if (!entry) return
    this.#sessions.delete(id)
    this.#occupancy.leave(entry)
    entry.session.close()
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

  /** Ends an idle session if the principal can have no more otherwise. Throws a Fault where none is idle. */
  makeRoom(principal: string): void {
    if (this.#draining) throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    this.#occupancy.makeRoom(principal)
  }

  #tick(): void {
    for (const entry of this.#sessions.values()) if (entry.session.busy) entry.lastUsed = performance.now()
    this.#occupancy.endIdle()
    for (const { session } of this.#sessions.values()) session.keepAlive()
  }
}

class Entry<S extends Kept> implements Occupant {
  readonly session: S
  readonly end: () => void
  readonly #options: SessionsOptions
  lastUsed = performance.now()

  constructor(session: S, options: SessionsOptions, end: () => void) {
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
