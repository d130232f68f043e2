/** Keeps the values that all replicas share in Redis until they expire, under keys with `redis.prefix`. Values except counts are sealed, names hashed. */

import { digest } from '../../base/crypto/digest.js'
import type { Sealer } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { pause } from '../../base/time/pause.js'
import type { SharedStore } from '../../mcp/ports/replicas.js'
import type { Keys } from './connection.js'
import type { Redis } from './redis.js'
import { expiring, increment, swap } from './scripts.js'

export interface RedisStoreOptions {
  /** Prefix of all keys. */
  prefix: string
  redis: Redis
  sealer(): Sealer
}

/** Most attempts to change a value that other replicas change too, and most milliseconds between them. */
const ATTEMPTS = 100
const BETWEEN = 20
/** Milliseconds between two reads while waiting for a value. */
const BETWEEN_READS = 100

/** The SharedStore in Redis. */
export class RedisStore implements SharedStore {
  readonly #options: RedisStoreOptions

  constructor(options: RedisStoreOptions) {
    this.#options = options
  }

  async recall(kind: string, name: string, unreadable?: () => void): Promise<string | undefined> {
    const key = this.#keyOf(kind, name)
    const sealed = await this.#run(key, (keys) => keys.get(key))
    const text = this.#opened(sealed, key)
    if (sealed && text === undefined) unreadable?.()
    return text
  }

  /** Reads a value repeatedly until it is wanted, for so many milliseconds. Resolves to the last one. Rejects with a Fault. */
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
      await pause(BETWEEN_READS)
    }
  }

  async remember(kind: string, name: string, text: string, milliseconds: number): Promise<boolean> {
    const key = this.#keyOf(kind, name)
    const sealed = this.#sealed(text, key)
    const written = this.#options.redis.run((keys) => keys.set(key, sealed, expiring(milliseconds)), key)
    return written.then(
      () => true,
      () => false,
    )
  }

  forget(kind: string, name: string): void {
    const key = this.#keyOf(kind, name)
    this.#options.redis.run((keys) => keys.del(key), key).catch(() => {})
  }

  async change<T>(
    kind: string,
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T> {
    const key = this.#keyOf(kind, name)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const sealed = await this.#run(key, (keys) => keys.get(key))
      const before = this.#opened(sealed, key)
      const { text, result } = edit(before)
      if (text === before) return result
      const after = text === undefined ? '' : this.#sealed(text, key)
      const change = { from: sealed ?? '', to: after, milliseconds }
      if (await this.#run(key, (keys) => swap(keys, key, change))) return result
      await pause(Math.random() * BETWEEN)
    }
    throw new Fault('storeUnavailable', 'Too many replicas change the same value', { retryAfter: 1 })
  }

  async claim(kind: string, name: string, milliseconds: number): Promise<boolean> {
    const options = { condition: 'NX', ...expiring(milliseconds) } as const
    const key = this.#keyOf(kind, name)
    return (await this.#run(key, (keys) => keys.set(key, '1', options))) !== null
  }

  count(kind: string, name: string, milliseconds: number): Promise<{ current: number; ttl: number }> {
    const { prefix, redis, sealer } = this.#options
    // A keyed hash: a name may be an IP address, and a plain digest of that can be reversed by trying all.
    const key = `${prefix}${kind}:${sealer().hash(name)}`
    return redis.run((keys) => increment(keys, key, milliseconds), key, 'counts')
  }

  #sealed(text: string, key: string): string {
    return this.#options.sealer().sealBytes(Buffer.from(text), key).toString('base64')
  }

  #opened(sealed: string | null, key: string): string | undefined {
    if (sealed === null) return undefined
    return this.#options.sealer().openBytes(Buffer.from(sealed, 'base64'), key)?.toString('utf8')
  }

  #run<T>(key: string, command: (keys: Keys) => Promise<T>): Promise<T> {
    return this.#options.redis.run(command, key).catch((cause: unknown) => {
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
