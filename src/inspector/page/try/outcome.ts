/**
 * The outcome of a call in the view Try: progress, messages, and its result drawn by kind, such as text, images and
 * JSON. Nothing of it is followed or run.
 */

import { html } from 'htm/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { CheckedValue } from '../../check/checked.js'
import { isRecord } from '../../record.js'
import { errorOf, type JsonRecord, type TryEvent } from '../../try/types.js'
import { duration, shown, size } from '../../words.js'
import { type PageCall, waitingQuestions } from './calling.js'
import { checkValue } from './checking.js'
import { Compared } from './compared.js'
import { isDrawn, pixelsOf } from './pixels.js'
import { said, saidJson, saidLines } from './said.js'

/** Most characters of an error, and blocks of one result, that are drawn. */
const MAX_SHOWN_ERROR = 10_000
const MAX_SHOWN_BLOCKS = 100
/** Largest side of a thumbnail in pixels; largest image in characters of base64, and in pixels. */
const SIDE = 480
const MAX_DRAWN = 8 * 1024 * 1024
const MAX_PIXELS = 32_000_000

export function Outcome({ call }: { call: PageCall }) {
  const { name, method, revision, ms, events, result, error, cancel, params, outputSchema, expect } = call
  const element = useRef<HTMLElement>(null)
  useEffect(() => {
    // A question is more important.
    if (call.cancel && waitingQuestions.value.length === 0) element.current?.scrollIntoView({ block: 'nearest' })
  }, [])
  const waits = waitingQuestions.value.some(({ of }) => of === call.id)
  const running = waits ? 'waits for your answer' : 'in progress'
  const state = cancel ? running : error ? 'error' : result?.['isError'] === true ? 'tool error' : 'done'
  return html`
    <section class="card outcome" aria-label=${`Call ${call.id} of ${said(name, 200)}`} ref=${element}>
      <h2>${said(name, 200)} <span class="faint">${method}, client of ${revision}</span></h2>
      <p role="status"><span class=${`status ${error || result?.['isError'] === true ? 'error' : cancel ? 'open' : 'ok'}`}>${state}</span>${ms === undefined ? '' : `, ${duration(ms)}`}
        ${cancel && html` <button type="button" onClick=${cancel}>Cancel</button>`}</p>
      <details><summary>Sent</summary><pre tabindex="0">${saidJson(params)}</pre></details>
      ${events.length > 0 && html`<ol class="told">${events.map((event) => html`<li>${wordsOf(event)}</li>`)}</ol>`}
      ${error && html`<p class="warning">${shown(error.message, MAX_SHOWN_ERROR)}${error.code === undefined ? '' : ` (${error.code})`}</p>`}
      ${error?.data !== undefined && html`<pre tabindex="0">${saidJson(error.data)}</pre>`}
      ${expect && !cancel && (result || error) && html`<${Compared} expected=${expect} actual=${result ? { result } : { error: errorOf(error ?? { message: '' }) }} />`}
      ${result && html`<${Result} result=${result} outputSchema=${outputSchema} />`}
    </section>
  `
}

function wordsOf(event: TryEvent): string {
  switch (event.kind) {
    case 'progress':
      return `${event.progress}${event.total === undefined ? '' : ` of ${event.total}`}${event.message === undefined ? '' : `: ${shown(event.message, 500)}`}`
    case 'log':
      return `${shown(event.level)}: ${shown(typeof event.data === 'string' ? event.data : JSON.stringify(event.data), 2_000)}`
    case 'task':
      return `task ${said(event.task['taskId'], 80)}: ${said(event.task['status'])}`
    case 'changed':
      return shown(event.method)
    case 'sent':
    case 'received':
      return event.kind
  }
}

function Result({ result, outputSchema }: { result: JsonRecord; outputSchema: unknown }) {
  const { content, messages, contents, structuredContent } = result
  const blocks = [content, messages, contents].flatMap((list) => (Array.isArray(list) ? list : []))
  return html`
    ${blocks.slice(0, MAX_SHOWN_BLOCKS).map((block) => html`<${Block} block=${block as JsonRecord} />`)}
    ${blocks.length > MAX_SHOWN_BLOCKS && html`<p class="faint">${blocks.length - MAX_SHOWN_BLOCKS} more blocks: see the JSON.</p>`}
    ${structuredContent !== undefined && html`<h3>Structured content</h3><pre tabindex="0">${saidJson(structuredContent)}</pre>`}
    ${outputSchema !== undefined && result['isError'] !== true && html`<${Fit} schema=${outputSchema} value=${structuredContent} />`}
    <details open=${blocks.length === 0 && structuredContent === undefined}><summary>Result as JSON</summary><pre tabindex="0">${saidJson(result)}</pre></details>
  `
}

/** Whether structured content is valid against the output schema of its tool. */
function Fit({ schema, value }: { schema: unknown; value: unknown }) {
  const [found, setFound] = useState<CheckedValue>()
  useEffect(() => {
    if (value !== undefined) checkValue(schema, value).then(setFound, () => {})
  }, [schema, value])
  if (value === undefined)
    return html`<p class="warning">The tool has an output schema, but the result has no structured content.</p>`
  if (!found) return null
  if (found.ok === null)
    return html`<p class="faint">Not checked against the output schema: ${shown(found.why, 1_000)}</p>`
  if (found.ok) return html`<p class="faint">Valid against the output schema.</p>`
  return html`
    <p class="warning">Invalid against the output schema:</p>
    <ul>${found.errors.map(({ at, message }) => html`<li><code>${shown(at || '/', 500)}</code> ${shown(message, 500)}</li>`)}</ul>
    ${found.more > 0 && html`<p class="faint">and ${found.more} more</p>`}
  `
}

/** A block of content, a message of a prompt, or contents of a resource. */
function Block({ block }: { block: JsonRecord }) {
  const { role, content } = block
  if (typeof role === 'string' && isRecord(content)) return html`<h3>${shown(role)}</h3><${Block} block=${content} />`
  const { type, text, data, blob, mimeType, resource, uri, name } = block
  if (type === 'resource' && isRecord(resource)) return html`<${Block} block=${resource} />`
  if (type === 'resource_link') return html`<p>Link: <code>${said(uri, 2_000)}</code> ${said(name, 200)}</p>`
  const about = uri === undefined ? '' : html`<p class="faint">${said(uri, 2_000)} ${said(mimeType)}</p>`
  if (typeof text === 'string') return html`${about}<pre class="text" tabindex="0">${saidLines(text)}</pre>`
  const bytes = typeof data === 'string' ? data : blob
  if (typeof bytes !== 'string') return html`<pre tabindex="0">${saidJson(block)}</pre>`
  const words = `${said(mimeType) || 'bytes'}, ${size(Math.floor((bytes.length * 3) / 4))}`
  if (isDrawn(mimeType) && bytes.length <= MAX_DRAWN)
    return html`${about}<${Picture} type=${mimeType} bytes=${bytes} /><p class="faint">${words}</p>`
  return html`${about}<p class="faint">${words}</p>`
}

/** The last image that is decoded: one at a time, because each takes memory for all its pixels. */
let decoding: Promise<void> = Promise.resolve()

/** An image, drawn from its bytes: no address is loaded. `side`: the largest one in pixels. */
export function Picture({ type, bytes, side = SIDE }: { type: string; bytes: string; side?: number }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [problem, setProblem] = useState<string>()
  useEffect(() => {
    decoding = decoding.then(async () => {
      const { current: element } = canvas
      if (element) setProblem(await drawn(element, { type, bytes, side }).catch(() => 'cannot be decoded'))
    })
  }, [bytes])
  if (problem !== undefined) return html`<p class="faint">The image ${problem}.</p>`
  return html`<canvas class="picture" role="img" aria-label="Image of the result" ref=${canvas}></canvas>`
}

/** Draws an image. Resolves to the reason if it is not drawn. */
async function drawn(
  element: HTMLCanvasElement,
  { type, bytes, side }: { type: string; bytes: string; side: number },
): Promise<string | undefined> {
  const binary = Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))
  const pixels = pixelsOf(type, binary)
  if (!pixels) return 'cannot be decoded'
  if (pixels.width * pixels.height > MAX_PIXELS)
    return `is too large to be drawn: ${pixels.width} × ${pixels.height} pixels`
  const image = await createImageBitmap(new Blob([binary], { type }))
  const scale = Math.min(1, side / Math.max(image.width, image.height))
  element.width = Math.max(1, Math.round(image.width * scale))
  element.height = Math.max(1, Math.round(image.height * scale))
  element.getContext('2d')?.drawImage(image, 0, 0, element.width, element.height)
  image.close()
  return undefined
}
