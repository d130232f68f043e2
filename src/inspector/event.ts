/** Parses an event from an exported file, or from the bridge that `tail` follows. Untrusted: all values are checked. */

import { isRecord, recordIn } from './record.js'
import type { RecordedEvent } from './recorder/events.js'
import { CANCELLED } from './words.js'

type Check = (value: unknown) => boolean
type Members = Readonly<Record<string, Check>>

/** Most characters of the text of a message, and of any other text. */
const MAX_EVENT_TEXT = 64 * 1024
const MAX_OTHER = 16 * 1024
/** Most changes of a message; the inspector records fewer. */
const MAX_EVENT_CHANGES = 1_000

const text: Check = (value) => typeof value === 'string' && value.length <= MAX_OTHER
const callId: Check = (value) => typeof value === 'string' && /^c\d{1,15}$/.test(value)
const rule: Check = (value) => typeof value === 'string' && /^[\w-]{1,100}$/.test(value)
const message: Check = (value) => typeof value === 'string' && value.length <= MAX_EVENT_TEXT
const number: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const count: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const textOrNumber: Check = (value) => text(value) || number(value)
const oneOf =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value)
const listOf =
  (each: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length <= MAX_EVENT_CHANGES && value.every(each)
const mapOf =
  (each: Check): Check =>
  (value) =>
    isRecord(value) && Object.values(value).every(each)
/** An object with all of these members; any other members are texts or numbers. */
const object =
  (required: Members, optional: Members = {}): Check =>
  (value) =>
    isRecord(value) &&
    Object.entries(required).every(([name, check]) => check(value[name])) &&
    Object.entries(value).every(([name, one]) => memberOf({ ...required, ...optional }, name)(one))

const side = object({ era: oneOf('modern', 'legacy') }, { revision: text, transport: text, name: text })
const change = object({ at: text, op: oneOf('add', 'remove', 'replace'), rule })
const outcomes = ['ok', 'tool_error', 'asks', 'error', 'cancelled', 'fault']

/** The members of all events, and those of each kind. */
const EVENT: Members = { v: oneOf(1), seq: (value) => count(value) && value !== 0, at: number }
const KINDS: Readonly<Record<string, Members>> = {
  call: { what: text, principal: text, client: side, method: text },
  message: {
    hop: oneOf('client', 'server'),
    dir: oneOf('in', 'out'),
    form: oneOf('request', 'result', 'error', 'notification'),
    bytes: count,
  },
  question: { what: text },
  verdict: { era: text, why: text },
  session: { side: oneOf('client', 'server'), what: text },
  stream: { what: text, stream: text },
  child: { what: text },
  refused: { status: number, why: text },
  config: { text },
  trust: { text },
  lost: { text },
}
/** Optional members of an event. */
const OPTIONAL: Members = {
  call: callId,
  continues: callId,
  id: textOrNumber,
  upstream: side,
  outcome: oneOf(...outcomes),
  cancelled: oneOf(...Object.keys(CANCELLED)),
  http: object({ headers: mapOf(text) }, { status: number }),
  changes: listOf(change),
  payload: object({ text: message, cut: count, hidden: count }),
  ...Object.fromEntries(['ms', 'upstreamMs', 'code', 'status'].map((name) => [name, number])),
  ...Object.fromEntries(['bytes', 'pid', 'running', 'count', 'round', 'more', 'of'].map((name) => [name, count])),
}
const CHECKS = new Map(
  Object.entries(KINDS).map(([kind, members]) => [kind, object({ ...EVENT, ...members }, OPTIONAL)]),
)

/** The event in a line; undefined if it is invalid. */
export function eventIn(line: string): RecordedEvent | undefined {
  const seen = recordIn(line)
  const check = seen && CHECKS.get(seen['kind'] as string)
  return check?.(seen) ? (seen as unknown as RecordedEvent) : undefined
}

/** The check of a member. Newer versions may have further members: those are accepted if they are texts or numbers. */
function memberOf(members: Members, name: string): Check {
  return Object.hasOwn(members, name) ? (members[name] as Check) : textOrNumber
}
