/** What the corpus is made of: texts of messages for every front, and whole requests for those over HTTP. */

export type Era = 'modern' | 'legacy'

/**
 * What has to become of an input. `refused`: it is a mistake that has to be told, and nothing of it may run. `any`: whatever
 * the bridge or the server thinks of it, as long as it is an answer.
 */
export type Want = 'refused' | 'any'

/** The text of one message, which any front can be sent. */
export interface Text {
  /** The kind of mistake, and which of them. */
  kind: string
  name: string
  body: Buffer
  want: Want
  /** What the headers of a modern request say of it; that of a call of `echo` unless given. */
  method?: string
  tool?: string
}

/** A whole request over HTTP. `{…}` in it stands for what only a run knows, as do the digits of `KEY`. */
export interface Request {
  kind: string
  name: string
  bytes: Buffer
  want: Want
  /** It is no whole request, or no request at all: to end the connection is an answer. */
  broken?: boolean
}

/** Stands in requests for a key that every run has of its own, of the same length. */
export const KEY = 'key-00000000'

export const text = (
  kind: string,
  name: string,
  body: string | Uint8Array,
  more: Partial<Pick<Text, 'want' | 'method' | 'tool'>> = {},
): Text => ({ kind, name, body: Buffer.from(body), want: 'any', ...more })

/** A request from its lines and its body, with the right length. */
export function requestOf(lines: readonly string[], body: string | Uint8Array): Buffer {
  const bytes = Buffer.from(body)
  return Buffer.concat([Buffer.from(`${[...lines, `content-length: ${bytes.length}`].join('\r\n')}\r\n\r\n`), bytes])
}
