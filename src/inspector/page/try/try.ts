/** The view Try: the items that a server lists in both eras, and calls of them. Lists and calls scroll apart, so the form stays in view. */

import { html } from 'htm/preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { shown } from '../../words.js'
import { whyNothing } from '../nothing.js'
import { source } from '../state.js'
import { Questions } from './answers.js'
import {
  allowed,
  chosenItem,
  connect,
  connecting,
  hiddenItems,
  items,
  lookAtTargets,
  pageCalls,
  REVISIONS,
  revision,
  roots,
  server,
  side,
  target,
  targets,
} from './calling.js'
import { Chosen, differenceOf, schemaOf } from './chosen.js'
import { type Item, KINDS } from './lists.js'
import { Outcome } from './outcome.js'
import { Repeated, repeated } from './repeated.js'
import { Safe } from './safe.js'
import { said } from './said.js'

/** Most hidden items that are drawn. */
const MAX_HIDDEN_SHOWN = 500
/** With at most this many items, there is no search field. */
const FEW = 8
/** Most characters of a description in the lists. */
const MAX_LISTED_ABOUT = 200

const TITLES = { tools: 'Tools', prompts: 'Prompts', resources: 'Resources', templates: 'Templates' } as const

/** The parts of the view that scroll. */
const SIDES = { lists: '.choosing .lists', calls: '.trying' } as const

export function Try() {
  const isLive = source.value.kind === 'live'
  useEffect(() => {
    if (isLive) lookAtTargets().catch(() => {})
  }, [isLive])
  // On a narrow screen, what has the focus may be hidden now.
  useLayoutEffect(() => {
    const { activeElement: lost } = document
    if (!lost?.closest('.try') || lost.getClientRects().length > 0) return
    const chosen = document.querySelector<HTMLElement>('.choosing .items [aria-pressed=true]')
    const next = side.value === 'lists' && chosen ? chosen : document.querySelector<HTMLElement>(SIDES[side.value])
    next?.focus({ preventScroll: next !== chosen })
  }, [side.value])
  const none = isLive ? undefined : (whyNothing() ?? 'A file has no servers to call.')
  if (none !== undefined || !allowed.value.allowed)
    return html`<p class="empty">${none ?? shown(allowed.value.why ?? 'Looking for servers …', 500)}</p>`
  return html`
    <div class=${`try at-${side.value}`}>
      <${Choosing} />
      <${Trying} />
    </div>
  `
}

/** The form of the chosen item, open questions, and calls. */
function Trying() {
  const { value: item } = chosenItem
  const { value: call } = repeated
  const scroller = useRef<HTMLDivElement>(null)
  const form = item && `${item.kind} ${item.name}`
  // Another form is shown from its top.
  useLayoutEffect(() => scroller.current?.scrollTo(0, 0), [form, call])
  return html`
    <div class="trying" tabindex="0" role="region" aria-label="Calls" ref=${scroller}>
      <button type="button" class="narrow" onClick=${() => show('lists')}>← Lists</button>
      ${call && !item && html`<${Safe} key=${call}><${Repeated} call=${call} schemaOf=${schemaOf} /></${Safe}>`}
      ${item ? html`<${Safe} key=${form}><${Chosen} item=${item} /></${Safe}>` : !call && html`<p class="empty">Choose a tool, prompt or resource.</p>`}
      <${Questions} />
      ${pageCalls.value.map((one) => html`<${Safe} key=${one.id}><${Outcome} call=${one} /></${Safe}>`)}
    </div>
  `
}

function Choosing() {
  const { value: name = '' } = target
  const from = (event: Event) => (event.currentTarget as HTMLSelectElement).value
  const { value: offered } = server
  const [wanted, setWanted] = useState('')
  const isWanted = (item: Item) => `${item.name} ${titleOf(item)}`.toLowerCase().includes(wanted.toLowerCase())
  const isUsed = chosenItem.value !== undefined || repeated.value !== undefined || pageCalls.value.length > 0
  return html`
    <div class="choosing">
      ${isUsed && html`<button type="button" class="narrow" onClick=${() => show('calls')}>${shown(chosenItem.value?.name ?? repeated.value?.name ?? 'Calls', 60)} →</button>`}
      <div class="whose">
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
      </div>
      <p class="faint" role="status">${connecting.value ?? `${said(offered?.info?.['title'] ?? offered?.info?.['name'], 200)} ${said(offered?.info?.['version'], 60)}`}</p>
      <details class="roots"><summary>Roots</summary>
        <label>Roots that servers get on request, one URI per line
          <textarea rows="2" placeholder="file:///home/ada/project" value=${roots.value} onInput=${(event: Event) => {
            roots.value = (event.currentTarget as HTMLTextAreaElement).value
          }}></textarea>
        </label>
      </details>
      ${items.value.length > FEW && html`<input type="search" aria-label="Search the lists" placeholder="search" value=${wanted} onInput=${(event: Event) => setWanted((event.currentTarget as HTMLInputElement).value)} />`}
      <div class="lists" tabindex="0" role="region" aria-label="Lists">
        ${KINDS.map((kind) => {
          const listed = items.value.filter((item) => item.kind === kind && isWanted(item))
          if (listed.length === 0) return null
          return html`
            <details open key=${kind}>
              <summary><h2>${TITLES[kind]} <span class="faint">${listed.length}</span></h2></summary>
              <ul class="items">${listed.map((item) => html`<li key=${item.name}><${Name} item=${item} /></li>`)}</ul>
            </details>
          `
        })}
        ${connecting.value === undefined && items.value.length === 0 && html`<p class="faint">The server lists nothing.</p>`}
        <${Hidden} />
      </div>
    </div>
  `
}

/** The items that clients do not see, with reasons. */
function Hidden() {
  const { hidden, problem } = hiddenItems.value
  if (hidden.length === 0 && problem === undefined) return null
  return html`
    <details open>
      <summary><h2>Hidden <span class="faint">${hidden.length}</span></h2></summary>
      ${problem !== undefined && html`<p class="faint">${shown(problem, 2_000)}</p>`}
      <ul class="items hidden-items">${hidden.slice(0, MAX_HIDDEN_SHOWN).map(({ kind, name, server, why }) => html`<li><code>${shown(name, 200)}</code> <span class="faint">${shown(kind)}${server === target.value ? '' : ` of ${shown(server)}`}: ${shown(why, 500)}</span></li>`)}</ul>
      ${hidden.length > MAX_HIDDEN_SHOWN && html`<p class="faint">${hidden.length - MAX_HIDDEN_SHOWN} more are hidden.</p>`}
    </details>
  `
}

function Name({ item }: { item: Item }) {
  const isChosen = chosenItem.value === item
  const sign = differenceOf(item)
  const about = aboutOf(item)
  const choose = () => {
    chosenItem.value = item
    repeated.value = undefined
    show('calls')
  }
  return html`<button type="button" aria-pressed=${isChosen ? 'true' : 'false'} title=${about} onClick=${choose}>${shown(item.name, 200)}${sign && html` <span class="faint">${sign}</span>`}${about && html`<span class="about-listed">${about}</span>`}</button>`
}

function titleOf({ here, there }: Item): string {
  return said((here ?? there)?.['title'], MAX_LISTED_ABOUT)
}

/** The first line of its description, or else its title or name. */
function aboutOf({ kind, here, there }: Item): string {
  const { title, name, description } = here ?? there ?? {}
  const other = title ?? (kind === 'resources' || kind === 'templates' ? name : undefined)
  const text = typeof description === 'string' && description.trim() !== '' ? description.trim() : other
  return said(typeof text === 'string' ? text.split('\n', 1)[0] : undefined, MAX_LISTED_ABOUT)
}

function show(which: typeof side.value): void {
  side.value = which
}
