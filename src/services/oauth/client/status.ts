/** The state of an account, for people. It has no secret, except the query of an endpoint that has one. */
import type { Client, TokenRecord } from '../store/record.js'

/** The state of an account. */
export interface AccountStatus {
  endpoint: string
  account: string
  issuer: string | undefined
  resource: string | undefined
  /** Granted scopes. */
  scopes: readonly string[]
  /** How the bridge is known to the issuer. */
  client: Client['how'] | undefined
  /** Milliseconds since 1970; undefined if unknown. */
  expires: number | undefined
  /** There is a key, or a token that is valid or can be renewed without a person. */
  signedIn: boolean
  renewable: boolean
  /** Waiting for a person. */
  pending: boolean
}

/** The state of the account of a record. */
export function statusOf(record: TokenRecord, now: number): AccountStatus {
  const { endpoint, account, token, apiKey, client, pending, device } = record
  const renewable = token?.refresh !== undefined
  return {
    endpoint,
    account,
    issuer: token?.issuer ?? (pending ?? device)?.issuer,
    resource: token?.resource,
    scopes: token?.granted ?? [],
    client: client?.how,
    expires: token?.expires,
    signedIn: apiKey !== undefined || (token !== undefined && (renewable || (token.expires ?? Infinity) > now)),
    renewable,
    pending: (pending !== undefined && pending.claimed === undefined) || (device !== undefined && device.until > now),
  }
}
