/** Counts the open sessions of each server, including sessions whose events were dropped. */
import type { RecordedOf } from './recorder/events.js'

type SessionSeen = RecordedOf<'session'>

/** Numbers of sessions: between clients and the bridge, and between the bridge and a server. */
export type SessionCounts = Record<SessionSeen['side'], number>

/** The open sessions. Their number is bounded by the bridge. */
export class OpenSessions {
  readonly #servers = new Map<string, Record<SessionSeen['side'], Set<string>>>()

  /** Counts an event of a session. `id` is the displayed form of the session's id. */
  note({ server = '', side, what }: Pick<SessionSeen, 'server' | 'side' | 'what'>, id: string): void {
    const open = this.#servers.get(server) ?? { client: new Set(), server: new Set() }
    if (what === 'opened') open[side].add(id)
    else open[side].delete(id)
    if (open.client.size + open.server.size > 0) this.#servers.set(server, open)
    else this.#servers.delete(server)
  }

  of(server: string): SessionCounts {
    const open = this.#servers.get(server)
    return { client: open?.client.size ?? 0, server: open?.server.size ?? 0 }
  }
}
