/** Divides the time of a call by the side that it waits for, and finds when its client was away. */

import { type CallView, openQuestions } from './call-views.js'
import { isAnswer, isMessage, type RecordedEvent } from './recorder/events.js'

/** A period in which the client was away: between a question and its answer, or without a connection for the result. */
export interface Away {
  /** Number of the first event after the client left. */
  seq: number
  /** Milliseconds; undefined if the client has not returned. */
  ms?: number
}

/** The periods in which the client of a call was away. */
export function awaysOf({ events }: Pick<CallView, 'events'>): Away[] {
  const aways: Away[] = []
  let gone: RecordedEvent | undefined
  for (const seen of events) {
    if (isBack(seen) && gone) aways.push({ seq: gone.seq, ms: seen.at - gone.at })
    if (isBack(seen)) gone = undefined
    else if (isGone(seen)) gone = seen
  }
  if (gone && (gone.kind !== 'call' || gone.outcome !== 'asks')) aways.push({ seq: gone.seq })
  return aways
}

function isGone(seen: RecordedEvent): boolean {
  if (seen.kind === 'stream') return seen.what === 'left'
  return seen.kind === 'call' && (seen.outcome === 'asks' || seen.cancelled === 'disconnected')
}

function isBack(seen: RecordedEvent): boolean {
  if (seen.kind === 'stream') return seen.what === 'resumed'
  return seen.kind === 'call' && seen.what === 'begun' && seen.continues !== undefined
}

/** The side that a call waits for. */
export type Who = 'bridge' | 'server' | 'client'

/** A part of the time of a call, in milliseconds since its start. */
export interface CallPhase {
  who: Who
  from: number
  to: number
}

/** The members of a call that determine its duration. */
type Timed = Pick<CallView, 'at' | 'ms' | 'status'> & { parked?: boolean }

/** Whether a call is still running: it has not ended, or waits for its client. */
export function isRunning({ status, parked = false }: Pick<Timed, 'status' | 'parked'>): boolean {
  return status === 'open' || (status === 'asks' && parked)
}

/** Duration of a call in milliseconds, for a running one until now. Undefined if unknown. */
export function elapsed(call: Timed, now: number): number | undefined {
  return isRunning(call) ? Math.max(0, now - call.at) : call.ms
}

/** The time of a call, divided by the side it waits for. `now` is the end of a running call. */
export function phasesOf(call: Timed & Pick<CallView, 'events' | 'upstreamMs'>, now: number): CallPhase[] {
  const end = elapsed(call, now) ?? Math.max(0, now - call.at)
  const { events, upstreamMs } = call
  const isKnown = events.some((seen) => isRequestToServer(seen) || seen.kind === 'question')
  if (upstreamMs !== undefined && !isKnown) return around(upstreamMs, end)
  const phases: CallPhase[] = []
  let who: Who = 'bridge'
  let from = 0
  const change = (next: Who, at: number) => {
    if (next === who) return
    const to = Math.min(end, Math.max(from, at - call.at))
    if (to > from) phases.push({ who, from, to })
    who = next
    from = to
  }
  const starts = startsIn(events)
  const requests = new OpenRequests()
  let questions = 0
  for (const seen of events) {
    const start = starts.get(seen.seq)
    if (start !== undefined && who === 'bridge') change('server', start)
    requests.add(seen)
    questions = openQuestions(questions, seen)
    change(questions > 0 ? 'client' : requests.open ? 'server' : 'bridge', seen.at)
  }
  if (end > from || phases.length === 0) phases.push({ who, from, to: end })
  return phases
}

/** Milliseconds of waiting for the server; undefined without any. */
export function serverMs(call: Parameters<typeof phasesOf>[0], now: number): number | undefined {
  const phases = phasesOf(call, now).filter(({ who }) => who === 'server')
  return phases.length === 0 ? undefined : phases.reduce((sum, { from, to }) => sum + to - from, 0)
}

/** Without a recorded request to the server, only the total is known: its time is drawn in the middle. */
function around(upstreamMs: number, end: number): CallPhase[] {
  const server = Math.min(upstreamMs, end)
  const before = (end - server) / 2
  return [
    { who: 'bridge', from: 0, to: before },
    { who: 'server', from: before, to: before + server },
    { who: 'bridge', from: before + server, to: end },
  ]
}

function isRequestToServer(seen: RecordedEvent): boolean {
  return isMessage(seen, 'server', 'out', 'request')
}

/** The open requests of a call to the server. A repeated request replaces the previous one. */
class OpenRequests {
  readonly #ids = new Map<string | undefined, string | number | undefined>()

  get open(): boolean {
    return this.#ids.size > 0
  }

  add(seen: RecordedEvent): void {
    if (seen.kind === 'call' && seen.what === 'ended' && seen.outcome !== 'asks') this.#ids.clear()
    if (seen.kind !== 'message') return
    if (isRequestToServer(seen)) this.#ids.set(seen.method, seen.id)
    if (isMessage(seen, 'server', 'in') && isAnswer(seen))
      for (const [method, id] of this.#ids) if (id === seen.id) this.#ids.delete(method)
  }
}

/** Most milliseconds that the bridge itself needs to forward a call and its answer. */
const PASSING = 10

/**
 * When the bridge began to start or connect to a server before the first request of a call, or of a call that continues
 * it: milliseconds since 1970, by the number of that request.
 */
function startsIn(events: readonly RecordedEvent[]): ReadonlyMap<number, number> {
  const starts = new Map<number, number>()
  const requests = new OpenRequests()
  let first: RecordedEvent | undefined
  let waited = 0
  let last = 0
  for (const seen of events) {
    if (requests.open) waited += seen.at - last
    last = seen.at
    requests.add(seen)
    first ??= requests.open ? seen : undefined
    if (seen.kind !== 'call') continue
    const { upstreamMs = 0 } = seen
    if (first && upstreamMs > waited + PASSING) starts.set(first.seq, first.at - (upstreamMs - waited))
    first = undefined
    waited = 0
  }
  return starts
}
