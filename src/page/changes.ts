/** What the bridge changed, at the messages: what it removed stands where it came from, what it added where it went to. */
import { html } from 'htm/preact'
import type { CallView } from '../inspect/call-views.js'
import type { Message } from '../inspect/rows.js'
import { movedTo, valueAt } from '../inspect/values.js'
import { pathOf, ruleWords, shown } from '../inspect/words.js'
import type { Change } from '../ports/seen.js'
import { Rule, RuleRow } from './documented.js'
import { line } from './raw.js'

/** Characters of a changed value that are shown, and those in its tip. */
const VALUE = 80
const LONGEST = 1_000

interface ChangesOptions {
  message: Message
  /** The message beside it. */
  other: Message | undefined
  call: CallView
  /** Rules whose words are on the page. */
  explained: Set<string>
}

/** The changes at one message. The first change of a rule is followed by the rule in words. */
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

/** A change, at the message that it was made in or at the one that it has led to. */
interface Mark {
  change: Change
  removed: boolean
  value: string | undefined
}

/** The message that this one was made of, if another one is beside it. */
function sourceElsewhere({ dir, of }: Message, other: Message | undefined, { events }: CallView): Message | undefined {
  if (dir === 'in' || of === undefined || of === other?.seq) return undefined
  return events.find((seen): seen is Message => seen.seq === of)
}

function marksBeside(message: Message, other: Message | undefined): Mark[] {
  if (message.dir === 'out') return addedIn(message)
  const isSource = other?.dir === 'out' && (other.of === undefined || other.of === message.seq)
  return isSource ? removedIn(message, other) : []
}

/** What was removed or replaced in a message to make another one of it. */
function removedIn({ payload }: Message, { changes = [] }: Message): Mark[] {
  const text = payload?.text
  return changes
    .filter(({ op }) => op !== 'add')
    .map((change) => ({ change, removed: true, value: text && valueAt(text, change.at) }))
}

/** What is new in a message. */
function addedIn({ payload, changes = [] }: Message): Mark[] {
  const text = payload?.text
  return changes
    .filter(({ op }) => op !== 'remove')
    .map((change) => ({ change, removed: false, value: text && valueAt(text, movedTo(change.at, changes)) }))
}

/** `explains`: the rule in words follows. */
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
