/** The account's credential for a relayed request: obtained before it is sent, and replaced if the server refuses it. */

import { type AccountRefusal, needsSignIn } from '../../fault/fault.js'
import { type Account, MAX_RETRIES, needsProof, type ProvenRequest, refusedCredential } from '../../protocol/account.js'
import type { Signal } from '../../time/hang-up.js'

export class RelayedCredential {
  /** The `Authorization` to send; undefined if the account has none. */
  value: string | undefined
  /** The `DPoP` header to send; undefined if the credential needs no proof. */
  proof: string | undefined
  readonly #account: Account
  readonly #signal: Signal
  readonly #at: Omit<ProvenRequest, 'authorization'>
  #retries = 0

  constructor(account: Account, signal: Signal, at: Omit<ProvenRequest, 'authorization'>) {
    this.#account = account
    this.#signal = signal
    this.#at = at
  }

  /** Obtains the credential. Returns undefined if it is known at once. Throws or rejects with a Fault. */
  obtain(): Promise<void> | undefined {
    const credential = this.#account.authorization(this.#signal)
    if (typeof credential === 'object') return this.#take(credential)
    if (needsProof(credential)) return this.#take(Promise.resolve(credential))
    this.value = credential
    return undefined
  }

  /** The server's refusal of the credential; undefined for other answers, or if it was replaced too often. */
  refusedBy(
    status: number,
    challenge: string | string[] | undefined,
    nonce: string | undefined,
  ): AccountRefusal | undefined {
    const refusal = refusedCredential(status, challenge, this.value, nonce)
    return refusal && this.#retries++ < MAX_RETRIES ? refusal : undefined
  }

  /**
   * Replaces the credential after a refusal. With `mayAsk`, a person may be asked to sign in, because a client's request is
   * waiting. Rejects with a Fault.
   */
  async replace(refusal: AccountRefusal, mayAsk: boolean): Promise<void> {
    try {
      await this.#take(this.#account.refused(refusal, this.#signal))
    } catch (error) {
      if (!mayAsk || !needsSignIn(error) || !error.signInFor) throw error
      await this.#take(this.#account.signIn(error.signInFor, this.#signal))
    }
  }

  async #take(obtaining: Promise<string | undefined>): Promise<void> {
    this.value = await obtaining
    this.proof = needsProof(this.value)
      ? await this.#account.proof?.({ authorization: this.value, ...this.#at })
      : undefined
  }
}
