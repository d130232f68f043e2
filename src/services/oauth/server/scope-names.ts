/**
 * The names by which clients request scopes at an identity provider, where it gives them other names in its tokens: Entra is
 * asked for `api://<id>/mcp`, and its tokens say `mcp`. No side effects.
 */
import type { Grant } from '../../../mcp/protocol/call.js'
import { union } from '../scopes.js'
import type { IssuerSettings } from './settings.js'

/**
 * The names of scopes for callers with tokens of an issuer; a scope has none if its facade does not request it, because they
 * cannot get it then. Undefined if every scope is requested by the name that tokens have.
 */
export function namesAt({ scopeNames = {}, facade }: Pick<IssuerSettings, 'scopeNames' | 'facade'>): Grant['nameOf'] {
  const names = new Map(Object.entries(scopeNames))
  const { scopes } = facade ?? {}
  if (scopes === undefined && names.size === 0) return undefined
  return (scope) => names.get(scope) ?? (scopes === undefined || scopes.includes(scope) ? scope : undefined)
}

/**
 * What is requested at the provider for a client that asks for these scopes, by either name. `own` are requested in any case;
 * beside them, only scopes with a second name.
 */
export function atProvider(
  asked: readonly string[],
  own: readonly string[] | undefined,
  scopeNames: IssuerSettings['scopeNames'] = {},
): readonly string[] {
  const names = new Map(Object.entries(scopeNames))
  const named = asked.map((scope) => names.get(scope) ?? scope)
  if (own === undefined) return union(named)
  const known = new Set(names.values())
  return union(
    own,
    named.filter((name) => known.has(name)),
  )
}
