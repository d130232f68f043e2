/** The messages of a call on both wires, side by side, with what the bridge changed. */
import { html } from 'htm/preact'
import { indented } from '../inspect/indent.js'
import { awaysOf, isRunning, phasesOf } from '../inspect/phases.js'
import { clientOf, httpStatus, type MessageRow, type Row, rowsOf } from '../inspect/rows.js'
import { openingSince } from '../inspect/server-views.js'
import type { CallView } from '../inspect/views.js'
import { duration, full, shown, size } from '../inspect/words.js'
import { Changes } from './changes.js'
import { line, Missing } from './raw.js'
import { current } from './state.js'

/**
 * The messages of a call: the client's wire on the left, the server's on the right, aligned by cause. `time`: a running
 * call is drawn up to here.
 */
export function Messages({ call, time }: { call: CallView; time: number }) {
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
          <th scope="col">Server <span class="faint">${full(call.upstream)}${call.pid === undefined ? '' : `, pid ${call.pid}`}</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.map((row, i) => [
          ...away(firstOf(row), rows[i - 1]),
          html`<tr>${cell(call, row, 'client', explained)}${cell(call, row, 'server', explained)}</tr>`,
        ])}
        ${away(Number.POSITIVE_INFINITY, rows.at(-1))}
        ${isRunning(call) && html`<tr class="away"><td colspan="2">… ${waiting(call, time)} …</td></tr>`}
      </tbody>
    </table>
  `
}

/** The side that a call waits for, and since when. */
function waiting(call: CallView, time: number): string {
  const { who = 'bridge', from = 0, to = 0 } = phasesOf(call, time).at(-1) ?? {}
  const server = current.value.views.servers.get(call.server)
  const opening = who === 'bridge' && server && openingSince(server, call.at)
  const where = who === 'bridge' ? 'in the bridge' : `waiting for the ${who}`
  const why = opening ? `: the server has not answered ${shown(opening.method)}` : ''
  return `${where} for ${duration(to - from)} so far${why}`
}

function firstOf({ client, server }: Row): number {
  return Math.min(client?.seq ?? Number.POSITIVE_INFINITY, server?.seq ?? Number.POSITIVE_INFINITY)
}

/** One message, with its changes. */
function cell(call: CallView, row: Row, hop: MessageRow['hop'], explained: Set<string>) {
  const message = row[hop]
  const other = row[hop === 'client' ? 'server' : 'client']
  if (!message) return html`<td class="none" data-label=${hop}>${other && note(other, row, isRunning(call))}</td>`
  const text = message.payload?.text
  return html`
    <td data-label=${hop}>
      <p><span aria-hidden="true">${message.dir === (hop === 'client' ? 'in' : 'out') ? '→' : '←'} </span>${line(message, httpStatus(message, call))} <span class="faint">${duration(message.at - call.at)}, ${size(message.bytes)}</span></p>
      <${Changes} message=${message} other=${other} call=${call} explained=${explained} />
      ${message.more !== undefined && html`<p class="faint">${message.more} more changes are not listed</p>`}
      ${text !== undefined && html`<pre class="text" tabindex="0">${indented(text)}</pre>`}
      ${message.payload && html`<${Missing} payload=${message.payload} />`}
    </td>
  `
}

/** Points to the counterpart of a message, if it is not in the same row. */
function note(other: MessageRow, { elsewhere }: Row, isOpen: boolean): string {
  if (elsewhere === 'unseen') return 'passes on a message that is not shown here'
  if (elsewhere)
    return other.dir === 'out' ? `caused by ${line(elsewhere)}, above` : `sent on in ${line(elsewhere)}, below`
  if (other.dir === 'out') return 'sent by the bridge itself'
  if (other.method === 'notifications/cancelled') return 'cancels the call'
  return isOpen ? 'not passed on so far' : 'stays with the bridge'
}
