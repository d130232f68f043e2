/** Where the time of a call goes: who is waited for, and when its client is away. */
import type { Seen } from '../ports/seen.js'
import type { CallView } from './call-views.js'

/** A time in which the client was away: between a question and its answer, or without a connection for its answer. */
export interface Away {
  /** Number of the first event after the client had gone. */
  seq: number
  /** Milliseconds; undefined if the client has not come back. */
  ms?: number
}

/** When the client of a call was away. */
export function awaysOf({ events }: Pick<CallView, 'events'>): Away[] {
  const aways: Away[] = []
  let gone: Seen | undefined
  for (const seen of events) {
    if (isBack(seen) && gone) aways.push({ seq: gone.seq, ms: seen.at - gone.at })
    if (isBack(seen)) gone = undefined
    else if (isGone(seen)) gone = seen
  }
  if (gone && (gone.kind !== 'call' || gone.outcome !== 'asks')) aways.push({ seq: gone.seq })
  return aways
}

function isGone(seen: Seen): boolean {
  if (seen.kind === 'stream') return seen.what === 'left'
  return seen.kind === 'call' && (seen.outcome === 'asks' || seen.cancelled === 'disconnected')
}

function isBack(seen: Seen): boolean {
  if (seen.kind === 'stream') return seen.what === 'resumed'
  return seen.kind === 'call' && seen.what === 'begun' && seen.continues !== undefined
}

/** Who is waited for. */
export type Who = 'bridge' | 'server' | 'client'

/** A part of the time of a call, in milliseconds since it began. */
export interface Phase {
  who: Who
  from: number
  to: number
}

/** What says how long a call takes. */
type Timed = Pick<CallView, 'at' | 'ms' | 'status'> & { parked?: boolean }

/** Whether the time of a call goes on: it has not ended, or waits for its client. */
export function isRunning({ status, parked = false }: Pick<Timed, 'status' | 'parked'>): boolean {
  return status === 'open' || (status === 'asks' && parked)
}

/** Milliseconds that a call took, or has taken until now. Undefined if that is not known. */
export function elapsed(call: Timed, now: number): number | undefined {
  return isRunning(call) ? Math.max(0, now - call.at) : call.ms
}

/** The time of a call, divided by who is waited for. `now` is the end of a call that goes on. */
export function phasesOf(call: Timed & Pick<CallView, 'events' | 'upstreamMs'>, now: number): Phase[] {
  const end = elapsed(call, now) ?? Math.max(0, now - call.at)
  const phases: Phase[] = []
  let who: Who = 'bridge'
  let from = 0
  const change = (next: Who, at: number) => {
    const to = Math.min(end, Math.max(from, at - call.at))
    if (next === who) return
    if (to > from) phases.push({ who, from, to })
    who = next
    from = to
  }
  const messages = call.events.some(({ kind }) => kind === 'message')
  for (const seen of call.events) {
    const next = waitingAfter(seen)
    if (next) change(next, seen.at)
  }
  if (!messages && phases.length === 0 && call.upstreamMs !== undefined) return around(call.upstreamMs, end)
  if (end > from || phases.length === 0) phases.push({ who, from, to: end })
  return phases
}

/** Without messages only the sum is known: the server's time is shown in the middle. */
function around(upstreamMs: number, end: number): Phase[] {
  const server = Math.min(upstreamMs, end)
  const before = (end - server) / 2
  return [
    { who: 'bridge', from: 0, to: before },
    { who: 'server', from: before, to: before + server },
    { who: 'bridge', from: before + server, to: end },
  ]
}

function waitingAfter(seen: Seen): Who | undefined {
  if (seen.kind === 'call') return seen.what === 'ended' && seen.outcome === 'asks' ? 'client' : 'bridge'
  if (seen.kind === 'question') return seen.what === 'parked' ? 'client' : 'bridge'
  if (seen.kind !== 'message' || seen.form === 'notification') return undefined
  if (seen.hop === 'server') return seen.dir === 'out' ? 'server' : 'bridge'
  // What goes out to a client as a request is a question.
  if (seen.dir === 'out') return seen.form === 'request' ? 'client' : undefined
  return 'bridge'
}
