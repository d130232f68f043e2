/** Credentials for a server: getting them, renewing them, and what to do when the server refuses them. */
import type { AccountRefusal } from '../fault/fault.js'
import type { Signal } from '../time/hang-up.js'
import type { ShownToken } from './shown-token.js'

/** One principal's credentials for one server. */
export interface Account {
  /**
   * The `Authorization` to send now; not a promise if it is fresh. Undefined if there is none yet. Rejects with a Fault
   * if one is required and cannot be obtained now.
   */
  authorization(signal: Signal): string | undefined | Promise<string | undefined>
  /**
   * The server has refused `refusal.sent`. Resolves to another `Authorization`, to be tried once. Otherwise rejects
   * with a Fault; `needsSignIn` tells whether a person must sign in. Never prompts a person.
   */
  refused(refusal: AccountRefusal, signal: Signal): Promise<string>
  /**
   * Starts a sign-in because of a refusal, if a person can be prompted, and waits until it ends. Only for requests of
   * clients. Rejects with a Fault.
   */
  signIn(refusal: AccountRefusal, signal: Signal, asking?: SignInAsking): Promise<string>
  /**
   * The `DPoP` header for one request: proves that its sender has the key of the credential (RFC 9449, 4). Absent if no
   * credential of the account needs it.
   */
  proof?(request: ProvenRequest): Promise<string>
  /** The server has named the nonce for the next proof, in an answer that was no refusal. */
  nonce?(nonce: string): void
}

/** What a proof is for. */
export interface ProvenRequest {
  authorization: string
  method: string
  /** The address, with or without its query. */
  url: string
}

/** Whether a credential is bound to a key, so that each request needs a proof of that. */
export function needsProof(credential: string | undefined): credential is string {
  return credential?.startsWith('DPoP ') === true
}

/** The request for which a person is asked to sign in. */
export interface SignInAsking {
  /** The person agreed to open the address, so the sign-in may be under way. */
  hasAccepted?: boolean | undefined
  /** The name of the client, as it says. */
  client?: string | undefined
}

/** How a sign-in to a server would go, for people. Nothing of it is secret. */
export interface SignInExplanation {
  /** The authorization server. */
  issuer: string
  resource: string | undefined
  /** Scopes that would be requested; undefined if none are named. */
  scopes: readonly string[] | undefined
  /** How the bridge would be known to the authorization server; `none` if it cannot be. */
  client: 'configured' | 'document' | 'registered' | 'none'
}

/** Who sends a request: a principal, and the token that it has shown, if the bridge exchanges that. */
export interface Requester {
  principal: string
  grant?: { shown?: ShownToken | undefined } | undefined
}

/** The accounts of one server, by principal. */
export interface AccountsByPrincipal {
  /** Tokens are exchanged for those that callers show: each of these has an account of its own, as long as it holds. */
  readonly onBehalf: boolean
  /**
   * The account of a caller; always the same one for the same principal, or for the same token if `onBehalf`.
   * Undefined if every principal has tokens of its own and this caller is anonymous.
   */
  for(requester: Requester): Account | undefined
  /** The address where principals sign in by themselves; undefined if they cannot. */
  readonly page?: string | undefined
}

/** The person at this machine. */
export const LOCAL: Requester = { principal: 'local' }

/**
 * The refusal in an HTTP response: 401, or a 403 that asks for more scopes (RFC 6750, 3.1). Undefined for every other
 * response.
 */
export function refusedCredential(
  status: number,
  header: string | readonly string[] | undefined,
  sent: string | undefined,
  nonce?: string,
): AccountRefusal | undefined {
  if (status !== 401 && status !== 403) return undefined
  const challenges = header === undefined ? [] : typeof header === 'string' ? [header] : header
  if (status === 403 && !challenges.some((line) => line.includes('insufficient_scope'))) return undefined
  return { status, challenges, sent, nonce }
}

/**
 * Times that one request is sent again with another credential. A server that refuses a credential has not acted on the
 * request.
 */
export const MAX_RETRIES = 2

/** The tool with which a client signs in, while a server requires that. */
export const SIGN_IN_TOOL = 'mcp_bridge_sign_in'
