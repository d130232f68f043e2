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

/** The sessions that events are about. */
export class SessionViews {
  readonly byId = new Map<string, SessionView>()

  /** A session was opened or has ended. */
  changed({ session, server = '', side, what, principal, at }: Of<'session'>): void {
    if (session === undefined) return
    const view = this.#of(session, { server, side, at })
    if (principal !== undefined) view.principal = principal
    view.state = what === 'opened' ? 'open' : what
    if (view.state !== 'open') view.streams = []
    view.last = at
  }

  /** A stream for messages that answer no request was connected, or is not any more. */
  stream({ session, server = '', what, stream, at }: Of<'stream'>): void {
    if (session === undefined) return
    const view = this.#of(session, { server, side: 'client', at })
    const others = view.streams.filter((one) => one.id !== stream)
    const isOpen = what === 'opened' || what === 'resumed'
    view.streams = isOpen ? [...others, { id: stream, since: at }].slice(-KEPT_OF_SESSIONS.streams) : others
    view.last = at
  }

  /** A call in a session has begun or ended. Returns its client, with what other calls have said of it. */
  called({ session, server = '', principal, at, outcome, ms = 0, client }: Of<'call'>, isNew: boolean): Side {
    if (session === undefined) return client
    const view = this.#of(session, { server, side: 'client', at })
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

  #of(id: string, { server, side, at }: Pick<SessionView, 'server' | 'side' | 'at'>): SessionView {
    const known = this.byId.get(id)
    if (known) return known
    const view: SessionView = { id, server, side, state: 'open', at, last: at, calls: 0, failed: 0, ms: 0, streams: [] }
    this.byId.set(id, view)
    if (this.byId.size > KEPT_OF_SESSIONS.sessions) {
      const [oldest] = this.byId.keys()
      this.byId.delete(oldest as string)
    }
    return view
  }
}
