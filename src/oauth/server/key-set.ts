/** The public keys of an issuer: fetched on demand, cached, and fetched again for an unknown key. */
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import { Fault } from '../../fault/fault.js'
import { quoted, quotedAddress } from '../failure.js'
import { getObject } from '../get-object.js'
import type { Issuers } from '../issuers.js'
import type { Reach } from '../reach.js'
import type { IssuerSettings } from './settings.js'

/** Milliseconds for which keys are used without fetching them again. */
const FRESH = 600_000
/** Milliseconds for which they are used while the issuer is unreachable. */
const KEPT = 86_400_000
/** Least milliseconds between two fetches, whatever keys tokens name. */
const BETWEEN = 30_000
/** The same while there are no keys at all. */
const BETWEEN_FIRST = 5_000
const MAX_KEYS = 32

interface Keys {
  find: JWTVerifyGetKey
  since: number
}

export interface KeySetOptions {
  settings: Pick<IssuerSettings, 'issuer' | 'jwksUri'>
  issuers: Issuers
  reach: Reach
  /** In milliseconds. */
  now: () => number
}

export class KeySet {
  readonly #options: KeySetOptions
  #keys: Keys | undefined
  #looked = Number.NEGATIVE_INFINITY
  /** Why the last fetch failed; undefined if it succeeded. */
  #failure: unknown
  #looking: Promise<void> | undefined

  constructor(options: KeySetOptions) {
    this.#options = options
  }

  /** The known keys, fetched again if they are not fresh. Rejects with a Fault if there are none. */
  async known(): Promise<JWTVerifyGetKey> {
    const age = this.#options.now() - (this.#keys?.since ?? Number.NEGATIVE_INFINITY)
    if (age > FRESH) await this.#look(this.#keys ? BETWEEN : BETWEEN_FIRST)
    if (!this.#keys || this.#options.now() - this.#keys.since > KEPT) throw this.#unavailable()
    return this.#keys.find
  }

  /**
   * The keys after another look, for a token with a key that `before` does not have. Undefined if there is nothing new.
   * Rejects with a Fault if that cannot be known.
   */
  async renewed(before: JWTVerifyGetKey): Promise<JWTVerifyGetKey | undefined> {
    if (this.#keys?.find === before) await this.#look(BETWEEN)
    if (this.#failure !== undefined) throw this.#unavailable()
    return this.#keys?.find === before ? undefined : this.#keys?.find
  }

  /** Fetches the keys, unless they were fetched within so many milliseconds. */
  async #look(between: number): Promise<void> {
    const { now } = this.#options
    if (!this.#looking && now() - this.#looked < between) return
    this.#looked = this.#looking ? this.#looked : now()
    this.#looking ??= this.#fetch().finally(() => {
      this.#looking = undefined
    })
    await this.#looking
  }

  async #fetch(): Promise<void> {
    try {
      const set = await this.#download()
      this.#keys = { find: createLocalJWKSet(set), since: this.#options.now() }
      this.#failure = undefined
    } catch (error) {
      this.#failure = error
    }
  }

  async #download(): Promise<JSONWebKeySet> {
    const { settings, issuers, reach } = this.#options
    const { issuer } = settings
    const place = settings.jwksUri ?? (await issuers.find({ issuer, reach })).jwks_uri
    if (place === undefined) throw new Error(`The metadata of ${quoted(issuer)} have no jwks_uri: set "jwksUri"`)
    const got = await getObject(place, reach)
    const keys = got.kind === 'object' && 'keys' in got.value ? got.value.keys : undefined
    if (!Array.isArray(keys)) throw new Error(`${quotedAddress(place)} has no keys`)
    return { keys: keys.filter((key) => typeof key === 'object' && key !== null).slice(0, MAX_KEYS) }
  }

  #unavailable(): Fault {
    return new Fault('authUnavailable', 'The token cannot be checked now: the keys of its issuer are unavailable', {
      cause: this.#failure,
      retryAfter: 5,
    })
  }
}
