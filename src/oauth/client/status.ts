/** How an account stands, for people. Nothing of it is secret but the query of an endpoint that has one. */
import type { Client, TokenRecord } from '../store/record.js'

export interface AccountStatus {
  endpoint: string
  account: string
  issuer: string | undefined
  resource: string | undefined
  /** Scopes that are granted. */
  scopes: readonly string[]
  /** How the bridge is known to the issuer. */
  client: Client['how'] | undefined
  /** Milliseconds since 1970; undefined where nobody has said. */
  expires: number | undefined
  /** There is a token that can be used, or renewed without a person. */
  signedIn: boolean
  renewable: boolean
  /** A person is being waited for. */
  pending: boolean
}

export function statusOf({ endpoint, account, token, client, pending }: TokenRecord, now: number): AccountStatus {
  const renewable = token?.refresh !== undefined
  return {
    endpoint,
    account,
    issuer: token?.issuer ?? pending?.issuer,
    resource: token?.resource,
    scopes: token?.granted ?? [],
    client: client?.how,
    expires: token?.expires,
    signedIn: token !== undefined && (renewable || token.expires === undefined || token.expires > now),
    renewable,
    pending: pending !== undefined && pending.claimed === undefined,
  }
}
