/** Repeats a recorded call in the view Try, changed or not, and compares the answers. */
import { signal } from '@preact/signals'
import { html } from 'htm/preact'
import { useState } from 'preact/hooks'
import { recordIn } from '../../record.js'
import type { RepeatableCall } from '../../replay/from-messages.js'
import { hiddenIn } from '../../replay/recording.js'
import { shown } from '../../words.js'
import { place, say } from '../state.js'
import {
  allowed,
  chosenItem,
  connect,
  connecting,
  items,
  lookAtTargets,
  makeCall,
  REVISIONS,
  revision,
  side,
  target,
  targets,
} from './calling.js'
import { useSubmit } from './checking.js'
import { Form, textIn, useForm } from './form.js'
import type { Item } from './lists.js'

/** The repeated call. */
export const repeated = signal<RepeatableCall | undefined>(undefined)

/** Opens a call in the view Try, with the revision of its client. */
export function tryAgain(call: RepeatableCall): void {
  repeated.value = call
  chosenItem.value = undefined
  side.value = 'calls'
  const as = (REVISIONS as readonly string[]).includes(call.revision) ? call.revision : (REVISIONS.at(-1) as string)
  const isConnected = target.value === call.server && revision.value === as && connecting.value === undefined
  if (call.server !== undefined) target.value = call.server
  place.value = 'try'
  if (!isConnected) open(call, as).catch(() => say('The bridge does not answer'))
}

async function open({ server }: RepeatableCall, as: string): Promise<void> {
  await lookAtTargets()
  const known = targets.value.find(({ name }) => name === server) ?? targets.value[0]
  if (allowed.value.allowed && known) await connect(known.name, as)
}

/** Methods with a form for their arguments, and the kind of their items. */
const WITH_ARGUMENTS: Readonly<Record<string, Item['kind']>> = { 'tools/call': 'tools', 'prompts/get': 'prompts' }

interface RepeatedProps {
  call: RepeatableCall
  /** The schema of what a call of an item takes. */
  schemaOf(item: Item): unknown
}

export function Repeated({ call, schemaOf }: RepeatedProps) {
  const { method, params, name = method } = call
  const kind = WITH_ARGUMENTS[method]
  const item = kind && items.value.find((one) => one.kind === kind && one.name === params['name'])
  const [hidden] = hiddenIn(params)
  const [problem, setProblem] = useState('')
  const close = () => {
    repeated.value = undefined
  }
  const send = (edited: Record<string, unknown>) => {
    setProblem('')
    makeCall(name, method, edited, {
      expect: call.expect,
      answers: call.answers,
      tool: method === 'tools/call' ? item?.here : undefined,
    }).catch(() => {})
  }
  // The form is made once, after the items are listed.
  const isReady = connecting.value === undefined
  return html`
    <section class="card" aria-label="A recorded call">
      <h2>${shown(name, 200)} again <span class="faint">recorded as a client of ${call.revision}</span></h2>
      ${hidden !== undefined && html`<p class="warning">A secret or binary value is hidden in the recording: enter a value for <code>${shown(hidden, 500)}</code>.</p>`}
      ${call.expect === undefined && html`<p class="faint">The recorded answer is incomplete: it cannot be compared.</p>`}
      ${isReady && item && html`<${ByForm} key="form" schema=${schemaOf(item)} params=${params} send=${send} tell=${setProblem} />`}
      ${isReady && !item && html`<${AsJson} key="json" params=${params} send=${send} tell=${setProblem} />`}
      <p class="warning" role="alert">${problem}</p>
      <div class="buttons"><button type="button" onClick=${close}>Close</button></div>
    </section>
  `
}

interface EditorProps {
  params: Record<string, unknown>
  send(params: Record<string, unknown>): void
  tell(problem: string): void
}

/** The arguments in a form, and the metadata as JSON. */
function ByForm({ schema, params, send, tell }: EditorProps & { schema: unknown }) {
  const { arguments: given, _meta, ...rest } = params
  const { state, change, latest } = useForm(schema, given ?? {})
  const [meta, setMeta] = useState(_meta === undefined ? '' : JSON.stringify(_meta, null, 2))
  const sendWith = (value: unknown) => {
    const metadata = meta.trim() === '' ? undefined : recordIn(meta)
    const hasArguments = given !== undefined || Object.keys(value as object).length > 0
    if (meta.trim() !== '' && !metadata) tell('_meta is not a JSON object')
    else send({ ...rest, ...(hasArguments && { arguments: value }), ...(metadata && { _meta: metadata }) })
  }
  const { wrong, problem, submit, sendAnyway } = useSubmit(schema, latest, sendWith)
  const onSubmit = (event: Event) => {
    event.preventDefault()
    submit()
  }
  return html`
    <form onSubmit=${onSubmit}>
      <${Form} schema=${schema} state=${state} wrong=${wrong} onChange=${change} />
      <details class="form" open=${_meta !== undefined}><summary>Metadata (_meta)</summary>
        <textarea aria-label="Metadata as JSON" rows="3" spellcheck="false" placeholder="JSON" value=${meta} onInput=${(event: Event) => setMeta(textIn(event))}></textarea>
      </details>
      <p class="warning" role="alert">${problem}</p>
      <div class="buttons">
        <button type="submit">Call again</button>
        ${sendAnyway && html`<button type="button" onClick=${sendAnyway}>Call anyway</button>`}
      </div>
    </form>
  `
}

/** The params of other methods, and of calls of unlisted items. */
function AsJson({ params, send, tell }: EditorProps) {
  const [text, setText] = useState(JSON.stringify(params, null, 2))
  const submit = (event: Event) => {
    event.preventDefault()
    const edited = recordIn(text)
    if (edited) send(edited)
    else tell('The parameters are not a JSON object')
  }
  return html`
    <form class="form" onSubmit=${submit}>
      <textarea aria-label="Parameters as JSON" rows="10" spellcheck="false" value=${text} onInput=${(event: Event) => setText(textIn(event))}></textarea>
      <div class="buttons"><button type="submit">Call again</button></div>
    </form>
  `
}
