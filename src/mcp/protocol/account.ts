/** The credentials of one principal for a server, as a type: obtain, renew, and replace refused ones. */
import type { AccountRefusal } from '../../base/fault/fault.js'
import type { Signal } from '../../base/time/hang-up.js'
import { ANONYMOUS } from './call.js'
import type { ShownToken } from './shown-token.js'

/** One principal's credentials for one server. */
export interface Account {
  /** The name of the header with the credential, in lower case; by default that of `Authorization`. */
  readonly header?: string | undefined
  /**
   * The current `Authorization`, without a promise if it is still valid. Undefined if there is none yet. Rejects with a
   * Fault if one is required and cannot be obtained now.
   */
  authorization(signal: Signal): string | undefined | Promise<string | undefined>
  /**
   * To be called when the server has refused `refusal.sent`. Resolves to another `Authorization`, to be tried once.
   * Otherwise rejects with a Fault, whose `needsSignIn` says whether a person must sign in. Never prompts a person.
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
  /** Stores the nonce that the server requires in the next proof, if it names one without refusing the request. */
  nonce?(nonce: string): void
}

/** The request that a proof is for. */
export interface ProvenRequest {
  authorization: string
  method: string
  /** The address, with or without its query. */
  url: string
}

/** Whether a credential is bound to a key, so that each request needs a proof of that key. */
export function needsProof(credential: string | undefined): credential is string {
  return credential?.startsWith('DPoP ') === true
}

/** About the request for which a person is asked to sign in. */
export interface SignInAsking {
  /** The person agreed to open the address, so the sign-in may be in progress. */
  hasAccepted?: boolean | undefined
  /** The name that the client states. */
  client?: string | undefined
}

/** Describes a sign-in to a server, for people. Contains no secrets. */
export interface SignInExplanation {
  /** The authorization server. */
  issuer: string
  resource: string | undefined
  /** Scopes that would be requested; undefined if none are named. */
  scopes: readonly string[] | undefined
  /**
   * How the bridge would identify itself to the authorization server; `none` if it cannot. `guessed`: it would try to
   * register at the server itself, which publishes nothing about signing in.
   */
  client: 'configured' | 'document' | 'registered' | 'guessed' | 'none'
}

/** The sender of a request: its principal, and its token, if the bridge exchanges that. */
export interface Requester {
  principal: string
  grant?: { shown?: ShownToken | undefined } | undefined
}

/** The accounts of one server, by principal. */
export interface AccountsByPrincipal {
  /** The bridge exchanges callers' tokens for tokens of the server. Each caller's token has an account until it expires. */
  readonly onBehalf: boolean
  /**
   * The account of a caller; always the same one for the same principal, or for the same token if `onBehalf`.
   * Undefined if every principal has tokens of its own and this caller is anonymous.
   */
  for(requester: Requester): Account | undefined
  /** The address where principals sign in by themselves; undefined if they cannot. */
  readonly page?: string | undefined
}

/** The person who uses this machine. */
export const LOCAL: Requester = { principal: 'local' }

/** The principals of callers without a credential, over HTTP and on stdio. */
export const NAMELESS: readonly string[] = [ANONYMOUS, LOCAL.principal]

/** Whether a principal is one of several. Where callers do not sign in, all of them are one. */
export function tellsApart(principal: string, passthrough: boolean): boolean {
  return principal !== LOCAL.principal && (principal !== ANONYMOUS || passthrough)
}

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
 * How often one request is repeated with another credential. This is safe, because a server that refuses a credential
 * has not acted on the request.
 */
export const MAX_RETRIES = 2

/** The tool with which a client signs in, while a server requires that. */
export const SIGN_IN_TOOL = 'mcp_bridge_sign_in'
