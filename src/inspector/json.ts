/**
 * Writes the JSON of events. Shared parts are written once. An event has the members that JSON.stringify writes, in
 * another order.
 */
import type { CallKind } from './call-kinds.js'
import type { MessageKind } from './message-kinds.js'

/** The texts of three digits of the numbers below 1,000. */
const DIGITS = Array.from({ length: 1_000 }, (_, number) => String(number).padStart(3, '0'))
let lastSecond = -1
let lastSecondText = ''

/** The shared parts of a message. */
export function messageKindJson(kind: MessageKind): string {
  if (kind.json !== undefined) return kind.json
  const { bridge, hop, dir, form, method, server, session, head, changed } = kind
  const changes = changed && { changes: changed.all, ...(changed.more > 0 && { more: changed.more }) }
  const json = membersJson({
    kind: 'message',
    bridge,
    server,
    session,
    hop,
    dir,
    form,
    method,
    http: head?.shown,
    ...changes,
  })
  if (kind.isRemembered) kind.json = json
  return json
}

/** The shared parts of the start or the end of a call. */
export function callKindJson(kind: CallKind): string {
  if (kind.json !== undefined) return kind.json
  const json = membersJson({ kind: 'call', ...kind, weight: undefined, json: undefined, isRemembered: undefined })
  if (kind.isRemembered) kind.json = json
  return json
}

/** The members of an object, with a comma before each. It has at least one. */
export function membersJson(object: object): string {
  return `,${JSON.stringify(object).slice(1, -1)}`
}

/** A time in milliseconds since 1970. Formatting numbers of this length as a whole is slow. */
export function timeJson(milliseconds: number): string {
  const micros = Math.round(milliseconds * 1_000)
  const second = Math.floor(micros / 1e6)
  if (second <= 0) return String(micros / 1_000)
  if (second !== lastSecond) {
    lastSecond = second
    lastSecondText = String(second)
  }
  const rest = micros - second * 1e6
  return `${lastSecondText}${DIGITS[Math.floor(rest / 1_000)]}.${DIGITS[rest % 1_000]}`
}

/** A member with milliseconds; nothing for NaN. */
export function durationJson(name: string, milliseconds: number): string {
  if (Number.isNaN(milliseconds)) return ''
  const micros = Math.round(milliseconds * 1_000)
  return `,"${name}":${Math.floor(micros / 1_000)}.${DIGITS[micros % 1_000]}`
}
