/** Scopes: how they are read, put together and chosen (RFC 6749, 3.3; MCP 2026-07-28, basic/authorization, scope selection). */

const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/
const MAX_SCOPES = 100
/** Asks for a refresh token (OpenID Connect Core, 11). */
const OFFLINE = 'offline_access'

/** The scopes of a text, each once, in their order. What is none is left out. */
export function readScopes(text: string): readonly string[] {
  return union(text.split(/\s+/))
}

/** What is in any of the lists, each once. */
export function union(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].filter((scope) => SCOPE.test(scope)).slice(0, MAX_SCOPES)
}

/** Whether all of `wanted` are in `scopes`. */
export function includesAll(scopes: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((scope) => scopes.includes(scope))
}

export interface ScopeSources {
  /** By the configuration: these, and no others but those of a step-up. */
  configured: readonly string[] | undefined
  /** By the server's challenge. */
  challenged: readonly string[] | undefined
  /** By the metadata of the resource. */
  supported: readonly string[] | undefined
  /** By the metadata of the authorization server. */
  offered: readonly string[] | undefined
  /** What was asked for last, and is not to be lost. */
  before?: readonly string[] | undefined
  /** A token is there, and the challenge says what it lacks. */
  stepUp?: boolean
}

/**
 * The scopes to ask for; none at all where nobody names any. `offline_access` is asked for where the authorization server
 * offers it, and only there, unless the configuration wants it: a resource has no use for it.
 */
export function chooseScopes(sources: ScopeSources): readonly string[] {
  const { configured, challenged, supported, offered, before = [], stepUp = false } = sources
  if (configured && !stepUp) return union(configured)
  const named = union(before, challenged ?? (before.length > 0 ? [] : (supported ?? []))).filter(
    (scope) => scope !== OFFLINE || configured?.includes(scope),
  )
  return named.length > 0 && offered?.includes(OFFLINE) ? union(named, [OFFLINE]) : named
}
