/**
 * Reads HTTP responses of a server that are not JSON-RPC answers: what they say, their `Retry-After`, and whether the
 * server may have acted on the request.
 */
import { mediaTypeOf } from '../../base/texts/headers.js'
import { printable } from '../../base/texts/printable.js'

/** An HTTP response that is not an answer. */
export interface HttpRefusal {
  /** 300 or more. */
  status: number
  /** The body, cut off if it is long. */
  body: string
  /** The body without what was sent as a credential, for people; by default the body. */
  text?: string | undefined
  contentType: string | undefined
  /** Seconds, from `Retry-After`. */
  retryAfter: number | undefined
  /** `WWW-Authenticate`. */
  challenge?: string | undefined
  /** `Location`. */
  location?: string | undefined
  /** All headers, for a client of the same era. */
  headers?: Readonly<Record<string, string | string[] | undefined>>
}

/** Reads an HTTP response as a refusal. `header` returns the first value of a header; `body` may be cut off. */
export function refusalOf(status: number, header: (name: string) => string | undefined, body: string): HttpRefusal {
  return {
    status,
    // It is of a proxy, and may repeat the password that the proxy was sent.
    body: status === 407 ? '' : body,
    contentType: header('content-type'),
    retryAfter: secondsIn(header('retry-after')),
    challenge: header('www-authenticate'),
    location: header('location'),
  }
}

/** `Retry-After` in seconds; the header may also be a date (RFC 9110, section 10.2.3). */
function secondsIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const seconds = /^[0-9]{1,9}$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds))
}

/**
 * Statuses that refuse a request before anything is done for it (RFC 9110, section 15.5; RFC 6585). Other 4xx, such as
 * 408, 409 or 422, can also be the result of work.
 */
const NOT_ACTED_ON: ReadonlySet<number> = new Set([
  400, 401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 417, 421, 425, 426, 428, 429, 431,
])
const SAID = 200

/**
 * Whether the server certainly has not acted on the request. True for redirects, and for 503 only with `Retry-After`:
 * without it, a 503 may come from a gateway whose connection broke after the request was sent.
 */
export function notActedOn({ status, retryAfter }: Pick<HttpRefusal, 'status' | 'retryAfter'>): boolean {
  if (status === 503) return retryAfter !== undefined
  return status < 400 || NOT_ACTED_ON.has(status)
}

/** The server's own text in a refusal, for people: one line of at most 200 characters. Undefined if there is none. */
export function saidIn({ body, text = body }: Pick<HttpRefusal, 'body' | 'text'>): string | undefined {
  const start = explanationIn(text.slice(0, 10 * SAID))
    .replace(/\s+/g, ' ')
    .trim()
  return start === '' ? undefined : printable(start, SAID)
}

/** The message in a JSON-RPC error, as servers explain a refusal; otherwise the text itself. */
function explanationIn(text: string): string {
  if (!text.trimStart().startsWith('{')) return text
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } | null }
    const message = error?.message
    return typeof message === 'string' && message !== '' ? message : text
  } catch {
    return text
  }
}

/** As `saidIn`, but only text that callers may see: not HTML pages, because they describe the machines that wrote them. */
export function saidToCallers(refusal: HttpRefusal): string | undefined {
  const type = mediaTypeOf(refusal.contentType)
  const plain = type === 'text/plain' || type === 'application/json' || type.endsWith('+json')
  return plain ? saidIn(refusal) : undefined
}
