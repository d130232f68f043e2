/** The bridge's changes: removed values are shown at the incoming message, added ones at the outgoing one. */
import { html } from 'htm/preact'
import type { CallView } from '../call-views.js'
import { movedTo, valueAt } from '../changed-values.js'
import type { Change } from '../recorder/events.js'
import type { MessageRow } from '../rows.js'
import { pathOf, ruleWords, shown } from '../words.js'
import { Rule, RuleRow } from './documented.js'
import { line } from './raw.js'

/** Characters shown of a changed value, and in its tooltip. */
const VALUE = 80
const LONGEST = 1_000

/** A change, at the original message or at the resulting one. */
export interface Mark {
  change: Change
  removed: boolean
  /** Where the value is in the text of the message that has the mark. */
  pointer: string
  /** That text, if it is kept. */
  text: string | undefined
}

/** The kind of a change, from the view of this message. */
export function kindOf({
  change: { op },
  removed,
}: Pick<Mark, 'change' | 'removed'>): 'added' | 'removed' | 'replaced' {
  if (op === 'replace') return 'replaced'
  return removed ? 'removed' : 'added'
}

/** The changes at one message. */
export interface MessageMarks {
  /** The original of this message, if it is in another row, and the values removed from it. */
  source: MessageRow | undefined
  elsewhere: readonly Mark[]
  /** The changes in the text of the message itself. */
  own: readonly Mark[]
}

/** `other`: the message in the same row. */
export function marksOf(message: MessageRow, other: MessageRow | undefined, call: CallView): MessageMarks {
  const source = sourceElsewhere(message, other, call)
  return { source, elsewhere: source ? removedIn(source, message) : [], own: marksBeside(message, other) }
}

interface ChangesOptions {
  marks: MessageMarks
  /** Rules whose explanation is already on the page. */
  explained: Set<string>
}

/** The changes at one message as a list. The first change by a rule is followed by its explanation. */
export function Changes({ marks: { source, elsewhere, own }, explained }: ChangesOptions) {
  const isFirst = ({ rule }: Change) => !explained.has(rule) && explained.add(rule).has(rule)
  return html`
    ${source && html`<p class="faint">compared with ${line(source)}:</p>`}
    <ul class="changes">${[...elsewhere, ...own].map((mark) => html`<${Changed} ...${mark} explains=${isFirst(mark.change)} />`)}</ul>
  `
}

/** The original of this message, if it is in another row. */
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
  return changes
    .filter(({ op }) => op !== 'add')
    .map((change) => ({ change, removed: true, pointer: change.at, text: payload?.text }))
}

/** The values added to a message. */
function addedIn({ payload, changes = [] }: MessageRow): Mark[] {
  return changes
    .filter(({ op }) => op !== 'remove')
    .map((change) => ({ change, removed: false, pointer: movedTo(change.at, changes), text: payload?.text }))
}

/** `explains`: the explanation of the rule follows. */
function Changed({ change, removed, pointer, text, explains }: Mark & { explains: boolean }) {
  const value = text === undefined ? undefined : valueAt(text, pointer)
  const { at, op, rule } = change
  const sign = op === 'replace' ? '~' : removed ? '−' : '+'
  const words = op === 'replace' ? (removed ? 'replaced' : 'replaced by') : removed ? 'removed' : 'added'
  return html`
    <li class=${kindOf({ change, removed })}>
      <span class="sign" aria-hidden="true">${sign} </span><span class="hidden">${words} </span><code title=${shown(at, LONGEST)}>${pathOf(change)}</code>
      ${value !== undefined && at !== '' && html`${' '}<code class="value" title=${shown(value, LONGEST)}>${shown(value, VALUE)}</code>`}
      ${' '}<${Rule} rule=${rule} />
      ${explains && ruleWords(rule) !== undefined && html`<p class="rule"><${RuleRow} rule=${rule} /></p>`}
    </li>
  `
}
