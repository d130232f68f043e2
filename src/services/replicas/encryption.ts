/**
 * TLS between replicas with a shared key (TLS-PSK) in place of certificates. The key exchange has forward secrecy. Node.js
 * supports shared keys only in TLS 1.2. Without TLS, each record of requests has a tag.
 */
import { createCipheriv, createHmac, createSecretKey } from 'node:crypto'
import type { ConnectionOptions, TlsOptions } from 'node:tls'
import type { Sealer } from '../../base/crypto/seal.js'
import { keyIn } from './proof.js'

/** Makes the tag of the next record of a connection, which consists of these pieces. */
export type Tags = (pieces: readonly Uint8Array[]) => Buffer

/** The bytes of a tag. */
export const TAG = 16
const NONCE = 12

const PSK = { ciphers: 'ECDHE-PSK-CHACHA20-POLY1305', minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } as const

/** Options of the side that listens. Any of the keys is accepted. */
export function listeningOptions(sealer: () => Sealer): TlsOptions {
  return { ...PSK, pskCallback: (_socket, identity) => sealer().secret(identity)?.secret ?? null }
}

/** Options of the side that connects. */
export function connectingOptions(
  sealer: () => Sealer,
): Pick<ConnectionOptions, 'ciphers' | 'minVersion' | 'maxVersion' | 'checkServerIdentity' | 'pskCallback'> {
  return {
    ...PSK,
    // The key proves that the other side is a replica. Its name proves nothing.
    checkServerIdentity: () => undefined,
    pskCallback: () => {
      const key = sealer().secret()
      return key ? { psk: key.secret, identity: key.id } : null
    },
  }
}

/**
 * The tags of a connection that began with this proof, whose number that is used once makes a key that no other connection has.
 * Undefined if the key of the proof is gone. AES-256-GCM without a text to encrypt (GMAC) takes a fifth of the CPU of an HMAC.
 */
export function tagsOf(sealer: Sealer, proof: string): Tags | undefined {
  const secret = sealer.secret(keyIn(proof))?.secret
  if (!secret) return undefined
  const key = createSecretKey(createHmac('sha256', secret).update(`frames\n${proof}`).digest())
  const nonce = Buffer.alloc(NONCE)
  let records = 0
  return (pieces) => {
    nonce.writeUIntBE(records++, NONCE - 6, 6)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    for (const piece of pieces) cipher.setAAD(piece)
    cipher.final()
    return cipher.getAuthTag()
  }
}
