/** Reads received HTTP headers, in the form that Node.js and undici give them: by name in lower case. */

type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

/** Headers that concern one connection, not the message (RFC 9110, 7.6.1). */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
])

/** Whether a name in lower case is that of a header that always concerns one connection. */
export function isOfConnection(name: string): boolean {
  return OF_CONNECTION.has(name)
}

/**
 * The names of the headers that concern one connection, as a test for names in lower case: the known ones, and those that
 * `Connection` names. `Content-Type` cannot be one of them.
 */
export function ofConnection(connection: string | readonly string[] = []): (name: string) => boolean {
  const named = connection.length === 0 ? [] : namesIn([connection].flat().join(','))
  return (name) => OF_CONNECTION.has(name) || named.includes(name)
}

function namesIn(connection: string): string[] {
  const names = connection.split(',').map((name) => name.trim().toLowerCase())
  return names.filter((name) => name !== 'content-type')
}

/** The first value of a header. */
export function headerOf(headers: ReceivedHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value : value?.[0]
}

/** The media type of a message. */
export function mediaType(headers: ReceivedHeaders): string {
  return mediaTypeOf(headerOf(headers, 'content-type'))
}

/** The media type in a `Content-Type`: in lower case, without parameters; empty if there is none. */
export function mediaTypeOf(contentType = ''): string {
  const [type = ''] = contentType.split(';', 1)
  return type.trim().toLowerCase()
}
