/** In whose name a server is asked: what upstream knows of credentials that can be had, renewed and refused. */

export interface Account {
  /**
   * The `Authorization` that is sent now; no promise where it is fresh. Undefined where there is none yet. Rejects with a
   * Fault where there should be one and it cannot be had now.
   */
  authorization(signal: AbortSignal): string | undefined | Promise<string | undefined>
  /**
   * A server has refused what was sent. Resolves to another `Authorization`, to be tried once; rejects with a Fault
   * otherwise, for which `needsSignIn` says whether a person has to sign in.
   */
  refused(refusal: AccountRefusal, signal: AbortSignal): Promise<string>
}

export interface AccountRefusal {
  status: 401 | 403
  /** All lines of `WWW-Authenticate`. */
  challenges: readonly string[]
  /** The `Authorization` that was refused, if one was sent. */
  sent: string | undefined
}
