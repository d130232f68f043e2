/** Lists that were put together, to be given again while their parts are the same. */
import { LentCache } from '../policy/lent-cache.js'
import type { Memory } from '../protocol/memory.js'
import { type Payload, parseObject, write } from '../rpc/splice.js'
import type { Page } from './listings.js'

/** What a list is put together of. */
export interface Parts {
  method: string
  pages: readonly Page[]
  /** What is said beside the list. */
  meta: string | undefined
}

/** Most lists, and their bytes. Callers with the same tools have the same list. */
const MAX_LISTS = 64
const MAX_BYTES = 16 * 1024 * 1024

export class JoinedLists {
  readonly #lists: LentCache<{ bytes: number; list: Payload }>

  constructor(memory: Memory) {
    this.#lists = new LentCache({ memory, max: MAX_LISTS, maxBytes: MAX_BYTES })
  }

  /** The list of these parts, which `join` puts together if that has not been done yet. */
  of({ method, pages, meta = '' }: Parts, join: () => Payload): Payload {
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

  /** Forgets all: the same parts may be put together in another way. */
  clear(): void {
    this.#lists.clear()
  }

  close(): void {
    this.#lists.close()
  }
}
