/** The keys of publishers: Ed25519 and P-256 only. */
import { createPrivateKey, createPublicKey, type JsonWebKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { calculateJwkThumbprint } from 'jose'
import * as z from 'zod'

const coordinate = z.string().regex(/^[\w-]{43}$/)

/** A public key as a JWK (RFC 7517), without further members. */
export const publicJwk = z.discriminatedUnion('kty', [
  z.strictObject({ kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: coordinate }),
  z.strictObject({ kty: z.literal('EC'), crv: z.literal('P-256'), x: coordinate, y: coordinate }),
])

export type PublicJwk = z.infer<typeof publicJwk>
export type Algorithm = 'EdDSA' | 'ES256'

/** A publisher's public key. */
export interface PublisherKey {
  /** Its thumbprint (RFC 7638). */
  id: string
  jwk: PublicJwk
}

/** A private key to sign with. */
export interface SigningKey {
  id: string
  algorithm: Algorithm
  key: KeyObject
}

/** A key cannot be used. The message says why. */
export class KeyError extends Error {
  override name = 'KeyError'
}

/** Reads a public key: a JWK, or PEM as written by openssl. Throws a KeyError. */
export async function readPublicKey(file: string): Promise<PublisherKey> {
  const text = file.trim()
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text) || hasPrivatePart(text))
    throw new KeyError('This is a private key. Give the public key: only its publisher may have the private one')
  if (!text.startsWith('{') && !text.includes('-----BEGIN PUBLIC KEY-----'))
    throw new KeyError('This is not a public key: it is neither a JWK nor PEM with BEGIN PUBLIC KEY')
  const jwk = publicPart(read(text, createPublicKey))
  return { id: await idOf(jwk), jwk }
}

/** Reads a private key. Throws a KeyError. */
export async function readSigningKey(text: string): Promise<SigningKey> {
  const key = read(text.trim(), createPrivateKey)
  const jwk = publicPart(createPublicKey(key))
  return { id: await idOf(jwk), algorithm: algorithmOf(jwk), key }
}

/** The thumbprint of a key (RFC 7638), base64url. */
function idOf(jwk: PublicJwk): Promise<string> {
  return calculateJwkThumbprint(jwk)
}

/** The only algorithm for a key, whatever a signature says. */
export function algorithmOf({ kty }: PublicJwk): Algorithm {
  return kty === 'OKP' ? 'EdDSA' : 'ES256'
}

function read(text: string, create: (key: string | JsonWebKeyInput) => KeyObject): KeyObject {
  try {
    return create(text.startsWith('{') ? { key: JSON.parse(text) as JsonWebKey, format: 'jwk' } : text)
  } catch (cause) {
    throw new KeyError('The key cannot be read: it must be PEM or a JWK', { cause })
  }
}

function publicPart(key: KeyObject): PublicJwk {
  const exported = ['ed25519', 'ec'].includes(key.asymmetricKeyType ?? '') ? key.export({ format: 'jwk' }) : undefined
  const jwk = publicJwk.safeParse(exported)
  if (!jwk.success) throw new KeyError('Unsupported key: it must be Ed25519 or P-256')
  return jwk.data
}

function hasPrivatePart(text: string): boolean {
  try {
    return 'd' in (JSON.parse(text) as object)
  } catch {
    return false
  }
}
