/** The recorded answer of a call and the new one, side by side, with marks where they differ. */
import { html } from 'htm/preact'
import { diff } from '../../replay/diff.js'
import { USUALLY_IGNORED } from '../../replay/from-messages.js'
import { type Expected, hiddenIn } from '../../replay/recording.js'
import { type ComparedRow, sideBySide } from '../../replay/side-by-side.js'
import { counted, shown } from '../../words.js'

/** Most characters of a line. */
const MAX_COMPARED_LINE = 2_000
/** Equal rows that stay around a difference; more than twice as many are folded. */
const AROUND = 3

const SIGNS: Readonly<Record<ComparedRow['kind'], readonly [sign: string, words: string, look: string]>> = {
  same: ['', '', ''],
  ignored: ['', 'not compared: ', ''],
  add: ['+', 'only in the new answer: ', 'added'],
  remove: ['−', 'only in the recorded answer: ', 'removed'],
  replace: ['~', 'differs: ', 'replaced'],
}

export function Compared({ expected, actual }: { expected: Expected; actual: Expected }) {
  // Hidden values cannot be compared.
  const ignore = [...USUALLY_IGNORED, ...hiddenIn(expected)]
  const { all, more } = diff(expected, actual, ignore)
  const count = all.length + more
  if (count === 0) return html`<p class="compared-same">Same as the recorded answer.</p>`
  const { rows, isCut } = sideBySide(expected, actual, ignore)
  return html`
    <details open>
      <summary>${count === 1 ? '1 value differs' : `${counted(count)} values differ`} from the recorded answer</summary>
      <div class="compared-lines" tabindex="0" role="region" aria-label="Both answers">
        <table class="compared-table">
          <caption class="hidden">The recorded answer and the new one, line by line</caption>
          <thead><tr><th scope="col">Recorded</th><th scope="col">Now</th></tr></thead>
          <tbody>${foldedRows(rows).map(row)}</tbody>
        </table>
      </div>
      ${isCut && html`<p class="faint">The rest is not shown.</p>`}
    </details>
  `
}

function row(one: ComparedRow | number) {
  if (typeof one === 'number')
    return html`<tr><td colspan="2" class="compared-line faint">… ${counted(one)} equal lines …</td></tr>`
  const { kind, left, right } = one
  const [sign, words, colour] = SIGNS[kind]
  const look = kind === 'ignored' ? 'faint' : sign === '' ? '' : 'compared-differs'
  const cell = (text: string | undefined, side: string) => html`
    <td class=${`compared-line ${side} ${text === undefined ? '' : look}`}>
      ${text !== undefined && sign !== '' && html`<span class=${`compared-sign ${colour}`} aria-hidden="true">${sign}</span><span class="hidden">${words}</span>`}${
        text !== undefined && html`<code>${shown(text, MAX_COMPARED_LINE)}</code>`
      }
    </td>
  `
  return html`<tr>${cell(left, '')}${cell(right, 'compared-now')}</tr>`
}

/** The rows, with numbers in place of many equal ones. */
function foldedRows(rows: readonly ComparedRow[]): (ComparedRow | number)[] {
  const isEqual = ({ kind }: ComparedRow) => kind === 'same' || kind === 'ignored'
  const folded: (ComparedRow | number)[] = []
  for (let at = 0; at < rows.length; ) {
    let end = at
    while (end < rows.length && isEqual(rows[end] as ComparedRow)) end++
    const length = end - at
    if (length > 2 * AROUND + 1) {
      folded.push(...rows.slice(at, at + AROUND), length - 2 * AROUND, ...rows.slice(end - AROUND, end))
      at = end
    } else if (length > 0) {
      folded.push(...rows.slice(at, end))
      at = end
    } else folded.push(rows[at++] as ComparedRow)
  }
  return folded
}
