/** RSA keys of issuers. To make one takes a tenth of a second of CPU, and hundreds of tests start an issuer. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'

export interface RsaKeys {
  publicKey: KeyObject
  privateKey: KeyObject
}

/** More than are needed at once: no two issuers of a test have the same. */
const PAIRS = 8
const pairs: RsaKeys[] = []
let given = 0

/** The next pair of a few, in turn. */
export function rsaKeys(): RsaKeys {
  const at = given++ % PAIRS
  pairs[at] ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
  return pairs[at]
}
