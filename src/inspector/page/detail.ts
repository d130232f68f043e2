/** One call: its summary, messages, timeline, explanation and stored texts. */
import { useSignal } from '@preact/signals'
import { html } from 'htm/preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { elapsed, isRunning } from '../phases.js'
import { isMessage, type KeptText } from '../recorder/events.js'
import { httpStatus } from '../rows.js'
import type { CallView } from '../views.js'
import { duration, shown, statusOf } from '../words.js'
import { addressOf } from './address.js'
import { Failure } from './failure.js'
import { mayHaveTexts, textsOf } from './feed.js'
import { save } from './files.js'
import { copyLink } from './keys.js'
import { mayBeRight, movePanel, panelSide } from './layout.js'
import { Messages } from './messages.js'
import { whyNothing } from './nothing.js'
import { Raw } from './raw.js'
import { RepeatButtons } from './repeat.js'
import { current, kept, moveTab, now, place, selected, selectedCall, source, TABS, tab, timeOf } from './state.js'
import { Timeline } from './timeline.js'
import { Why } from './why.js'

/** Texts of a call, by the numbers of their events. */
interface Texts {
  of: string
  found: ReadonlyMap<number, KeptText>
}

/** Milliseconds between refreshes of the texts of a running call. */
const AGAIN = 1_000

export function Detail() {
  const { value: chosen } = selectedCall
  const texts = useSignal<Texts | undefined>(undefined)
  const call = chosen?.call
  const { value: id } = selected
  const looked = useRef({ id: '', at: 0 })
  const state = `${id} ${call?.status} ${call?.events.length} ${kept.value?.payloads}`
  useEffect(() => {
    // The bridge drops calls before the page does.
    if (!call) return undefined
    const look = () => {
      const own = { id: call.id, at: performance.now() }
      looked.current = own
      textsOf(call.id)
        .then((found) => {
          if (looked.current === own) texts.value = { of: call.id, found }
        })
        .catch(() => {})
    }
    // The bridge searches all stored events for them.
    const isAgain = looked.current.id === call.id && isRunning(call)
    const timer = setTimeout(look, isAgain ? looked.current.at + AGAIN - performance.now() : 0)
    return () => clearTimeout(timer)
  }, [state])
  // Another call or tab is shown from its top.
  useLayoutEffect(() => document.getElementById('panel')?.scrollTo(0, 0), [id, tab.value])
  if (id === undefined) return null
  if (!call) {
    const none = whyNothing() ?? `Call ${shown(id)} is not in memory.`
    return html`<section class="detail" aria-label="Call"><p class="empty">${none}${' '}<a href=${addressOf('calls')}>Back to the list</a></p></section>`
  }
  const shownCall = texts.value?.of === call.id ? withTexts(call, texts.value.found) : call
  const { words } = statusOf(call)
  const facts = [
    shown(call.principal),
    call.session !== undefined && sessionOf(call),
    call.trace !== undefined && `trace ${shown(call.trace)}`,
    call.events[0]?.replica !== undefined && `replica ${shown(call.events[0].replica)}`,
    words,
    `${duration(elapsed(call, timeOf(call)))}${isRunning(call) ? ' so far' : ''}`,
  ].filter(Boolean)
  return html`
    <section class="detail" aria-label=${`Call ${shown(call.id)}`}>
      <header>
        <h2>${shown(call.name) || shown(call.method)} <span class="faint">#${shown(call.id)}</span></h2>
        <p class="facts">${facts.map((fact, i) => (i === 0 ? fact : html` · ${fact}`))}</p>
        <div class="buttons">
          ${source.value.kind !== 'file' && html`<button type="button" onClick=${copyLink}>Copy link</button>`}
          <${RepeatButtons} call=${shownCall} />
          <button type="button" onClick=${() => save('jsonl', `id:"${call.id}"`, `-${call.id}`)}>Export call</button>
          ${mayBeRight.value && html`<button type="button" onClick=${movePanel}>${panelSide.value === 'below' ? 'Panel right' : 'Panel below'}</button>`}
          <button type="button" onClick=${close} aria-label="Close call">✕</button>
        </div>
      </header>
      <div class="tabs" role="tablist" aria-label="Views of the call" onKeyDown=${turn}>
        ${TABS.map(
          (name) => html`
            <button type="button" role="tab" id=${`tab-${name}`} aria-selected=${tab.value === name ? 'true' : 'false'}
              aria-controls="panel" tabindex=${tab.value === name ? 0 : -1} onClick=${() => {
                tab.value = name
              }}>${TITLES[name]}</button>
          `,
        )}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab.value}`} tabindex="0">
        ${call.incomplete && html`<p class="warning">The start of this call is missing.</p>`}
        ${call.more > 0 && html`<p class="warning">${call.more} events in the middle of this call are not shown.</p>`}
        <${Failure} call=${shownCall} state=${call.events.length} />
        ${panel(shownCall, texts.value?.of === call.id || !mayHaveTexts())}
      </div>
    </section>
  `
}

function withTexts(call: CallView, found: Texts['found']): CallView {
  const events = call.events.map((seen) => {
    const payload = found.get(seen.seq)
    return payload && seen.kind === 'message' ? { ...seen, payload } : seen
  })
  return { ...call, events }
}

/** The session of a call, with its age, and a link to all sessions. */
function sessionOf(call: CallView) {
  const session = current.value.views.sessionOf(call)
  const age =
    session && session.state === 'open' ? `, ${duration(now() - session.at)} old` : `, ${session?.state ?? ''}`
  return html`<a href=${addressOf('sessions')}>session ${shown(call.session)}</a>${session ? age : ''}`
}

const TITLES = { messages: 'Messages', timeline: 'Timeline', why: 'Explanation', raw: 'Raw' } as const

/** Arrow keys move between tabs, as in every tab list. */
function turn({ key }: KeyboardEvent): void {
  if (key !== 'ArrowLeft' && key !== 'ArrowRight') return
  moveTab(key === 'ArrowLeft' ? -1 : 1)
  document.getElementById(`tab-${tab.value}`)?.focus()
}

function close(): void {
  selected.value = undefined
  place.value = 'calls'
}

/** `isRead`: the kept texts of the call have been read. */
function panel(call: CallView, isRead: boolean) {
  switch (tab.value) {
    case 'messages':
      return html`<${Messages} call=${call} time=${timeOf(call)} isRead=${isRead} />`
    case 'timeline':
      return html`<${Timeline} call=${call} time=${timeOf(call)} />`
    case 'why':
      return html`<${Why} call=${call} time=${timeOf(call)} />`
    case 'raw':
      return html`<${RawMessages} call=${call} />`
  }
}

function RawMessages({ call }: { call: CallView }) {
  const messages = call.events.filter((seen) => isMessage(seen))
  const none = messages.every(({ payload }) => payload === undefined)
  return html`
    ${none && html`<p class="empty">No texts of this call are kept.</p>`}
    ${messages.map((message) => html`<${Raw} message=${message} time=${duration(message.at - call.at)} status=${httpStatus(message, call)} />`)}
  `
}
