/** Remembers the indexes of the tools of a group's servers: by content, so that callers with the same tools share them. */

import { type Memory, NOBODY, SMALL } from '../../base/limits/memory.js'
import { CountedCache } from '../policy/counted-cache.js'
import type { ListLog } from './list-log.js'
import type { WholeList } from './lists.js'
import { indexOf, type ToolIndex } from './tool-index.js'

/** Most indexes of a group, and their bytes. The servers of a search have equal shares; what one does not need, others have. */
const MAX_INDEXES = 4_096
const MAX_INDEX_BYTES = 32 * 1024 * 1024

/** An index, and how many bytes it was allowed to take. */
interface Kept {
  bytes: number
  most: number
  index: ToolIndex
}

export class ToolIndexes {
  readonly #memory: Memory
  readonly #log: Pick<ListLog, 'cut'>
  readonly #maxBytes: number
  readonly #kept: CountedCache<Kept>
  /** Indexes that are being made. */
  readonly #making = new Map<string, Promise<ToolIndex>>()

  constructor(memory: Memory, log: Pick<ListLog, 'cut'>, maxBytes = MAX_INDEX_BYTES) {
    this.#memory = memory
    this.#log = log
    this.#maxBytes = maxBytes
    this.#kept = new CountedCache({ memory, max: MAX_INDEXES, maxBytes })
  }

  /** The indexes of these lists of tools, in the same order. One may end before its list does. */
  async of(lists: readonly WholeList[]): Promise<ToolIndex[]> {
    const indexes = new Map<WholeList, ToolIndex>()
    let left = this.#maxBytes
    for (const [at, list] of lists.toSorted((a, b) => a.items.length - b.items.length).entries()) {
      const index = await this.#one(list, Math.floor(left / (lists.length - at)))
      left -= index.bytes
      indexes.set(list, index)
    }
    return lists.map((list) => indexes.get(list) as ToolIndex)
  }

  close(): void {
    this.#kept.close()
  }

  async #one(list: WholeList, most: number): Promise<ToolIndex> {
    const kept = this.#kept.get(list.key)
    const isWhole = kept?.index.count === list.items.length
    if (kept && kept.bytes <= most && (isWhole || kept.most >= most)) return kept.index
    const key = `${most} ${list.key}`
    const making = this.#making.get(key) ?? this.#make(list, most)
    this.#making.set(key, making)
    return making.finally(() => this.#making.delete(key))
  }

  async #make({ member, key, items }: WholeList, most: number): Promise<ToolIndex> {
    const reservation = this.#memory.reserve(NOBODY, SMALL)
    let index: ToolIndex
    try {
      const texts = items.map(({ text }) => text)
      index = await indexOf(texts, most, (bytes) => reservation.resize(bytes) === undefined)
    } finally {
      reservation.end()
    }
    this.#kept.keep(key, { bytes: index.bytes, most, index })
    if (index.count < items.length)
      this.#log.cut(member, 'tools/list', `the index has room for ${index.count} of ${items.length} tools`)
    return index
  }
}
