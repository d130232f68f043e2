/** Details of a failed call: the text of its error, and the lines of its server on stderr. */
import type { CallView } from './call-views.js'
import { textAt } from './changed-values.js'
import { isMessage } from './recorder/events.js'
import type { ServerView } from './server-views.js'

/** Path of the message in the answer, by the outcome of the call. */
const PLACES: Readonly<Partial<Record<CallView['status'], string>>> = {
  error: '/error/message',
  fault: '/error/message',
  tool_error: '/result/content/0/text',
}

/** The message of the error or of the failed tool, if the text of the answer is stored. */
export function errorMessage({ status, events }: Pick<CallView, 'status' | 'events'>): string | undefined {
  const at = PLACES[status]
  const answer = events.findLast((seen) => isMessage(seen, 'client', 'out'))
  return at === undefined || !answer?.payload ? undefined : textAt(answer.payload.text, at)
}

/** A line on stderr. */
interface StderrLine {
  /** Milliseconds since the start of the call; negative before it. */
  after: number
  line: string
}

/** Texts of a failure. The reason of a fault says how a program has exited. */
export interface CallFailure {
  texts: readonly string[]
  lines: readonly StderrLine[]
}

const FAILED: ReadonlySet<CallView['status']> = new Set(['error', 'fault', 'tool_error'])
/** Most lines. */
const MAX_LINES = 6
/** Stderr may be read after the call has ended, by this many milliseconds. */
const LATE = 1_000

/** Undefined if the call has not failed. */
export function failureOf(
  call: Pick<CallView, 'at' | 'ms' | 'status' | 'events' | 'server' | 'members' | 'why' | 'fault'>,
  servers: ReadonlyMap<string, ServerView>,
): CallFailure | undefined {
  const { at, ms = 0, status, why, fault = '' } = call
  if (!FAILED.has(status)) return undefined
  const said = errorMessage(call)
  const isWhyNew = why !== undefined && said?.includes(why) !== true
  const texts = [...(said === undefined ? [] : [said]), ...(isWhyNew ? [why] : [])]
  const until = at + ms + LATE
  // Earlier lines may explain why a server is unavailable, but not why it answers with an error.
  const from = fault.startsWith('upstream') ? Number.NEGATIVE_INFINITY : at
  const lines = [call.server, ...call.members]
    .flatMap((name) => servers.get(name) ?? [])
    .flatMap(({ stderr, stderrAt }) => stderr.map((line, i) => ({ line, at: stderrAt[i] ?? 0 })))
    .filter((written) => written.at >= from && written.at <= until)
    .toSorted((one, other) => one.at - other.at)
    .slice(-MAX_LINES)
  return { texts, lines: lines.map((written) => ({ after: written.at - at, line: written.line })) }
}
