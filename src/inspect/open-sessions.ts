/** How many sessions each server has open. The counts stay when the events of the sessions leave. */
import type { Seen } from '../ports/seen.js'

type SessionSeen = Extract<Seen, { kind: 'session' }>

/** Numbers of sessions: of clients with the bridge, and of the bridge with a server. */
export type SessionCounts = Record<SessionSeen['side'], number>

/** The sessions that are open now. The bridge bounds them. */
export class OpenSessions {
  readonly #servers = new Map<string, Record<SessionSeen['side'], Set<string>>>()

  /** Takes an event of a session. `id` is what is shown of the session's id. */
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
