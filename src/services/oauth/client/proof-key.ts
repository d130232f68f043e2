/** The key that tokens of an account are bound to (RFC 9449), and the proofs that requests with them need. */
import { exportJWK, generateKeyPair, importJWK, SignJWT } from 'jose'
import { DPoP, type DPoPHandle } from 'oauth4webapi'
import { digest } from '../../../base/crypto/digest.js'
import type { ProvenRequest } from '../../../mcp/protocol/account.js'
import type { ProofKey } from '../store/record.js'

/** The algorithm that all authorization servers with DPoP are expected to have. */
const ALG = 'ES256'

/** A new key. */
export async function newProofKey(): Promise<ProofKey> {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true })
  const { x = '', y = '', d = '' } = await exportJWK(privateKey)
  return { kty: 'EC', crv: 'P-256', x, y, d }
}

/** Proves a key to token endpoints. It remembers their nonces. */
export async function proverOf(key: ProofKey): Promise<DPoPHandle> {
  const [privateKey, publicKey] = await Promise.all([
    importJWK(key, ALG),
    importJWK(publicPart(key), ALG, { extractable: true }),
  ])
  return DPoP({}, { privateKey, publicKey } as Parameters<typeof DPoP>[1])
}

/** The proof for one request to a server (RFC 9449, 4.2), with the nonce that the server has asked for. */
export async function proofFor(
  key: ProofKey,
  { authorization, method, url }: ProvenRequest,
  nonce: string | undefined,
): Promise<string> {
  const { origin, pathname } = new URL(url)
  const ath = digest(authorization.slice(authorization.indexOf(' ') + 1))
  return new SignJWT({ htm: method, htu: origin + pathname, ath, ...(nonce !== undefined && { nonce }) })
    .setProtectedHeader({ typ: 'dpop+jwt', alg: ALG, jwk: publicPart(key) })
    .setJti(crypto.randomUUID())
    .setIssuedAt()
    .sign(await importJWK(key, ALG))
}

function publicPart({ kty, crv, x, y }: ProofKey): Omit<ProofKey, 'd'> {
  return { kty, crv, x, y }
}
