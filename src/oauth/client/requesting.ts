/** An account as requests use it: with what its principal may be asked. */
import type { AccountRefusal } from '../../fault/fault.js'
import type { Account, ProvenRequest, SignInAsking } from '../../protocol/account.js'
import type { Signal } from '../../time/hang-up.js'
import type { TokenAccount } from './account.js'

/** The `Account` for requests of the person at this machine, or of principals for whom somebody else signs in. */
export class Requesting implements Account {
  readonly account: TokenAccount
  readonly #mayAsk: boolean

  constructor(account: TokenAccount, mayAsk: boolean) {
    this.account = account
    this.#mayAsk = mayAsk
  }

  authorization(signal: Signal): string | undefined | Promise<string | undefined> {
    return this.account.authorization(signal)
  }

  refused(refusal: AccountRefusal, signal: Signal): Promise<string> {
    return this.account.refused(refusal, signal, false)
  }

  signIn(refusal: AccountRefusal, signal: Signal, _asking?: SignInAsking): Promise<string> {
    return this.account.refused(refusal, signal, this.#mayAsk)
  }

  proof(request: ProvenRequest): Promise<string> {
    return this.account.proof(request)
  }

  nonce(nonce: string): void {
    this.account.nonce(nonce)
  }
}
