/** Selects the headers that the relay passes on: not those of a connection, and not those for the bridge itself. */
import { mediaType } from '../../texts/headers.js'

/** Headers by lower-cased name. */
export type RelayedHeaders = Record<string, string | string[] | undefined>

/** Headers of a request that concern this connection or the bridge; the pattern has prefixes of more names. */
const NOT_SENT_ON = [
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'origin',
  'cookie',
  'keep-alive',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'forwarded',
  'authorization',
]
const NOT_SENT_ON_LIKE = /^(?:proxy-|x-forwarded-|sec-)/
const OF_SESSIONS = ['mcp-session-id', 'last-event-id']
/** Headers of an answer that concern the connection to the server, or its origin. */
const NOT_SENT_BACK = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'set-cookie',
  'alt-svc',
]

/**
 * The headers of a request that are sent to the server: not those that `Connection` names (RFC 9110, 7.6.1), and session
 * headers only if the request belongs to a session.
 */
export function sentOn(headers: RelayedHeaders, inSession: boolean): RelayedHeaders {
  const sent = { ...headers }
  dropNamed(sent, headers)
  for (const name of [...NOT_SENT_ON, ...(inSession ? [] : OF_SESSIONS)]) delete sent[name]
  for (const name of Object.keys(sent)) if (NOT_SENT_ON_LIKE.test(name)) delete sent[name]
  return sent
}

/** The headers of an answer that are sent to the client. Session headers only if the era has sessions. */
export function sentBack(headers: RelayedHeaders, hasSessions: boolean): RelayedHeaders {
  const sent = { ...headers }
  dropNamed(sent, headers)
  for (const name of [...NOT_SENT_BACK, ...(hasSessions ? [] : OF_SESSIONS)]) delete sent[name]
  if (isEvents(headers)) {
    // Fields are removed and events added, so the length changes.
    delete sent['content-length']
    Object.assign(sent, { 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  }
  return sent
}

/** Removes the headers that `Connection` names (RFC 9110, 7.6.1), except `Content-Type`. */
function dropNamed(sent: RelayedHeaders, { connection = [] }: RelayedHeaders): void {
  for (const named of [connection].flat().join(',').split(',')) {
    const name = named.trim().toLowerCase()
    if (name !== 'content-type') delete sent[name]
  }
}

/** Whether the content is an event stream. */
export function isEvents(headers: RelayedHeaders): boolean {
  return mediaType(headers) === 'text/event-stream'
}
