/** Selects the headers that the relay passes on: not those of a connection, and not those for the bridge itself. */
import { EVENT_HEADERS } from '../../rpc/sse.js'
import { mediaType, ofConnection } from '../../texts/headers.js'

/** Headers by lower-cased name. */
export type RelayedHeaders = Record<string, string | string[] | undefined>

/** Headers of a request that concern the bridge, beside those of the connection; the pattern has prefixes of more names. */
const NOT_SENT_ON: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'origin',
  'cookie',
  'forwarded',
  'authorization',
])
const NOT_SENT_ON_LIKE = /^(?:proxy-|x-forwarded-|sec-)/
const OF_SESSIONS: ReadonlySet<string> = new Set(['mcp-session-id', 'last-event-id'])
/** Headers of an answer that concern the origin of the server, beside those of the connection. */
const NOT_SENT_BACK: ReadonlySet<string> = new Set(['proxy-authenticate', 'set-cookie', 'alt-svc'])

/** The headers of a request that are sent to the server. Session headers only if the request belongs to a session. */
export function sentOn(headers: RelayedHeaders, inSession: boolean): RelayedHeaders {
  const isOfConnection = ofConnection(headers['connection'])
  return without(
    headers,
    (name) =>
      isOfConnection(name) ||
      NOT_SENT_ON.has(name) ||
      NOT_SENT_ON_LIKE.test(name) ||
      (!inSession && OF_SESSIONS.has(name)),
  )
}

/** The headers of a client's request that go on in a session of the server itself. The server's own id of it is added later. */
export function carriedIn(headers: RelayedHeaders): Record<string, string> {
  // Node.js sends a header that has several values as several ones.
  return sentOn(headers, false) as Record<string, string>
}

/** The headers of an answer that are sent to the client. */
export function sentBack(headers: RelayedHeaders): RelayedHeaders {
  const isOfConnection = ofConnection(headers['connection'])
  const sent = without(headers, (name) => isOfConnection(name) || NOT_SENT_BACK.has(name))
  if (isEvents(headers)) {
    // Events may be added, so the length changes.
    delete sent['content-length']
    Object.assign(sent, EVENT_HEADERS)
  }
  return sent
}

function without(headers: RelayedHeaders, isLeftOut: (name: string) => boolean): RelayedHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isLeftOut(name)))
}

/** Whether the content is an event stream. */
export function isEvents(headers: RelayedHeaders): boolean {
  return mediaType(headers) === 'text/event-stream'
}
