/** What events add up to of sessions: whose they are, what they cost, and their open streams. */
import { isFailure, type Seen, type Side } from '../ports/seen.js'

/** Most of each that are kept. The oldest leave. */
export const KEPT_OF_SESSIONS = { sessions: 1_000, streams: 8 }

type Of<K extends Seen['kind']> = Extract<Seen, { kind: K }>

/** A session of a client with the bridge, or of the bridge with a server. */
export interface SessionView {
  id: string
  server: string
  side: 'client' | 'server'
  principal?: string | undefined
  state: 'open' | 'ended' | 'lost'
  /** When it was opened, and when something last happened in it. */
  at: number
  last: number
  calls: number
  failed: number
  /** Milliseconds of all its calls together. */
  ms: number
  /** What the client calls itself, if a call said it. Relayed calls do not. */
  client?: string | undefined
  /** The revision of its client, if a call said it. Relayed calls of early revisions do not. */
  revision?: string | undefined
  /** How the client is connected, if a call said it. */
  transport?: Side['transport'] | undefined
  /** Its open event streams for messages that answer no request. `since` is in milliseconds since 1970. */
  streams: { id: string; since: number }[]
}

/** What identifies a session: two servers, and the two sides of one, can have sessions with the same id. */
export type SessionKey = Pick<SessionView, 'id' | 'server' | 'side'>

/** The sessions that events are about. */
export class SessionViews {
  readonly #known = new Map<string, SessionView>()
  /** Sessions that clients ask for with `initialize`, and that are not open so far. */
  readonly #wanted = new Map<string, SessionView>()

  /** All sessions, oldest first. */
  get all(): readonly SessionView[] {
    return [...this.#known.values()]
  }

  get(key: SessionKey): SessionView | undefined {
    return this.#known.get(textOf(key))
  }

  /** A session was opened or has ended. */
  changed({ session: id, server = '', side, what, principal, at }: Of<'session'>): void {
    if (id === undefined) return
    const view = this.#of({ id, server, side }, at)
    if (principal !== undefined) view.principal = principal
    view.state = what === 'opened' ? 'open' : what
    if (view.state !== 'open') view.streams = []
    view.last = at
  }

  /** A stream for messages that answer no request was connected, or is not any more. */
  stream({ session: id, server = '', what, stream, at }: Of<'stream'>): void {
    if (id === undefined) return
    const view = this.#of({ id, server, side: 'client' }, at)
    const others = view.streams.filter((one) => one.id !== stream)
    const isOpen = what === 'opened' || what === 'resumed'
    view.streams = isOpen ? [...others, { id: stream, since: at }].slice(-KEPT_OF_SESSIONS.streams) : others
    view.last = at
  }

  /** A call in a session has begun or ended. Returns its client, with what other calls have said of it. */
  called(seen: Of<'call'>, isNew: boolean): Side {
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

  /** The session of a call. When a call ends, its session may have ended before. */
  #calledIn({ session: id, server = '', method, what, outcome, at }: Of<'call'>): SessionView | undefined {
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

/** Adds a session. The oldest one leaves if there are too many. */
function keep(sessions: Map<string, SessionView>, key: SessionKey, at: number, view = newView(key, at)): SessionView {
  sessions.set(textOf(key), view)
  const [oldest] = sessions.keys()
  if (oldest !== undefined && sessions.size > KEPT_OF_SESSIONS.sessions) sessions.delete(oldest)
  return view
}

function newView({ id, server, side }: SessionKey, at: number): SessionView {
  return { id, server, side, state: 'open', at, last: at, calls: 0, failed: 0, ms: 0, streams: [] }
}
