/**
 * The accounts with one server, by who asks. As long as nobody has signed in and the server has refused nothing, nothing of
 * this is loaded, and no file is opened.
 */
import type { Account, AccountRefusal, AccountsByPrincipal } from '../../protocol/account.js'
import { ANONYMOUS } from '../../protocol/call.js'
import { TokenAccount } from './account.js'
import type { Obtainer, ServerOptions } from './obtain.js'
import type { ClientSettings } from './settings.js'
import { TokenFile } from './token-file.js'

export interface AccountsOptions extends ServerOptions {
  /** What `mcp-bridge login` is told for it; its name by default. */
  loginName?: string | undefined
  /** The server's canonical address: what tokens are kept by. */
  endpoint: string
  /** Whose tokens are used: those of whoever asks, or one account for all. */
  account: 'principal' | 'service'
  /** The account of the person at this machine, where there are several. */
  accountName?: string | undefined
}

/** An account as requests see it. */
class Requesting implements Account {
  readonly #account: TokenAccount
  readonly #mayAsk: boolean

  constructor(account: TokenAccount, mayAsk: boolean) {
    this.#account = account
    this.#mayAsk = mayAsk
  }

  authorization(signal: AbortSignal): string | undefined | Promise<string | undefined> {
    return this.#account.authorization(signal)
  }

  refused(refusal: AccountRefusal, signal: AbortSignal): Promise<string> {
    return this.#account.refused(refusal, signal, false)
  }

  signIn(refusal: AccountRefusal, signal: AbortSignal): Promise<string> {
    return this.#account.refused(refusal, signal, this.#mayAsk)
  }
}

/** An account, and what requests know of it. */
interface KnownAccount {
  account: TokenAccount
  requesting: Account
}

/** Principals of which something is remembered. */
const MAX_ACCOUNTS = 10_000
/** The principal of whoever works at this machine. */
const LOCAL = 'local'

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
   * What a request of a principal is sent with. Who can be asked to sign in is the person at this machine; the account of all
   * is the operator's, who signs in by a command.
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

  /** What `mcp-bridge login` is told for the server. */
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

  /** What it takes to obtain tokens. */
  obtainer(): Promise<Obtainer> {
    this.#obtainer ??= import('./obtain.js').then(({ Obtainer }) => new Obtainer(this.#options))
    return this.#obtainer
  }

  /** Ends what is under way in this process. */
  close(): void {
    for (const { account } of this.#accounts.values()) account.close()
  }
}
