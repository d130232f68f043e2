/** The description of a listed item: title, description, annotations, and schemas as tables. */

import { html } from 'htm/preact'
import { isRecord } from '../../record.js'
import type { JsonRecord } from '../../try/types.js'
import { shown } from '../../words.js'
import { rowsOf } from './rows.js'
import { said } from './said.js'

/** Annotations of tools in words, if they are true and if they are false. */
const HINTS: Readonly<Record<string, readonly [yes: string, no: string]>> = {
  readOnlyHint: ['read-only', 'may modify data'],
  destructiveHint: ['destructive', 'not destructive'],
  idempotentHint: ['idempotent', 'not idempotent'],
  openWorldHint: ['open world', 'closed world'],
}
/** Marks of the bridge on tools that it refuses to call. */
const MARKS = ['quarantined', 'unavailable'].map((one) => `io.github.mcp-bridge/${one}`)

export function About({ listed }: { listed: JsonRecord }) {
  const { title, name, description, annotations, mimeType, size, _meta: meta } = listed
  const hints = annotationsOf(annotations)
  const marks = MARKS.flatMap((mark) => (isRecord(meta) && isRecord(meta[mark]) ? [meta[mark]] : []))
  return html`
    ${typeof title === 'string' && html`<p>${shown(title, 500)}</p>`}
    ${typeof listed['uri'] === 'string' && typeof name === 'string' && html`<p>${shown(name, 500)}</p>`}
    ${(typeof mimeType === 'string' || typeof size === 'number') && html`<p class="faint">${said(mimeType, 200)} ${typeof size === 'number' ? `${size} bytes` : ''}</p>`}
    ${typeof description === 'string' && html`<p class="about-item">${shown(description, 10_000)}</p>`}
    ${hints.length > 0 && html`<p class="faint">Annotations: ${hints.join('; ')}</p>`}
    ${marks.map((mark) => html`<p class="warning">Currently unavailable: ${said(mark['reason'], 1_000)} ${said(mark['remedy'], 1_000)}</p>`)}
  `
}

function annotationsOf(annotations: unknown): string[] {
  if (!isRecord(annotations)) return []
  return Object.entries(annotations)
    .slice(0, 20)
    .map(([key, value]) => {
      const words = Object.hasOwn(HINTS, key) ? HINTS[key] : undefined
      return words && typeof value === 'boolean'
        ? words[value ? 0 : 1]
        : `${shown(key, 100)} ${shown(JSON.stringify(value), 500)}`
    })
}

/** A schema as a table. */
export function SchemaTable({ schema, title }: { schema: unknown; title: string }) {
  const { rows, cut } = rowsOf(schema)
  if (rows.length === 0) return null
  return html`
    <details>
      <summary>${title} <span class="faint">${rows.length}</span></summary>
      <div class="schema" tabindex="0" role="region" aria-label=${title}>
        <table>
          <thead><tr><th>Name</th><th>Type</th><th>Required</th><th>Rules</th><th>Meaning</th></tr></thead>
          <tbody>${rows.map(({ at, type, required, rules, about }) => html`<tr><td><code>${shown(at, 200)}</code></td><td>${shown(type, 400)}</td><td>${required ? 'yes' : ''}</td><td>${shown(rules.join('; '), 1_000)}</td><td>${said(about, 1_000)}</td></tr>`)}</tbody>
        </table>
        ${cut && html`<p class="faint">Truncated: see the JSON.</p>`}
      </div>
    </details>
  `
}
