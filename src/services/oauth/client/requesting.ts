/** An account as requests use it: with what its principal may be asked. */
import type { AccountRefusal } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import type { Account, ProvenRequest, SignInAsking } from '../../../mcp/protocol/account.js'
import type { TokenAccount } from './account.js'
import type { KeyAccount } from './key-account.js'

/** The account of a principal, with tokens or a key. */
export type HeldAccount = TokenAccount | KeyAccount

/** The `Account` for requests of the person at this machine, or of principals for whom somebody else signs in. */
export class Requesting implements Account {
  readonly account: HeldAccount
  readonly header: string | undefined
  readonly #mayAsk: boolean

  constructor(account: HeldAccount, mayAsk: boolean) {
    this.account = account
    this.header = 'header' in account ? account.header : undefined
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
    const { account } = this
    return 'proof' in account ? account.proof(request) : Promise.reject(new TypeError('A key needs no proof'))
  }

  nonce(nonce: string): void {
    if ('nonce' in this.account) this.account.nonce(nonce)
  }
}
