/** The chosen tool, prompt, resource or template: its description, its form, and its call. */

import { html } from 'htm/preact'
import { useState } from 'preact/hooks'
import { valueAt } from '../../../config/value.js'
import { areEqual } from '../../replay/diff.js'
import { shown } from '../../words.js'
import { About, SchemaTable } from './about.js'
import { callItem, complete, isCompleted, REVISIONS, revision, server } from './calling.js'
import { useSubmit } from './checking.js'
import { Form, useForm } from './form.js'
import type { Item } from './lists.js'
import { saidJson } from './said.js'
import { variablesOf } from './uri-template.js'

/** Most differing members that are named. */
const MAX_DIFFERENT = 3

/** How the item differs in the other era; '' if it does not. */
export function differenceOf({ here, there }: Item): string {
  if (here === undefined) return 'only in the other era'
  if (there === undefined) return 'only in this era'
  const names = new Set([...Object.keys(here), ...Object.keys(there)])
  const different = [...names].filter((name) => !areEqual(here[name], there[name]))
  if (different.length === 0) return ''
  const more = different.length > MAX_DIFFERENT ? ' …' : ''
  return `≠ ${shown(different.slice(0, MAX_DIFFERENT).join(', '), 60)}${more}`
}

export function Chosen({ item }: { item: Item }) {
  const { kind, here, there } = item
  const listed = here ?? there ?? {}
  const schema = schemaOf(item)
  const { state, change, latest } = useForm(schema)
  const tasks = tasksOf(item)
  const [asTask, setAsTask] = useState(tasks === 'required')
  const call = (value: unknown) => {
    callItem(item, value as Record<string, unknown>, asTask).catch(() => {})
  }
  const { wrong, problem, submit, sendAnyway } = useSubmit(schema, latest, call)
  const send = (event: Event) => {
    event.preventDefault()
    submit()
  }
  const completes = (key: string) => (value: string, signal: AbortSignal) => {
    const { draft } = latest()
    const given = draft && 'members' in draft ? [...draft.members] : []
    const others = given.flatMap(([name, one]) =>
      name !== key && one && 'text' in one && one.text !== '' ? [[name, one.text]] : [],
    )
    return complete(item, { name: key, value }, Object.fromEntries(others) as Record<string, string>, signal)
  }
  const isModern = revision.value === REVISIONS[0]
  const verb = kind === 'tools' ? 'Call' : kind === 'prompts' ? 'Get' : 'Read'
  return html`
    <form class="card" aria-label=${shown(item.name, 200)} onSubmit=${send}>
      <h2>${shown(item.name, 200)}</h2>
      <${About} listed=${listed} />
      ${here === undefined && html`<p class="warning">Hidden from clients of this era.</p>`}
      ${schema !== undefined && html`<${Form} schema=${schema} state=${state} wrong=${wrong} complete=${isCompleted(item) ? completes : undefined} onChange=${change} />`}
      <p class="warning" role="alert">${problem}</p>
      <div class="buttons">
        <button type="submit">${verb}</button>
        ${sendAnyway && html`<button type="button" onClick=${sendAnyway}>${verb} anyway</button>`}
        ${tasks !== undefined && html`<label><input type="checkbox" checked=${asTask} onChange=${(event: Event) => setAsTask((event.currentTarget as HTMLInputElement).checked)} /> As a task</label>`}
      </div>
      ${kind === 'tools' && html`<${SchemaTable} title="Input schema" schema=${listed['inputSchema']} /><${SchemaTable} title="Output schema" schema=${listed['outputSchema']} />`}
      <details><summary>For a ${isModern ? 'modern' : 'legacy'} client</summary><pre tabindex="0">${here === undefined ? 'not listed' : saidJson(here)}</pre></details>
      ${here && there && differenceOf(item) !== '' && html`<p class="faint">Different in the other era: ${differenceOf(item)}</p>`}
      ${differenceOf(item) !== '' && html`<details><summary>For a ${isModern ? 'legacy' : 'modern'} client</summary><pre tabindex="0">${there === undefined ? 'not listed' : saidJson(there)}</pre></details>`}
    </form>
  `
}

/** Whether a call can be requested as a task; undefined if not, or if the server decides, as modern ones do. */
function tasksOf({ kind, here }: Item): 'optional' | 'required' | undefined {
  const tasks = valueAt(server.value?.capabilities, ['tasks', 'requests', 'tools', 'call'])
  if (kind !== 'tools' || tasks === undefined) return undefined
  const support = valueAt(here, ['execution', 'taskSupport'])
  return support === 'optional' || support === 'required' ? support : undefined
}

/** The schema of the arguments. */
export function schemaOf({ kind, name, here, there }: Item): unknown {
  const listed = here ?? there ?? {}
  if (kind === 'tools') return listed['inputSchema'] ?? {}
  if (kind === 'templates') return ofNames(variablesOf(name))
  if (kind !== 'prompts') return undefined
  const given = Array.isArray(listed['arguments']) ? (listed['arguments'] as Record<string, unknown>[]) : []
  const properties = given.map(({ name, title, description }) => [String(name), { type: 'string', title, description }])
  const required = given.filter((one) => one['required'] === true).map((one) => one['name'])
  return { type: 'object', properties: Object.fromEntries(properties), required }
}

function ofNames(names: readonly string[]): unknown {
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])) }
}
