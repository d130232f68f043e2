/** Keeps the values that all replicas share until they expire, under keys with a prefix. Values except counts are sealed, names hashed. */

import { digest } from '../../base/crypto/digest.js'
import type { Sealer } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { pause } from '../../base/time/pause.js'
import type { SharedStore } from '../../mcp/ports/replicas.js'
import type { CommonValues, Count } from './common.js'

export interface SealedStoreOptions {
  /** Prefix of all keys. */
  prefix: string
  common: CommonValues
  sealer(): Sealer
}

/** Most attempts to change a value that other replicas change too, and most milliseconds between them. */
const ATTEMPTS = 100
const BETWEEN = 20
/** Milliseconds between two reads while waiting for a value. */
const BETWEEN_READS = 100

/** The SharedStore in what replicas have in common. */
export class SealedStore implements SharedStore {
  readonly #options: SealedStoreOptions

  constructor(options: SealedStoreOptions) {
    this.#options = options
  }

  get lasting(): boolean {
    return this.#options.common.lasting
  }

  async recall(kind: string, name: string, unreadable?: () => void): Promise<string | undefined> {
    const key = this.#keyOf(kind, name)
    const sealed = await this.#run((common) => common.get(key))
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
    const written = this.#options.common.set(key, this.#sealed(text, key), milliseconds)
    return written.then(
      () => true,
      () => false,
    )
  }

  forget(kind: string, name: string): void {
    this.#options.common.delete(this.#keyOf(kind, name)).catch(() => {})
  }

  async change<T>(
    kind: string,
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T> {
    const key = this.#keyOf(kind, name)
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const sealed = await this.#run((common) => common.get(key))
      const before = this.#opened(sealed, key)
      const { text, result } = edit(before)
      if (text === before) return result
      const after = text === undefined ? '' : this.#sealed(text, key)
      const change = { from: sealed ?? '', to: after, milliseconds }
      if (await this.#run((common) => common.swap(key, change))) return result
      await pause(Math.random() * BETWEEN)
    }
    throw new Fault('storeUnavailable', 'Too many replicas change the same value', { retryAfter: 1 })
  }

  claim(kind: string, name: string, milliseconds: number): Promise<boolean> {
    return this.#run((common) => common.add(this.#keyOf(kind, name), '1', milliseconds))
  }

  count(kind: string, name: string, milliseconds: number): Promise<Count> {
    const { prefix, common, sealer } = this.#options
    // A keyed hash: a name may be an IP address, and a plain digest of that can be reversed by trying all.
    return common.increment(`${prefix}${kind}:${sealer().hash(name)}`, milliseconds)
  }

  #sealed(text: string, key: string): string {
    return this.#options.sealer().sealBytes(Buffer.from(text), key).toString('base64')
  }

  #opened(sealed: string | null, key: string): string | undefined {
    if (sealed === null) return undefined
    return this.#options.sealer().openBytes(Buffer.from(sealed, 'base64'), key)?.toString('utf8')
  }

  #run<T>(command: (common: CommonValues) => Promise<T>): Promise<T> {
    return command(this.#options.common).catch((cause: unknown) => {
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
