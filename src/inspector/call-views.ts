/** Builds calls from events: both sides, state, messages and questions. */

import { BoundedMap } from '../base/limits/bounded.js'
import type { Cancelled, Outcome } from '../mcp/ports/outcome.js'
import { type CallBody, isMessage, type RecordedEvent, type RecordedOf, type Side } from './recorder/events.js'

/**
 * Most stored calls, most calls that continue them, and most events in total. The oldest calls are dropped, with their
 * events; those that are running, failed or asked something stay until they are half of the calls.
 */
export const KEPT_OF_CALLS: CallBounds = { calls: 2_500, parts: 2_000, events: 30_000 }

export interface CallBounds {
  calls: number
  parts: number
  events: number
}

/** Most stored events of one call. */
const MAX_EVENTS = 500
/** Of a call with more events, this many of the first ones stay. */
const FIRST = 400

/** One call, together with the calls that continue it. */
export interface CallView {
  id: string
  /** Start time, in milliseconds since 1970. */
  at: number
  /** The bridge, where calls of several are together. */
  bridge?: string | undefined
  server: string
  /** If `server` is a group: the servers that it has sent the call to. */
  members: string[]
  method: string
  name?: string | undefined
  principal?: string | undefined
  session?: string | undefined
  client?: Side | undefined
  upstream?: Side | undefined
  /** `open` until it ends. */
  status: 'open' | Outcome
  cancelled?: Cancelled | undefined
  /** The client has closed the connection for the answer, and has not reconnected. */
  away: boolean
  code?: number | undefined
  fault?: string | undefined
  blame?: string | undefined
  why?: string | undefined
  /** Milliseconds from its start to its last end. */
  ms?: number | undefined
  /** Milliseconds spent at the server, summed over its parts. */
  upstreamMs?: number | undefined
  trace?: string | undefined
  /** Rounds of questions to the client. */
  rounds: number
  /** Open questions to the client, as `openQuestions` counts them. */
  questions: number
  /** A question to the client is unanswered. */
  parked: boolean
  /** The process of its server, if certain. */
  pid?: number | undefined
  /** Its start is missing. */
  incomplete: boolean
  /** Ids of the newest calls that continue it. */
  parts: string[]
  /** Its events in order: the first ones and the newest ones. */
  events: RecordedEvent[]
  /** Number of dropped events between these. */
  more: number
}

/** The calls that events are about. */
export class CallViews {
  readonly byId = new Map<string, CallView>()
  /** Ids of calls that a viewer has pinned. */
  pinned: ReadonlySet<string> = new Set()
  /** Calls that continue others, by id. */
  readonly #parts: BoundedMap<string, string>
  readonly #bounds: CallBounds
  /** Stored events of all calls. */
  #events = 0

  constructor(bounds: CallBounds) {
    this.#bounds = bounds
    this.#parts = new BoundedMap(bounds.parts, (first) => this.byId.get(first)?.parts.shift())
  }

  /** The call with this id, or the one that the id continues. */
  get(id: string): CallView | undefined {
    return this.byId.get(this.#parts.get(id) ?? id)
  }

  /** A call has started or ended. `isNew`: its first event. */
  called(seen: RecordedOf<'call'> & { call: string }): { call: CallView; isNew: boolean } {
    const { call: id, continues } = seen
    const first = continues === undefined ? undefined : this.get(continues)
    if (first && !this.byId.has(id)) {
      this.#parts.set(id, first.id)
      first.parts.push(id)
    }
    const known = this.get(id)
    const call = known ?? this.#begin(id, seen.at, seen.what === 'ended')
    call.bridge = seen.bridge
    tellCall(call, seen)
    if (seen.outcome === 'asks' && !call.parked) call.rounds++
    askIn(call, seen)
    this.#keep(call, seen)
    return { call, isNew: !known }
  }

  /** A message or a question of a call. */
  within(seen: RecordedOf<'message' | 'question'> & { call: string }): CallView {
    const known = this.get(seen.call)
    const call = known ?? this.#begin(seen.call, seen.at, true)
    if (!known) {
      call.server = seen.server ?? ''
      call.bridge = seen.bridge
      if (seen.kind === 'message') call.method = seen.method ?? ''
    }
    // A call that ended with a question was counted then.
    if (seen.kind === 'question' && seen.what === 'parked' && call.status !== 'asks') call.rounds++
    askIn(call, seen)
    this.#keep(call, seen)
    return call
  }

  /** The client has left the stream that carries the answer to this request, or has reconnected. */
  stream(seen: RecordedOf<'stream'>, session: string, id: string | number): void {
    const call = this.#answeredIn(seen.server, session, id)
    if (!call) return
    if (call.status !== 'cancelled') call.away = seen.what === 'left'
    this.#keep(call, seen)
  }

  #begin(id: string, at: number, incomplete: boolean): CallView {
    const call: CallView = {
      id,
      at,
      server: '',
      members: [],
      method: '',
      status: 'open',
      away: false,
      rounds: 0,
      questions: 0,
      parked: false,
      incomplete,
      parts: [],
      events: [],
      more: 0,
    }
    this.byId.set(id, call)
    if (this.byId.size > this.#bounds.calls) this.#forget()
    return call
  }

  #keep(call: CallView, seen: RecordedEvent): void {
    call.events.push(seen)
    if (call.events.length > MAX_EVENTS) {
      const notification = call.events.findIndex(
        (one, i) => i >= FIRST && isMessage(one) && one.form === 'notification',
      )
      call.events.splice(Math.max(notification, FIRST), 1)
      call.more++
    } else this.#events++
    while (this.#events > this.#bounds.events && this.byId.size > 1) this.#forget()
  }

  /** Drops the oldest quiet call, or the oldest call if too many are not quiet. */
  #forget(): void {
    let oldest: CallView | undefined
    let call: CallView | undefined
    // Of the older half, the oldest one is dropped that is quiet.
    let left = this.#bounds.calls / 2
    for (const one of this.byId.values()) {
      oldest ??= one
      if (isQuiet(one) && !this.pinned.has(one.id)) call = one
      if (call || --left <= 0) break
    }
    call ??= oldest
    if (!call) return
    this.byId.delete(call.id)
    for (const part of call.parts) this.#parts.delete(part)
    this.#events -= call.events.length
  }

  /** The newest call of a session with a server whose request has this id. */
  #answeredIn(server = '', session: string, id: string | number): CallView | undefined {
    const isRequest = (seen: RecordedEvent) => isMessage(seen, 'client', 'in', 'request') && seen.id === id
    const isIn = (call: CallView) => call.session === session && call.server === server
    return [...this.byId.values()].findLast((call) => isIn(call) && call.events.some(isRequest))
  }
}

/** The number of open questions after an event, from the number before it. A round sent at once counts as one. */
export function openQuestions(before: number, seen: RecordedEvent): number {
  if (seen.kind === 'question') {
    if (seen.what === 'parked') return before + 1
    return seen.what === 'answered' || seen.what === 'lost' ? Math.max(0, before - 1) : 0
  }
  if (seen.kind !== 'call') return before
  // An answer that passes unread can be a question, without any other event.
  return seen.what === 'ended' && seen.outcome === 'asks' ? Math.max(1, before) : 0
}

/** Whether nobody is likely to look for a call later. */
function isQuiet({ status, rounds }: CallView): boolean {
  return status === 'ok' && rounds === 0
}

function askIn(call: CallView, seen: RecordedEvent): void {
  call.questions = openQuestions(call.questions, seen)
  call.parked = call.questions > 0
}

function tellCall(call: CallView, seen: CallBody & RecordedEvent): void {
  call.server = seen.server ?? call.server
  call.method = call.method === '' ? seen.method : call.method
  // Its details may only be known when it ends.
  call.name = seen.what === 'ended' ? (seen.name ?? call.name) : (call.name ?? seen.name)
  call.principal ??= seen.principal
  call.session ??= seen.session
  call.client ??= seen.client
  call.upstream = seen.upstream ?? call.upstream
  call.trace ??= seen.trace
  if (seen.what === 'begun') {
    // The call continues: its client sends answers.
    call.status = 'open'
    return
  }
  const { outcome = 'ok', cancelled, code, fault, blame, why, ms, upstreamMs } = seen
  if (upstreamMs !== undefined) call.upstreamMs = (call.upstreamMs ?? 0) + upstreamMs
  Object.assign(call, {
    status: outcome,
    cancelled,
    away: cancelled === 'disconnected',
    code,
    fault,
    blame,
    why,
  })
  if (call.incomplete && ms !== undefined) call.at = Math.min(call.at, seen.at - ms)
  call.ms = call.events.length === 0 ? ms : Math.max(ms ?? 0, seen.at - call.at)
}
