/**
 * The accounts with one server, by who asks. As long as nobody has signed in and the server has refused nothing, nothing of
 * this is loaded, and no file is opened.
 */
import { type Refusal, TokenAccount } from './account.js'
import type { Obtainer, ServerOptions } from './obtain.js'
import { TokenFile } from './token-file.js'

/** In whose name a server is asked: what upstream knows as `Account`. */
export interface Credentials {
  authorization(signal: AbortSignal): string | undefined | Promise<string | undefined>
  refused(refusal: Refusal, signal: AbortSignal): Promise<string>
}

export interface AccountsOptions extends ServerOptions {
  /** The server's canonical address: what tokens are kept by. */
  endpoint: string
  /** Whose tokens are used: those of whoever asks, or one account for all. */
  account: 'principal' | 'service'
  /** The account of the person at this machine, where there are several. */
  accountName?: string | undefined
}

/** An account, for requests that may have a person asked and for those that may not. */
interface KnownAccount {
  account: TokenAccount
  asking: Credentials
  quiet: Credentials
}

/** Principals of which something is remembered. */
const MAX_ACCOUNTS = 10_000
/** The principal of whoever works at this machine. */
const LOCAL = 'local'

export class Accounts {
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
   * What a request of a principal is sent with. Where `mayAsk`, a person may be asked to sign in for it: for requests of
   * clients, never for what the bridge does by itself.
   */
  for(principal: string, mayAsk: boolean): Credentials {
    if (this.#file) return this.#file
    const known = this.#known(principal)
    // One account for all is the operator's, who signs in by a command.
    return mayAsk && this.#options.account === 'principal' && principal === LOCAL ? known.asking : known.quiet
  }

  /** The account of a principal. */
  of(principal: string): TokenAccount {
    return this.#known(principal).account
  }

  #known(principal: string): KnownAccount {
    const { account: whose, accountName = LOCAL } = this.#options
    const id = whose === 'service' ? 'service' : principal === LOCAL ? accountName : principal
    return this.#accounts.get(id) ?? this.#make(id)
  }

  #make(id: string): KnownAccount {
    const { endpoint, server, settings, store, now } = this.#options
    const holder = { endpoint, account: id }
    const account = new TokenAccount({ server, settings, store, now, holder, obtainer: () => this.obtainer() })
    const by = (mayAsk: boolean): Credentials => ({
      authorization: (signal) => account.authorization(signal),
      refused: (refusal, signal) => account.refused(refusal, signal, mayAsk),
    })
    const made = { account, asking: by(true), quiet: by(false) }
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
