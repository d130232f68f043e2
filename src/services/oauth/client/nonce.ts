/** The nonce that a server wants in proofs of the key that a token is bound to (RFC 9449, 9). */
import type { AccountRefusal } from '../../../base/fault/fault.js'
import { needsProof } from '../../../mcp/protocol/account.js'
import { readChallenges } from '../challenge.js'

const NONCE = /^[\x21-\x7e]{1,1024}$/

export class Nonce {
  /** Undefined while the server has named none. */
  value: string | undefined

  /** Takes the nonce for the next proof. Returns whether it can be used, and is another one than before. */
  take(nonce: string): boolean {
    if (!NONCE.test(nonce) || nonce === this.value) return false
    this.value = nonce
    return true
  }

  /**
   * Whether a refusal is only about the nonce: then the same token is sent again. Another request may have brought the same
   * nonce meanwhile. Whoever sends again counts its attempts.
   */
  isWanted({ status, challenges, sent, nonce }: AccountRefusal): boolean {
    if (status !== 401 || nonce === undefined || !needsProof(sent)) return false
    const wants = readChallenges(challenges).some(({ params }) => params.get('error') === 'use_dpop_nonce')
    if (!wants || !NONCE.test(nonce)) return false
    this.take(nonce)
    return true
  }
}
