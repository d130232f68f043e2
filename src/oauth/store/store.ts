/** Where the records of accounts are kept. */
import type { Holder, TokenRecord } from './record.js'

export interface Store {
  /** Changes whenever the record does. Cheap: it is looked at while requests wait. */
  stamp(key: string): string
  /** Undefined where there is none. Rejects with the fault `storeRefused` where there is one that must not be used. */
  read(key: string): Promise<TokenRecord | undefined>
  /**
   * Changes a record while nobody else does, in any process; one that is not there begins as an empty one of `holder`.
   * Resolves when others can see it. `edit` is short, and may be called again; where it throws, nothing is changed.
   */
  change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T>
  /** Forgets a record. */
  remove(key: string): Promise<void>
  /** All records, and why others are not used. */
  list(): Promise<readonly Listed[]>
}

export interface Listed {
  key: string
  record?: TokenRecord
  refusal?: string
}
