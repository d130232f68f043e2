/**
 * The accounts at one server, by principal. Until a person has signed in or the server has refused a request, the code
 * that obtains tokens is not loaded and no file is opened.
 */

import type { AccountRefusal } from '../../fault/fault.js'
import type { Account, AccountsByPrincipal } from '../../protocol/account.js'
import { ANONYMOUS } from '../../protocol/call.js'
import type { Signal } from '../../time/hang-up.js'
import { TokenAccount } from './account.js'
import type { Obtainer, ObtainOptions } from './obtain.js'
import type { ClientSettings } from './settings.js'
import { TokenFile } from './token-file.js'

/** The server, and how its accounts are used. */
export interface AccountsOptions extends ObtainOptions {
  /** The argument of `mcp-bridge login`; by default the server's name. */
  loginName?: string | undefined
  /** The server's canonical address: the key of the tokens. */
  endpoint: string
  /** `principal`: each principal has tokens of its own; `service`: one account for all. */
  account: 'principal' | 'service'
  /** The account of the person at this machine, if there are several. */
  accountName?: string | undefined
}

/** The `Account` for requests: adds whether this principal may be asked to sign in. */
class Requesting implements Account {
  readonly #account: TokenAccount
  readonly #mayAsk: boolean

  constructor(account: TokenAccount, mayAsk: boolean) {
    this.#account = account
    this.#mayAsk = mayAsk
  }

  authorization(signal: Signal): string | undefined | Promise<string | undefined> {
    return this.#account.authorization(signal)
  }

  refused(refusal: AccountRefusal, signal: Signal): Promise<string> {
    return this.#account.refused(refusal, signal, false)
  }

  signIn(refusal: AccountRefusal, signal: Signal): Promise<string> {
    return this.#account.refused(refusal, signal, this.#mayAsk)
  }
}

/** An account in both forms. */
interface KnownAccount {
  account: TokenAccount
  requesting: Account
}

/** Most principals with an account in memory. */
const MAX_ACCOUNTS = 10_000
/** The principal of the person at this machine. */
const LOCAL = 'local'

/** The accounts at one server. */
export class Accounts implements AccountsByPrincipal {
  readonly #options: AccountsOptions
  readonly #accounts = new Map<string, KnownAccount>()
  readonly #file: TokenFile | undefined
  #obtainer: Promise<Obtainer> | undefined

  constructor(options: AccountsOptions) {
    this.#options = options
    const { grant, tokenFile } = options.settings
    this.#file = grant === 'token' && tokenFile !== undefined ? new TokenFile(tokenFile) : undefined
  }

  /**
   * The account for a principal's requests; undefined for anonymous callers if each principal has its own. Only the
   * person at this machine can be asked to sign in during a request. For the service account the operator signs in by a
   * command.
   */
  for(principal: string): Account | undefined {
    if (this.#file) return this.#file
    const isPersonal = this.#options.account === 'principal'
    if (isPersonal && principal === ANONYMOUS) return undefined
    return this.#known(principal).requesting
  }

  get settings(): ClientSettings {
    return this.#options.settings
  }

  /** The argument of `mcp-bridge login` for the server. */
  get loginName(): string {
    return this.#options.loginName ?? this.#options.server
  }

  /** The account of a principal. */
  of(principal: string): TokenAccount {
    return this.#known(principal).account
  }

  #known(principal: string): KnownAccount {
    const { account: whose, accountName = LOCAL } = this.#options
    const id = whose === 'service' ? 'service' : principal === LOCAL ? accountName : principal
    return this.#accounts.get(id) ?? this.#make(id, whose === 'principal' && principal === LOCAL)
  }

  #make(id: string, mayAsk: boolean): KnownAccount {
    const { endpoint, server, settings, store, now } = this.#options
    const holder = { endpoint, account: id }
    const { loginName } = this
    const obtainer = () => this.obtainer()
    const account = new TokenAccount({ server, loginName, settings, store, now, holder, obtainer })
    const made = { account, requesting: new Requesting(account, mayAsk) }
    this.#accounts.set(id, made)
    for (const [oldest, { account }] of this.#accounts) {
      if (this.#accounts.size <= MAX_ACCOUNTS) break
      account.close()
      this.#accounts.delete(oldest)
    }
    return made
  }

  /** Obtains tokens. Loaded at the first use. */
  obtainer(): Promise<Obtainer> {
    this.#obtainer ??= import('./obtain.js').then(({ Obtainer }) => new Obtainer(this.#options))
    return this.#obtainer
  }

  /** Ends what is in progress in this process. */
  close(): void {
    for (const { account } of this.#accounts.values()) account.close()
  }
}
