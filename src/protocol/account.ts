/** In whose name a server is asked: what the rest of the bridge knows of credentials that can be had, renewed and refused. */

export interface Account {
  /**
   * The `Authorization` that is sent now; no promise where it is fresh. Undefined where there is none yet. Rejects with a
   * Fault where there should be one and it cannot be had now.
   */
  authorization(signal: AbortSignal): string | undefined | Promise<string | undefined>
  /**
   * A server has refused what was sent. Resolves to another `Authorization`, to be tried once; rejects with a Fault
   * otherwise, for which `needsSignIn` says whether a person has to sign in. Nobody is asked to.
   */
  refused(refusal: AccountRefusal, signal: AbortSignal): Promise<string>
  /**
   * Has a person sign in because of a refusal, if there is one who can be asked, and waits for them. Only for requests of
   * clients. Rejects with a Fault.
   */
  signIn(refusal: AccountRefusal, signal: AbortSignal): Promise<string>
}

export interface AccountRefusal {
  status: 401 | 403
  /** All lines of `WWW-Authenticate`. */
  challenges: readonly string[]
  /** The `Authorization` that was refused, if one was sent. */
  sent: string | undefined
}

/** The accounts that one server can be asked in. */
export interface AccountsByPrincipal {
  /**
   * The same one for the same principal. Undefined for callers who cannot be told from others, where each has tokens of their
   * own.
   */
  for(principal: string): Account | undefined
}

/**
 * What a server has refused for want of another credential: 401, or a 403 that asks for further scopes (RFC 6750, 3.1).
 * Undefined for every other answer.
 */
export function refusedCredential(
  status: number,
  header: string | readonly string[] | undefined,
  sent: string | undefined,
): AccountRefusal | undefined {
  if (status !== 401 && status !== 403) return undefined
  const challenges = header === undefined ? [] : typeof header === 'string' ? [header] : header
  if (status === 403 && !challenges.some((line) => line.includes('insufficient_scope'))) return undefined
  return { status, challenges, sent }
}

/** Times that one request is sent again with another credential: the server has not acted on what it refused so. */
export const MAX_RETRIES = 2
