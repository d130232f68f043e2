/** Records in memory, for as long as the process runs. */
import { emptyRecord, isEmpty } from './empty.js'
import type { Holder, TokenRecord } from './record.js'
import type { ListedRecord, TokenStore } from './store.js'

/** The store. */
export class MemoryStore implements TokenStore {
  readonly #records = new Map<string, { record: TokenRecord; stamp: string }>()
  #changes = 0

  has(key: string): boolean {
    return this.#records.has(key)
  }

  stamp(key: string): string {
    return this.#records.get(key)?.stamp ?? ''
  }

  read(key: string): Promise<TokenRecord | undefined> {
    return Promise.resolve(structuredClone(this.#records.get(key)?.record))
  }

  async change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T> {
    const draft = structuredClone(this.#records.get(key)?.record) ?? emptyRecord(holder)
    const result = edit(draft)
    this.put(key, draft)
    return result
  }

  put(key: string, record: TokenRecord): void {
    if (isEmpty(record)) this.#records.delete(key)
    else this.#records.set(key, { record, stamp: String(++this.#changes) })
  }

  remove(key: string): Promise<void> {
    this.#records.delete(key)
    return Promise.resolve()
  }

  list(): Promise<readonly ListedRecord[]> {
    return Promise.resolve([...this.#records].map(([key, { record }]) => ({ key, record: structuredClone(record) })))
  }
}
