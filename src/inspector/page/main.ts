/** The page of the inspector: the traffic of the bridge, with both sides of every call. */
import { signal } from '@preact/signals'
import { html } from 'htm/preact'
import { render } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { VALUES } from '../filter-hints.js'
import { clock, counted, shown } from '../words.js'
import { addressOf, followAddress, takeToken } from './address.js'
import { Calls } from './calls.js'
import { Detail } from './detail.js'
import { follow, followAnew, hasBridge, lookAtPayloads, onLive } from './feed.js'
import { acceptFiles, save, show } from './files.js'
import { Help } from './help.js'
import { followKeys } from './keys.js'
import { listShare, panelSide } from './layout.js'
import { Keeping, lookAtPins } from './pins.js'
import { followSearch } from './search.js'
import { Splitter } from './splitter.js'
import {
  CHOICES,
  choices,
  current,
  filterProblem,
  filterText,
  filterWords,
  followClock,
  kept,
  note,
  PLACES,
  paused,
  place,
  type Selection,
  say,
  selected,
  shownCalls,
  source,
  toggleHelp,
  togglePause,
} from './state.js'
import { Refused, Servers, Sessions } from './tables.js'
import { Tip } from './tip.js'
import { waitingQuestions } from './try/calling.js'
import { textIn } from './try/form.js'
import { Try } from './try/try.js'

const TITLES = { calls: 'Calls', servers: 'Servers', sessions: 'Sessions', refused: 'Refused', try: 'Try' } as const
const ERAS: readonly string[] = ['modern', 'legacy']
/** Milliseconds between two counts for screen readers. */
const ALOUD = 10_000
/** On a narrow screen, whether the buttons and lists of the header are shown. */
const toolsOpen = signal(false)

function App() {
  const isSplit = place.value === 'calls' && selected.value !== undefined
  return html`
    <header class=${toolsOpen.value ? 'top opened' : 'top'}>
      <h1>mcp-bridge</h1>
      <${Connection} />
      <button type="button" class="more" aria-expanded=${toolsOpen.value ? 'true' : 'false'} onClick=${() => {
        toolsOpen.value = !toolsOpen.value
      }}>More</button>
      <nav aria-label="Views">
        ${PLACES.map((one) => html`<a href=${addressOf(one)} aria-current=${place.value === one ? 'page' : undefined}>${TITLES[one]}${one === 'try' && html`<${Waiting} />`}</a>`)}
      </nav>
      <div class="buttons">
        ${place.value === 'calls' && html`<button type="button" aria-pressed=${paused.value ? 'true' : 'false'} onClick=${togglePause}>${paused.value ? 'Resume' : 'Pause'}</button>`}
        <${Keeping} />
        <${Texts} />
        <${Exports} />
        ${source.value.kind === 'file' && source.value.isServed !== true && hasBridge() && html`<button type="button" onClick=${() => followAnew()}>Back to the bridge</button>`}
        <label class="button">Open file<input type="file" class="hidden" accept=".jsonl,.json,.txt" onChange=${chosen} /></label>
        <button type="button" aria-haspopup="dialog" onClick=${toggleHelp}>Help</button>
      </div>
      ${place.value === 'calls' && html`<${Filters} />`}
    </header>
    <main class=${isSplit ? `split ${panelSide.value}` : ''} style=${{ '--list': `${listShare.value}%` }}>
      ${place.value === 'calls' && html`<${Calls} />${isSplit && html`<${Splitter} />`}<${Detail} />`}
      ${place.value === 'servers' && html`<${Servers} />`}
      ${place.value === 'sessions' && html`<${Sessions} />`}
      ${place.value === 'refused' && html`<${Refused} />`}
      ${place.value === 'try' && html`<${Try} />`}
    </main>
    <p class="note" role="status">${note.value}</p>
    <${Count} />
    <${Help} />
    <${Tip} />
  `
}

function Connection() {
  const { value: from } = source
  const { seen, lost, unrecorded } = current.value.views
  const isMissing = (lost > 0 && from.kind !== 'file') || unrecorded > 0
  const [sign, words] =
    from.kind === 'live'
      ? ['●', 'live']
      : from.kind === 'file'
        ? ['▤', `file ${shown(from.name)}`]
        : from.kind === 'waiting' || from.kind === 'refused'
          ? ['○', from.why]
          : ['○', from.kind]
  return html`<p class="connection"><span aria-hidden="true">${sign} </span>${words}${' '}<span class=${`count ${isMissing ? 'lost' : 'faint'}`}>${counted(seen)} events, ${counted(lost)} ${from.kind === 'file' ? 'not in the file' : 'lost'}${unrecorded > 0 ? `, ${counted(unrecorded)} calls not recorded` : ''}</span></p>`
}

/** Exports the calls in the list. */
function Exports() {
  const isLive = source.value.kind === 'live'
  if (!isLive && current.value.views.seen === 0) return null
  const all = isLive ? 'all that the bridge keeps' : 'all that this page has'
  const about = filterWords.value === '' ? all : 'the calls that match the filter'
  return html`
    <button type="button" title=${`Events, one per line: ${about}. This page can open the file.`} onClick=${() => save('jsonl', filterWords.value)}>Export JSONL</button>
    ${isLive && html`<button type="button" title=${`HTTP archive, for other tools: ${about}`} onClick=${() => save('har', filterWords.value)}>Export HAR</button>`}
  `
}

/** Shows and switches whether the bridge keeps texts of messages. */
function Texts() {
  const { value: now } = kept
  if (source.value.kind !== 'live' || !now || (now.payloads === 'all' && now.until === undefined)) return null
  const isOn = now.until !== undefined
  const keep = () => {
    lookAtPayloads(isOn ? 'configured' : 'all').catch(() => say('The bridge does not answer'))
  }
  return html`<button type="button" aria-pressed=${isOn ? 'true' : 'false'} onClick=${keep}>${isOn ? `Keeping texts until ${clock(now.until ?? 0).slice(0, -2)}` : 'Keep texts for 5 min'}</button>`
}

function Filters() {
  const { views } = current.value
  const servers = [...views.servers.keys()]
  const bridges = [...views.bridges.keys()]
  const shownChoices = bridges.length === 0 ? CHOICES.filter((choice) => choice !== 'bridge') : CHOICES
  const set = (choice: Selection, value: string) => {
    const { [choice]: _before, ...rest } = choices.value
    choices.value = value === '' ? rest : { ...rest, [choice]: value }
  }
  return html`
    <form class="filters" role="search" onSubmit=${(event: Event) => event.preventDefault()}>
      ${shownChoices.map((choice) => {
        const known: readonly string[] = { bridge: bridges, server: servers, era: ERAS, status: VALUES.status }[choice]
        const { [choice]: value = '' } = choices.value
        const values = value === '' || known.includes(value) ? known : [value, ...known]
        return html`
          <select aria-label=${choice} class=${value === '' ? 'all' : ''} value=${value} onChange=${(event: Event) => set(choice, textIn(event))}>
            <option value="">${choice}: all</option>
            ${values.map((one) => html`<option value=${one} selected=${one === value}>${choice === 'bridge' ? bridgeWords(one) : shown(one)}</option>`)}
          </select>
        `
      })}
      <input id="filter" type="search" aria-label="Filter" aria-describedby="problem" placeholder="filter: tool:book ms>500 -status:ok" value=${filterText.value}
        onInput=${(event: Event) => {
          filterText.value = textIn(event)
        }} />
      <span id="problem" class="warning" role="status">${filterProblem.value ?? ''}</span>
    </form>
  `
}

/** A bridge: its process id and its servers. */
function bridgeWords(bridge: string): string {
  const servers = [...(current.value.views.bridges.get(bridge) ?? [])].map((name) =>
    shown(name.replace(` (${bridge})`, '')),
  )
  return servers.length === 0 ? shown(bridge) : `${servers.join(', ')} (${shown(bridge)})`
}

/** How many questions wait for the person. */
function Waiting() {
  const { length } = waitingQuestions.value
  return length > 0 && html` <span class="status asks">${length === 1 ? '1 question' : `${length} questions`}</span>`
}

/** The number of calls for screen readers, updated rarely. */
function Count() {
  const element = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    const tell = () => {
      if (element.current) element.current.textContent = `${shownCalls.peek().length} calls shown`
    }
    const timer = setInterval(tell, ALOUD)
    return () => clearInterval(timer)
  }, [])
  return html`<p class="hidden" aria-live="polite" ref=${element}></p>`
}

function chosen({ currentTarget }: { currentTarget: HTMLInputElement }): void {
  const [file] = currentTarget.files ?? []
  if (file) show(file)
}

const token = takeToken()
followAddress(followAnew)
followKeys()
acceptFiles()
followClock()
followSearch()
onLive(() => {
  lookAtPins().catch(() => {})
})
render(html`<${App} />`, document.body)
follow(token).catch(() => {})
