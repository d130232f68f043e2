/** The state of a bridge in words, for `mcp-bridge status`: a line about the bridge, and a table of its servers and groups. */
import { mebibytes } from '../base/texts/mebibytes.js'
import { printable } from '../base/texts/printable.js'
import type { AskedBridge, Reported, ReportedAddress } from './status-answer.js'

/** Most characters of a name, and of a reason. */
const NAME = 60
const REASON = 1_000
const NONE = '–'

/** `now` in milliseconds since 1970. */
export function statusInWords({ address, reported, error, next }: AskedBridge, now: number): string {
  const lines = reported
    ? [`${address}: ${aboutBridge(reported, now)}`, ...aboutServers(reported, now), ...aboutOthers(reported)]
    : [`${address}: ${error}`]
  return `${[...lines, ...(next === undefined ? [] : [`  ${next}`])].join('\n')}\n`
}

function aboutBridge({ status, version, pid, since, memory, programs, workers }: Reported, now: number): string {
  const started = since === undefined ? Number.NaN : Date.parse(since)
  return [
    printable(status, NAME),
    ...(version === undefined ? [] : [`mcp-bridge ${printable(version, NAME)}`]),
    ...(pid === undefined ? [] : [`process ${pid}`]),
    ...(workers === undefined ? [] : [`${workers} workers`]),
    ...(Number.isNaN(started)
      ? []
      : [`since ${new Date(started).toISOString().replace(/\.\d+Z$/, 'Z')} (${spanOf(now - started)})`]),
    ...(memory === undefined ? [] : [mebibytes(memory)]),
    ...(programs === undefined ? [] : [programs === 1 ? '1 program' : `${programs} programs`]),
  ].join(', ')
}

type Row = readonly [
  name: string,
  state: string,
  era: string,
  sessions: string,
  calls: string,
  programs: string,
  memory: string,
]

/** A table of servers and groups; under each that is not available, the reason and what to do. */
function aboutServers({ servers = {}, groups = {} }: Reported, now: number): string[] {
  const number = (value: number | undefined) => (value === undefined ? NONE : String(value))
  const ofServers = Object.entries(servers).map(([name, { state, era, revision, why, next, ...of }]) => ({
    row: [
      printable(name, NAME),
      printable(state, NAME),
      era === undefined ? NONE : printable([era, revision].filter(Boolean).join(' '), NAME),
      number(of.sessions),
      number(of.calls),
      number(of.programs),
      of.memory === undefined ? NONE : mebibytes(of.memory),
    ] satisfies Row,
    notes: [
      ...(of.addresses ?? []).map(addressInWords),
      ...(state === 'down' ? [why, next] : [lastErrorIn(of.lastError, now)]),
    ],
  }))
  const ofGroups = Object.entries(groups).map(([name, { state, sessions, calls, missing = {} }]) => ({
    row: [
      `group ${printable(name, NAME)}`,
      printable(state, NAME),
      NONE,
      number(sessions),
      number(calls),
      NONE,
      NONE,
    ] satisfies Row,
    // Servers that are down have their reasons above.
    notes: Object.entries(missing).map(([member, why]) =>
      servers[member]?.state === 'down' ? `without ${member}` : `without ${member}: ${why}`,
    ),
  }))
  const all = [...ofServers, ...ofGroups]
  if (all.length === 0) return []
  const head: Row = ['server', 'state', 'era', 'sessions', 'calls', 'programs', 'memory']
  const widths = head.map((title, i) => Math.max(title.length, ...all.map(({ row }) => row[i]?.length ?? 0)))
  const line = (row: Row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd()
  return [
    line(head),
    ...all.flatMap(({ row, notes }) => [
      line(row),
      ...notes.flatMap((note) => (note === undefined ? [] : [`    ${printable(note, REASON)}`])),
    ]),
  ]
}

/** One of several addresses of a server. */
function addressInWords({
  address,
  state,
  era,
  revision,
  why,
  sessions = 0,
  calls = 0,
  leaves,
}: ReportedAddress): string {
  const what = leaves ? 'has left, and goes on with what it has' : [state, era, revision].filter(Boolean).join(' ')
  return `${address}: ${what}, ${sessions} sessions, ${calls} calls${state === 'down' && why !== undefined ? `: ${why}` : ''}`
}

/** What the bridge depends on, besides its servers. */
function aboutOthers({ redis, issuers = {} }: Reported): string[] {
  return [
    ...(redis === undefined ? [] : [`  Redis: ${printable(redis, NAME)}`]),
    ...Object.entries(issuers).map(
      ([name, { state = NONE, why }]) =>
        `  keys of ${printable(name, NAME)}: ${printable(state, NAME)}${why === undefined ? '' : `: ${printable(why, REASON)}`}`,
    ),
  ]
}

function lastErrorIn(error: { at: string; why: string } | undefined, now: number): string | undefined {
  if (!error || Number.isNaN(Date.parse(error.at))) return undefined
  return `last error ${spanOf(now - Date.parse(error.at))} ago: ${error.why}`
}

/** A span of milliseconds in its largest whole unit. */
function spanOf(ms: number): string {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return `${Math.max(0, Math.floor(ms / 1_000))} s`
  if (minutes < 60) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60 / 24)} days`
}
