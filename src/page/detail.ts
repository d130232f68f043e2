/** One call: its messages on both wires, its time, why it is as it is, and the texts that were kept. */
import { useSignal } from '@preact/signals'
import { html } from 'htm/preact'
import { useEffect } from 'preact/hooks'
import { type Message, phasesOf, type Row, rowsOf } from '../inspect/rows.js'
import type { CallView } from '../inspect/views.js'
import { clock, duration, full, placeOf, ruleAddress, shown, size, statusOf } from '../inspect/words.js'
import type { Change, Seen } from '../ports/seen.js'
import { Waterfall } from './calls.js'
import { callWithPayloads } from './feed.js'
import { copyLink, copyText } from './keys.js'
import { place, selected, selectedCall, TABS, tab } from './state.js'

export function Detail() {
  const { value: chosen } = selectedCall
  const withPayloads = useSignal<CallView | undefined>(undefined)
  const call = chosen?.call
  const { value: id } = selected
  const state = `${id} ${call?.status} ${call?.events.length}`
  useEffect(() => {
    let isOld = false
    withPayloads.value = undefined
    // A call that the page has forgotten, the bridge has forgotten, too.
    if (call)
      callWithPayloads(call.id)
        .then((found) => {
          if (!isOld) withPayloads.value = found
        })
        .catch(() => {})
    return () => {
      isOld = true
    }
  }, [state])
  if (id === undefined) return null
  if (!call)
    return html`<section class="detail" aria-label="Call"><p class="empty">There is no call ${shown(id)} in memory. ${' '}<a href="#/calls">All calls</a></p></section>`
  const shownCall = withPayloads.value?.id === call.id ? withPayloads.value : call
  const { words } = statusOf(call)
  const facts = [
    shown(call.principal),
    call.session !== undefined && `session ${shown(call.session)}`,
    call.trace !== undefined && `trace ${shown(call.trace)}`,
    words,
    duration(call.ms),
  ]
  return html`
    <section class="detail" aria-label=${`Call ${shown(call.id)}`}>
      <header>
        <h2>${shown(call.name) || shown(call.method)} <span class="faint">#${shown(call.id)}</span></h2>
        <p class="facts">${facts.filter(Boolean).join(' · ')}</p>
        <div class="buttons">
          <button type="button" onClick=${copyLink}>Copy link</button>
          <${CurlButton} call=${shownCall} />
          <button type="button" onClick=${close} aria-label="Close the call">✕</button>
        </div>
      </header>
      <div class="tabs" role="tablist" aria-label="Parts of the call">
        ${TABS.map(
          (name) => html`
            <button type="button" role="tab" id=${`tab-${name}`} aria-selected=${tab.value === name ? 'true' : 'false'}
              aria-controls="panel" tabindex=${tab.value === name ? 0 : -1} onClick=${() => choose(name)}>${TITLES[name]}</button>
          `,
        )}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${tab.value}`} tabindex="0">
        ${call.incomplete && html`<p class="warning">The beginning of this call is missing.</p>`}
        ${call.more > 0 && html`<p class="warning">${call.more} more events of this call were not kept.</p>`}
        ${panel(shownCall)}
      </div>
    </section>
  `
}

const TITLES = { messages: 'Messages', timeline: 'Timeline', why: 'Why', raw: 'Raw' } as const

function choose(name: (typeof TABS)[number]): void {
  tab.value = name
}

function close(): void {
  selected.value = undefined
  place.value = 'calls'
}

function panel(call: CallView) {
  switch (tab.value) {
    case 'messages':
      return html`<${Messages} call=${call} />`
    case 'timeline':
      return html`<${Timeline} call=${call} />`
    case 'why':
      return html`<${Why} call=${call} />`
    case 'raw':
      return html`<${Raw} call=${call} />`
  }
}

function Messages({ call }: { call: CallView }) {
  const rows = rowsOf(call)
  if (rows.length === 0) return html`<p class="empty">No message of this call was seen.</p>`
  return html`
    <table class="sides">
      <caption class="hidden">Messages with the client and with the server, side by side</caption>
      <thead>
        <tr>
          <th scope="col">Client <span class="faint">${full(call.client)}</span></th>
          <th scope="col">Server <span class="faint">${full(call.upstream)}</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => html`<tr>${cell(call, row, 'client')}${cell(call, row, 'server')}</tr>`)}
      </tbody>
    </table>
  `
}

function cell(call: CallView, row: Row, hop: Message['hop']) {
  const message = row[hop]
  const other = row[hop === 'client' ? 'server' : 'client']
  // What the bridge removed stands where it came from, what it added where it went to.
  const removed = other?.dir === 'out' ? (other.changes ?? []).filter(({ op }) => op !== 'add') : []
  const added = message?.dir === 'out' ? (message.changes ?? []).filter(({ op }) => op !== 'remove') : []
  if (!message) return html`<td class="none" data-label=${hop}>${other && note(other)}</td>`
  return html`
    <td data-label=${hop}>
      <p><span aria-hidden="true">${message.dir === (hop === 'client' ? 'in' : 'out') ? '→' : '←'} </span>${line(message, hop)} <span class="faint">${duration(message.at - call.at)}, ${size(message.bytes)}</span></p>
      ${message.payload && html`<pre class="text" tabindex="0">${message.payload.text}</pre>`}
      ${removed.length > 0 && html`<ul class="changes">${removed.map((change) => html`<${Changed} change=${change} removed=${true} />`)}</ul>`}
      ${added.length > 0 && html`<ul class="changes">${added.map((change) => html`<${Changed} change=${change} removed=${false} />`)}</ul>`}
      ${message.more !== undefined && html`<p class="faint">${message.more} more changes are not listed</p>`}
    </td>
  `
}

function note(other: Message): string {
  if (other.dir === 'out') return 'sent by the bridge itself'
  return 'stays with the bridge'
}

function line({ form, method, id, http }: Message, hop: Message['hop']): string {
  const words = [form === 'request' || form === 'notification' ? shown(method) : form]
  if (id !== undefined) words.push(`id ${shown(JSON.stringify(id), 40)}`)
  if (http?.status !== undefined) words.push(`HTTP ${http.status}`)
  return words.join('  ') || hop
}

function Changed({ change, removed }: { change: Change; removed: boolean }) {
  const { op, rule } = change
  const sign = op === 'replace' ? '~' : removed ? '−' : '+'
  const words = op === 'replace' ? (removed ? 'replaced' : 'replaced by') : removed ? 'removed' : 'added'
  return html`
    <li class=${removed ? 'removed' : 'added'}>
      <span aria-hidden="true">${sign} </span><span class="hidden">${words} </span><code>${placeOf(change)}</code>
      ${' '}<a href=${ruleAddress(rule)} target="_blank" rel="noreferrer">${shown(rule)}</a>
    </li>
  `
}

function Timeline({ call }: { call: CallView }) {
  return html`
    <p><${Waterfall} call=${call} /></p>
    <ul class="legend">
      <li><span class="sample bridge"></span>bridge</li>
      <li><span class="sample server"></span>server</li>
      <li><span class="sample client"></span>waits for the client or a person</li>
    </ul>
    <ul class="phases">
      ${phasesOf(call, Date.now()).map(({ who, from, to }) => html`<li>${who}: ${duration(to - from)}, from ${duration(from)} to ${duration(to)}</li>`)}
    </ul>
    <table class="events">
      <caption class="hidden">Events of the call</caption>
      <thead><tr><th scope="col">After</th><th scope="col">Where</th><th scope="col">What</th></tr></thead>
      <tbody>
        ${call.events.map((seen) => html`<tr><td class="number">${duration(seen.at - call.at)}</td><td>${whereOf(seen)}</td><td>${whatOf(seen)}</td></tr>`)}
      </tbody>
    </table>
  `
}

function whereOf(seen: Seen): string {
  if (seen.kind !== 'message') return 'bridge'
  return seen.dir === 'in' ? `${seen.hop} → bridge` : `bridge → ${seen.hop}`
}

function whatOf(seen: Seen): string {
  if (seen.kind === 'message') return line(seen, seen.hop)
  if (seen.kind === 'question') return `question ${seen.what}`
  if (seen.kind !== 'call') return seen.kind
  const again = seen.continues === undefined ? '' : ' again, with answers'
  return seen.what === 'begun' ? `begun${again}` : `ended: ${seen.outcome}`
}

function Why({ call }: { call: CallView }) {
  const facts: [string, string | undefined][] = [
    ['Began', clock(call.at)],
    ['Outcome', statusOf(call).words],
    ['Blame', call.blame],
    ['Fault', call.fault],
    ['Reason', call.why],
    ['Client', full(call.client)],
    ['Server', `${call.server}: ${full(call.upstream)}`],
    [
      'Way',
      call.relayed
        ? 'relayed: both sides speak the same era, so nothing was changed'
        : 'translated or passed on by the bridge',
    ],
    ['Asked', call.rounds > 0 ? `${call.rounds} times` : undefined],
    ['Time at the server', duration(call.upstreamMs)],
  ]
  const changes = call.events.flatMap((seen) =>
    seen.kind === 'message' ? (seen.changes ?? []).map((change) => ({ change, message: seen })) : [],
  )
  return html`
    <dl>${facts.flatMap(([name, value]) => (value ? [html`<dt>${name}</dt>`, html`<dd>${shown(value, 1_000)}</dd>`] : []))}</dl>
    <h3>What the bridge changed</h3>
    ${changes.length === 0 ? html`<p class="empty">No change was seen.</p>` : null}
    <ul class="changes">
      ${changes.map(({ change, message }) => html`<li><span class="faint">${whereOf(message)} </span>${change.op} <code>${placeOf(change)}</code>${': '}<a href=${ruleAddress(change.rule)} target="_blank" rel="noreferrer">${shown(change.rule)}</a></li>`)}
    </ul>
  `
}

function Raw({ call }: { call: CallView }) {
  const messages = call.events.filter((seen): seen is Message => seen.kind === 'message')
  const none = messages.every(({ payload }) => payload === undefined)
  return html`
    ${none && html`<p class="empty">No text was kept of this call.</p>`}
    ${messages.map(
      (message) => html`
        <details>
          <summary>${whereOf(message)}: ${line(message, message.hop)}</summary>
          ${headers(message)}
          ${message.payload && html`<pre tabindex="0">${pretty(message.payload.text)}</pre>`}
          ${message.payload && (message.payload.cut > 0 || message.payload.hidden > 0) && html`<p class="faint">${message.payload.cut} characters are missing at the end; ${message.payload.hidden} values are hidden.</p>`}
        </details>
      `,
    )}
  `
}

function headers({ http }: Message) {
  const entries = Object.entries(http?.headers ?? {})
  return entries.length > 0 && html`<pre>${entries.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>`
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** Copies the client's request as a command line. Only a text that is complete can be sent again. */
function CurlButton({ call }: { call: CallView }) {
  const request = call.events.find(
    (seen): seen is Message => seen.kind === 'message' && seen.hop === 'client' && seen.form === 'request',
  )
  const payload = request?.payload
  if (!request || !payload || payload.cut > 0 || payload.hidden > 0) return null
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const sent = Object.entries(request.http?.headers ?? {}).filter(([name]) => name !== 'content-length')
  const lines = ['curl "$MCP_BRIDGE_URL"', ...sent.map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)]
  const command = [...lines, `--data-binary ${quoted(payload.text)}`].join(' \\\n  ')
  return html`<button type="button" onClick=${() => copyText(command, 'the command')}>Copy as curl</button>`
}
