/**
 * The public keys of an issuer: fetched at the start and on demand, cached, and fetched again for an unknown key. Says why they
 * cannot be had.
 */
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { Fault } from '../../../base/fault/fault.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import { afterOneMore, type Pace, waitFor } from '../../../base/limits/pace.js'
import type { IssuerState } from '../../../mcp/ports/events.js'
import type { Issuers } from '../issuers.js'
import type { Reach } from '../reach.js'
import { downloadKeys } from './download-keys.js'
import type { IssuerSettings } from './settings.js'

/** Milliseconds for which keys are used without fetching them again. */
const FRESH = 600_000
/** Milliseconds for which they are used while the issuer is unreachable. */
const KEPT = 86_400_000
/** Least milliseconds between two fetches of keys that are not fresh, and between two while there are none. */
const BETWEEN = 30_000
const BETWEEN_FIRST = 5_000
/** Fetches for unknown keys, whatever keys tokens name. */
const LOOKS: Pace = { burst: 5, every: 10_000 }
/** Milliseconds for which an unknown key stays unknown without a fetch, and most such keys. */
const UNKNOWN = 5_000
const MAX_UNKNOWN = 1_000

interface Keys {
  find: JWTVerifyGetKey
  since: number
  /** The number of the fetch that they came with. */
  fetch: number
}

export interface KeySetOptions {
  settings: Pick<IssuerSettings, 'issuer' | 'jwksUri' | 'introspection'>
  issuers: Issuers
  reach: Reach
  /** In milliseconds. */
  now: () => number
  /** Called after a fetch that makes a difference: it failed or works again, or keys were left out. */
  report?: ((state: IssuerState & { leftOut: number }) => void) | undefined
}

/** What a check of a signature needs of the keys of an issuer. */
export type IssuerKeys = Pick<
  KeySet,
  'state' | 'alias' | 'moment' | 'prepare' | 'close' | 'known' | 'after' | 'mayCompare' | 'isUnknown' | 'noteUnknown'
>

export class KeySet {
  readonly #options: KeySetOptions
  #keys: Keys | undefined
  #looked = Number.NEGATIVE_INFINITY
  /** Why the last fetch failed; undefined if it succeeded. */
  #failure: Error | undefined
  #fetching: Promise<void> | undefined
  /** How many fetches have begun. */
  #begun = 0
  /** When all fetches for unknown keys so far would have been allowed, one after the other. */
  #spent = Number.NEGATIVE_INFINITY
  /** Unknown keys, and until when they are. */
  readonly #unknown = new BoundedMap<string, number>(MAX_UNKNOWN)
  #timer: NodeJS.Timeout | undefined
  #leftOut = 0
  #alias: string | undefined
  #closed = false

  constructor(options: KeySetOptions) {
    this.#options = options
  }

  get state(): IssuerState {
    const { issuer } = this.#options.settings
    if (this.#failure) return { issuer, state: 'down', why: this.#failure.message }
    return { issuer, state: this.#keys ? 'up' : 'unknown' }
  }

  /** Another name that the issuer has in its tokens, as its metadata say. */
  get alias(): string | undefined {
    return this.#alias
  }

  /** The number of fetches that have begun. Keys of a later one have all that was published at this moment. */
  get moment(): number {
    return this.#begun
  }

  /** Fetches the keys if there are none, and keeps trying until there are. Never rejects. */
  async prepare(): Promise<void> {
    if (!this.#keys) await this.#look(BETWEEN_FIRST)
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }

  /** The known keys, fetched again if they are not fresh. Rejects with a Fault if there are none. */
  async known(): Promise<JWTVerifyGetKey> {
    const age = this.#options.now() - (this.#keys?.since ?? Number.NEGATIVE_INFINITY)
    if (age > FRESH) await this.#look(this.#keys ? BETWEEN : BETWEEN_FIRST)
    if (!this.#keys || this.#options.now() - this.#keys.since > KEPT) throw this.#unavailable()
    return this.#keys.find
  }

  /**
   * The keys of a fetch that began after a moment, for a token whose key was unknown. Rejects with a Fault if that cannot be
   * known now.
   */
  async after(moment: number): Promise<JWTVerifyGetKey> {
    await this.#fetching
    if (!this.#isAfter(moment)) {
      this.#spend()
      await this.#look(0)
    }
    if (this.#failure !== undefined || !this.#keys) throw this.#unavailable()
    return this.#keys.find
  }

  /** Whether they may be fetched for a signature that is wrong by the known keys. Most such tokens are wrong, so that is seldom. */
  get mayCompare(): boolean {
    return Math.max(this.#looked, this.#spent) + BETWEEN <= this.#options.now()
  }

  /** Whether a key was unknown a moment ago. */
  isUnknown(key: string): boolean {
    return (this.#unknown.get(key) ?? 0) > this.#options.now()
  }

  /** Remembers that a key is unknown. */
  noteUnknown(key: string): void {
    this.#unknown.set(key, this.#options.now() + UNKNOWN)
  }

  #isAfter(moment: number): boolean {
    return this.#begun > moment && (this.#failure !== undefined || (this.#keys?.fetch ?? 0) > moment)
  }

  /** Takes one of the fetches for unknown keys. Throws a Fault if there is none now. */
  #spend(): void {
    const now = this.#options.now()
    const wait = waitFor(LOOKS, this.#spent, now)
    if (wait > 0)
      throw new Fault(
        'authUnavailable',
        'The token cannot be checked now: its key is unknown, and the keys of its issuer were fetched a moment ago',
        { retryAfter: Math.ceil(wait / 1_000) },
      )
    this.#spent = afterOneMore(LOOKS, this.#spent, now)
  }

  /** Fetches the keys, unless they were fetched within so many milliseconds. */
  async #look(between: number): Promise<void> {
    const { now } = this.#options
    if (!this.#fetching && now() - this.#looked < between) return
    this.#looked = this.#fetching ? this.#looked : now()
    this.#fetching ??= this.#fetch(++this.#begun).finally(() => {
      this.#fetching = undefined
    })
    await this.#fetching
  }

  async #fetch(fetch: number): Promise<void> {
    const before = this.#failure
    let leftOut = 0
    try {
      const { keys, alias, leftOut: more } = await downloadKeys(this.#options)
      leftOut = more
      this.#alias = alias ?? this.#alias
      this.#keys = { find: createLocalJWKSet({ keys } as JSONWebKeySet), since: this.#options.now(), fetch }
      this.#failure = undefined
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
    }
    if (this.#closed) return
    const isNew = (this.#failure === undefined) !== (before === undefined) || (leftOut > 0 && this.#leftOut === 0)
    this.#leftOut = leftOut
    if (isNew) this.#options.report?.({ ...this.state, leftOut })
    clearTimeout(this.#timer)
    if (this.#failure) this.#timer = setTimeout(() => void this.#look(0), BETWEEN).unref()
  }

  #unavailable(): Fault {
    return new Fault('authUnavailable', 'The token cannot be checked now: the keys of its issuer are unavailable', {
      cause: this.#failure,
      retryAfter: 5,
    })
  }
}
