/** Which headers cross the relay: those of the message do, those of a connection or for the bridge do not. */

export type Headers = Record<string, string | string[] | undefined>

/** Headers of a request that are about this connection, or that are for us. Names beginning like the second kind, too. */
const NOT_SENT_ON = [
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
/** Headers of an answer that are about the other connection, or about another origin. */
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

/** What goes on of a request's headers. Those of a session do only where the request belongs to one. */
export function sentOn(headers: Headers, inSession: boolean): Headers {
  const sent = { ...headers }
  for (const name of [...NOT_SENT_ON, ...(inSession ? [] : OF_SESSIONS)]) delete sent[name]
  for (const name of Object.keys(sent)) if (NOT_SENT_ON_LIKE.test(name)) delete sent[name]
  return sent
}

/** What goes back of an answer's headers. */
export function sentBack(headers: Headers, hasSessions: boolean): Headers {
  const sent = { ...headers }
  for (const name of [...NOT_SENT_BACK, ...(hasSessions ? [] : OF_SESSIONS)]) delete sent[name]
  if (isEvents(headers)) Object.assign(sent, { 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  return sent
}

/** The first value of a header. */
export function headerOf(headers: Headers, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** The media type, without its parameters; empty where the answer has none. */
export function mediaType(headers: Headers): string {
  const [type = ''] = (headerOf(headers, 'content-type') ?? '').split(';', 1)
  return type.trim().toLowerCase()
}

export function isEvents(headers: Headers): boolean {
  return mediaType(headers) === 'text/event-stream'
}
