/** Questions of servers, with fields for the answers. */

import { html } from 'htm/preact'
import { useEffect, useRef } from 'preact/hooks'
import type { JsonRecord } from '../../try/types.js'
import { shown } from '../../words.js'
import { connecting, type OpenQuestion, pageCalls, waitingQuestions } from './calling.js'
import { useSubmit } from './checking.js'
import { Form, useForm } from './form.js'
import { Safe } from './safe.js'
import { said, saidJson } from './said.js'

/** Most characters of a text of a server that are drawn. */
const MAX_SAID = 10_000

/** All open questions, below the form of the call that most of them belong to. */
export function Questions() {
  return waitingQuestions.value.map((one) => html`<${Safe} key=${one.id}><${Question} question=${one} /></${Safe}>`)
}

function Question({ question }: { question: OpenQuestion }) {
  const { method, params, recorded, answer } = question
  const element = useRef<HTMLElement>(null)
  // The form above it grows when the lists of the other era come.
  useEffect(() => {
    // Unless another question is being answered.
    if (element.current && !document.activeElement?.closest('.question')) reveal(element.current)
  }, [connecting.value])
  return html`
    <section class="card question" aria-label="Question of the server" role="alert" ref=${element}>
      ${method === 'elicitation/create' && (params['mode'] === 'url' ? html`<${Visit} question=${question} />` : html`<${Ask} question=${question} />`)}
      ${method === 'sampling/createMessage' && html`<${Model} question=${question} />`}
      ${recorded && html`<div class="buttons"><button type="button" title=${shown(JSON.stringify(recorded), 1_000)} onClick=${() => answer(recorded)}>Answer as recorded</button></div>`}
    </section>
  `
}

/** Scrolls as little as needed. Of a question with no room for all of it, the beginning comes into view. */
function reveal(question: HTMLElement): void {
  const room = question.parentElement?.clientHeight ?? 0
  question.scrollIntoView({ block: question.offsetHeight > room ? 'start' : 'nearest' })
}

/** Which call waits for the answer. */
function Waiting({ of }: Pick<OpenQuestion, 'of'>) {
  const call = pageCalls.value.find(({ id }) => id === of)
  return html`<p class="faint">${call ? html`<b>${said(call.name, 200)}</b>` : 'The server'} waits for your answer.</p>`
}

function Ask({ question: { params, answer, of } }: { question: OpenQuestion }) {
  const schema = params['requestedSchema'] ?? {}
  const { state, change, latest } = useForm(schema)
  const accept = (content: unknown) => answer({ action: 'accept', content })
  const { wrong, problem, submit, sendAnyway } = useSubmit(schema, latest, accept)
  return html`
    <h2>The server asks</h2>
    <${Waiting} of=${of} />
    <p>${said(params['message'], MAX_SAID)}</p>
    <${Form} schema=${schema} state=${state} wrong=${wrong} onChange=${change} />
    <p class="warning" role="alert">${problem}</p>
    <${Choices} accept=${submit} anyway=${sendAnyway} answer=${answer} />
  `
}

function Visit({ question: { params, answer, of } }: { question: OpenQuestion }) {
  const url = String(params['url'])
  const isWeb = /^https?:\/\//i.test(url)
  return html`
    <h2>The server asks you to open a URL</h2>
    <${Waiting} of=${of} />
    <p>${said(params['message'], MAX_SAID)}</p>
    <p><code>${shown(url, 2_000)}</code>${isWeb && html` <a href=${url} target="_blank" rel="noopener noreferrer">Open in a new tab</a>`}</p>
    <${Choices} accept=${() => answer({ action: 'accept' })} answer=${answer} />
  `
}

interface ChoicesProps {
  accept(): void
  anyway?: (() => void) | undefined
  answer(result: JsonRecord): void
}

function Choices({ accept, anyway, answer }: ChoicesProps) {
  return html`
    <div class="buttons">
      <button type="button" onClick=${accept}>Accept</button>
      ${anyway && html`<button type="button" onClick=${anyway}>Accept anyway</button>`}
      <button type="button" onClick=${() => answer({ action: 'decline' })}>Decline</button>
      <button type="button" onClick=${() => answer({ action: 'cancel' })}>Cancel</button>
    </div>
  `
}

function Model({ question: { params, answer, of } }: { question: OpenQuestion }) {
  const field = useRef<HTMLTextAreaElement>(null)
  const textOf = () => field.current?.value ?? ''
  const send = () => {
    const content = { type: 'text', text: textOf() }
    answer({ role: 'assistant', model: 'a-person', content, stopReason: 'endTurn' })
  }
  return html`
    <h2>The server requests a model message: answer in place of the model</h2>
    <${Waiting} of=${of} />
    <pre tabindex="0">${saidJson(params)}</pre>
    <textarea aria-label="Model message" rows="3" ref=${field}></textarea>
    <div class="buttons"><button type="button" onClick=${send}>Answer</button></div>
  `
}
