/** Explains a call: its outcome, the blame, and each change by the bridge with its rule. */
import { html } from 'htm/preact'
import { errorMessage } from '../call-failure.js'
import { serverMs } from '../phases.js'
import { isMessage } from '../recorder/events.js'
import { clientOf } from '../rows.js'
import type { CallView } from '../views.js'
import { clock, duration, full, fullServer, fullWhere, pathOf, ruleWords, shownLines, statusOf } from '../words.js'
import { Rule, RuleRow } from './documented.js'
import { line, whereOf } from './raw.js'

/** `time`: a running call is drawn up to here. */
export function Why({ call, time }: { call: CallView; time: number }) {
  const facts: [string, string | undefined][] = [
    ['Started', clock(call.at)],
    ['Outcome', statusOf(call).words],
    ['Blame', call.blame],
    ['Fault', call.fault],
    ['Reason', call.why],
    ['Error message', errorMessage(call)],
    ['Client', full(clientOf(call))],
    ['Server', `${fullWhere(call)}: ${fullServer(call)}${call.pid === undefined ? '' : `, pid ${call.pid}`}`],
    ['Path', pathThrough(call)],
    ['Questions', call.rounds > 0 ? `${call.rounds} ${call.rounds === 1 ? 'round' : 'rounds'}` : undefined],
    ['Server time', duration(serverMs(call, time))],
  ]
  const changed = call.events.filter((seen) => isMessage(seen)).filter(({ changes = [] }) => changes.length > 0)
  const rules = [...new Set(changed.flatMap(({ changes = [] }) => changes.map(({ rule }) => rule)))]
  const known = rules.filter((rule) => ruleWords(rule) !== undefined)
  return html`
    <dl>${facts.flatMap(([name, value]) => (value ? [html`<dt>${name}</dt>`, html`<dd class="lines">${shownLines(value, 1_000)}</dd>`] : []))}</dl>
    <h3>Changes by the bridge</h3>
    ${changed.length === 0 ? html`<p class="faint">No changes recorded.</p>` : null}
    ${changed.map(
      (message) => html`
        <p class="about">${whereOf(message)}: ${line(message)}</p>
        <ul class="changes">
          ${(message.changes ?? []).map((change) => html`<li class=${CLASSES[change.op]}><span class="verb">${change.op}</span> <code>${pathOf(change)}</code>${': '}<${Rule} rule=${change.rule} /></li>`)}
        </ul>
      `,
    )}
    ${
      known.length > 0 &&
      html`
      <h3>Rules</h3>
      <dl>${known.flatMap((rule) => [html`<dt><${Rule} rule=${rule} /></dt>`, html`<dd><${RuleRow} rule=${rule} /></dd>`])}</dl>
    `
    }
  `
}

const CLASSES = { add: 'added', remove: 'removed', replace: 'replaced' } as const

/** How a call reaches its server; undefined if not known yet. */
function pathThrough({ client, upstream, status, members }: CallView): string | undefined {
  if (members.length > 1) return 'sent to several servers of the group, whose answers the bridge joins'
  if (!upstream) return status === 'open' ? undefined : 'did not reach the server'
  return client?.era === upstream.era
    ? 'forwarded: both sides speak the same era'
    : 'translated: the sides speak different eras'
}
