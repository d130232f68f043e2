/** Reads, combines and chooses scopes (RFC 6749, 3.3; MCP 2026-07-28, basic/authorization, scope selection). */

const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const MAX_SCOPES = 100
/** The scope for a refresh token (OpenID Connect Core, 11). */
const OFFLINE = 'offline_access'

/** The scope for an ID token (OpenID Connect Core, 3.1.2.1). */
export const OPENID = 'openid'

/** The scopes in a text, each once, in order. Invalid ones are left out. */
export function readScopes(text: string): readonly string[] {
  return union(text.split(/\s+/))
}

/** The valid scopes in all lists, each once; at most MAX_SCOPES. */
export function union(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].filter((scope) => SCOPE.test(scope)).slice(0, MAX_SCOPES)
}

/** Whether all of `wanted` are in `scopes`. */
export function includesAll(scopes: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((scope) => scopes.includes(scope))
}

/** Where scopes are named. */
export interface ScopeSources {
  /** In the configuration: only these, except in a step-up. */
  configured: readonly string[] | undefined
  /** In the server's challenge. */
  challenged: readonly string[] | undefined
  /** In the metadata of the resource. */
  supported: readonly string[] | undefined
  /** In the metadata of the authorization server. */
  offered: readonly string[] | undefined
  /** Requested last; they are kept. */
  before?: readonly string[] | undefined
  /** There is a token, and the challenge names the missing scopes. */
  stepUp?: boolean
}

/**
 * The scopes to request; empty if none are named. `offline_access` is requested if the authorization server offers it,
 * or if it is configured; not because a resource names it.
 */
export function chooseScopes(sources: ScopeSources): readonly string[] {
  const { configured, challenged, supported, offered, before = [], stepUp = false } = sources
  if (configured && !stepUp) return union(configured)
  const named = union(before, challenged ?? (before.length > 0 ? [] : (supported ?? []))).filter(
    (scope) => scope !== OFFLINE || configured?.includes(scope),
  )
  return named.length > 0 && offered?.includes(OFFLINE) ? union(named, [OFFLINE]) : named
}
