/** What all replicas know, kept in Redis for a time: sealed, under names that tell nothing. */

import type { Store } from '../ports/replicas.js'
import { Fault } from '../protocol/fault.js'
import { digest, type Sealer } from '../seal.js'
import type { Redis } from './redis.js'

export interface RedisStoreOptions {
  /** What all keys begin with. */
  prefix: string
  redis: Redis
  sealer(): Sealer
}

export class RedisStore implements Store {
  readonly #options: RedisStoreOptions

  constructor(options: RedisStoreOptions) {
    this.#options = options
  }

  async recall(kind: string, name: string): Promise<string | undefined> {
    const key = this.#keyOf(kind, name)
    const sealed = await this.#options.redis.get(key).catch((cause: unknown) => {
      throw new Fault('storeUnavailable', 'Redis is not available, in which replicas keep what they share', {
        cause,
        retryAfter: 1,
      })
    })
    return sealed && this.#options.sealer().openBytes(sealed, key)?.toString('utf8')
  }

  async remember(kind: string, name: string, text: string, milliseconds: number): Promise<void> {
    const { redis, sealer } = this.#options
    const key = this.#keyOf(kind, name)
    await redis.set(key, sealer().sealBytes(Buffer.from(text), key), milliseconds).catch(() => {})
  }

  forget(kind: string, name: string): void {
    this.#options.redis.forget(this.#keyOf(kind, name)).catch(() => {})
  }

  #keyOf(kind: string, name: string): string {
    return `${this.#options.prefix}${kind}:${digest(name)}`
  }
}
