/** A form for a JSON Schema, with optional fields, or one field for JSON. */
import { html } from 'htm/preact'
import { useId, useRef, useState } from 'preact/hooks'
import { tokenOf } from '../../../base/rpc/pointer.js'
import { areEqual } from '../../replay/diff.js'
import { shown } from '../../words.js'
import { type Complete, Completing } from './completing.js'
import { type Draft, draftOf, type FormShape, filled, isInJson, readDraft, shapeOf, type Wrong } from './shape.js'

/** Members of an object that are drawn at first. */
const FIRST = 40
/** Most levels of fields within fields. A deeper value is edited as JSON. */
const MAX_FIELD_LEVELS = 200
/** Most characters of a title or description that are drawn. */
const MAX_ABOUT = 2_000

/** The content of a form. */
export interface FormState {
  draft: Draft
  /** The whole as text, if that is edited instead. */
  json: string | undefined
}

/** The initial content: defaults, or a value. A value that does not fit the fields is edited as JSON. */
function formOf(schema: unknown, value: unknown): FormState {
  const shape = shapeOf(schema, schema)
  if (value === undefined) return { draft: draftOf(shape, schema, true), json: undefined }
  const state = { draft: filled(shape, schema, value), json: undefined }
  const { value: held, wrong } = readForm(schema, state)
  const isHeld = wrong.length === 0 && areEqual(held, value) && hasFields(shape, schema, value)
  return isHeld ? state : { ...state, json: JSON.stringify(value, null, 2) }
}

/** Whether every part of a value has a field. */
function hasFields(shape: FormShape, root: unknown, value: unknown, level = 0): boolean {
  if (level > MAX_FIELD_LEVELS) return false
  if (Array.isArray(value))
    return shape.kind !== 'array' || value.every((one) => hasFields(shapeOf(shape.items, root), root, one, level + 1))
  if (shape.kind !== 'object' || typeof value !== 'object' || value === null) return true
  const known = new Map((shape.members ?? []).map(({ key, schema }) => [key, schema]))
  return Object.entries(value).every(
    ([key, one]) => known.has(key) && hasFields(shapeOf(known.get(key), root), root, one, level + 1),
  )
}

/** The value of a form, and its mistakes. */
export function readForm(schema: unknown, { draft, json }: FormState): { value: unknown; wrong: Wrong[] } {
  const wrong: Wrong[] = []
  const shape: FormShape =
    json === undefined ? shapeOf(schema, schema) : { kind: 'json', title: undefined, about: undefined }
  const value = readDraft(shape, schema, json === undefined ? draft : { text: json }, true, wrong)
  return { value: value ?? {}, wrong }
}

/** Changes the latest value: several fields may change before the form is redrawn. */
type Change<T> = (before: T) => T

interface FormProps {
  schema: unknown
  state: FormState
  /** Mistakes of the fields. */
  wrong?: readonly Wrong[]
  /** Completions of a member of the whole. */
  complete?: ((key: string) => Complete) | undefined
  onChange(change: Change<FormState>): void
}

/** The state of a form; `latest` has it before the form is redrawn. */
export function useForm(
  schema: unknown,
  value?: unknown,
): { state: FormState; change: FormProps['onChange']; latest(): FormState } {
  const [state, setState] = useState(() => formOf(schema, value))
  const latest = useRef(state)
  const change = (next: Change<FormState>) => {
    latest.current = next(latest.current)
    setState(latest.current)
  }
  return { state, change, latest: () => latest.current }
}

export function Form({ schema, state, wrong = [], complete, onChange }: FormProps) {
  const shape = shapeOf(schema, schema)
  const { json } = state
  const toggle = () => {
    if (json === undefined) {
      onChange((now) => ({ ...now, json: JSON.stringify(readForm(schema, now).value, null, 2) }))
      return
    }
    const { value, wrong } = readForm(schema, state)
    if (wrong.length === 0) onChange(() => ({ draft: filled(shape, schema, value), json: undefined }))
  }
  return html`
    <div class="form">
      <button type="button" aria-pressed=${json === undefined ? 'false' : 'true'} onClick=${toggle}>Edit as JSON</button>
      ${
        json === undefined
          ? html`<${Field} schema=${schema} root=${schema} draft=${state.draft} at="" wrong=${wrong} completes=${complete} required label="" onChange=${(change: Change<Draft>) => onChange((now) => ({ ...now, draft: change(now.draft) }))} />`
          : html`<textarea aria-label="Arguments as JSON" rows="10" spellcheck="false" value=${json} onInput=${(
              event: Event,
            ) => {
              const json = textIn(event)
              onChange((now) => ({ ...now, json }))
            }}></textarea>`
      }
    </div>
  `
}

interface FieldProps {
  schema: unknown
  root: unknown
  draft: Draft
  required: boolean
  label: string
  /** Its place in the whole, as a JSON Pointer. */
  at: string
  wrong: readonly Wrong[]
  /** Completions of its members. */
  completes?: ((key: string) => Complete) | undefined
  /** Completions of its text. */
  complete?: Complete | undefined
  onChange(change: Change<Draft>): void
}

function Field({ schema, root, draft, required, label, at, wrong, completes, complete, onChange }: FieldProps) {
  const id = useId()
  const shape = shapeOf(schema, root)
  const name = shape.title === undefined || shape.title === label ? label : `${label} (${shape.title})`
  const about = shape.about && html`<p class="faint" id=${`${id}-about`}>${shown(shape.about, MAX_ABOUT)}</p>`
  const title = html`${shown(name, MAX_ABOUT)}${required || label === '' ? '' : html` <span class="faint">optional</span>`}`
  const here = label === '' ? [] : wrong.filter((one) => one.at === at)
  const mistakes =
    here.length > 0 &&
    html`<p class="warning wrong" id=${`${id}-wrong`}>${here.map(({ why }) => shown(why, 500)).join('; ')}</p>`
  const descriptions = [...(shape.about ? [`${id}-about`] : []), ...(here.length > 0 ? [`${id}-wrong`] : [])]
  const described = descriptions.length > 0 ? descriptions.join(' ') : undefined
  const isGroup =
    (shape.kind === 'object' || shape.kind === 'array' || shape.kind === 'choice') && !isInJson(shape, draft)
  if (isGroup && draft === undefined && !(required && label === '')) {
    const add = () => onChange(() => begun(shape, root))
    return html`<div class="field"><span>${title}</span> <button type="button" onClick=${add}>Add ${shown(label, 60)}</button>${mistakes}${about}</div>`
  }
  if (isGroup)
    return html`
      <fieldset class=${label === '' ? 'whole' : ''}>
        ${label !== '' && html`<legend>${title}</legend>`}
        ${mistakes}${about}
        <${Group} shape=${shape} root=${root} draft=${draft} at=${at} wrong=${wrong} completes=${completes} onChange=${onChange} />
        ${!required && html`<button type="button" onClick=${() => onChange(() => undefined)}>Remove ${shown(label, 60)}</button>`}
      </fieldset>
    `
  return html`
    <div class="field">
      <label for=${id}>${title}</label>
      <${Input} id=${id} described=${described} isWrong=${here.length > 0} shape=${shape} draft=${draft} required=${required} complete=${complete} onChange=${onChange} />
      ${mistakes}${about}
    </div>
  `
}

interface InputProps extends Pick<FieldProps, 'draft' | 'required' | 'complete' | 'onChange'> {
  id: string
  described: string | undefined
  isWrong: boolean
  shape: FormShape
}

function Input({ id, described, isWrong, shape, draft, required, complete, onChange }: InputProps) {
  const text = draft && 'text' in draft ? draft.text : draft && 'value' in draft ? JSON.stringify(draft.value) : ''
  const write = (given: string) => onChange(() => (given === '' && !required ? undefined : { text: given }))
  const typed = (event: Event) => write(textIn(event))
  const about = { 'aria-describedby': described, 'aria-invalid': isWrong ? 'true' : undefined }
  const values = shape.kind === 'boolean' ? BOOLEANS : shape.values
  if (values && !isInJson(shape, draft)) {
    const at = draft && 'value' in draft ? values.findIndex(({ value }) => areEqual(value, draft.value)) : -1
    const choose = (event: Event) => {
      const chosen = values[Number(textIn(event))]
      onChange(() => chosen && { value: chosen.value })
    }
    return html`
      <select id=${id} ...${about} value=${String(at)} onChange=${choose}>
        <option value="-1" selected=${at < 0}>${required ? 'choose' : 'omit'}</option>
        ${values.map(({ label }, i) => html`<option value=${String(i)} selected=${i === at}>${shown(label, 200)}</option>`)}
      </select>
    `
  }
  if (shape.kind === 'json' || isInJson(shape, draft))
    return html`<textarea id=${id} ...${about} rows="3" spellcheck="false" placeholder="JSON" value=${text} onInput=${typed}></textarea>`
  if (shape.kind === 'text' && text.includes('\n'))
    return html`<textarea id=${id} ...${about} rows="5" value=${text} onInput=${typed}></textarea>`
  if (complete)
    return html`<${Completing} id=${id} text=${text} attributes=${about} complete=${complete} onText=${write} />`
  const mode = shape.kind === 'text' ? 'text' : 'decimal'
  return html`<input id=${id} ...${about} type="text" inputmode=${mode} autocomplete="off" value=${text} onInput=${typed} />`
}

const BOOLEANS = [
  { value: true, label: 'true' },
  { value: false, label: 'false' },
]

interface GroupProps extends Pick<FieldProps, 'root' | 'draft' | 'at' | 'wrong' | 'completes' | 'onChange'> {
  shape: FormShape
}

function Group({ shape, root, draft, at, wrong, completes, onChange }: GroupProps) {
  const [isWhole, setWhole] = useState(false)
  if (shape.kind === 'array') {
    const items = itemsOf(draft)
    const item = shapeOf(shape.items, root)
    const set = (place: number, change: Change<Draft>) =>
      onChange((now) => ({ items: itemsOf(now).map((old, i) => (i === place ? change(old) : old)) }))
    return html`
      ${items.map(
        (one, i) => html`
          <div class="item">
            <${Field} schema=${shape.items} root=${root} draft=${one} at=${`${at}/${i}`} wrong=${wrong} required label=${String(i + 1)} onChange=${(change: Change<Draft>) => set(i, change)} />
            <button type="button" onClick=${() => onChange((now) => ({ items: itemsOf(now).filter((_, place) => place !== i) }))}>Remove ${i + 1}</button>
          </div>
        `,
      )}
      <button type="button" onClick=${() => onChange((now) => ({ items: [...itemsOf(now), draftOf(item, root, true)] }))}>Add item</button>
    `
  }
  if (shape.kind === 'choice') {
    const chosen = draft && 'alternative' in draft ? draft : { alternative: 0, draft: undefined }
    const alternatives = shape.alternatives ?? []
    const choose = (event: Event) => {
      const alternative = Number(textIn(event))
      onChange(() => ({ alternative, draft: draftOf(shapeOf(alternatives[alternative], root), root, true) }))
    }
    return html`
      <select aria-label="Alternative" value=${String(chosen.alternative)} onChange=${choose}>
        ${alternatives.map((one, i) => {
          const { title, kind } = shapeOf(one, root)
          return html`<option value=${String(i)} selected=${i === chosen.alternative}>${shown(title ?? `${i + 1}: ${kind}`, 100)}</option>`
        })}
      </select>
      <${Field} schema=${alternatives[chosen.alternative]} root=${root} draft=${chosen.draft} at=${at} wrong=${wrong} required label="value" onChange=${(change: Change<Draft>) => onChange((now) => ({ ...chosen, draft: change(now && 'alternative' in now ? now.draft : undefined) }))} />
    `
  }
  const members = shape.members ?? []
  const given = membersOf(draft)
  const visible = isWhole ? members : members.slice(0, FIRST)
  return html`
    ${members.length === 0 && html`<p class="faint">No arguments.</p>`}
    ${visible.map(
      ({ key, required, schema }) =>
        html`<${Field} key=${key} schema=${schema} root=${root} draft=${given.get(key)} at=${`${at}/${tokenOf(key)}`} wrong=${wrong} complete=${completes?.(key)} required=${required} label=${key} onChange=${(change: Change<Draft>) => onChange((now) => ({ members: new Map([...membersOf(now), [key, change(membersOf(now).get(key))]]) }))} />`,
    )}
    ${visible.length < members.length && html`<button type="button" onClick=${() => setWhole(true)}>Show all ${members.length} fields</button>`}
  `
}

function itemsOf(draft: Draft): readonly Draft[] {
  return draft && 'items' in draft ? draft.items : []
}

function membersOf(draft: Draft): ReadonlyMap<string, Draft> {
  return draft && 'members' in draft ? draft.members : new Map()
}

/** The draft of an added group. */
function begun(shape: FormShape, root: unknown): Draft {
  if (shape.kind !== 'choice') return draftOf(shape, root, true) ?? { members: new Map() }
  return { alternative: 0, draft: draftOf(shapeOf(shape.alternatives?.[0], root), root, true) }
}

/** The text in the field of an event. */
export function textIn({ currentTarget }: Event): string {
  return (currentTarget as HTMLInputElement).value
}
