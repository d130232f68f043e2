/**
 * Hands sessions over to other replicas when this one shuts down, and takes over those of others, by records in a store. Sessions of
 * servers themselves have a record from their opening: they go on if this replica is killed.
 */

import { BoundedSet } from '../../base/limits/bounded.js'
import type { Replicas } from '../../mcp/ports/replicas.js'
import type { SessionRecord } from '../legacy/session.js'
import type { HttpSession } from './session.js'

/** The record of a session that its replica has left. */
interface HandedSession {
  /** The server or group. */
  mount: string
  principal: string
  /** The replica that has left it, where its calls in flight still run. */
  from: string
  record: SessionRecord
  /** The replica that has it now. */
  owner?: string
}

type OwnSession = Pick<HttpSession, 'id' | 'principal' | 'client' | 'from' | 'noted'>

/** The result of taking over a session. */
export type Taken =
  /** The session continues in this replica. */
  | { record: SessionRecord; from: string }
  /** Another replica has it; undefined if no replica has taken it yet. */
  | { owner: string | undefined }

export interface Taking {
  principal: string
  /** A replica that does not have the session, or is gone. */
  without: string
  /** Whether the session may continue in this replica. */
  mayTake: boolean
}

const KIND = 'session'
/** Milliseconds for which a record is kept. */
const KEPT = 7 * 24 * 3_600_000
/** Most replicas that are remembered as shutting down. */
const MAX_LEFT = 1_000
/** Most records that are written at the same time. */
const AT_ONCE = 500

/** The handed sessions of one server or group. */
export class HandedSessions {
  readonly #replicas: Pick<Replicas, 'id' | 'records'>
  readonly #mount: string
  /** Resolves when the other replicas can find the left sessions. */
  left: Promise<void> = Promise.resolve()
  /** Replicas that have left sessions. */
  readonly #left = new BoundedSet<string>(MAX_LEFT)

  constructor(replicas: Pick<Replicas, 'id' | 'records'>, mount: string) {
    this.#replicas = replicas
    this.#mount = mount
  }

  /** Leaves sessions to the other replicas. Sessions without a record end, and all end while Redis is unreachable. */
  leave(sessions: Iterable<OwnSession>): void {
    this.left = this.#leave([...sessions])
  }

  /** Whether a replica is shutting down or gone, so that it must not be asked for sessions. */
  hasLeft(replica: string): boolean {
    return this.#left.has(replica)
  }

  async #leave(sessions: readonly OwnSession[]): Promise<void> {
    const { id: from, records } = this.#replicas
    for (let at = 0; at < sessions.length; at += AT_ONCE) {
      const written = sessions.slice(at, at + AT_ONCE).map(async ({ id, principal, client }) => {
        const { record } = client
        if (!record) return
        const handed: HandedSession = { mount: this.#mount, principal, from, record }
        const isWritten = await records.remember(KIND, id, JSON.stringify(handed), KEPT)
        if (isWritten) client.direct?.leave?.()
      })
      await Promise.all(written)
    }
  }

  /**
   * Lets other replicas go on with a session of the server itself if this one is killed. Does nothing if they know all that they
   * need.
   */
  async note(session: OwnSession): Promise<void> {
    const { id, principal, client } = session
    const { id: self, records } = this.#replicas
    const { record } = client
    if (!record?.direct) return
    const handed: HandedSession = { mount: this.#mount, principal, from: self, owner: self, record }
    const text = JSON.stringify(handed)
    if (session.noted === text) return
    session.noted = text
    const isWritten = await records.remember(KIND, id, text, KEPT)
    if (!isWritten) session.noted = ''
  }

  /** Takes over a session, unless another replica has done so. Undefined if no replica has left it. Rejects with a Fault. */
  async take(id: string, { principal, without, mayTake }: Taking): Promise<Taken | undefined> {
    await this.left
    const { id: self, records } = this.#replicas
    return records.change<Taken | undefined>(KIND, id, KEPT, (text) => {
      const handed = text === undefined ? undefined : (JSON.parse(text) as HandedSession)
      if (!handed || handed.mount !== this.#mount || handed.principal !== principal) return { text, result: undefined }
      const { owner, record, from } = handed
      if (owner !== from) this.#left.add(from)
      const isElsewhere = owner !== undefined && owner !== self && owner !== without
      if (isElsewhere || !mayTake) return { text, result: { owner: isElsewhere ? owner : undefined } }
      if (owner === self) return { text, result: { record, from } }
      const taken = { ...handed, owner: self, from: owner === from ? self : from }
      return { text: JSON.stringify(taken), result: { record, from } }
    })
  }

  /** To be called when a session of this replica has ended: nobody goes on with it. */
  ended({ id, from, noted }: OwnSession): void {
    if ((from ?? noted) !== undefined) this.#replicas.records.forget(KIND, id)
  }
}
