/** Reads received HTTP headers, in the form that Node.js and undici give them: by name in lower case. */

type ReceivedHeaders = Readonly<Record<string, string | readonly string[] | undefined>>

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
