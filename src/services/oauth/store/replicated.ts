/** Records that all replicas share, sealed in Redis. Any replica can start a sign-in, finish it and use its token. */
import { BoundedMap } from '../../../base/limits/bounded.js'
import { emptyRecord, isEmpty } from './empty.js'
import { type Holder, recordSchema, type TokenRecord } from './record.js'
import type { ListedRecord, ReadHow, TokenStore } from './store.js'

/** Where the records are: values that change as if nobody else changed them at the same time. */
export interface SharedRecords {
  recall(kind: string, name: string): Promise<string | undefined>
  change<T>(
    kind: string,
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T>
}

const KIND = 'account'
/** Milliseconds for which a record is kept after its last change: longer than most refresh tokens hold. */
const KEPT = 90 * 86_400_000
/** Milliseconds for which a record counts as unchanged. */
const FRESH = 500
/** Most records that are remembered for when Redis is unreachable. */
const MAX_REMEMBERED = 10_000

/** The store. */
export class ReplicatedStore implements TokenStore {
  readonly #records: SharedRecords
  /** As last read. */
  readonly #known = new BoundedMap<string, TokenRecord>(MAX_REMEMBERED)
  #changes = 0

  constructor(records: SharedRecords) {
    this.#records = records
  }

  /** Other replicas may change a record at any time, so a stamp does not hold for long. */
  stamp(_key: string): string {
    return `${this.#changes} ${Math.floor(performance.now() / FRESH)}`
  }

  async read(key: string, { certain = false }: ReadHow = {}): Promise<TokenRecord | undefined> {
    try {
      const record = recordIn(await this.#records.recall(KIND, key))
      this.#remember(key, record)
      return record
    } catch (error) {
      // Calls with a known token continue.
      const known = certain ? undefined : this.#known.get(key)
      if (known) return structuredClone(known)
      throw error
    }
  }

  async change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T> {
    const { result, draft } = await this.#records.change(KIND, key, KEPT, (text) => {
      const draft = recordIn(text) ?? emptyRecord(holder)
      const result = edit(draft)
      return { text: isEmpty(draft) ? undefined : JSON.stringify(recordSchema.parse(draft)), result: { result, draft } }
    })
    this.#changes++
    this.#remember(key, isEmpty(draft) ? undefined : draft)
    return result
  }

  async remove(key: string): Promise<void> {
    await this.#records.change(KIND, key, KEPT, () => ({ text: undefined, result: undefined }))
    this.#changes++
    this.#remember(key, undefined)
  }

  /** Nobody can list them: Redis has digests of their keys. */
  list(): Promise<readonly ListedRecord[]> {
    return Promise.resolve([])
  }

  #remember(key: string, record: TokenRecord | undefined): void {
    if (record) this.#known.set(key, structuredClone(record))
    else this.#known.delete(key)
  }
}

/** The record in a text; undefined if there is none, or if this version does not support it. */
function recordIn(text: string | undefined): TokenRecord | undefined {
  const parsed = text === undefined ? undefined : recordSchema.safeParse(JSON.parse(text))
  return parsed?.success ? parsed.data : undefined
}
