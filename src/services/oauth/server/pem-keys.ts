/**
 * Public keys that an issuer publishes one by one, as PEM, at addresses with their ids: those of AWS load balancers. A key is
 * fetched with the first token that names it.
 */
import { errors, importSPKI, type JWTHeaderParameters, type JWTVerifyGetKey } from 'jose'
import { Fault } from '../../../base/fault/fault.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import { afterOneMore, type Pace, waitFor } from '../../../base/limits/pace.js'
import { guardedRequest } from '../../../base/net/fetch.js'
import type { IssuerState } from '../../../mcp/ports/events.js'
import type { Reach } from '../reach.js'
import type { IssuerKeys } from './key-set.js'

/** Stands for the id of a key in an address. */
export const KID = '{kid}'

const KEY_ID = /^[\w-]{1,128}$/
const MAX_PEM_BYTES = 16 * 1024
const MAX_PEM_KEYS = 32
/** Milliseconds for which a key is used. */
const KEPT = 86_400_000
/** Milliseconds for which an unknown key stays unknown, and most such keys. */
const UNKNOWN = 60_000
const MAX_UNKNOWN_PEM = 1_000
/** Fetches, whatever keys tokens name. */
const FETCHES: Pace = { burst: 10, every: 5_000 }

type Key = ReturnType<typeof importSPKI>

export interface PemKeysOptions {
  issuer: string
  /** The address of a key, with KID. */
  place: string
  reach: Reach
  /** In milliseconds. */
  now: () => number
}

export class PemKeys implements IssuerKeys {
  readonly alias = undefined
  readonly moment = 0
  readonly mayCompare = false
  readonly #options: PemKeysOptions
  readonly #keys = new BoundedMap<string, { until: number; key: Key }>(MAX_PEM_KEYS)
  readonly #unknown = new BoundedMap<string, number>(MAX_UNKNOWN_PEM)
  /** When all fetches so far would have been allowed, one after the other. */
  #spent = Number.NEGATIVE_INFINITY
  #last: { why?: string | undefined } | undefined

  constructor(options: PemKeysOptions) {
    this.#options = options
  }

  get state(): IssuerState {
    const { issuer } = this.#options
    if (this.#last?.why !== undefined) return { issuer, state: 'down', why: this.#last.why }
    return { issuer, state: this.#last ? 'up' : 'unknown' }
  }

  /** Nothing is known of keys before a token names one. */
  async prepare(): Promise<void> {}

  close(): void {}

  async known(): Promise<JWTVerifyGetKey> {
    return this.#find
  }

  async after(): Promise<JWTVerifyGetKey> {
    return this.#find
  }

  isUnknown(key: string): boolean {
    return (this.#unknown.get(key) ?? 0) > this.#options.now()
  }

  noteUnknown(key: string): void {
    this.#unknown.set(key, this.#options.now() + UNKNOWN)
  }

  readonly #find = (header: JWTHeaderParameters): Key => {
    const { kid, alg } = header
    if (typeof kid !== 'string' || !KEY_ID.test(kid)) throw new errors.JWKSNoMatchingKey()
    if (this.isUnknown(kid)) throw new errors.JWKSNoMatchingKey()
    const known = this.#keys.get(kid)
    if (known && known.until > this.#options.now()) return known.key
    const key = this.#fetch(kid, alg)
    this.#keys.set(kid, { until: this.#options.now() + KEPT, key })
    key.catch(() => {
      if (this.#keys.get(kid)?.key === key) this.#keys.delete(kid)
    })
    return key
  }

  async #fetch(kid: string, alg: string): Promise<Awaited<Key>> {
    const { place, reach } = this.#options
    this.#spend()
    const answer = await guardedRequest(place.replaceAll(KID, kid), { ...reach, maxBytes: MAX_PEM_BYTES }).catch(
      (error: unknown) => {
        throw this.#unavailable(error instanceof Error ? error.message : String(error), error)
      },
    )
    const { status, bytes } = answer
    if (status === 403 || status === 404) {
      this.noteUnknown(kid)
      throw new errors.JWKSNoMatchingKey()
    }
    if (status !== 200) throw this.#unavailable(`it answers HTTP ${status}`)
    const key = await importSPKI(new TextDecoder().decode(bytes), alg).catch((error: unknown) => {
      throw this.#unavailable('it answers with what is no public key', error)
    })
    this.#last = {}
    return key
  }

  #spend(): void {
    const now = this.#options.now()
    const wait = waitFor(FETCHES, this.#spent, now)
    if (wait > 0)
      throw new Fault('authUnavailable', 'The assertion cannot be checked now: many keys were fetched a moment ago', {
        retryAfter: Math.ceil(wait / 1_000),
      })
    this.#spent = afterOneMore(FETCHES, this.#spent, now)
  }

  #unavailable(why: string, cause?: unknown): Fault {
    this.#last = { why }
    return new Fault('authUnavailable', `The assertion cannot be checked now: its key is unavailable: ${why}`, {
      cause,
      retryAfter: 5,
    })
  }
}
