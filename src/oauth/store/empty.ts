/** Records that have nothing yet, or nothing any more. */
import type { Holder, TokenRecord } from './record.js'

export function emptyRecord({ endpoint, account }: Holder): TokenRecord {
  return { version: 1, endpoint, account, began: [] }
}

/** Whether a record has nothing worth storing. */
export function isEmpty({ client, token, key, pending, lease, asked, refused, ended, began }: TokenRecord): boolean {
  return (
    [client, token, key, pending, lease, asked, refused, ended].every((one) => one === undefined) && began.length === 0
  )
}
