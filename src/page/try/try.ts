/** Try: what a server offers to clients of both eras, and calls of it. */

import { html } from 'htm/preact'
import { useEffect, useState } from 'preact/hooks'
import { shown } from '../../inspect/words.js'
import { whyNothing } from '../nothing.js'
import { source } from '../state.js'
import { About, SchemaTable } from './about.js'
import { Questions } from './answers.js'
import {
  allowed,
  callItem,
  chosenItem,
  connect,
  connecting,
  hiddenItems,
  type Item,
  items,
  KINDS,
  lookAtTargets,
  made,
  REVISIONS,
  revision,
  server,
  target,
  targets,
  variablesOf,
} from './calling.js'
import { equalJson } from './equal.js'
import { Form, readForm, useForm } from './form.js'
import { Outcome } from './outcome.js'
import { Repeated, repeated } from './repeated.js'
import { Safe } from './safe.js'
import { said } from './said.js'

/** Most hidden items that are drawn. */
const MAX_HIDDEN_SHOWN = 500

const TITLES = { tools: 'Tools', prompts: 'Prompts', resources: 'Resources', templates: 'Templates' } as const

export function Try() {
  const isLive = source.value.kind === 'live'
  useEffect(() => {
    if (isLive) lookAtTargets().catch(() => {})
  }, [isLive])
  const none = isLive ? undefined : (whyNothing() ?? 'A file has no servers to call.')
  if (none !== undefined || !allowed.value.allowed)
    return html`<p class="empty">${none ?? shown(allowed.value.why ?? 'Looking for servers …', 500)}</p>`
  return html`
    <div class="try" tabindex="0" role="region" aria-label="Try">
      <${Choosing} />
      <div class="trying">
        <${Questions} />
        ${repeated.value && !chosenItem.value && html`<${Safe} key=${repeated.value}><${Repeated} call=${repeated.value} schemaOf=${schemaOf} /></${Safe}>`}
        ${chosenItem.value ? html`<${Safe} key=${`${chosenItem.value.kind} ${chosenItem.value.name}`}><${Chosen} item=${chosenItem.value} /></${Safe}>` : !repeated.value && html`<p class="empty">Choose a tool, prompt or resource.</p>`}
        ${made.value.map((call) => html`<${Safe} key=${call.id}><${Outcome} call=${call} /></${Safe}>`)}
      </div>
    </div>
  `
}

function Choosing() {
  const { value: name = '' } = target
  const from = (event: Event) => (event.currentTarget as HTMLSelectElement).value
  const { value: offered } = server
  return html`
    <div class="choosing">
      <label>Server
        <select value=${name} onChange=${(event: Event) => connect(from(event), revision.value)}>
          ${targets.value.map((one) => html`<option value=${one.name} selected=${one.name === name}>${shown(one.name)}${one.kind === 'group' ? ' (group)' : ''}</option>`)}
        </select>
      </label>
      <label>As a client of
        <select value=${revision.value} onChange=${(event: Event) => connect(name, from(event))}>
          ${REVISIONS.map((one) => html`<option value=${one} selected=${one === revision.value}>${one} ${one === REVISIONS[0] ? '(modern)' : '(legacy)'}</option>`)}
        </select>
      </label>
      <p class="faint" role="status">${connecting.value ?? `${said(offered?.info?.['title'] ?? offered?.info?.['name'], 200)} ${said(offered?.info?.['version'], 60)}`}</p>
      ${KINDS.map((kind) => {
        const listed = items.value.filter((item) => item.kind === kind)
        if (listed.length === 0) return null
        return html`
          <h2>${TITLES[kind]} <span class="faint">${listed.length}</span></h2>
          <ul class="items">${listed.map((item) => html`<li><${Name} item=${item} /></li>`)}</ul>
        `
      })}
      ${connecting.value === undefined && items.value.length === 0 && html`<p class="faint">It lists nothing.</p>`}
      <${Hidden} />
    </div>
  `
}

/** What the server has and clients do not see, and why. */
function Hidden() {
  const { hidden, problem } = hiddenItems.value
  if (hidden.length === 0 && problem === undefined) return null
  return html`
    <h2>Hidden <span class="faint">${hidden.length}</span></h2>
    ${problem !== undefined && html`<p class="faint">${shown(problem, 2_000)}</p>`}
    <ul class="items hidden-items">${hidden.slice(0, MAX_HIDDEN_SHOWN).map(({ kind, name, server, why }) => html`<li><code>${shown(name, 200)}</code> <span class="faint">${shown(kind)}${server === target.value ? '' : ` of ${shown(server)}`}: ${shown(why, 500)}</span></li>`)}</ul>
    ${hidden.length > MAX_HIDDEN_SHOWN && html`<p class="faint">${hidden.length - MAX_HIDDEN_SHOWN} more are hidden.</p>`}
  `
}

function Name({ item }: { item: Item }) {
  const isChosen = chosenItem.value === item
  const sign = differenceOf(item)
  const choose = () => {
    chosenItem.value = item
    repeated.value = undefined
  }
  return html`<button type="button" aria-pressed=${isChosen ? 'true' : 'false'} onClick=${choose}>${shown(item.name, 200)}${sign && html` <span class="faint">${sign}</span>`}</button>`
}

/** How what the other era sees differs; '' if it does not. */
function differenceOf({ here, there }: Item): string {
  if (here === undefined) return 'other era only'
  if (there === undefined) return 'this era only'
  return equalJson(here, there) ? '' : 'differs by era'
}

function Chosen({ item }: { item: Item }) {
  const { kind, here, there } = item
  const listed = here ?? there ?? {}
  const schema = schemaOf(item)
  const { state, change, latest } = useForm(schema)
  const [problem, setProblem] = useState('')
  const tasks = tasksOf(item)
  const [asTask, setAsTask] = useState(tasks === 'required')
  const send = (event: Event) => {
    event.preventDefault()
    const { value, wrong } = readForm(schema, latest())
    setProblem(wrong.map(({ at, why }) => `${at || 'the arguments'} ${why}`).join('; '))
    if (wrong.length === 0) callItem(item, value as Record<string, unknown>, asTask).catch(() => {})
  }
  const isModern = revision.value === REVISIONS[0]
  return html`
    <form class="card" aria-label=${shown(item.name, 200)} onSubmit=${send}>
      <h2>${shown(item.name, 200)}</h2>
      <${About} listed=${listed} />
      ${here === undefined && html`<p class="warning">Clients of this era do not see it.</p>`}
      ${schema !== undefined && html`<${Form} schema=${schema} state=${state} onChange=${change} />`}
      <p class="warning" role="alert">${problem}</p>
      <div class="buttons">
        <button type="submit">${kind === 'tools' ? 'Call' : kind === 'prompts' ? 'Get' : 'Read'}</button>
        ${tasks !== undefined && html`<label><input type="checkbox" checked=${asTask} onChange=${(event: Event) => setAsTask((event.currentTarget as HTMLInputElement).checked)} /> As a task</label>`}
      </div>
      ${kind === 'tools' && html`<${SchemaTable} title="What it takes" schema=${listed['inputSchema']} /><${SchemaTable} title="What it gives" schema=${listed['outputSchema']} />`}
      <details><summary>As a ${isModern ? 'modern' : 'legacy'} client sees it</summary><pre tabindex="0">${here === undefined ? 'not at all' : JSON.stringify(here, null, 2)}</pre></details>
      ${differenceOf(item) !== '' && html`<details><summary>As a ${isModern ? 'legacy' : 'modern'} client sees it</summary><pre tabindex="0">${there === undefined ? 'not at all' : JSON.stringify(there, null, 2)}</pre></details>`}
    </form>
  `
}

/** Whether a call can be asked for as a task; undefined if not, or if the server decides that itself, as modern ones do. */
function tasksOf({ kind, here }: Item): 'optional' | 'required' | undefined {
  if (kind !== 'tools' || !isSupported(server.value?.capabilities, ['tasks', 'requests', 'tools', 'call']))
    return undefined
  const execution = here?.['execution'] as Record<string, unknown> | undefined
  const support = execution?.['taskSupport']
  return support === 'optional' || support === 'required' ? support : undefined
}

function isSupported(capabilities: unknown, path: readonly string[]): boolean {
  let at = capabilities
  for (const key of path) at = typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[key] : undefined
  return at !== undefined
}

/** The schema of what a call takes. */
function schemaOf({ kind, name, here, there }: Item): unknown {
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
