/** The views of servers, sessions and refused requests. */
import { html } from 'htm/preact'
import { useEffect } from 'preact/hooks'
import { mebibytes } from '../../base/texts/mebibytes.js'
import { MAX_SAID_OF_TOOL, type Simplified, simplifiedTool, simplifiedTools } from '../../base/texts/simplified.js'
import { adviceOn } from '../advice.js'
import type { SessionCounts } from '../open-sessions.js'
import type { ProcessNow, ServerNow, ServerView } from '../server-views.js'
import type { SessionView } from '../session-views.js'
import { clock, duration, lossOf, shown } from '../words.js'
import { Advised } from './documented.js'
import { lookAtServers } from './feed.js'
import { whyNothing } from './nothing.js'
import { Raw } from './raw.js'
import { cleared, current, now, processNow, serversNow, source } from './state.js'

/** Most tool names in a line. */
const TOOLS = 50
/** The filter for failed calls. */
const FAILED = 'status:tool_error,error,fault'
/** Milliseconds between refreshes of the servers. */
const LOOK = 2_000

/** Shown in place of the state of a group. */
const GROUP = 'group'

/** Stands for a missing value. */
const NONE = '–'

const TRANSPORTS = { http: 'Streamable HTTP', sse: 'HTTP+SSE', stdio: 'stdio' }

/** The two ends of a session. */
const BETWEEN = { client: 'client – bridge', server: 'bridge – server' } as const

type Cells = readonly (string | number | undefined | ReturnType<typeof html>)[]

function table(caption: string, titles: readonly string[], rows: readonly Cells[], empty: string) {
  return html`
    <div class="scroller" tabindex="0" role="region" aria-label=${caption}>
      <table class="records">
        <caption class="hidden">${caption}</caption>
        <thead><tr>${titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
        <tbody>${rows.map((cells) => html`<tr>${cells.map((cell, i) => html`<td data-label=${titles[i]}>${cell === '' || cell === undefined ? NONE : cell}</td>`)}</tr>`)}</tbody>
      </table>
      ${rows.length === 0 && html`<p class="empty">${whyNothing() ?? empty}</p>`}
    </div>
  `
}

export function Servers() {
  const isLive = source.value.kind === 'live'
  useEffect(() => {
    const lookNow = () => {
      lookAtServers().catch(() => {})
    }
    lookNow()
    const timer = setInterval(lookNow, LOOK)
    return () => clearInterval(timer)
  }, [isLive])
  const { servers } = current.value.views
  const now = new Map(serversNow.value.map((server) => [server.name, server]))
  const names = [...new Set([...now.keys(), ...servers.keys()])]
  const card = (name: string) => {
    const known = now.get(name)
    const seen = servers.get(name)
    if (known && 'state' in known) return html`<${Server} key=${name} name=${name} now=${known} seen=${seen} />`
    const state = (known ?? seen)?.isGroup ? GROUP : known && 'removed'
    return html`<${Server} key=${name} name=${name} seen=${known ?? seen} state=${state} />`
  }
  if (names.length === 0 && current.value.views.notes.length === 0)
    return html`<p class="empty">${whyNothing() ?? 'No servers yet.'}</p>`
  return html`
    <div class="cards" tabindex="0" role="region" aria-label="Servers">
      ${processNow.value && html`<${Bridge} now=${processNow.value} />`}
      ${names.map(card)}
      <${Notes} />
    </div>
  `
}

interface ServerProps {
  name: string
  now?: ServerNow | undefined
  seen: ServerView | undefined
  /** In place of the state from the bridge: it is a group, or no longer served. */
  state?: string
}

function Server({ name, now, seen, state = now?.state ?? '' }: ServerProps) {
  const { transport, at, ms, pids = [], starts = 0, calls = 0, failed = 0, stderr = [], members = [] } = seen ?? {}
  const why = now?.why ?? seen?.why
  // A tool that is no longer listed is no longer called.
  const isListed = ({ tool }: Simplified) => now?.tools?.includes(tool) ?? true
  const simplified = (now ?? seen)?.simplified?.filter(isListed) ?? []
  const era = now?.era ?? seen?.era
  // The era of an unknown server was not detected.
  const isDetected = at !== undefined && era !== undefined && era !== 'unknown'
  const found = isDetected && [`at ${clock(at)}`, ms !== undefined && `in ${duration(ms)}`].filter(Boolean).join(', ')
  const link = (filter: string, words: string) =>
    html`<a href=${`#/calls?${new URLSearchParams({ server: name, ...(filter !== '' && { filter }) })}`}>${words}</a>`
  const facts: [string, unknown][] = [
    [
      'Era',
      (state === GROUP ? [] : [era, now?.revision ?? seen?.revision])
        .filter(Boolean)
        .map((text) => shown(text))
        .join(' '),
    ],
    ['Servers', members.map((one) => shown(one)).join(', ')],
    ['Transport', transport && TRANSPORTS[transport as keyof typeof TRANSPORTS]],
    [now?.state === 'down' ? 'Why it is down' : 'Evidence', why && shown(why, 500)],
    ['What to do', now?.next && shown(now.next, 500)],
    ['Detected', found],
    ['Programs', programsIn(now)],
    ['Last error', now?.lastError && `${clock(Date.parse(now.lastError.at))}: ${shown(now.lastError.why, 500)}`],
    ['Process', pids.length > 0 && pids.join(', ')],
    ['Starts', starts > 0 && starts],
    ['Calls', html`${link('', `${calls} recorded`)}${failed > 0 && html`, ${link(FAILED, `${failed} failed`)}`}`],
    ['In progress', now && `${now.calls} calls, and ${now.parked} that wait for the client`],
    ['Open sessions', sessionsIn(now?.sessions ?? openSessions(name))],
    ['Circuit breaker', now && breakerOf(now)],
    ['Tools', now?.tools && html`<${Tools} names=${now.tools} descriptions=${now.descriptions} />`],
    ['For models', simplified.length > 0 && html`<${ForModels} simplified=${simplified} />`],
  ]
  const messages = now?.messages ?? seen?.messages ?? []
  return html`
    <section class="card" aria-label=${shown(name)}>
      <h2>${shown(name)} ${state && html`<span class=${`state ${state}`}>${shown(state)}</span>`}</h2>
      <dl>${facts.flatMap(([title, value]) => (value ? [html`<dt>${title}</dt>`, html`<dd>${value}</dd>`] : []))}</dl>
      ${
        messages.length > 0 &&
        html`
        <details>
          <summary><h3>Probes, handshakes and other messages outside calls <span class="faint">${messages.length}</span></h3></summary>
          ${messages.map((message) => html`<${Raw} key=${message.seq} message=${message} time=${clock(message.at)} />`)}
        </details>
      `
      }
      ${
        stderr.length > 0 &&
        html`
        <h3>Last lines on stderr</h3>
        <pre tabindex="0">${stderr.map((line) => shown(line, 200)).join('\n')}</pre>
      `
      }
    </section>
  `
}

/** Number of recorded and of open sessions of a server. */
function openSessions(name: string): SessionCounts {
  const counts = { client: 0, server: 0 }
  for (const { server, side, state } of current.value.views.sessions)
    if (server === name && state === 'open') counts[side]++
  return counts
}

function sessionsIn({ client, server }: SessionCounts) {
  const count = (words: string, sessions: number) => html`<span class="number">${words}: ${sessions}</span>`
  return html`${count(BETWEEN.client, client)}, ${count(BETWEEN.server, server)}`
}

/** Events of the bridge itself, newest first. */
function Notes() {
  const { notes } = current.value.views
  if (notes.length === 0) return null
  return html`
    <section class="card" aria-label="Changes">
      <h2>Configuration, trust and missing events</h2>
      <dl>${notes
        .toReversed()
        .flatMap((note) => [
          html`<dt>${clock(note.at)}</dt>`,
          html`<dd>${note.bridge === undefined ? '' : `bridge ${shown(note.bridge)}, `}${NOTES[note.kind]}${note.server === undefined ? '' : ` ${shown(note.server)}`}: ${note.kind === 'lost' ? lossOf(note) : shown(note.text, 300)}</dd>`,
        ])}</dl>
    </section>
  `
}

const NOTES = { config: 'configuration', trust: 'trust in', lost: 'missing' } as const

/** The running programs of a server, and their memory. */
function programsIn(now: ServerNow | undefined): string | undefined {
  if (now?.programs === undefined) return undefined
  const bytes = now.memory === undefined ? '' : `, ${mebibytes(now.memory)}`
  return `${now.programs} running${bytes}`
}

/** The process of the bridge. */
function Bridge({ now }: { now: ProcessNow }) {
  const { version, pid, since, memory, programs } = now
  const facts: [string, unknown][] = [
    ['Version', shown(version)],
    ['Process', pid],
    ['Since', new Date(since).toLocaleString()],
    ['Memory', `${mebibytes(memory)}, without its programs`],
    ['Programs', `${programs} running`],
  ]
  return html`
    <section class="card" aria-label="Bridge">
      <h2>Bridge</h2>
      <dl>${facts.flatMap(([title, value]) => [html`<dt>${title}</dt>`, html`<dd>${value}</dd>`])}</dl>
    </section>
  `
}

/** The state of the circuit breaker of a server. */
function breakerOf({ pause }: ServerNow): string {
  if (!pause) return 'closed'
  const failures = pause.failures === undefined ? '' : ` after ${pause.failures} failures`
  return `open${failures}: calls fail at once for ${duration(pause.ms)}`
}

/** The listed tools of a server: their number and the first few in a line, and all with their descriptions if it is opened. */
function Tools({ names, descriptions = {} }: Pick<ServerNow, 'descriptions'> & { names: readonly string[] }) {
  const first = names.slice(0, TOOLS).map((name) => shown(name))
  const about = (name: string) => (Object.hasOwn(descriptions, name) ? descriptions[name] : undefined)
  return opened(
    `${names.length}: ${first.join(', ')}${names.length > TOOLS ? ', …' : ''}`,
    names.map((name) => [shown(name), shown(about(name), 200)]),
  )
}

/** A line, with names and what is said of each, if it is opened. */
function opened(summary: string, rows: readonly (readonly [name: string, about: string])[]) {
  return html`
    <details class="tools">
      <summary><span>${summary}</span></summary>
      <ul tabindex="0">${rows.map(([name, about]) => html`<li><b>${name}</b> <span class="faint">${about}</span></li>`)}</ul>
    </details>
  `
}

/** What portable schemas make of tools: how many, and each of them if it is opened. */
function ForModels({ simplified }: { simplified: readonly Simplified[] }) {
  const named = ({ server, tool }: Simplified) => shown(server === undefined ? tool : `${server}: ${tool}`)
  return opened(
    simplifiedTools(simplified),
    simplified.map((one) => [named(one), shown(simplifiedTool(one), MAX_SAID_OF_TOOL)]),
  )
}

export function Sessions() {
  const { views } = current.value
  const time = now()
  const rows = views.sessions
    .toReversed()
    .map((session) => [
      shown(session.id),
      BETWEEN[session.side],
      shown(session.server),
      shown(session.principal),
      shown(session.client),
      session.state,
      streamsOf(session, time),
      html`<span class="number">${duration((session.state === 'open' ? time : session.last) - session.at)}</span>`,
      ...usesOf(session, time),
    ])
  return table(
    'Sessions',
    [
      'Session',
      'Sides',
      'Server',
      'Principal',
      'Client',
      'State',
      'Open streams',
      'Age',
      'Idle',
      'Calls',
      'Failed',
      'Time in calls',
    ],
    rows,
    nothing('sessions'),
  )
}

/** A session's idle time, and its calls, failures and total time. A call names only the session of its client. */
function usesOf({ side, id, server, principal, state, last, calls, failed, ms }: SessionView, now: number): Cells {
  const link = (filter: string, words: string | number) =>
    html`<a href=${`#/calls?${new URLSearchParams({ server, filter })}`}>${words}</a>`
  if (side === 'server') {
    const those = principal === undefined ? '' : `principal:"${principal}"`
    return [NONE, link(those, principal === undefined ? 'all' : `all of ${shown(principal)}`), NONE, NONE]
  }
  return [
    state === 'open' ? html`<span class="number">${duration(Math.max(0, now - last))}</span>` : NONE,
    link(`session:${id}`, calls),
    failed > 0 ? link(`session:${id} ${FAILED}`, failed) : failed,
    calls === 0 ? NONE : duration(ms),
  ]
}

/** The open streams of unsolicited messages of a session, and their age. */
function streamsOf({ state, transport, streams, at }: SessionView, now: number): string {
  // The only stream of HTTP+SSE is the session.
  const open = transport === 'sse' && state === 'open' ? [{ since: at }] : streams
  if (open.length === 0) return NONE
  return `${open.length}, for ${open.map(({ since }) => duration(Math.max(0, now - since))).join(', ')}`
}

/** Says that there are no records of a kind, and whether the page may have missed some. */
function nothing(what: string): string {
  if (source.value.kind === 'file') return `No ${what} in this file.`
  const { lost } = current.value.views
  const since = cleared.value === undefined ? 'yet' : `since the memory was cleared at ${clock(cleared.value)}`
  return `No ${what} ${since}.${lost > 0 ? ` This page has missed ${lost} events.` : ''}`
}

export function Refused() {
  const rows = current.value.views.refused
    .toReversed()
    .map(({ at, status, why, said, path, from, server }) => [
      clock(at),
      status,
      said === undefined ? shown(why) : `${shown(why)}: ${shown(said, 300)}`,
      adviceOn({ fault: why }) && html`<${Advised} failure=${{ fault: why }} />`,
      shown(path),
      shown(from),
      shown(server),
    ])
  return table(
    'Refused requests',
    ['Time', 'Status', 'Why', 'Meaning', 'Path', 'From', 'Server'],
    rows,
    nothing('refused requests'),
  )
}
