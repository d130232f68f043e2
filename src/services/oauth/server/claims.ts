/** Interprets the claims of a verified token: its owner, its audience, its scopes and its times. No side effects. */

import { Fault } from '../../../base/fault/fault.js'
import { printable } from '../../../base/texts/printable.js'
import type { Grant } from '../../../mcp/protocol/call.js'
import { readScopes } from '../scopes.js'
import { namesAt } from './scope-names.js'
import type { IssuerSettings } from './settings.js'

export type Claims = Readonly<Record<string, unknown>>

/** What an issuer says of a token, and how. */
export interface TokenSaid {
  claims: Claims
  /** Signed by the issuer, or its answer to a question about the token (RFC 7662). */
  by: 'signature' | 'introspection'
  /** The `typ` in the header of a JWT. */
  typ?: unknown
}

/** The claim that names the owner. */
type OwnerKind = 'sub' | 'username' | 'client_id'

/** The owner of a token, and where it is accepted. */
export interface TokenOwner {
  issuer: string
  kind: OwnerKind
  /** The name of the owner, of this kind. */
  name: string
  /** When the token ends, in milliseconds since 1970; Infinity if its issuer does not say. */
  expires: number
  grant: Grant
  /** The endpoints that it is for, by their addresses; undefined if it is for all. */
  audience: readonly string[] | undefined
}

/** Why a token is not accepted, for the operator: the expected and the received value. It contains no secret. */
export interface TokenRefusal {
  why: string
}

/** Seconds by which clocks may differ. */
export const LEEWAY_SECONDS = 60
const MAX_SUBJECT = 1_024
/** Most characters of a claim in a message. */
const MAX_SHOWN_CLAIM = 300
const ID_TOKEN = 'which ID tokens have'
/** Claims of other kinds of tokens: ID tokens, and tokens that only count with a proof of a key. */
const FOREIGN: Readonly<Record<string, string>> = {
  at_hash: ID_TOKEN,
  c_hash: ID_TOKEN,
  s_hash: ID_TOKEN,
  cnf: 'which only counts with a proof of a key',
}
/** The types of other kinds of tokens, by the claim with the type: those of Keycloak, Cognito and Ory. */
const OTHER_KINDS: Readonly<Record<string, readonly string[]>> = {
  typ: ['ID', 'Refresh', 'Offline', 'Logout'],
  token_use: ['id', 'id_token', 'refresh', 'refresh_token'],
}
/** What names the owner: a JWT has `sub` (RFC 9068, 2.2), and of a token that is introspected only `active` is required. */
const OWNERS: Readonly<Record<TokenSaid['by'], readonly OwnerKind[]>> = {
  signature: ['sub'],
  introspection: ['sub', 'username', 'client_id'],
}
/** Claims that name the application. */
const APPLICATION = ['client_id', 'azp', 'appid', 'cid'] as const

/**
 * Reads what an issuer says of a token. Throws a Fault if its groups are needed and left out. `now` is in seconds.
 */
export function ownerOf(said: TokenSaid, settings: IssuerSettings, now: number): TokenOwner | TokenRefusal {
  const claims = given(said.claims)
  const kind = OWNERS[said.by].find((one) => claims[one] !== undefined && claims[one] !== '') ?? 'sub'
  const why = whyRefused({ ...said, claims }, kind, settings, now)
  if (why !== undefined) return { why }
  const application = APPLICATION.map((name) => claims[name]).find((one) => typeof one === 'string')
  const scopes = new Set([...scopesIn(claims, settings), ...scopesOfGroups(claims, settings)])
  const { issuer, audience: accepted = [] } = settings
  const name = claims[kind] as string
  const subject = kind === 'sub' ? name : `${kind}:${name}`
  const audience = audienceIn(claims)
  return {
    issuer,
    kind,
    name,
    expires: claims['exp'] === undefined ? Number.POSITIVE_INFINITY : (claims['exp'] as number) * 1_000,
    grant: { scopes, ...furtherScopes(settings), issuer, subject, application },
    audience: audience?.some((one) => accepted.includes(one)) ? undefined : audience,
  }
}

/** Whether the caller can get further scopes: not if a proxy signs people in, which asks for none. */
function furtherScopes(settings: IssuerSettings): Pick<Grant, 'extensible' | 'nameOf'> {
  return settings.header === undefined ? { extensible: true, nameOf: namesAt(settings) } : { extensible: false }
}

/** The claims that have a value. Some issuers send null for what a token does not have. */
export function given(claims: Claims): Claims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== null))
}

/** Whether a token is for an endpoint with these addresses. They are compared byte by byte. */
export function isFor({ audience }: TokenOwner, addresses: ReadonlySet<string>): boolean {
  return audience === undefined || audience.some((one) => addresses.has(one))
}

/** The refusal of a token that is for another endpoint than the one with these addresses. */
export function forAnother(
  { audience }: TokenOwner,
  addresses: ReadonlySet<string>,
  { audience: accepted = [] }: IssuerSettings,
): TokenRefusal {
  return { why: expected('aud', audience, [...addresses, ...accepted]) }
}

/** Says that a value is not one of the expected ones. */
export function expected(name: string, came: unknown, values: readonly string[]): string {
  const wanted = values.map((one) => JSON.stringify(one)).join(' or ')
  return `expected ${name} to be ${wanted}, got ${came === undefined ? 'none' : printable(JSON.stringify(came), MAX_SHOWN_CLAIM)}`
}

function whyRefused(said: TokenSaid, kind: OwnerKind, settings: IssuerSettings, now: number): string | undefined {
  const { claims, by } = said
  const { [kind]: owner, exp, nbf, iat } = claims
  if (typeof owner !== 'string' || owner === '' || owner.length > MAX_SUBJECT)
    return `expected ${owner === undefined ? OWNERS[by].join(' or ') : kind} to be a text of 1 to ${MAX_SUBJECT} characters`
  if (!owner.isWellFormed()) return `expected ${kind} to be a text, got one with half of a surrogate pair`
  if (!isTime(exp) && (by === 'signature' || exp !== undefined)) return 'expected exp to be a time'
  if (isTime(exp) && exp <= now - LEEWAY_SECONDS) return `it has expired ${since(exp, now)}`
  for (const [name, from] of Object.entries({ nbf, iat }))
    if (from !== undefined && !(isTime(from) && from <= now + LEEWAY_SECONDS))
      return `its ${name} is ${isTime(from) ? since(from, now) : 'no time'}: do the clocks differ?`
  const foreign = Object.keys(FOREIGN).find((name) => claims[name] !== undefined)
  if (foreign !== undefined) return `expected an access token, got one with ${foreign}, ${FOREIGN[foreign]}`
  if (claims['nonce'] !== undefined && !isAccessToken(said))
    return `expected an access token, got one with nonce, ${ID_TOKEN}`
  const [other] = Object.entries(OTHER_KINDS).find(([name, kinds]) => kinds.includes(String(claims[name]))) ?? []
  if (other !== undefined) return `expected an access token, got one with ${other} ${JSON.stringify(claims[other])}`
  const required = Object.entries(settings.claims).find(
    ([name, values]) => ![claimOf(claims, name)].flat().some((one) => isWritten(one) && values.includes(String(one))),
  )
  if (required) return expected(required[0], claimOf(claims, required[0]), required[1])
  // Some issuers name no audience. Then the operator's requirements on other claims must suffice.
  if (claims['aud'] === undefined && Object.keys(settings.claims).length > 0) return undefined
  if (claims['aud'] === undefined)
    return 'it has no aud: name values that other claims must have in "claims" of its issuer'
  return audienceIn(claims) ? undefined : `expected aud to be a text or a list of texts, got ${typeof claims['aud']}`
}

/** Whether a token shows that it is an access token: by its type (RFC 9068, Keycloak, Cognito), or by scopes, which ID tokens have not. */
function isAccessToken({ claims, by, typ }: TokenSaid): boolean {
  const isOfType = typeof typ === 'string' && /^(?:application\/)?at\+jwt$/i.test(typ)
  const isBearer = String(claims['typ']).toLowerCase() === 'bearer' || claims['token_use'] === 'access'
  return (
    by === 'introspection' || isOfType || isBearer || ['scope', 'scp'].some((name) => textsIn(claims, name).length > 0)
  )
}

/** A time, for people. `now` is in seconds, too. */
function since(time: number, now: number): string {
  const seconds = Math.round(Math.abs(now - time))
  return `${seconds} s ${time > now ? 'in the future' : 'ago'}`
}

function audienceIn({ aud }: Claims): readonly string[] | undefined {
  const named = typeof aud === 'string' ? [aud] : aud
  return Array.isArray(named) && named.every((one) => typeof one === 'string') ? named : undefined
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

/** The texts of a claim, which is one or a list. */
function textsIn(claims: Claims, name: string): readonly string[] {
  return [claimOf(claims, name)].flat().filter((one) => typeof one === 'string')
}

function claimOf(claims: Claims, name: string): unknown {
  return at(claims, name.split('.'))
}

/** The value at a path. Keys of it may have dots, too: the longest key that leads to a value counts. */
function at(value: unknown, path: readonly string[]): unknown {
  if (path.length === 0) return value
  if (typeof value !== 'object' || value === null) return undefined
  for (let length = path.length; length > 0; length--) {
    const key = path.slice(0, length).join('.')
    const found = Object.hasOwn(value, key) ? at((value as Claims)[key], path.slice(length)) : undefined
    if (found !== undefined && found !== null) return found
  }
  return undefined
}

/** Whether a value of a claim can be written as a text, such as `true` of `email_verified`. */
function isWritten(value: unknown): value is string | number | boolean {
  return ['string', 'number', 'boolean'].includes(typeof value)
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
