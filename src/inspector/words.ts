/** How the page writes values: times, sizes, sides and outcomes. */

import { printable } from '../base/texts/printable.js'
import type { Cancelled } from '../mcp/ports/outcome.js'
import { tokensOf } from './changed-values.js'
import { addressIn } from './markdown.js'
import type { Change, Side } from './recorder/events.js'
import { RULE_SENTENCES } from './rule-sentences.js'
import type { CallView } from './views.js'

const NAMES = 120
/** Before the names of members of `_meta` that the specification has. */
const META = 'io.modelcontextprotocol/'

/** A text from a client or server: one line, without characters that hide or reverse text. */
export function shown(text: string | undefined, max = NAMES): string {
  return text === undefined ? '' : printable(text, max)
}

/** A text of several lines, with its line breaks. */
export function shownLines(text: string, max = NAMES): string {
  const lines = text.slice(0, max).split(/\r\n|\r|\n/)
  return lines.map((line) => printable(line, max)).join('\n') + (text.length > max ? '…' : '')
}

/** A text of several lines, joined into one. */
export function shownInLine(text: string, max = NAMES): string {
  return shownLines(text, max).replaceAll('\n', ' ↵ ')
}

/** A count with its noun. The page is in English everywhere. */
export function counted(things: number): string {
  return things.toLocaleString('en')
}

/** The kind and number of lost events. */
export function lossOf({ text, count }: { text: string; count?: number | undefined }): string {
  return `${shown(text, 300)}${count === undefined ? '' : `: ${counted(count)}`}`
}

/** The subject of a change, as people write it: `params._meta.…/protocolVersion`, or the whole message. */
export function pathOf({ at }: Change): string {
  if (at === '') return 'the whole message'
  const names = tokensOf(at).map((token) => {
    if (token.startsWith(META)) return `.…/${token.slice(META.length)}`
    if (/^\d+$/.test(token)) return `[${token}]`
    return /^[\w$/-]+$/.test(token) ? `.${token}` : `[${JSON.stringify(token)}]`
  })
  return shown(names.join('').replace(/^\./, ''))
}

/** The row of the documentation that explains a change. */
export function ruleAddress(rule: string): string {
  return addressIn('development/translation.md', `#${encodeURIComponent(rule)}`)
}

/** The rule in a sentence, as Markdown with code only; undefined if there is none. */
export function ruleWords(rule: string): string | undefined {
  const sentences: Readonly<Record<string, string>> = RULE_SENTENCES
  return Object.hasOwn(sentences, rule) ? sentences[rule] : undefined
}

export function clock(at: number): string {
  const time = new Date(at)
  const two = (value: number) => String(value).padStart(2, '0')
  const tenth = Math.floor(time.getMilliseconds() / 100)
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}.${tenth}`
}

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export function duration(ms: number | undefined): string {
  if (ms === undefined) return ''
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < MINUTE) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < HOUR) return `${(ms / MINUTE).toFixed(1)} min`
  return ms < 2 * DAY ? `${(ms / HOUR).toFixed(1)} h` : `${Math.round(ms / DAY)} days`
}

export function size(bytes: number): string {
  return bytes < 1_024 ? `${bytes} B` : `${(bytes / 1_024).toFixed(1)} KiB`
}

const LETTERS = { modern: 'M', legacy: 'L' } as const

/** A side in a few characters: `M 07-28 http`. */
export function brief(side: Side | undefined): string {
  if (!side) return '–'
  const revision = shown(side.revision?.slice(5))
  return [LETTERS[side.era], revision, shown(side.transport)].filter(Boolean).join(' ')
}

/** The server of a call. Of a group, with the server that the group has sent it to, or how many. */
export function whereOf({ server, members: [only, ...others] }: Pick<CallView, 'server' | 'members'>): string {
  if (only === undefined) return shown(server)
  return `${shown(server)} › ${others.length === 0 ? shown(only) : `${others.length + 1} servers`}`
}

/** The same with all names. */
export function fullWhere({ server, members }: Pick<CallView, 'server' | 'members'>): string {
  return members.length === 0 ? shown(server) : `${shown(server)} › ${members.map((one) => shown(one)).join(', ')}`
}

/** The server's side of a call in a few characters, and in words. Several servers of a group have no common side. */
export function briefServer({ members, upstream }: Pick<CallView, 'members' | 'upstream'>): string {
  return members.length > 1 ? `${members.length} servers` : brief(upstream)
}

export function fullServer({ members, upstream }: Pick<CallView, 'members' | 'upstream'>): string {
  return members.length > 1 ? `${members.length} servers` : full(upstream)
}

/** A side in words. */
export function full(side: Side | undefined): string {
  if (!side) return 'none'
  const transport = { http: 'Streamable HTTP', sse: 'HTTP+SSE', stdio: 'stdio' } as const
  return [side.era, shown(side.revision), side.transport && transport[side.transport], shown(side.name)]
    .filter(Boolean)
    .join(', ')
}

/** The state of a call: a sign, because colour alone is not enough, and words. */
export function statusOf(call: CallView): { sign: string; words: string } {
  const { sign, words } = endOf(call)
  return { sign, words: call.away && call.status !== 'cancelled' ? `${words}, client away` : words }
}

/** Who cancelled a call, and how. */
export const CANCELLED = {
  notification: 'cancelled by the client',
  disconnected: 'cancelled by the client, which closed its connection',
  session: 'cancelled with the session of the client',
  bridge: 'cancelled by the bridge',
} as const satisfies Record<Cancelled, string>

/** How often something happened. */
function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`
}

/** The fault of calls that timed out. */
export const TIME_LIMIT = 'upstreamTimeout'

function endOf({ status, code, fault, cancelled, rounds }: CallView): { sign: string; words: string } {
  switch (status) {
    case 'open':
      return { sign: '…', words: rounds > 0 ? `open, asked ${times(rounds)}` : 'open' }
    case 'ok':
      return { sign: '✓', words: rounds > 0 ? `ok, asked ${times(rounds)}` : 'ok' }
    case 'asks':
      return { sign: '?', words: rounds > 1 ? `asks its client, round ${rounds}` : 'asks its client' }
    case 'tool_error':
      return { sign: '✕', words: 'tool error' }
    case 'error':
      return { sign: '✕', words: code === undefined ? 'error' : `error ${code}` }
    case 'cancelled':
      return { sign: '–', words: cancelled === undefined ? 'cancelled' : CANCELLED[cancelled] }
    case 'fault':
      return { sign: '✕', words: fault === TIME_LIMIT ? 'fault, timed out' : 'fault' }
  }
}
