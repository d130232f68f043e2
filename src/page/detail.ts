/** One call: its messages on both wires, its time, why it is as it is, and the texts that were kept. */
import { useSignal } from '@preact/signals'
import { html } from 'htm/preact'
import { useEffect } from 'preact/hooks'
import { awaysOf, clientOf, httpStatus, type Message, phasesOf, type Row, rowsOf, type Who } from '../inspect/rows.js'
import { movedTo, valueAt } from '../inspect/values.js'
import type { CallView } from '../inspect/views.js'
import {
  CANCELLED,
  clock,
  duration,
  full,
  pathOf,
  placeOf,
  ruleWords,
  shown,
  size,
  statusOf,
  TIME_LIMIT,
} from '../inspect/words.js'
import type { Change, Seen } from '../ports/seen.js'
import { Advised, Rule, RuleRow } from './documented.js'
import { callWithPayloads } from './feed.js'
import { copyLink, copyText } from './keys.js'
import { line, pretty, Raw, whereOf } from './raw.js'
import { place, selected, selectedCall, TABS, tab } from './state.js'

/** Characters of a changed value that are shown, and those in its tip. */
const VALUE = 80
const LONGEST = 1_000

export function Detail() {
  const { value: chosen } = selectedCall
  const withPayloads = useSignal<CallView | undefined>(undefined)
  const call = chosen?.call
  const { value: id } = selected
  const state = `${id} ${call?.status} ${call?.events.length}`
  useEffect(() => {
    let isOld = false
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
        <${Advised} failure=${{ outcome: call.status, fault: call.fault, message: call.why }} />
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
      return html`<${Texts} call=${call} />`
  }
}

function Messages({ call }: { call: CallView }) {
  const rows = rowsOf(call)
  const aways = awaysOf(call)
  const explained = new Set<string>()
  const away = (before: number, last: Row | undefined) =>
    aways
      .filter(({ seq }) => seq < before && (!last || seq > firstOf(last)))
      .map(
        ({ ms }) =>
          html`<tr class="away"><td colspan="2">… client away ${ms === undefined ? '' : duration(ms)} …</td></tr>`,
      )
  if (rows.length === 0) return html`<p class="empty">No message of this call was seen.</p>`
  return html`
    <table class="sides">
      <caption class="hidden">Messages with the client and with the server, side by side</caption>
      <thead>
        <tr>
          <th scope="col">Client <span class="faint">${full(clientOf(call))}</span></th>
          <th scope="col">Server <span class="faint">${full(call.upstream)}</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row, i) => [
          ...away(firstOf(row), rows[i - 1]),
          html`<tr>${cell(call, row, 'client', explained)}${cell(call, row, 'server', explained)}</tr>`,
        ])}
        ${away(Number.POSITIVE_INFINITY, rows.at(-1))}
      </tbody>
    </table>
  `
}

function firstOf({ client, server }: Row): number {
  return Math.min(client?.seq ?? Number.POSITIVE_INFINITY, server?.seq ?? Number.POSITIVE_INFINITY)
}

/** One message, with its changes. The first change of a rule is followed by the rule in words, unless it is in `explained`. */
function cell(call: CallView, row: Row, hop: Message['hop'], explained: Set<string>) {
  const message = row[hop]
  const other = row[hop === 'client' ? 'server' : 'client']
  // What the bridge removed stands where it came from, what it added where it went to.
  const removed = other?.dir === 'out' ? (other.changes ?? []).filter(({ op }) => op !== 'add') : []
  const added = message?.dir === 'out' ? (message.changes ?? []).filter(({ op }) => op !== 'remove') : []
  const isFirst = ({ rule }: Change) => !explained.has(rule) && explained.add(rule).has(rule)
  if (!message) return html`<td class="none" data-label=${hop}>${other && note(other)}</td>`
  const text = message.payload?.text
  return html`
    <td data-label=${hop}>
      <p><span aria-hidden="true">${message.dir === (hop === 'client' ? 'in' : 'out') ? '→' : '←'} </span>${line(message, httpStatus(message, call))} <span class="faint">${duration(message.at - call.at)}, ${size(message.bytes)}</span></p>
      ${
        removed.length + added.length > 0 &&
        html`
        <ul class="changes">
          ${removed.map((change) => html`<${Changed} change=${change} removed=${true} explains=${isFirst(change)} value=${text && valueAt(text, change.at)} />`)}
          ${added.map((change) => html`<${Changed} change=${change} removed=${false} explains=${isFirst(change)} value=${text && valueAt(text, movedTo(change.at, message.changes ?? []))} />`)}
        </ul>
      `
      }
      ${message.more !== undefined && html`<p class="faint">${message.more} more changes are not listed</p>`}
      ${text !== undefined && html`<pre class="text" tabindex="0">${pretty(text)}</pre>`}
    </td>
  `
}

function note(other: Message): string {
  if (other.dir === 'out') return 'sent by the bridge itself'
  return 'stays with the bridge'
}

interface ChangedOptions {
  change: Change
  removed: boolean
  /** Whether the rule in words follows. */
  explains: boolean
  value?: string | undefined
}

function Changed({ change, removed, explains, value }: ChangedOptions) {
  const { at, op, rule } = change
  const sign = op === 'replace' ? '~' : removed ? '−' : '+'
  const words = op === 'replace' ? (removed ? 'replaced' : 'replaced by') : removed ? 'removed' : 'added'
  return html`
    <li class=${op === 'replace' ? 'replaced' : removed ? 'removed' : 'added'}>
      <span class="sign" aria-hidden="true">${sign} </span><span class="hidden">${words} </span><code title=${shown(at, LONGEST)}>${pathOf(change)}</code>
      ${value !== undefined && at !== '' && html`${' '}<code class="value" title=${shown(value, LONGEST)}>${shown(value, VALUE)}</code>`}
      ${' '}<${Rule} rule=${rule} />
      ${explains && ruleWords(rule) !== undefined && html`<p class="rule"><${RuleRow} rule=${rule} /></p>`}
    </li>
  `
}

function Timeline({ call }: { call: CallView }) {
  const phases = phasesOf(call, Date.now())
  const whole = phases.at(-1)?.to || 1
  const share = (ms: number) => `${Math.min(100, (Math.max(0, ms) / whole) * 100)}%`
  const marks = call.events.filter(
    (seen) => seen.kind === 'question' || seen.kind === 'stream' || isNotification(seen) || isCancelled(seen),
  )
  const lane = (who: Who, about: string) => {
    const own = phases.filter((phase) => phase.who === who)
    const sum = own.reduce((ms, { from, to }) => ms + to - from, 0)
    const words = [
      ...own.map(({ from, to }) => `from ${duration(from)} to ${duration(to)}`),
      ...marks
        .filter((seen) => isCancelled(seen) && laneOf(seen) === who)
        .map((seen) => `${whatOf(seen)} after ${duration(seen.at - call.at)}`),
    ]
    return html`
      <div><span class=${`sample ${who}`}></span>${about}</div>
      <div class="number">${own.length > 0 ? duration(sum) : '–'}</div>
      <div class="lane" role="img" aria-label=${`${about}: ${words.join(', ') || 'no time'}`}>
        ${own.map(({ from, to }, i) => html`<span class=${who} title=${`${duration(to - from)}, ${words[i]}`} style=${{ left: share(from), width: share(to - from) }}></span>`)}
        ${marks.filter((seen) => laneOf(seen) === who).map((seen) => html`<i class=${isCancelled(seen) ? 'cancelled' : ''} title=${`${duration(seen.at - call.at)}: ${whatOf(seen)}`} style=${{ left: share(seen.at - call.at) }}></i>`)}
      </div>
    `
  }
  return html`
    <div class="lanes">${LANES.map(([who, about]) => lane(who, about))}</div>
    <table class="events">
      <caption class="hidden">Events of the call</caption>
      <thead><tr><th scope="col" class="number">After</th><th scope="col">Where</th><th scope="col">What</th></tr></thead>
      <tbody>
        ${call.events.map((seen) => html`<tr><td class="number">${duration(seen.at - call.at)}</td><td>${whereOf(seen)}</td><td>${whatOf(seen)}</td></tr>`)}
      </tbody>
    </table>
  `
}

/** Who is waited for, with the words for it. */
const LANES = [
  ['client', 'waits for the client or a person'],
  ['bridge', 'bridge'],
  ['server', 'server'],
] as const

function isNotification(seen: Seen): boolean {
  return seen.kind === 'message' && seen.form === 'notification'
}

/** Whether a call was cancelled here, by whomever. */
function isCancelled(seen: Seen): boolean {
  if (seen.kind !== 'call' || seen.what === 'begun') return false
  return seen.outcome === 'cancelled' || seen.fault === TIME_LIMIT
}

/** Where a mark is: with the side that caused it. */
function laneOf(seen: Seen): Who {
  if (seen.kind === 'message') return seen.hop
  if (seen.kind === 'stream') return 'client'
  return seen.kind === 'call' && seen.outcome === 'cancelled' && seen.cancelled !== 'bridge' ? 'client' : 'bridge'
}

function whatOf(seen: Seen): string {
  if (seen.kind === 'message') return line(seen)
  if (seen.kind === 'question') return `question ${seen.what}`
  if (seen.kind === 'stream') return seen.what === 'left' ? 'client away: its connection was closed' : 'client back'
  if (seen.kind !== 'call') return seen.kind
  const again = seen.continues === undefined ? '' : ' again, with answers'
  if (seen.what === 'begun') return `begun${again}`
  if (seen.fault === TIME_LIMIT) return 'ended: cancelled by a time limit'
  if (seen.cancelled === 'disconnected') return `client away: ${CANCELLED.disconnected}`
  return `ended: ${seen.cancelled === undefined ? seen.outcome : CANCELLED[seen.cancelled]}`
}

function Why({ call }: { call: CallView }) {
  const facts: [string, string | undefined][] = [
    ['Began', clock(call.at)],
    ['Outcome', statusOf(call).words],
    ['Blame', call.blame],
    ['Fault', call.fault],
    ['Reason', call.why],
    ['Client', full(clientOf(call))],
    ['Server', `${call.server}: ${full(call.upstream)}`],
    [
      'Way',
      call.relayed
        ? 'relayed: both sides speak the same era, so nothing was changed'
        : call.client?.era === call.upstream?.era
          ? 'passed on: both sides speak the same era'
          : 'translated: the two sides speak different eras',
    ],
    ['Asked', call.rounds > 0 ? (call.rounds === 1 ? 'once' : `${call.rounds} times`) : undefined],
    ['Time at the server', duration(call.upstreamMs)],
  ]
  const changed = call.events.filter(
    (seen): seen is Message => seen.kind === 'message' && (seen.changes?.length ?? 0) > 0,
  )
  const rules = [...new Set(changed.flatMap(({ changes = [] }) => changes.map(({ rule }) => rule)))]
  const known = rules.filter((rule) => ruleWords(rule) !== undefined)
  return html`
    <dl>${facts.flatMap(([name, value]) => (value ? [html`<dt>${name}</dt>`, html`<dd>${shown(value, 1_000)}</dd>`] : []))}</dl>
    <h3>What the bridge changed</h3>
    ${changed.length === 0 ? html`<p class="faint">No change was seen.</p>` : null}
    ${changed.map(
      (message) => html`
        <p class="about">${whereOf(message)}: ${line(message)}</p>
        <ul class="changes">
          ${(message.changes ?? []).map((change) => html`<li class=${CLASSES[change.op]}><span class="verb">${change.op}</span> <code>${placeOf(change)}</code>${': '}<${Rule} rule=${change.rule} /></li>`)}
        </ul>
      `,
    )}
    ${
      known.length > 0 &&
      html`
      <h3>Its rules</h3>
      <dl>${known.flatMap((rule) => [html`<dt><${Rule} rule=${rule} /></dt>`, html`<dd><${RuleRow} rule=${rule} /></dd>`])}</dl>
    `
    }
  `
}

const CLASSES = { add: 'added', remove: 'removed', replace: 'replaced' } as const

function Texts({ call }: { call: CallView }) {
  const messages = call.events.filter((seen): seen is Message => seen.kind === 'message')
  const none = messages.every(({ payload }) => payload === undefined)
  return html`
    ${none && html`<p class="empty">No text was kept of this call.</p>`}
    ${messages.map((message) => html`<${Raw} message=${message} time=${duration(message.at - call.at)} status=${httpStatus(message, call)} />`)}
  `
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
