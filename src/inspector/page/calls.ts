/** The list of calls. Only visible rows are in the document; all rows have the same height. */
import { useSignal } from '@preact/signals'
import { html } from 'htm/preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { elapsed, isRunning, phasesOf } from '../phases.js'
import { LABELS, reach } from '../scale.js'
import type { CallView } from '../views.js'
import { brief, briefServer, clock, duration, full, fullServer, fullWhere, shown, statusOf, whereOf } from '../words.js'
import { addressOf } from './address.js'
import { mayHaveTexts } from './feed.js'
import { whyNothing } from './nothing.js'
import { current, following, pinned, seenUntil, selected, shownCalls, source, textWords, timeOf } from './state.js'

/** Height of a row in pixels, as in the style sheet. */
const ROW = 32
/** Extra rows above and below the visible ones. */
const SPARE = 6
/** Most calls have this method. It is not shown where there is little room. */
const USUAL = 'tools/call'
/** Titles of the columns, with an explanation where needed. */
const COLUMNS: readonly (readonly [title: string, about?: string])[] = [
  ['Time'],
  ['Call'],
  ['Server'],
  ['Client → server', 'M: modern era, L: legacy era; month and day of the revision; transport'],
  ['Status'],
  ['Duration'],
  [
    'Where the time went',
    'Grey: bridge. Blue lines: server. Orange stripes: client or person. All rows share one logarithmic scale; within a bar, parts are proportional',
  ],
]

/** The visible part of the list: its first pixel, and its height. */
interface Port {
  top: number
  height: number
}

/**
 * The list. It follows the newest call until the reader scrolls up or selects a call; then its rows do not move, even
 * when older ones are dropped.
 */
export function Calls() {
  const scroller = useRef<HTMLDivElement>(null)
  const port = useSignal<Port>({ top: 0, height: innerHeight })
  /** The first visible call, and its index in the list. */
  const anchor = useRef<{ id: string; index: number }>(undefined)
  const calls = shownCalls.value
  const { height } = port.value
  let { top } = port.value
  if (following.value) top = calls.length * ROW - height
  else if (anchor.current) {
    const { id, index } = anchor.current
    const now = calls[index]?.id === id ? index : calls.findIndex((call) => call.id === id)
    if (now >= 0) top += (now - index) * ROW
  }
  top = Math.max(0, Math.min(top, calls.length * ROW - height))
  const seen = Math.floor(top / ROW)
  const seenCall = calls[seen]
  anchor.current = seenCall && { id: seenCall.id, index: seen }

  useLayoutEffect(() => {
    const { current: element } = scroller
    if (element && Math.abs(element.scrollTop - top) >= 1) element.scrollTop = top
    port.value = sameOr(port.peek(), { top, height })
    seenUntil.value = Math.floor((top + height) / ROW)
  })
  // After returning from another view, the list follows the newest call again.
  useLayoutEffect(() => {
    if (selected.peek() === undefined) follow()
  }, [])
  useEffect(() => {
    const { current: element } = scroller
    if (!element) return undefined
    const observer = new ResizeObserver(() => {
      const head = element.querySelector('thead')?.offsetHeight ?? 0
      port.value = sameOr(port.peek(), { top: port.peek().top, height: element.clientHeight - head })
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const { value: id } = selected
  useEffect(() => {
    const at = shownCalls.peek().findIndex((call) => call.id === id)
    if (at < 0) return
    const before = port.peek()
    following.value = false
    // The button for the newest call covers the last row.
    show(Math.min(at * ROW, Math.max(before.top, (at + 2) * ROW - before.height)))
  }, [id])

  const show = (to: number) => {
    anchor.current = undefined
    port.value = sameOr(port.peek(), { top: to, height: port.peek().height })
  }
  const onScroll = ({ currentTarget: element }: { currentTarget: HTMLDivElement }) => {
    const { scrollTop } = element
    const before = port.peek().top
    if (Math.abs(scrollTop - before) < 1) return
    // The list grows between scrolling and this event. Only scrolling up stops following.
    const isAtEnd = element.scrollHeight - scrollTop - element.clientHeight < ROW
    if (isAtEnd || scrollTop < before) following.value = isAtEnd
    show(scrollTop)
  }
  const first = Math.max(0, seen - SPARE)
  const last = Math.min(calls.length, Math.ceil((top + height) / ROW) + SPARE)
  const rows = calls.slice(first, last)
  return html`
    <div class="list" id="list">
      <div class="scroller" ref=${scroller} onScroll=${onScroll} tabindex="0" role="region" aria-label="List of calls">
        <table class="calls" aria-rowcount=${calls.length + 1} aria-live="off">
          <caption class="hidden">Calls, oldest first</caption>
          <thead>
            <tr aria-rowindex="1">
              ${COLUMNS.map(([title, about], i) => html`<th scope="col" title=${about ?? title}>${i === COLUMNS.length - 1 ? html`<span class="hidden">${title}</span><${Scale} />` : title}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${space(first * ROW)}
            ${rows.map((call, i) => html`<${Row} key=${call.id} call=${call} index=${first + i} time=${timeOf(call)} state=${call.events.length + call.more} />`)}
            ${space((calls.length - last) * ROW)}
          </tbody>
        </table>
        ${calls.length === 0 && html`<p class="empty">${empty()}</p>`}
      </div>
      ${!following.value && calls.length * ROW > height && html`<button type="button" class="newest" onClick=${follow}>↓ Newest</button>`}
    </div>
  `
}

function sameOr(before: Port, { top, height }: Port): Port {
  return before.top === top && before.height === height ? before : { top, height }
}

function follow(): void {
  following.value = true
}

function empty(): string {
  const { size } = current.value.views.calls
  const areKept = mayHaveTexts() || source.value.kind === 'file'
  const texts = textWords.value.length > 0 && !areKept ? ' Message texts are not kept, so they were not searched.' : ''
  if (size > 0) return `No call of ${size} matches the filter.${texts}`
  return whyNothing() ?? 'No calls yet. They appear here as they happen.'
}

function space(height: number) {
  return height > 0 && html`<tr aria-hidden="true" class="space"><td style=${{ height: `${height}px` }}></td></tr>`
}

interface RowProps {
  call: CallView
  index: number
  /** A running call is drawn up to here. */
  time: number
  /** Changes when the row must be redrawn: a call is one mutable object. */
  state: number
}

function Row({ call, index, time }: RowProps) {
  const isPinned = pinned.value.has(call.id)
  const { sign, words } = statusOf(call)
  const isSelected = selected.value === call.id
  const choose = () => {
    selected.value = call.id
  }
  const [method, name, server] = [shown(call.method), shown(call.name), whereOf(call)]
  const why = call.why ?? call.fault
  const status = `${words}${why === undefined ? '' : `: ${shown(why)}`}`
  const at = clock(call.at)
  const blame = call.blame === undefined ? '' : ` (blame: ${shown(call.blame)})`
  return html`
    <tr aria-rowindex=${index + 2} aria-current=${isSelected ? 'true' : undefined} class=${isSelected ? 'selected' : ''} onClick=${choose}>
      <td>${isPinned && html`<span class="pin" role="img" aria-label="pinned">★ </span>`}${at.slice(0, -2)}<span class="tenth">${at.slice(-2)}</span></td>
      <td title=${[method, name].filter(Boolean).join(' ')}><a href=${addressOf('calls', call.id)}><span class=${call.method === USUAL ? 'method usual' : 'method'}>${method}</span> <b>${name}</b></a></td>
      <td title=${fullWhere(call)}>${server}</td>
      <td title=${`${full(call.client)} → ${fullServer(call)}`}>${brief(call.client)} → ${briefServer(call)}</td>
      <td class=${`status ${call.status}`} title=${`${status}${blame}`}><span aria-hidden="true">${sign} </span><span class="words">${status}</span></td>
      <td class="number">${duration(elapsed(call, time))}${isRunning(call) ? ' …' : ''}</td>
      <td>${waterfall(call, time)}</td>
    </tr>
  `
}

/** The scale that all rows share. */
function Scale() {
  const label = (ms: number) => (ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`)
  return html`<span class="scale" aria-hidden="true">${LABELS.map((ms) => html`<span style=${{ left: `${reach(ms) * 100}%` }}>${label(ms)}</span>`)}</span>`
}

/** The time of a call as one bar. */
function waterfall(call: CallView, time: number) {
  const phases = phasesOf(call, time)
  const whole = phases.at(-1)?.to || 1
  const words = phases.map(({ who, from, to }) => `${who} ${duration(to - from)}`).join(', ')
  return html`
    <span class="time" role="img" aria-label=${words} title=${words}>
      <span class="bar" style=${{ width: `${reach(whole) * 100}%` }}>
        ${phases.map(({ who, from, to }) => html`<span class=${who} style=${{ width: `${((to - from) / whole) * 100}%` }}></span>`)}
      </span>
    </span>
  `
}
