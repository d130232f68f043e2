/** The bridge's changes: removed values are shown at the incoming message, added ones at the outgoing one. */
import { html } from 'htm/preact'
import type { CallView } from '../inspect/call-views.js'
import type { MessageRow } from '../inspect/rows.js'
import { movedTo, valueAt } from '../inspect/values.js'
import { pathOf, ruleWords, shown } from '../inspect/words.js'
import type { Change } from '../recorder/events.js'
import { Rule, RuleRow } from './documented.js'
import { line } from './raw.js'

/** Characters shown of a changed value, and in its tooltip. */
const VALUE = 80
const LONGEST = 1_000

interface ChangesOptions {
  message: MessageRow
  /** The message in the same row. */
  other: MessageRow | undefined
  call: CallView
  /** Rules whose explanation is already on the page. */
  explained: Set<string>
}

/** The changes at one message. The first change by a rule is followed by its explanation. */
export function Changes({ message, other, call, explained }: ChangesOptions) {
  const source = sourceElsewhere(message, other, call)
  const marks = [...(source ? removedIn(source, message) : []), ...marksBeside(message, other)]
  if (marks.length === 0) return null
  const isFirst = ({ rule }: Change) => !explained.has(rule) && explained.add(rule).has(rule)
  return html`
    ${source && html`<p class="faint">compared with ${line(source)}:</p>`}
    <ul class="changes">${marks.map((mark) => html`<${Changed} ...${mark} explains=${isFirst(mark.change)} />`)}</ul>
  `
}

/** A change, at the original message or at the resulting one. */
interface Mark {
  change: Change
  removed: boolean
  value: string | undefined
}

/** The original of this message, if the row has another one. */
function sourceElsewhere(
  { dir, of }: MessageRow,
  other: MessageRow | undefined,
  { events }: CallView,
): MessageRow | undefined {
  if (dir === 'in' || of === undefined || of === other?.seq) return undefined
  return events.find((seen): seen is MessageRow => seen.seq === of)
}

function marksBeside(message: MessageRow, other: MessageRow | undefined): Mark[] {
  if (message.dir === 'out') return addedIn(message)
  const isSource = other?.dir === 'out' && (other.of === undefined || other.of === message.seq)
  return isSource ? removedIn(message, other) : []
}

/** The values removed from or replaced in a message. */
function removedIn({ payload }: MessageRow, { changes = [] }: MessageRow): Mark[] {
  const text = payload?.text
  return changes
    .filter(({ op }) => op !== 'add')
    .map((change) => ({ change, removed: true, value: text && valueAt(text, change.at) }))
}

/** The values added to a message. */
function addedIn({ payload, changes = [] }: MessageRow): Mark[] {
  const text = payload?.text
  return changes
    .filter(({ op }) => op !== 'remove')
    .map((change) => ({ change, removed: false, value: text && valueAt(text, movedTo(change.at, changes)) }))
}

/** `explains`: the explanation of the rule follows. */
function Changed({ change, removed, explains, value }: Mark & { explains: boolean }) {
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
