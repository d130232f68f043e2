/** The content of a link: the head of a request or of an answer, then its body, then an end mark. */
import type { Link } from './links.js'

/** The first byte of a part is its kind. */
export const HEAD = 0
export const BODY = 1
export const END = 2
/** What was started will not be completed. */
export const CUT = 3

/** The head of a request. */
export interface Question {
  method: string
  path: string
  headers: readonly string[]
}

/** The head of an answer. */
export interface Head {
  status: number
  headers: readonly string[]
}

const MAX_PIECE = 128 * 1024
/** Headers that concern a single connection. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'date',
])

/** Sends a part. Resolves when there is room for another. */
export function say(link: Link, kind: number, what: object | Uint8Array = new Uint8Array(0)): Promise<void> {
  const bytes = what instanceof Uint8Array ? what : Buffer.from(JSON.stringify(what))
  return link.send(Buffer.concat([Uint8Array.of(kind), bytes]))
}

/** The body in parts that fit into a packet. */
export function* piecesOf(bytes: Uint8Array | undefined): Generator<Uint8Array, void> {
  for (let at = 0; bytes && at < bytes.length; at += MAX_PIECE) yield bytes.subarray(at, at + MAX_PIECE)
}

/** Headers, as names and values in turn, without those of a single connection and without one more. */
export function carriedHeaders(headers: readonly string[], without?: string): string[] {
  return headers.filter((_text, at) => {
    const name = String(headers[at - (at % 2)]).toLowerCase()
    return !OF_CONNECTION.has(name) && name !== without
  })
}
