/** The interface of stores for the records of accounts. */
import type { Holder, TokenRecord } from './record.js'

/** How to read a record. */
export interface ReadHow {
  /** Rejects if the store cannot be reached, also if it remembers the record. */
  certain?: boolean
}

/** A store. All processes with the same folder share it. */
export interface TokenStore {
  /** Changes whenever the record does. Cheap: called while requests wait. */
  stamp(key: string): string
  /** Undefined if there is none. Rejects with the fault `storeRefused` if there is one that must not be used. */
  read(key: string, how?: ReadHow): Promise<TokenRecord | undefined>
  /**
   * Changes a record under a lock across processes; a missing one starts as the empty record of `holder`. Resolves when
   * others can see the change. `edit` must be short and may be called again; if it throws, nothing is changed.
   */
  change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T>
  /** Removes a record. */
  remove(key: string): Promise<void>
  /** All records, and why others cannot be used. */
  list(): Promise<readonly ListedRecord[]>
}

/** A record, or why it cannot be used. */
export interface ListedRecord {
  key: string
  record?: TokenRecord
  refusal?: string
}
