/** Caches merged lists until their parts change. */

import type { Memory } from '../limits/memory.js'
import { CountedCache } from '../policy/counted-cache.js'
import { type Payload, parseObject, write } from '../rpc/splice.js'
import type { ListPage } from './listings.js'

/** The parts of a merged list. */
export interface ListParts {
  method: string
  pages: readonly ListPage[]
  /** The other members of the result. */
  meta: string | undefined
}

/** Most lists, and their bytes. Callers with the same tools share a list. */
const MAX_JOINED_LISTS = 64
const MAX_JOINED_BYTES = 16 * 1024 * 1024

export class JoinedLists {
  readonly #lists: CountedCache<{ bytes: number; list: Payload }>

  constructor(memory: Memory) {
    this.#lists = new CountedCache({ memory, max: MAX_JOINED_LISTS, maxBytes: MAX_JOINED_BYTES })
  }

  /** The merged list of these parts, made by `join` if it is not cached. */
  of({ method, pages, meta = '' }: ListParts, join: () => Payload): Payload {
    let key = method
    for (const { number } of pages) key += ` ${number}`
    key += meta
    const known = this.#lists.get(key)
    if (known) return known.list
    const text = write(join())
    const list = parseObject(text)
    this.#lists.keep(key, { bytes: text.length + key.length, list })
    return list
  }

  /** Drops everything: equal parts may merge differently now. */
  clear(): void {
    this.#lists.clear()
  }

  close(): void {
    this.#lists.close()
  }
}
