/** The view Try: the items that a server lists in both eras, and calls of them. */

import { html } from 'htm/preact'
import { useEffect, useState } from 'preact/hooks'
import { shown } from '../../inspect/words.js'
import { whyNothing } from '../nothing.js'
import { source } from '../state.js'
import { Questions } from './answers.js'
import {
  allowed,
  chosenItem,
  connect,
  connecting,
  hiddenItems,
  type Item,
  items,
  KINDS,
  lookAtTargets,
  pageCalls,
  REVISIONS,
  revision,
  roots,
  server,
  target,
  targets,
} from './calling.js'
import { Chosen, differenceOf, schemaOf } from './chosen.js'
import { Outcome } from './outcome.js'
import { Repeated, repeated } from './repeated.js'
import { Safe } from './safe.js'
import { said } from './said.js'

/** Most hidden items that are drawn. */
const MAX_HIDDEN_SHOWN = 500
/** With at most this many items, there is no search field. */
const FEW = 8

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
        ${pageCalls.value.map((call) => html`<${Safe} key=${call.id}><${Outcome} call=${call} /></${Safe}>`)}
      </div>
    </div>
  `
}

function Choosing() {
  const { value: name = '' } = target
  const from = (event: Event) => (event.currentTarget as HTMLSelectElement).value
  const { value: offered } = server
  const [wanted, setWanted] = useState('')
  const isWanted = (item: Item) =>
    `${item.name} ${said(item.here?.['title'], 200)}`.toLowerCase().includes(wanted.toLowerCase())
  return html`
    <div class="choosing">
      <label>Server
        <select value=${name} onChange=${(event: Event) => connect(from(event), revision.value)}>
          ${targets.value.map((one) => html`<option value=${one.name} selected=${one.name === name}>${shown(one.name)}${one.kind === 'group' ? ' (group)' : ''}</option>`)}
        </select>
      </label>
      <label>Client revision
        <select value=${revision.value} onChange=${(event: Event) => connect(name, from(event))}>
          ${REVISIONS.map((one) => html`<option value=${one} selected=${one === revision.value}>${one} ${one === REVISIONS[0] ? '(modern)' : '(legacy)'}</option>`)}
        </select>
      </label>
      <p class="faint" role="status">${connecting.value ?? `${said(offered?.info?.['title'] ?? offered?.info?.['name'], 200)} ${said(offered?.info?.['version'], 60)}`}</p>
      <details class="roots"><summary>Roots</summary>
        <label>Roots that servers get on request, one URI per line
          <textarea rows="2" placeholder="file:///home/ada/project" value=${roots.value} onInput=${(event: Event) => {
            roots.value = (event.currentTarget as HTMLTextAreaElement).value
          }}></textarea>
        </label>
      </details>
      ${items.value.length > FEW && html`<input type="search" aria-label="Search the lists" placeholder="search" value=${wanted} onInput=${(event: Event) => setWanted((event.currentTarget as HTMLInputElement).value)} />`}
      ${KINDS.map((kind) => {
        const listed = items.value.filter((item) => item.kind === kind && isWanted(item))
        if (listed.length === 0) return null
        return html`
          <h2>${TITLES[kind]} <span class="faint">${listed.length}</span></h2>
          <ul class="items">${listed.map((item) => html`<li><${Name} item=${item} /></li>`)}</ul>
        `
      })}
      ${connecting.value === undefined && items.value.length === 0 && html`<p class="faint">The server lists nothing.</p>`}
      <${Hidden} />
    </div>
  `
}

/** The items that clients do not see, with reasons. */
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
