/** Builds sessions from events: owners, call times and open streams. */

import { BoundedMap } from '../base/limits/bounded.js'
import { isFailure } from '../mcp/ports/outcome.js'
import type { RecordedOf, Side } from './recorder/events.js'

/** Most stored sessions of each kind. The oldest are dropped. */
export const KEPT_OF_SESSIONS = { sessions: 1_000, streams: 8 }

/** A session of a client with the bridge, or of the bridge with a server. */
export interface SessionView {
  id: string
  server: string
  side: 'client' | 'server'
  principal?: string | undefined
  state: 'open' | 'ended' | 'lost'
  /** When it was opened, and its last activity. */
  at: number
  last: number
  calls: number
  failed: number
  /** Total milliseconds of its calls. */
  ms: number
  /** The client's name for itself, if known from a call. */
  client?: string | undefined
  /** The revision of its client, if known from a call. */
  revision?: string | undefined
  /** The client's transport, if known from a call. */
  transport?: Side['transport'] | undefined
  /** Its open streams of unsolicited messages. `since` is in milliseconds since 1970. */
  streams: { id: string; since: number }[]
}

/** Identifies a session: two servers, or the two sides of one, can have sessions with the same id. */
export type SessionKey = Pick<SessionView, 'id' | 'server' | 'side'>

/** The sessions that events are about. */
export class SessionViews {
  readonly #known = new BoundedMap<string, SessionView>(KEPT_OF_SESSIONS.sessions)
  /** Sessions requested with `initialize` and not open yet. */
  readonly #wanted = new BoundedMap<string, SessionView>(KEPT_OF_SESSIONS.sessions)

  /** All sessions, oldest first. */
  get all(): readonly SessionView[] {
    return [...this.#known.values()]
  }

  get(key: SessionKey): SessionView | undefined {
    return this.#known.get(textOf(key))
  }

  /** A session has been opened or has ended. */
  changed({ session: id, server = '', side, what, principal, at }: RecordedOf<'session'>): void {
    if (id === undefined) return
    const view = this.#of({ id, server, side }, at)
    if (principal !== undefined) view.principal = principal
    view.state = what === 'opened' ? 'open' : what
    if (view.state !== 'open') view.streams = []
    view.last = at
  }

  /** A stream of unsolicited messages was opened or closed. */
  stream({ session: id, server = '', what, stream, at }: RecordedOf<'stream'>): void {
    if (id === undefined) return
    const view = this.#of({ id, server, side: 'client' }, at)
    const others = view.streams.filter((one) => one.id !== stream)
    const isOpen = what === 'opened' || what === 'resumed'
    view.streams = isOpen ? [...others, { id: stream, since: at }].slice(-KEPT_OF_SESSIONS.streams) : others
    view.last = at
  }

  /** A call in a session has started or ended. Returns its client, completed from other calls. */
  called(seen: RecordedOf<'call'>, isNew: boolean): Side {
    const { principal, at, outcome, ms = 0, client } = seen
    const view = this.#calledIn(seen)
    if (!view) return client
    view.transport ??= client.transport
    view.client ??= client.name
    view.revision ??= client.revision
    view.principal ??= principal
    view.last = at
    if (isNew) view.calls++
    if (isFailure(outcome)) view.failed++
    view.ms += ms
    const { name = view.client, revision = view.revision } = client
    return name === client.name && revision === client.revision ? client : { ...client, name, revision }
  }

  /** The session of a call. It may have ended before the call. */
  #calledIn({ session: id, server = '', method, what, outcome, at }: RecordedOf<'call'>): SessionView | undefined {
    if (id === undefined) return undefined
    const key: SessionKey = { id, server, side: 'client' }
    const known = this.get(key) ?? this.#wanted.get(textOf(key))
    if (method !== 'initialize') return known ?? (what === 'begun' ? this.#of(key, at) : undefined)
    if (what === 'begun') return known ?? keep(this.#wanted, key, at)
    // No session was opened.
    if (outcome !== 'ok') this.#wanted.delete(textOf(key))
    return known
  }

  #of(key: SessionKey, at: number): SessionView {
    const text = textOf(key)
    const view = this.#known.get(text) ?? keep(this.#known, key, at, this.#wanted.get(text))
    this.#wanted.delete(text)
    return view
  }
}

function textOf({ id, server, side }: SessionKey): string {
  return `${side} ${id} ${server}`
}

function keep(sessions: Map<string, SessionView>, key: SessionKey, at: number, view = newView(key, at)): SessionView {
  sessions.set(textOf(key), view)
  return view
}

function newView({ id, server, side }: SessionKey, at: number): SessionView {
  return { id, server, side, state: 'open', at, last: at, calls: 0, failed: 0, ms: 0, streams: [] }
}
