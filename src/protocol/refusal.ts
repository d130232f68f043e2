/** An HTTP answer of a server that is no JSON-RPC answer: what it says, and whether the request may have been acted on. */
import { printable } from '../printable.js'

export interface Refusal {
  /** 300 or more. */
  status: number
  /** The body, cut off where it gets long. */
  body: string
  contentType: string | undefined
  /** Seconds, from `Retry-After`. */
  retryAfter: number | undefined
  /** `WWW-Authenticate`. */
  challenge?: string | undefined
  /** `Location`. */
  location?: string | undefined
}

/** A refusal as an HTTP answer says it. `header` gives the first value of a header; `body` may be cut off. */
export function refusalOf(status: number, header: (name: string) => string | undefined, body: string): Refusal {
  return {
    status,
    body,
    contentType: header('content-type'),
    retryAfter: secondsIn(header('retry-after')),
    challenge: header('www-authenticate'),
    location: header('location'),
  }
}

/** `Retry-After` in seconds, which may be written as a time (RFC 9110, section 10.2.3). */
function secondsIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^[0-9]{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds))
}

/**
 * Statuses with which HTTP refuses a request before anything is done for it (RFC 9110, section 15.5; RFC 6585). The other
 * 4xx can come from the work itself: 408 and 409, say, or 422.
 */
const NOT_ACTED_ON: ReadonlySet<number> = new Set([
  400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431,
])
const SAID = 200

/**
 * Whether the server certainly has not acted on the request. A redirect says that it has not, and 503 only with
 * `Retry-After`: without it, gateways say 503 of connections that broke after the request had been sent.
 */
export function notActedOn({ status, retryAfter }: Refusal): boolean {
  if (status === 503) return retryAfter !== undefined
  return status < 400 || NOT_ACTED_ON.has(status)
}

/** What the server says with its refusal, for people: one line of at most 200 characters. Undefined where it says nothing. */
export function saidIn({ body }: Pick<Refusal, 'body'>): string | undefined {
  const start = body
    .slice(0, 10 * SAID)
    .replace(/\s+/g, ' ')
    .trim()
  return start === '' ? undefined : printable(start, SAID)
}

/** The same, as far as it is meant for callers. Pages of HTML are about the machines that made them. */
export function saidToCallers(refusal: Refusal): string | undefined {
  const type = refusal.contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const plain = type === 'text/plain' || type === 'application/json' || type.endsWith('+json')
  return plain ? saidIn(refusal) : undefined
}
