/** The timeline of a call: a lane for each side it waited for, and the events in order. */
import { html } from 'htm/preact'
import { phasesOf, type Who } from '../phases.js'
import { isMessage, type RecordedEvent } from '../recorder/events.js'
import { httpStatus } from '../rows.js'
import { ticksOf } from '../scale.js'
import type { CallView } from '../views.js'
import { CANCELLED, duration, TIME_LIMIT } from '../words.js'
import { line, whereOf } from './raw.js'

/** `time`: a running call is drawn up to here. */
export function Timeline({ call, time }: { call: CallView; time: number }) {
  const phases = phasesOf(call, time)
  const whole = phases.at(-1)?.to || 1
  const share = (ms: number) => `${Math.min(100, (Math.max(0, ms) / whole) * 100)}%`
  const marks = call.events.filter(
    (seen) =>
      seen.kind === 'question' ||
      seen.kind === 'stream' ||
      (isMessage(seen) && seen.form === 'notification') ||
      isCancelled(seen),
  )
  const lane = (who: Who, about: string) => {
    const own = phases.filter((phase) => phase.who === who)
    const sum = own.reduce((ms, { from, to }) => ms + to - from, 0)
    const words = [
      ...own.map(({ from, to }) => `from ${duration(from)} to ${duration(to)}`),
      ...marks
        .filter((seen) => isCancelled(seen) && laneOf(seen) === who)
        .map((seen) => `${whatOf(seen, call)} after ${duration(seen.at - call.at)}`),
    ]
    return html`
      <div><span class=${`sample ${who}`}></span>${about}</div>
      <div class="number">${own.length > 0 ? duration(sum) : '–'}</div>
      <div class="lane" role="img" aria-label=${`${about}: ${words.join(', ') || 'none'}`}>
        ${own.map(({ from, to }, i) => html`<span class=${who} title=${`${duration(to - from)}, ${words[i]}`} style=${{ left: share(from), width: share(to - from) }}></span>`)}
        ${marks.filter((seen) => laneOf(seen) === who).map((seen) => html`<i class=${isCancelled(seen) ? 'cancelled' : ''} title=${`${duration(seen.at - call.at)}: ${whatOf(seen, call)}`} style=${{ left: share(seen.at - call.at) }}></i>`)}
      </div>
    `
  }
  return html`
    <div class="lanes">
      ${LANES.map(([who, about]) => lane(who, about))}
      <div class="ticks" aria-hidden="true">${ticksOf(whole).map((ms) => html`<span style=${{ left: share(ms) }}>${tickLabel(ms)}</span>`)}</div>
    </div>
    ${marks.length > 0 && html`<p class="faint about">Thin lines mark notifications, questions, cancellations and closed connections.</p>`}
    <table class="events">
      <caption class="hidden">Events of the call</caption>
      <thead><tr><th scope="col" class="number">After</th><th scope="col">Where</th><th scope="col">What</th></tr></thead>
      <tbody>
        ${call.events.map((seen) => html`<tr><td class="number">${duration(seen.at - call.at)}</td><td>${whereOf(seen)}</td><td>${whatOf(seen, call)}</td></tr>`)}
      </tbody>
    </table>
  `
}

function tickLabel(ms: number): string {
  const round = (value: number) => Number(value.toPrecision(3))
  return ms < 1_000 ? `${round(ms)} ms` : `${round(ms / 1_000)} s`
}

/** The sides a call waits for, with their labels. */
const LANES = [
  ['client', 'client or person'],
  ['bridge', 'bridge'],
  ['server', 'server'],
] as const

/** Whether this event cancels the call. */
function isCancelled(seen: RecordedEvent): boolean {
  if (seen.kind !== 'call' || seen.what === 'begun') return false
  return seen.outcome === 'cancelled' || seen.fault === TIME_LIMIT
}

/** The lane of a mark: that of the side that caused it. */
function laneOf(seen: RecordedEvent): Who {
  // Messages to a client come from the bridge.
  if (seen.kind === 'message') return seen.dir === 'in' ? seen.hop : 'bridge'
  if (seen.kind === 'stream') return 'client'
  return seen.kind === 'call' && seen.outcome === 'cancelled' && seen.cancelled !== 'bridge' ? 'client' : 'bridge'
}

/** The outcome of a question. */
const QUESTIONS = {
  parked: 'question sent: the call waits for the client',
  answered: 'question answered by the client',
  expired: 'question expired: the client did not answer in time',
  refused: 'question refused',
  lost: 'question lost: the server cancelled it, or the call ended before the answer',
} as const

function whatOf(seen: RecordedEvent, call: CallView): string {
  if (seen.kind === 'message') return line(seen, httpStatus(seen, call))
  if (seen.kind === 'question') return QUESTIONS[seen.what]
  if (seen.kind === 'stream') return seen.what === 'left' ? 'client away: its connection closed' : 'client back'
  if (seen.kind !== 'call') return seen.kind
  if (seen.what === 'begun') return seen.continues === undefined ? 'started' : 'continued with answers'
  if (seen.fault === TIME_LIMIT) return 'ended: timed out'
  if (seen.cancelled === 'disconnected') return `client away: ${CANCELLED.disconnected}`
  return `ended: ${seen.cancelled === undefined ? seen.outcome : CANCELLED[seen.cancelled]}`
}
