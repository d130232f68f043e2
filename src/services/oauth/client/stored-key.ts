/** A person's own key for one server (`account.header`), which they enter on the page of the bridge: where tokens are, in place of one. */
import { type AccountRefusal, Fault } from '../../../base/fault/fault.js'
import type { Signal } from '../../../base/time/hang-up.js'
import { pause } from '../../../base/time/pause.js'
import type { Holder } from '../store/record.js'
import type { TokenStore } from '../store/store.js'
import type { ClientSettings, KeySettings } from './settings.js'
import { type AccountStatus, statusOf } from './status.js'

export interface StoredKeyOptions {
  store: TokenStore
  /** The name of the record. */
  key: string
  holder: Holder
  settings: ClientSettings & { apiKey: KeySettings }
  /** What a person without a key is told. */
  enterFirst(): string
  now(): number
}

/** Milliseconds after which a key is compared with the stored one, and that a request waits for one by default. */
const LOOK_EVERY = 500
const WAIT = 40_000
/** The refusal of a request that is not sent without a key. */
const WITHOUT_KEY: AccountRefusal = { status: 401, challenges: [], sent: undefined, nonce: undefined }

export class StoredKey {
  readonly #options: StoredKeyOptions
  #known: { value: string | undefined; stamp: string } | undefined
  #looked = Number.NEGATIVE_INFINITY

  constructor(options: StoredKeyOptions) {
    this.#options = options
  }

  /** The value of the header. Throws or rejects with a Fault if there is no key: nothing is sent without one. */
  authorization(): string | Promise<string> {
    const now = performance.now()
    if (now - this.#looked >= LOOK_EVERY) {
      this.#looked = now
      // Another process may have changed the record.
      if (this.#known?.stamp !== this.#options.store.stamp(this.#options.key)) this.#known = undefined
    }
    return this.#known?.value ?? this.#required()
  }

  async #required(): Promise<string> {
    const value = await this.#load()
    if (value === undefined) throw this.#needed(WITHOUT_KEY)
    return value
  }

  /** Another value after a refusal, if the key has been replaced meanwhile. Otherwise rejects with a Fault. */
  async refused(refusal: AccountRefusal): Promise<string> {
    const value = await this.#load()
    if (value === undefined || value === refusal.sent) throw this.#needed(refusal)
    return value
  }

  /** Waits until the person has entered another key, at any replica. Undefined if that takes too long. */
  async arrived({ sent }: AccountRefusal, signal: Signal): Promise<string | undefined> {
    for (let left = this.#options.settings.wait ?? WAIT; left > 0 && !signal.aborted; left -= LOOK_EVERY) {
      await pause(Math.min(left, LOOK_EVERY), signal)
      const value = await this.#load()
      if (value !== undefined && value !== sent) return value
    }
    signal.throwIfAborted()
    return undefined
  }

  /** Stores a key in place of the one before. */
  async enter(entered: string): Promise<void> {
    const { store, holder } = this.#options
    await store.change(this.#options.key, holder, (record) => {
      record.apiKey = entered
    })
    this.#known = undefined
  }

  /** Deletes the key, for all processes. */
  async logout(): Promise<{ found: boolean; revoked: boolean }> {
    const { store } = this.#options
    const record = await store.read(this.#options.key)
    await store.remove(this.#options.key)
    this.#known = undefined
    return { found: record !== undefined, revoked: false }
  }

  async status(): Promise<AccountStatus> {
    const { store, holder, now } = this.#options
    return statusOf((await store.read(this.#options.key)) ?? { version: 1, ...holder, began: [] }, now())
  }

  async #load(): Promise<string | undefined> {
    const { store, settings } = this.#options
    const stamp = store.stamp(this.#options.key)
    const entered = (await store.read(this.#options.key))?.apiKey
    const value = entered === undefined ? undefined : (settings.apiKey.prefix ?? '') + entered
    this.#known = { value, stamp }
    return value
  }

  #needed(refusal: AccountRefusal): Fault {
    return new Fault('signInRequired', this.#options.enterFirst(), { signInFor: refusal })
  }
}
