/** A person's account at a server that takes a key of each person (`account.header`). What keeps the key is loaded on demand. */
import type { AccountRefusal } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import { quoted } from '../quoted.js'
import type { AccountStatus } from './status.js'
import type { StoredKey, StoredKeyOptions } from './stored-key.js'

/** See StoredKey. */
export class KeyAccount {
  /** The name of the header, in lower case. */
  readonly header: string
  readonly #options: StoredKeyOptions
  #loading: Promise<StoredKey> | undefined
  #stored: StoredKey | undefined

  constructor(options: StoredKeyOptions) {
    this.#options = options
    this.header = options.settings.apiKey.header
  }

  authorization(_signal: Signal): string | Promise<string> {
    return this.#stored?.authorization() ?? this.#load().then((stored) => stored.authorization())
  }

  async refused(refusal: AccountRefusal): Promise<string> {
    return (await this.#load()).refused(refusal)
  }

  async arrived(refusal: AccountRefusal, signal: Signal): Promise<string | undefined> {
    return (await this.#load()).arrived(refusal, signal)
  }

  async enter(entered: string): Promise<void> {
    return (await this.#load()).enter(entered)
  }

  async logout(): Promise<{ found: boolean; revoked: boolean }> {
    return (await this.#load()).logout()
  }

  async status(): Promise<AccountStatus> {
    return (await this.#load()).status()
  }

  close(): void {}

  #load(): Promise<StoredKey> {
    this.#loading ??= import('./stored-key.js').then(({ StoredKey }) => {
      this.#stored = new StoredKey(this.#options)
      return this.#stored
    })
    return this.#loading
  }
}

/** What a person without a key is told. */
export function enterFirst(server: string, page: string | undefined): string {
  return `Enter your own key for ${quoted(server)} first: ${page ?? 'the bridge serves no page for that now'}`
}
