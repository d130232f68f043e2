/** SHA-256 digests: to compare secrets, and to make keys, names and principals from texts. */
import { hash } from 'node:crypto'

/** What identifies a caller without a configured name: issuer and subject, the user that a proxy names, or a token. */
const KINDS = { subject: 'j', forwarded: 'f', token: 't' } as const

/** Comes before the bytes of a text with half of a surrogate pair. It is in no UTF-8. */
const BROKEN = Buffer.from([0xff])

/** As bytes, to compare secrets in constant time. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', distinct(data), 'buffer')
}

/** As a key: 43 characters of base64url. */
export function digest(data: string | Uint8Array): string {
  return hash('sha256', distinct(data), 'base64url')
}

/** As a short name: the first 128 bits, in hexadecimal digits. */
export function shortDigest(data: string | Uint8Array): string {
  return hash('sha256', distinct(data), 'hex').slice(0, 32)
}

/** The principal of a caller without a configured name. */
export function digestedPrincipal(kind: keyof typeof KINDS, text: string): string {
  return `${KINDS[kind]}:${shortDigest(text)}`
}

/** What differs for all texts that differ: in UTF-8, all halves of surrogate pairs are the same character. */
export function distinct(data: string | Uint8Array): string | Uint8Array {
  return typeof data !== 'string' || data.isWellFormed() ? data : Buffer.concat([BROKEN, Buffer.from(data, 'utf16le')])
}
