/** SHA-256: of secrets that are compared, and of texts that become keys, names and principals. */
import { hash } from 'node:crypto'

/** What a caller without a name of its own is told apart by: issuer and subject, the user that a proxy names, or a token. */
const KINDS = { subject: 'j', forwarded: 'f', token: 't' } as const

/** As bytes, to compare secrets in the same time whatever they are. */
export function sha256(data: string | Uint8Array): Buffer {
  return hash('sha256', data, 'buffer')
}

/** As a key: 43 characters of base64url. */
export function digest(data: string | Uint8Array): string {
  return hash('sha256', data, 'base64url')
}

/** As a short name: the first 128 bits, in hexadecimal digits. */
export function shortDigest(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex').slice(0, 32)
}

/** The principal of a caller without a name of its own. */
export function digestedPrincipal(kind: keyof typeof KINDS, text: string): string {
  return `${KINDS[kind]}:${shortDigest(text)}`
}
