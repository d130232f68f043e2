/** The list of calls. Only the rows that can be seen are in the document. */
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core'
import { html } from 'htm/preact'
import { useEffect, useRef } from 'preact/hooks'
import { phasesOf } from '../inspect/rows.js'
import type { CallView } from '../inspect/views.js'
import { brief, clock, duration, shown, statusOf } from '../inspect/words.js'
import { selected, shownCalls, source } from './state.js'

const ROW = 32
const COLUMNS = ['Time', 'Call', 'Server', 'Client → server', 'Status', 'Duration', 'Where the time went']

/** The list, which stays at its end as long as nobody scrolls. */
export function Calls() {
  const scroller = useRef<HTMLDivElement>(null)
  const drawn = useSignal(0)
  const atEnd = useRef(true)
  const top = useRef(0)
  const virtualizer = useRef<Virtualizer<HTMLDivElement, HTMLTableRowElement>>(null)
  virtualizer.current ??= new Virtualizer<HTMLDivElement, HTMLTableRowElement>({
    count: 0,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => {
      drawn.value++
    },
  })
  const list = virtualizer.current
  const calls = shownCalls.value
  list.setOptions({ ...list.options, count: calls.length, getItemKey: (index) => calls[index]?.id ?? index })
  drawn.value
  useEffect(() => list._didMount(), [list])
  useEffect(() => {
    list._willUpdate()
    const { current: element } = scroller
    if (element && atEnd.current) element.scrollTop = element.scrollHeight
  })
  const at = useComputed(() => shownCalls.value.findIndex(({ id }) => id === selected.value))
  useSignalEffect(() => {
    if (at.value >= 0) list.scrollToIndex(at.value, { align: 'auto' })
  })
  const onScroll = ({ currentTarget: element }: { currentTarget: HTMLDivElement }) => {
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < ROW
    // The list grows between scrolling and this event. Only who scrolls up leaves the end.
    if (isAtEnd || element.scrollTop < top.current) atEnd.current = isAtEnd
    top.current = element.scrollTop
  }
  const items = list.getVirtualItems()
  const before = items[0]?.start ?? 0
  const after = list.getTotalSize() - (items.at(-1)?.end ?? 0)
  return html`
    <div class="scroller" ref=${scroller} onScroll=${onScroll} tabindex="0" role="region" aria-label="List of calls">
      <table class="calls" aria-rowcount=${calls.length + 1} aria-live="off">
        <caption class="hidden">Calls, oldest first</caption>
        <thead>
          <tr aria-rowindex="1">
            ${COLUMNS.map((title) => html`<th scope="col">${title}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${space(before)}
          ${items.map(({ index, key }) => html`<${Row} key=${key} call=${calls[index]} index=${index} state=${stateOf(calls[index])} />`)}
          ${space(after)}
        </tbody>
      </table>
      ${calls.length === 0 && html`<p class="empty">${empty()}</p>`}
    </div>
  `
}

function empty(): string {
  if (source.value.kind === 'no token')
    return 'Open the address that the bridge printed at its start, or drop an exported JSONL file here.'
  return 'No call yet, or none that the filter shows.'
}

function space(height: number) {
  return (
    height > 0 &&
    html`<tr aria-hidden="true" class="space"><td colspan=${COLUMNS.length} style=${{ height: `${height}px` }}></td></tr>`
  )
}

/** Differs when the row of a call has to be drawn again. A call is one object, which changes. */
function stateOf(call: CallView | undefined): number | undefined {
  // The bar of an open call grows.
  return call?.status === 'open' ? Date.now() : call && call.events.length + call.more
}

function Row({ call, index }: { call: CallView | undefined; index: number; state: number | undefined }) {
  if (!call) return null
  const { sign, words } = statusOf(call)
  const isSelected = selected.value === call.id
  const choose = () => {
    selected.value = call.id
  }
  const why = call.why ?? call.fault
  return html`
    <tr aria-rowindex=${index + 2} aria-current=${isSelected ? 'true' : undefined} class=${isSelected ? 'selected' : ''} onClick=${choose}>
      <td>${clock(call.at)}</td>
      <td><a href=${`#/calls/${encodeURIComponent(call.id)}`}>${shown(call.method)} <b>${shown(call.name)}</b></a></td>
      <td>${shown(call.server)}</td>
      <td>${brief(call.client)} → ${brief(call.upstream)}${call.relayed ? ' (relayed)' : ''}</td>
      <td class=${`status ${call.status}`}><span aria-hidden="true">${sign} </span>${words}${why === undefined ? '' : `: ${shown(why)}`}</td>
      <td class="number">${call.status === 'open' ? '' : duration(call.ms)}</td>
      <td><${Waterfall} call=${call} /></td>
    </tr>
  `
}

/** The time of a call as one bar. */
export function Waterfall({ call }: { call: CallView }) {
  const phases = phasesOf(call, Date.now())
  const whole = phases.at(-1)?.to || 1
  const words = phases.map(({ who, from, to }) => `${who} ${duration(to - from)}`).join(', ')
  return html`
    <span class="bar" role="img" aria-label=${words} title=${words}>
      ${phases.map(({ who, from, to }) => html`<span class=${who} style=${{ width: `${((to - from) / whole) * 100}%` }}></span>`)}
    </span>
  `
}
