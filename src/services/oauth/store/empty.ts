/** Empty records of accounts: how one begins, and which ones have nothing worth storing. */
import type { Holder, TokenRecord } from './record.js'

export function emptyRecord({ endpoint, account }: Holder): TokenRecord {
  return { version: 1, endpoint, account, began: [] }
}

/** Whether a record has nothing worth storing. */
export function isEmpty({ began, ...record }: TokenRecord): boolean {
  const { client, token, apiKey, key, pending, lease, asked, refused, ended } = record
  return (
    [client, token, apiKey, key, pending, lease, asked, refused, ended].every((one) => one === undefined) &&
    began.length === 0
  )
}
