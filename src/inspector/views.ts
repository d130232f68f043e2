/** Builds calls, servers, sessions and refusals from events. The bridge, the terminal and the page share this code. */

import { type CallBounds, type CallView, CallViews, KEPT_OF_CALLS } from './call-views.js'
import { isMessage, type RecordedEvent, type RecordedOf } from './recorder/events.js'
import { type ServerView, ServerViews } from './server-views.js'
import { type SessionView, SessionViews } from './session-views.js'

export type { CallView } from './call-views.js'
export type { ProcessNow, ServerNow, ServerView } from './server-views.js'

/** Most stored entries of each kind. The oldest are dropped. */
export const KEPT = { refused: 500, notes: 100, bridges: 500, servers: 20, members: 200 }

/** A change of the bridge itself: its configuration, its trust in a server, or lost events. */
export type BridgeNote = RecordedOf<'config' | 'trust' | 'lost'>

/** Events as calls, servers, sessions and refusals. */
export class Views {
  /** Newest last. */
  readonly refused: RecordedOf<'refused'>[] = []
  /** Newest last. */
  readonly notes: BridgeNote[] = []
  /** The number of the last event. */
  last = 0
  /** Number of events that are missing between others. */
  lost = 0
  /** Events before this one may have left the memory of the inspector before these views began: they are not lost. */
  first = 0
  seen = 0
  /** Number of calls that were not recorded, because there were too many. */
  unrecorded = 0
  /** The time of the last event. */
  at = 0
  /** The bridges, where the events of several are together, and the servers of each. */
  readonly bridges = new Map<string, Set<string>>()
  readonly #calls: CallViews
  readonly #servers = new ServerViews()
  readonly #sessions = new SessionViews()

  constructor(bounds: CallBounds = KEPT_OF_CALLS) {
    this.#calls = new CallViews(bounds)
  }

  get calls(): ReadonlyMap<string, CallView> {
    return this.#calls.byId
  }

  get servers(): ReadonlyMap<string, ServerView> {
    return this.#servers.byName
  }

  get sessions(): readonly SessionView[] {
    return this.#sessions.all
  }

  /** Adds the next event. Events that were added before are ignored. */
  add(seen: RecordedEvent): void {
    if (seen.seq <= this.last) return
    if (this.last > 0) this.lost += Math.max(0, seen.seq - Math.max(this.last + 1, this.first))
    this.last = seen.seq
    this.at = seen.at
    this.seen++
    if (seen.bridge !== undefined) this.#bridge(seen.bridge, seen.server)
    switch (seen.kind) {
      case 'call':
        return this.#call(seen)
      case 'message':
      case 'question':
        return this.#within(seen)
      case 'verdict':
        return this.#servers.verdict(seen)
      case 'child':
        return this.#servers.child(seen)
      case 'session':
        return this.#sessions.changed(seen)
      case 'stream':
        return this.#stream(seen)
      case 'refused':
        this.refused.push(seen)
        if (this.refused.length > KEPT.refused) this.refused.shift()
        return
      case 'lost':
        if (seen.what === 'calls') this.unrecorded += seen.count ?? 0
        return this.#note(seen)
      case 'config':
      case 'trust':
        return this.#note(seen)
    }
  }

  /** The call with this id, or the one that the id continues. */
  call(id: string): CallView | undefined {
    return this.#calls.get(id)
  }

  /** These calls stay when others are dropped. */
  pin(ids: ReadonlySet<string>): void {
    this.#calls.pinned = ids
  }

  /** The session of a call. */
  sessionOf({ session, server }: Pick<CallView, 'session' | 'server'>): SessionView | undefined {
    return session === undefined ? undefined : this.#sessions.get({ id: session, server, side: 'client' })
  }

  #bridge(bridge: string, server: string | undefined): void {
    const servers = this.bridges.get(bridge) ?? new Set()
    if (this.bridges.size < KEPT.bridges) this.bridges.set(bridge, servers)
    if (server !== undefined && servers.size < KEPT.servers) servers.add(server)
  }

  #note(seen: BridgeNote): void {
    const last = this.notes.at(-1)
    // Repeated losses share one note.
    if (seen.kind === 'lost' && last?.kind === 'lost' && last.text === seen.text && last.server === seen.server) {
      this.notes[this.notes.length - 1] = { ...seen, count: (last.count ?? 0) + (seen.count ?? 0) }
      return
    }
    this.notes.push(seen)
    if (this.notes.length > KEPT.notes) this.notes.shift()
  }

  #call(seen: RecordedOf<'call'>): void {
    if (!hasCall(seen)) return
    const { call, isNew } = this.#calls.called(seen)
    if (seen.session !== undefined) call.client = this.#sessions.called(seen, isNew)
    if (isNew) this.#servers.counted(call.server)
    this.#belongsTo(call, seen.member)
    this.#servers.called(seen, call)
  }

  /** The call is for this server of its group, too. */
  #belongsTo(call: CallView, member: string | undefined): void {
    const { server, members } = call
    if (member === undefined || member === server || members.includes(member)) return
    if (server === '' || members.length >= KEPT.members) return
    members.push(member)
    this.#servers.joined(server, member)
    this.#servers.counted(member)
  }

  #within(seen: RecordedOf<'message' | 'question'>): void {
    const isWithServer = isMessage(seen, 'server')
    if (!hasCall(seen)) {
      if (isWithServer) this.#servers.message(seen)
      return
    }
    const call = this.#calls.within(seen)
    if (!isWithServer) return
    if (seen.server !== call.server) this.#servers.group(call.server)
    // To find the server of a call, a group may ask all of them for their lists.
    if (isSentToServer(seen) && seen.method === call.method) this.#belongsTo(call, seen.server)
    // The end of a call names its server, but a call may take long.
    call.upstream ??= this.#servers.sideOf(seen.server)
    if (isSentToServer(seen)) this.#processOf(call, seen)
  }

  /** A sent message reaches the only process of its server. Later messages of the call may go to another process. */
  #processOf(call: CallView, seen: RecordedOf<'message'>): void {
    const pid = this.#servers.pidOf(seen.server)
    const isFirst = call.events.find(isSentToServer) === seen
    call.pid = isFirst || call.pid === pid ? pid : undefined
  }

  #stream(seen: RecordedOf<'stream'>): void {
    const { session, id } = seen
    if (session === undefined) return
    if (id === undefined) this.#sessions.stream(seen)
    else this.#calls.stream(seen, session, id)
  }
}

function isSentToServer(seen: RecordedEvent): boolean {
  return isMessage(seen, 'server', 'out')
}

function hasCall<S extends RecordedEvent>(seen: S): seen is S & { call: string } {
  return seen.call !== undefined
}
