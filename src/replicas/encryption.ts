/**
 * TLS between replicas, with a key that all of them have (TLS-PSK) in place of certificates. The exchange has forward
 * secrecy. Node.js has such keys only in TLS 1.2.
 */
import type { ConnectionOptions, TlsOptions } from 'node:tls'
import type { Sealer } from '../crypto/seal.js'

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
    // Whoever has the key is a replica, whatever its name.
    checkServerIdentity: () => undefined,
    pskCallback: () => {
      const key = sealer().secret()
      return key ? { psk: key.secret, identity: key.id } : null
    },
  }
}
