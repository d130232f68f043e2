/** One message as it was on the wire: its headers and its text, as far as they are stored. */
import { html } from 'htm/preact'
import { indented } from '../json-lines.js'
import type { KeptText, RecordedEvent } from '../recorder/events.js'
import type { MessageRow } from '../rows.js'
import { counted, shown, size } from '../words.js'

/** A message that can be opened. `time` is when it passed, `status` its HTTP status, if any. */
export function Raw({ message, time, status }: { message: MessageRow; time: string; status?: number | undefined }) {
  const { payload, bytes } = message
  return html`
    <details class="raw">
      <summary><span class="faint number">${time}</span> ${whereOf(message)}: ${line(message, status)} <span class="faint">${size(bytes)}</span></summary>
      ${headers(message)}
      ${payload && html`<pre tabindex="0">${indented(payload.text)}</pre>`}
      ${payload && html`<${Missing} payload=${payload} />`}
      ${!payload && html`<p class="faint">Its text is not kept.</p>`}
    </details>
  `
}

/** A short description of a message. */
export function line({ form, method, id, http, hop }: MessageRow, status = http?.status): string {
  const words = [form === 'request' || form === 'notification' ? shown(method) : form]
  if (id !== undefined) words.push(`id ${shown(JSON.stringify(id), 40)}`)
  if (status !== undefined) words.push(`HTTP ${status}`)
  return words.join('  ') || hop
}

/** Source and destination of a message. */
export function whereOf(seen: RecordedEvent): string {
  if (seen.kind !== 'message') return 'bridge'
  return seen.dir === 'in' ? `${seen.hop} → bridge` : `bridge → ${seen.hop}`
}

function headers({ http }: MessageRow) {
  const entries = Object.entries(http?.headers ?? {})
  return (
    entries.length > 0 &&
    html`<pre tabindex="0">${entries.map(([name, value]) => `${name}: ${value}`).join('\n')}</pre>`
  )
}

/** What is missing from a stored text, if anything. */
export function Missing({ payload: { cut, hidden } }: { payload: KeptText }) {
  const words = [
    cut > 0 && `${counted(cut)} characters cut off at the end`,
    hidden > 0 && (hidden === 1 ? '1 hidden value' : `${hidden} hidden values`),
  ].filter(Boolean)
  return words.length > 0 && html`<p class="faint">${words.join('; ')}.</p>`
}
