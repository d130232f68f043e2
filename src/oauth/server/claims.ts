/** What the claims of a verified token say: whose it is, for whom, and what its owner may do. Pure. */
import { printable } from '../../printable.js'
import type { Grant } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { readScopes } from '../scopes.js'
import type { IssuerSettings } from './settings.js'

export type Claims = Readonly<Record<string, unknown>>

/** The owner of a token, and where it is accepted. */
export interface TokenOwner {
  issuer: string
  subject: string
  grant: Grant
  /** The endpoints that it is for, by their addresses; undefined if it is for all. */
  audience: readonly string[] | undefined
}

/** Clocks differ: seconds. */
export const LEEWAY = 60
const MAX_SUBJECT = 1_024
/** Claims of other kinds of tokens: ID tokens, and tokens that only count with a proof of a key. */
const FOREIGN = ['nonce', 'at_hash', 'c_hash', 's_hash', 'cnf'] as const
/** What other kinds of tokens call themselves, by the claim in which they do: Keycloak's and Cognito's. */
const OTHER_KINDS: Readonly<Record<string, readonly string[]>> = {
  typ: ['ID', 'Refresh', 'Offline', 'Logout'],
  token_use: ['id', 'refresh'],
}
/** Claims that name the application. */
const APPLICATION = ['client_id', 'azp', 'appid', 'cid'] as const

/**
 * Reads the claims of a token whose signature is valid, or that its issuer calls active. Undefined if it is not accepted.
 * Throws a Fault if its groups are needed and left out. `now` is in seconds.
 */
export function ownerOf(claims: Claims, settings: IssuerSettings, now: number): TokenOwner | undefined {
  const { sub, exp, nbf, iat } = claims
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT) return undefined
  if (!isTime(exp) || exp <= now - LEEWAY) return undefined
  for (const from of [nbf, iat]) if (from !== undefined && !(isTime(from) && from <= now + LEEWAY)) return undefined
  if (FOREIGN.some((name) => claims[name] !== undefined)) return undefined
  if (Object.entries(OTHER_KINDS).some(([name, kinds]) => kinds.includes(String(claims[name])))) return undefined
  const required = Object.entries(settings.claims)
  if (!required.every(([name, values]) => textsIn(claims, name).some((one) => values.includes(one)))) return undefined
  const audience = audienceOf(claims, settings)
  if (audience === 'none') return undefined
  const application = APPLICATION.map((name) => claims[name]).find((one) => typeof one === 'string')
  const scopes = new Set([...scopesIn(claims, settings), ...scopesOfGroups(claims, settings)])
  const { issuer } = settings
  return {
    issuer,
    subject: sub,
    grant: { scopes, extensible: true, issuer, subject: sub, application },
    audience: audience === 'all' ? undefined : audience,
  }
}

/** Whether the owner of a token may use it at an endpoint with these addresses. To the byte. */
export function isFor({ audience }: TokenOwner, addresses: ReadonlySet<string>): boolean {
  return audience === undefined || audience.some((one) => addresses.has(one))
}

function audienceOf({ aud }: Claims, { audience = [], claims }: IssuerSettings): readonly string[] | 'all' | 'none' {
  // Some issuers name no audience. Then what the operator requires of other claims has to do.
  if (aud === undefined) return Object.keys(claims).length > 0 ? 'all' : 'none'
  const named = typeof aud === 'string' ? [aud] : aud
  if (!Array.isArray(named) || !named.every((one) => typeof one === 'string')) return 'none'
  return named.some((one) => audience.includes(one)) ? 'all' : named
}

function scopesIn(claims: Claims, { scopes }: IssuerSettings): readonly string[] {
  const names = scopes === undefined ? ['scope', 'scp'] : [scopes]
  return names.flatMap((name) => textsIn(claims, name)).flatMap((text) => readScopes(text))
}

function scopesOfGroups(claims: Claims, { groups, map }: IssuerSettings): readonly string[] {
  if (groups === undefined) return []
  const leftOut = claims['_claim_names']
  if (claims[groups] === undefined && typeof leftOut === 'object' && leftOut !== null && Object.hasOwn(leftOut, groups))
    throw new Fault(
      'groupsUnknown',
      `The token does not have the claim "${printable(groups, 100)}", because this person is in too many groups: it only says in _claim_names where they are. Have the identity provider send only the groups of the application`,
    )
  return textsIn(claims, groups).flatMap((group) => (Object.hasOwn(map, group) ? (map[group] ?? []) : []))
}

/** The texts of a claim, which is one or a list. A name with dots may be a path. */
function textsIn(claims: Claims, name: string): readonly string[] {
  const value = Object.hasOwn(claims, name) ? claims[name] : at(claims, name.split('.'))
  return [value].flat().filter((one) => typeof one === 'string')
}

function at(value: unknown, path: readonly string[]): unknown {
  const [first, ...rest] = path
  if (first === undefined) return value
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, first)) return undefined
  return at((value as Claims)[first], rest)
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
