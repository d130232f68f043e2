/** The banner of a failed call: its error, advice, and the last lines of its server on stderr. */
import { html } from 'htm/preact'
import { failureOf } from '../call-failure.js'
import type { CallView } from '../views.js'
import { duration, shown, shownLines, statusOf } from '../words.js'
import { Advised } from './documented.js'
import { current } from './state.js'

/** Most characters of a text of the error, and of a line on stderr. */
const TEXT = 600
const LINE = 300

export function Failure({ call }: { call: CallView }) {
  const failure = failureOf(call, current.value.views.servers)
  if (!failure) return html`<${Advised} failure=${{ outcome: call.status, fault: call.fault, message: call.why }} />`
  const { texts, lines } = failure
  return html`
    <section class="failure" aria-label="Failure">
      <p class="lines"><b>${statusOf(call).words}</b>${texts.map((text) => `: ${shownLines(text, TEXT)}`)}</p>
      <${Advised} failure=${{ outcome: call.status, fault: call.fault, message: call.why }} />
      ${
        lines.length > 0 &&
        html`
        <p class="faint">Last lines on stderr</p>
        <ul class="stderr">${lines.map(({ after, line }) => html`<li><span class="faint number">${after < 0 ? `${duration(-after)} before` : `after ${duration(after)}`}</span> <code>${shown(line, LINE)}</code></li>`)}</ul>
      `
      }
    </section>
  `
}
