/** The tables beside the calls: servers, sessions, and requests that became no call. */
import { html } from 'htm/preact'
import { useEffect } from 'preact/hooks'
import type { ServerNow, ServerView } from '../inspect/views.js'
import { clock, duration, shown } from '../inspect/words.js'
import { lookAtServers } from './feed.js'
import { current, serversNow, source } from './state.js'

/** Milliseconds between two looks at the servers. */
const LOOK = 2_000

type Cells = readonly (string | number | undefined | ReturnType<typeof html>)[]

function table(caption: string, titles: readonly string[], rows: readonly Cells[], empty: string) {
  return html`
    <div class="scroller" tabindex="0" role="region" aria-label=${caption}>
      <table>
        <caption class="hidden">${caption}</caption>
        <thead><tr>${titles.map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
        <tbody>${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
      </table>
      ${rows.length === 0 && html`<p class="empty">${empty}</p>`}
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
  const rows = names.map((name) => serverRow(name, now.get(name), servers.get(name)))
  const titles = [
    'Server',
    'State',
    'Era',
    'Revision',
    'How it was found out',
    'Process',
    'Starts',
    'Calls',
    'Failed',
    'Now',
    'stderr',
  ]
  return table('Servers', titles, rows, 'No server was seen yet.')
}

function serverRow(name: string, now: ServerNow | undefined, seen: ServerView | undefined): Cells {
  const found =
    seen?.at === undefined ? '' : ` at ${clock(seen.at)}${seen.ms === undefined ? '' : `, in ${duration(seen.ms)}`}`
  const why = now?.why ?? seen?.why
  const stderr = seen?.stderr ?? []
  return [
    shown(name),
    now?.state ?? '',
    now?.era ?? seen?.era,
    shown(now?.revision ?? seen?.revision),
    why === undefined ? '' : `${shown(why)}${found}`,
    seen?.pid,
    seen?.starts,
    seen?.calls,
    seen?.failed,
    now && `${now.calls} calls, ${now.parked} parked`,
    stderr.length === 0
      ? ''
      : html`<details><summary>${stderr.length} lines</summary><pre>${stderr.map((line) => shown(line, 200)).join('\n')}</pre></details>`,
  ]
}

export function Sessions() {
  const rows = [...current.value.views.sessions.values()].map((session) => [
    shown(session.id),
    session.side === 'client' ? 'client with bridge' : 'bridge with server',
    shown(session.server),
    shown(session.principal),
    session.state,
    clock(session.at),
    duration(session.last - session.at),
    html`<a href=${`#/calls?filter=${encodeURIComponent(`session:${session.id}`)}`}>${session.calls}</a>`,
  ])
  return table(
    'Sessions',
    ['Session', 'Between', 'Server', 'Principal', 'State', 'Since', 'Used for', 'Calls'],
    rows,
    'No session was seen yet.',
  )
}

export function Refused() {
  const rows = current.value.views.refused
    .toReversed()
    .map(({ at, status, why, path, from, server }) => [
      clock(at),
      status,
      shown(why),
      shown(path),
      shown(from),
      shown(server),
    ])
  return table(
    'Refused requests',
    ['Time', 'Status', 'Why', 'Path', 'From', 'Server'],
    rows,
    'Nothing was refused yet.',
  )
}
