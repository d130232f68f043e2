/** Headers in the forms that Node.js gives those of a request, made of names and values in turn (Node.js, http, `message.headers`). */
import type { IncomingHttpHeaders } from 'node:http'

/** Of these, only the first counts. */
const ONCE: ReadonlySet<string> = new Set([
  'age',
  'authorization',
  'content-length',
  'content-type',
  'etag',
  'expires',
  'from',
  'host',
  'if-modified-since',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'referer',
  'retry-after',
  'server',
  'user-agent',
])

/** By name in lower case, with repeated ones in one text. */
export function joinedHeaders(raw: readonly string[]): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {}
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    const before = headers[name]
    if (name === 'set-cookie') headers[name] = [...(before ?? []), value]
    // What every object has is no header.
    else if (typeof before !== 'string') headers[name] = value
    else if (!ONCE.has(name)) headers[name] = `${before}${name === 'cookie' ? '; ' : ', '}${value}`
  }
  return headers
}

/** By name in lower case, with all values. */
export function distinctHeaders(raw: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = Object.create(null)
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    headers[name] ??= []
    headers[name].push(raw[i + 1] as string)
  }
  return headers
}
