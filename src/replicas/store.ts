/** The values that all replicas share, kept in Redis for a time. Values are sealed except counts, and keys reveal nothing. */

import { digest } from '../crypto/digest.js'
import type { Sealer } from '../crypto/seal.js'
import { Fault } from '../fault/fault.js'
import type { SharedStore } from '../ports/replicas.js'
import { pause } from '../time/pause.js'
import type { Redis } from './redis.js'

/** Where the values are. */
export interface RedisStoreOptions {
  /** Prefix of all keys. */
  prefix: string
  redis: Redis
  sealer(): Sealer
}

/** Most attempts to change a value that others change, too, and milliseconds between them. */
const ATTEMPTS = 100
const BETWEEN = 20
/** Milliseconds between two looks for a value. */
const BETWEEN_LOOKS = 100

/** The `Store` in Redis. */
export class RedisStore implements SharedStore {
  readonly #options: RedisStoreOptions

  constructor(options: RedisStoreOptions) {
    this.#options = options
  }

  async recall(kind: string, name: string): Promise<string | undefined> {
    const key = this.#keyOf(kind, name)
    return this.#opened(await this.#asked(this.#options.redis.get(key)), key)
  }

  /**
   * Looks for a value until it is the one that is wanted, for so many milliseconds. Resolves to what it was last. Rejects with a
   * Fault.
   */
  async waitFor(
    kind: string,
    name: string,
    milliseconds: number,
    isWanted: (text: string) => boolean = () => true,
  ): Promise<string | undefined> {
    const until = performance.now() + milliseconds
    for (;;) {
      const text = await this.recall(kind, name)
      if ((text !== undefined && isWanted(text)) || performance.now() > until) return text
      await pause(BETWEEN_LOOKS)
    }
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

  async change<T>(
    kind: string,
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T> {
    const { redis, sealer } = this.#options
    const key = this.#keyOf(kind, name)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const sealed = await this.#asked(redis.get(key))
      const before = this.#opened(sealed, key)
      const { text, result } = edit(before)
      if (text === before) return result
      const after = text === undefined ? undefined : sealer().sealBytes(Buffer.from(text), key)
      if (await this.#asked(redis.swap(key, sealed, after, milliseconds))) return result
      await pause(Math.random() * BETWEEN)
    }
    throw new Fault('storeUnavailable', 'Too many replicas change the same value', { retryAfter: 1 })
  }

  async claim(kind: string, name: string, milliseconds: number): Promise<boolean> {
    return this.#asked(this.#options.redis.claim(this.#keyOf(kind, name), milliseconds))
  }

  async count(kind: string, name: string, milliseconds: number): Promise<{ current: number; ttl: number }> {
    const { prefix, redis, sealer } = this.#options
    // A name may be an address, which its digest would reveal.
    return redis.count(`${prefix}${kind}:${sealer().hash(name)}`, milliseconds)
  }

  #opened(sealed: Buffer | undefined, key: string): string | undefined {
    return sealed && this.#options.sealer().openBytes(sealed, key)?.toString('utf8')
  }

  #asked<T>(asking: Promise<T>): Promise<T> {
    return asking.catch((cause: unknown) => {
      throw new Fault('storeUnavailable', 'Redis is unavailable, so the state that replicas share is too', {
        cause,
        retryAfter: 1,
      })
    })
  }

  #keyOf(kind: string, name: string): string {
    return `${this.#options.prefix}${kind}:${digest(name)}`
  }
}
