/** What events add up to: calls, servers, sessions and refusals. The bridge, the terminal and the page use the same code. */
import { type CallSeen, type Cancelled, isFailure, type Outcome, type Seen, type Side } from '../ports/seen.js'
import type { SessionCounts } from './open-sessions.js'

/** Most of each that are kept. The oldest leave; with a call, its events. A ring holds fewer events. */
export const KEPT = {
  calls: 2_000,
  events: 25_000,
  sessions: 1_000,
  servers: 200,
  refused: 500,
  stderr: 20,
  messages: 20,
  processes: 100,
  streams: 8,
  notes: 100,
}
/** Most events kept of one call. */
const MAX_EVENTS = 500

type Of<K extends Seen['kind']> = Extract<Seen, { kind: K }>

/** What happened to the bridge: its configuration or its trust in a server changed, or events were lost. */
export type Note = Of<'config' | 'trust' | 'lost'>

/** What happens to one call: with the calls that continue it, it is one. */
export interface CallView {
  id: string
  /** When it began, in milliseconds since 1970. */
  at: number
  server: string
  method: string
  name?: string | undefined
  principal?: string | undefined
  session?: string | undefined
  client?: Side | undefined
  upstream?: Side | undefined
  relayed: boolean
  /** `open` as long as it has not ended. */
  status: 'open' | Outcome
  cancelled?: Cancelled | undefined
  /** The client has closed the connection on which it would get the answer, and has not come back. */
  away: boolean
  code?: number | undefined
  fault?: string | undefined
  blame?: string | undefined
  why?: string | undefined
  /** Milliseconds from its beginning to its last end. */
  ms?: number | undefined
  upstreamMs?: number | undefined
  trace?: string | undefined
  /** Rounds of questions to the client. */
  rounds: number
  /** The client is asked, and has not answered yet. */
  parked: boolean
  /** The process of its server, if the server has only one. */
  pid?: number | undefined
  /** Its beginning is missing. */
  incomplete: boolean
  /** Everything that belongs to it, in order. */
  events: Seen[]
  /** Events beyond the bound. */
  more: number
}

/** What is known about a server. */
export interface ServerView {
  name: string
  era: string
  revision?: string | undefined
  transport?: string | undefined
  /** The evidence for its era, and when it was found. */
  why?: string | undefined
  at?: number | undefined
  ms?: number | undefined
  /** Its processes that run. */
  pids: number[]
  starts: number
  calls: number
  failed: number
  /** Messages that belong to no call: the probe of its era, handshakes, lists. The newest. */
  messages: Of<'message'>[]
  /** The last lines that its process wrote to stderr. */
  stderr: string[]
}

/** What the bridge knows about one of its servers now. */
export interface ServerNow {
  name: string
  state: string
  era?: string | undefined
  revision?: string | undefined
  why?: string | undefined
  calls: number
  parked: number
  /** Its open sessions. */
  sessions?: SessionCounts | undefined
  /**
   * After a failure, the server is not called for a while: how many failures in a row there were, and the milliseconds
   * until it is called again. Undefined if it is called.
   */
  pause?: { failures?: number | undefined; ms: number } | undefined
  /** The names of its tools, if it has listed them. */
  tools?: readonly string[] | undefined
  /** Messages that belong to no call, with their texts. */
  messages?: readonly Of<'message'>[] | undefined
}

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

/** Events as calls, servers, sessions and refusals. */
export class Views {
  readonly calls = new Map<string, CallView>()
  readonly servers = new Map<string, ServerView>()
  readonly sessions = new Map<string, SessionView>()
  /** Newest last. */
  readonly refused: Of<'refused'>[] = []
  /** Newest last. */
  readonly notes: Note[] = []
  /** Number of the last event, and of events that are missing between those that came. */
  last = 0
  lost = 0
  seen = 0
  /** Number of calls that were not recorded, because too many came. */
  unrecorded = 0
  /** When the last event happened. */
  at = 0
  /** Calls that are parts of others, by their ids. */
  readonly #parts = new Map<string, string>()
  /** Events of all calls that are kept. */
  #events = 0

  /** Adds the next event. Events that were added before are ignored. */
  add(seen: Seen): void {
    if (seen.seq <= this.last) return
    if (this.last > 0) this.lost += seen.seq - this.last - 1
    this.last = seen.seq
    this.at = seen.at
    this.seen++
    switch (seen.kind) {
      case 'call':
        return this.#call(seen)
      case 'message':
      case 'question':
        return this.#within(seen)
      case 'verdict': {
        const { era, revision, transport, why, at, ms } = seen
        Object.assign(this.#server(seen.server), { era, revision, transport, why, at, ms })
        return
      }
      case 'child':
        return this.#child(seen)
      case 'session':
        return this.#session(seen)
      case 'stream':
        return this.#stream(seen)
      case 'refused':
        this.refused.push(seen)
        if (this.refused.length > KEPT.refused) this.refused.shift()
        return
      case 'lost':
        this.unrecorded += seen.count ?? 0
        return this.#note(seen)
      case 'config':
      case 'trust':
        return this.#note(seen)
    }
  }

  /** The call with this id, also if it continues another one. */
  call(id: string): CallView | undefined {
    return this.calls.get(this.#parts.get(id) ?? id)
  }

  #note(seen: Note): void {
    const last = this.notes.at(-1)
    // What is lost again and again is one note.
    if (seen.kind === 'lost' && last?.kind === 'lost' && last.text === seen.text && last.server === seen.server) {
      this.notes[this.notes.length - 1] = { ...seen, count: (last.count ?? 0) + (seen.count ?? 0) }
      return
    }
    this.notes.push(seen)
    if (this.notes.length > KEPT.notes) this.notes.shift()
  }

  #call(seen: Of<'call'>): void {
    const id = seen.call
    if (id === undefined) return
    const { continues } = seen
    const first = continues === undefined ? undefined : this.call(continues)
    if (first && !this.calls.has(id)) this.#parts.set(id, first.id)
    const known = this.call(id)
    const call = known ?? this.#begin(id, seen.at, seen.what === 'ended')
    tellCall(call, seen)
    if (seen.session !== undefined) call.client = this.#callIn(seen.session, seen, !known)
    // A client and a server between which messages are relayed have agreed on their revision.
    if (call.relayed && call.upstream && call.upstream.revision === undefined)
      call.upstream = { ...call.upstream, revision: call.client?.revision }
    this.#keep(call, seen)
    const server = this.#server(seen.server)
    if (!known) server.calls++
    const { upstream } = call
    if (upstream?.transport === 'stdio' && server.pids.length === 1) [call.pid] = server.pids
    // A verdict on a legacy server has no revision yet: `initialize` says it.
    if (upstream?.revision !== undefined && (server.era === 'unknown' || server.era === upstream.era))
      Object.assign(server, { era: upstream.era, revision: upstream.revision })
    if (seen.what === 'begun') return
    if (isFailure(seen.outcome)) server.failed++
  }

  #within(seen: Of<'message' | 'question'>): void {
    if (seen.call === undefined) {
      if (seen.kind === 'message' && seen.hop === 'server') this.#ofServer(seen)
      return
    }
    const known = this.call(seen.call)
    const call = known ?? this.#begin(seen.call, seen.at, true)
    if (!known) {
      call.server = seen.server ?? ''
      if (seen.kind === 'message') call.method = seen.method ?? ''
    }
    if (seen.kind === 'question') {
      call.parked = seen.what === 'parked'
      if (call.parked) call.rounds++
    }
    this.#keep(call, seen)
  }

  #begin(id: string, at: number, incomplete: boolean): CallView {
    const call: CallView = {
      id,
      at,
      server: '',
      method: '',
      relayed: false,
      status: 'open',
      away: false,
      rounds: 0,
      parked: false,
      incomplete,
      events: [],
      more: 0,
    }
    this.calls.set(id, call)
    if (this.calls.size > KEPT.calls) this.#forget()
    if (this.#parts.size > KEPT.calls) {
      const [oldest] = this.#parts.keys()
      this.#parts.delete(oldest as string)
    }
    return call
  }

  #ofServer(seen: Of<'message'>): void {
    const { messages } = this.#server(seen.server)
    messages.push(seen)
    if (messages.length > KEPT.messages) messages.shift()
  }

  #keep(call: CallView, seen: Seen): void {
    if (call.events.length >= MAX_EVENTS) {
      call.more++
      return
    }
    call.events.push(seen)
    this.#events++
    while (this.#events > KEPT.events && this.calls.size > 1) this.#forget()
  }

  /** Forgets the oldest call. */
  #forget(): void {
    const [[id, call] = []] = this.calls
    if (id === undefined) return
    this.calls.delete(id)
    this.#events -= call?.events.length ?? 0
  }

  #server(name = ''): ServerView {
    const known = this.servers.get(name)
    if (known) return known
    const server: ServerView = {
      name,
      era: 'unknown',
      starts: 0,
      calls: 0,
      failed: 0,
      pids: [],
      messages: [],
      stderr: [],
    }
    // An event without a server belongs to none that is listed.
    if (name !== '' && this.servers.size < KEPT.servers) this.servers.set(name, server)
    return server
  }

  #child({ server: name, what, pid, line }: Of<'child'>): void {
    const server = this.#server(name)
    if (what === 'stderr') {
      server.stderr.push(line ?? '')
      if (server.stderr.length > KEPT.stderr) server.stderr.shift()
      return
    }
    if (what === 'ended') server.pids = server.pids.filter((one) => one !== pid)
    else {
      server.starts++
      if (pid !== undefined) server.pids = [...server.pids, pid].slice(-KEPT.processes)
    }
  }

  #session({ session, server = '', side, what, principal, at }: Of<'session'>): void {
    if (session === undefined) return
    const view = this.#sessionOf(session, { server, side, at })
    if (principal !== undefined) view.principal = principal
    view.state = what === 'opened' ? 'open' : what
    if (view.state !== 'open') view.streams = []
    view.last = at
  }

  #stream(seen: Of<'stream'>): void {
    const { session, server = '', what, stream, id, at } = seen
    if (session === undefined) return
    if (id !== undefined) {
      const call = this.#answeredIn(session, id)
      if (!call) return
      if (call.status !== 'cancelled') call.away = what === 'left'
      return this.#keep(call, seen)
    }
    const view = this.#sessionOf(session, { server, side: 'client', at })
    const others = view.streams.filter((one) => one.id !== stream)
    const isOpen = what === 'opened' || what === 'resumed'
    view.streams = isOpen ? [...others, { id: stream, since: at }].slice(-KEPT.streams) : others
    view.last = at
  }

  /** The newest call of a session whose request has this id. */
  #answeredIn(session: string, id: string | number): CallView | undefined {
    const isRequest = (seen: Seen) =>
      seen.kind === 'message' && seen.hop === 'client' && seen.form === 'request' && seen.dir === 'in' && seen.id === id
    return [...this.calls.values()].findLast((call) => call.session === session && call.events.some(isRequest))
  }

  #callIn(session: string, { server = '', principal, at, outcome, ms = 0, client }: Of<'call'>, isNew: boolean): Side {
    const view = this.#sessionOf(session, { server, side: 'client', at })
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

  #sessionOf(id: string, { server, side, at }: Pick<SessionView, 'server' | 'side' | 'at'>): SessionView {
    const known = this.sessions.get(id)
    if (known) return known
    const view: SessionView = { id, server, side, state: 'open', at, last: at, calls: 0, failed: 0, ms: 0, streams: [] }
    this.sessions.set(id, view)
    if (this.sessions.size > KEPT.sessions) {
      const [oldest] = this.sessions.keys()
      this.sessions.delete(oldest as string)
    }
    return view
  }
}

function tellCall(call: CallView, seen: CallSeen & Seen): void {
  call.server = seen.server ?? call.server
  call.method = call.method === '' ? seen.method : call.method
  call.name ??= seen.name
  call.principal ??= seen.principal
  call.session ??= seen.session
  call.client ??= seen.client
  call.upstream = seen.upstream ?? call.upstream
  call.relayed ||= seen.relayed
  call.trace ??= seen.trace
  if (seen.what === 'begun') {
    // The call goes on: its client brings answers.
    call.status = 'open'
    call.parked = false
    return
  }
  const { outcome = 'ok', cancelled, code, fault, blame, why, ms, upstreamMs } = seen
  Object.assign(call, {
    status: outcome,
    cancelled,
    away: cancelled === 'disconnected',
    parked: call.parked && outcome === 'asks',
    code,
    fault,
    blame,
    why,
    upstreamMs,
  })
  if (call.incomplete && ms !== undefined) call.at = Math.min(call.at, seen.at - ms)
  call.ms = call.events.length === 0 ? ms : Math.max(ms ?? 0, seen.at - call.at)
}
