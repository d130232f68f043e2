/**
 * The accounts at one server, by principal. Until a person has signed in or the server has refused a request, the code
 * that obtains tokens is not loaded and no file is opened.
 */

import { type AccountRefusal, Fault } from '../../../base/fault/fault.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import { KEYED, personOf } from '../../../base/texts/principal.js'
import type { Account, AccountsByPrincipal, Requester } from '../../../mcp/protocol/account.js'
import { ANONYMOUS } from '../../../mcp/protocol/call.js'
import type { ShownToken } from '../../../mcp/protocol/shown-token.js'
import type { Desk } from '../page/desk.js'
import { Invited } from '../page/invited.js'
import { quoted } from '../quoted.js'
import { MemoryStore } from '../store/memory.js'
import type { TokenStore } from '../store/store.js'
import { accountKey, TokenAccount } from './account.js'
import { enterFirst, KeyAccount } from './key-account.js'
import type { Obtainer, ObtainOptions } from './obtain.js'
import { type HeldAccount, Requesting } from './requesting.js'
import type { ClientSettings } from './settings.js'
import { TokenFile } from './token-file.js'

/** The server, and how its accounts are used. */
export interface AccountsOptions extends ObtainOptions {
  store: TokenStore
  /** The argument of `mcp-bridge login`; by default the server's name. */
  loginName?: string | undefined
  /** The server's canonical address: the key of the tokens. */
  endpoint: string
  /** `principal`: each principal has tokens of its own; `service`: one account for all. */
  account: 'principal' | 'service'
  /** Tokens are obtained in exchange for those that callers show. */
  onBehalf?: boolean | undefined
  /** The account of the person at this machine, if there are several. */
  accountName?: string | undefined
  /** Where principals sign in by themselves. */
  desk?: Desk | undefined
}

/** The `Account` of a caller without a token that could be exchanged. There is nothing that it could sign in to. */
class Tokenless implements Account {
  readonly #server: string

  constructor(server: string) {
    this.#server = server
  }

  authorization(): undefined {
    return undefined
  }

  refused(refusal: AccountRefusal): Promise<string> {
    return Promise.reject(new Fault('signInRequired', this.#message, { signInFor: refusal }))
  }

  signIn(): Promise<string> {
    return Promise.reject(new Fault('authFailed', this.#message))
  }

  get #message(): string {
    return `The bridge calls ${quoted(this.#server)} on behalf of its callers: only callers with a token of an identity provider ("auth.issuers") can use it`
  }
}

/** An account in both forms. */
interface KnownAccount {
  account: HeldAccount
  requesting: Account
  /** When it can be dropped, in milliseconds since 1970: then the caller's token has expired. */
  until: number
}

/** Most principals with an account in memory. */
const MAX_ACCOUNTS = 10_000
/** The principal of the person at this machine. */
const LOCAL = 'local'

/** The accounts at one server. */
export class Accounts implements AccountsByPrincipal {
  readonly #options: AccountsOptions
  readonly #accounts = new BoundedMap<string, KnownAccount>(MAX_ACCOUNTS, ({ account }) => account.close())
  readonly #file: TokenFile | undefined
  readonly #tokenless: Tokenless
  readonly onBehalf: boolean
  #obtainer: Promise<Obtainer> | undefined

  constructor(options: AccountsOptions) {
    this.#options = options
    const { grant, tokenFile } = options.settings
    this.onBehalf = options.onBehalf ?? false
    this.#tokenless = new Tokenless(options.server)
    this.#file = grant === 'token' && tokenFile !== undefined ? new TokenFile(tokenFile) : undefined
  }

  /**
   * The account for a requester's requests; undefined for anonymous callers if each principal has its own. The person at
   * this machine can be asked to sign in during a request, and other principals where there is a page for that. For the
   * service account the operator signs in by a command.
   */
  for({ principal: caller, grant }: Requester): Account | undefined {
    if (this.#file) return this.#file
    const principal = caller.startsWith(KEYED) ? personOf(caller) : caller
    if (this.onBehalf) return grant?.shown ? this.#knownBy(principal, grant.shown) : this.#tokenless
    const isPersonal = this.#options.account === 'principal'
    if (isPersonal && principal === ANONYMOUS) return undefined
    return this.#known(principal).requesting
  }

  get settings(): ClientSettings {
    return this.#options.settings
  }

  /** The server's address. */
  get url(): string {
    return this.#options.url
  }

  /** The address where principals sign in by themselves; undefined if they cannot. */
  get page(): string | undefined {
    return this.isPersonal ? this.#options.desk?.addressOf(this.#options.server) : undefined
  }

  /** Whether principals have accounts of their own, and get tokens for them by signing in. */
  get isPersonal(): boolean {
    return this.#options.account === 'principal' && this.#options.settings.grant === 'code'
  }

  /** The argument of `mcp-bridge login` for the server. */
  get loginName(): string {
    return this.#options.loginName ?? this.#options.server
  }

  /** The account of a principal, with tokens or a key. */
  heldBy(principal: string): HeldAccount {
    return this.#known(principal).account
  }

  /** The account with the tokens of a principal. Throws a Fault if people enter keys. */
  of(principal: string): TokenAccount {
    const account = this.heldBy(principal)
    if (account instanceof TokenAccount) return account
    throw new Fault('authFailed', enterFirst(this.#options.server, this.page))
  }

  /** The account with the key of a principal; undefined if people sign in. */
  keyOf(principal: string): KeyAccount | undefined {
    const account = this.heldBy(principal)
    return account instanceof KeyAccount ? account : undefined
  }

  #known(principal: string): KnownAccount {
    const { account: whose, accountName = LOCAL } = this.#options
    const id = whose === 'service' ? 'service' : principal === LOCAL ? accountName : principal
    return this.#accounts.get(id) ?? this.#make(id, id, principal)
  }

  /**
   * The account by a caller's token. Two tokens of one principal may allow different things, so each has its own. What is
   * obtained for a token is stored only in memory, until that token expires.
   */
  #knownBy(principal: string, shown: ShownToken): Account {
    const id = `${principal} ${shown.digest}`
    const known = this.#accounts.get(id) ?? this.#make(id, principal, principal, shown)
    return known.requesting
  }

  #make(id: string, name: string, principal: string, shown?: ShownToken): KnownAccount {
    const { endpoint, server, settings, now = Date.now, account: whose, desk } = this.#options
    const holder = { endpoint, account: name }
    const { loginName } = this
    const store = shown ? new MemoryStore() : this.#options.store
    const obtainer = () => this.obtainer()
    const { apiKey } = settings
    const account = apiKey
      ? new KeyAccount({
          ...{ store, holder, settings: { ...settings, apiKey }, now },
          key: accountKey(holder, settings),
          enterFirst: () => enterFirst(server, this.page),
        })
      : new TokenAccount({ server, loginName, settings, store, now, holder, obtainer, shown })
    const until = shown?.expires ?? Number.POSITIVE_INFINITY
    const isLocal = principal === LOCAL
    const requesting =
      desk && this.isPersonal && !isLocal
        ? new Invited(account, { desk, server, principal })
        : new Requesting(account, whose === 'principal' && isLocal)
    const made = { account, requesting, until }
    this.#accounts.set(id, made)
    for (const [oldest, { account, until }] of this.#accounts) {
      if (until > now()) break
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
