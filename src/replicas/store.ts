/** The values that all replicas share, kept in Redis for a time. Values are sealed except counts, and keys reveal nothing. */

import { digest, type Sealer } from '../crypto/seal.js'
import { Fault } from '../fault/fault.js'
import type { SharedStore } from '../ports/replicas.js'
import type { Redis } from './redis.js'

/** Where the values are. */
export interface RedisStoreOptions {
  /** Prefix of all keys. */
  prefix: string
  redis: Redis
  sealer(): Sealer
}

/** The `Store` in Redis. */
export class RedisStore implements SharedStore {
  readonly #options: RedisStoreOptions

  constructor(options: RedisStoreOptions) {
    this.#options = options
  }

  async recall(kind: string, name: string): Promise<string | undefined> {
    const key = this.#keyOf(kind, name)
    const sealed = await this.#options.redis.get(key).catch((cause: unknown) => {
      throw new Fault('storeUnavailable', 'Redis is unavailable, so the state that replicas share is too', {
        cause,
        retryAfter: 1,
      })
    })
    return sealed && this.#options.sealer().openBytes(sealed, key)?.toString('utf8')
  }

  async remember(kind: string, name: string, text: string, milliseconds: number): Promise<boolean> {
    const { redis, sealer } = this.#options
    const key = this.#keyOf(kind, name)
    const written = redis.set(key, sealer().sealBytes(Buffer.from(text), key), milliseconds)
    return written.then(
      () => true,
      () => false,
    )
  }

  forget(kind: string, name: string): void {
    this.#options.redis.forget(this.#keyOf(kind, name)).catch(() => {})
  }

  async count(kind: string, name: string, milliseconds: number): Promise<{ current: number; ttl: number }> {
    const { prefix, redis, sealer } = this.#options
    // A name may be an address, which its digest would reveal.
    return redis.count(`${prefix}${kind}:${sealer().hash(name)}`, milliseconds)
  }

  #keyOf(kind: string, name: string): string {
    return `${this.#options.prefix}${kind}:${digest(name)}`
  }
}
