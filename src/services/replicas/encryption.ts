/**
 * TLS between replicas with a shared key (TLS-PSK) in place of certificates. The key exchange has forward secrecy. Node.js
 * supports shared keys only in TLS 1.2.
 */
import type { ConnectionOptions, TlsOptions } from 'node:tls'
import type { Sealer } from '../../base/crypto/seal.js'

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
