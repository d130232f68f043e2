/**
 * Checks access tokens of identity providers (MCP 2026-07-28, basic/authorization, token handling): JWTs by the keys of
 * their issuer, others by asking it. Only addresses of configured issuers are contacted, whatever a token says.
 */
import { createHash, hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import type { Grant } from '../../protocol/call.js'
import { Issuers } from '../issuers.js'
import { type Network, reachOf } from '../reach.js'
import { type Claims, isFor, LEEWAY, ownerOf, type TokenOwner } from './claims.js'
import { Facade } from './facade.js'
import { Introspection } from './introspection.js'
import { KeySet } from './key-set.js'
import type { IssuerSettings } from './settings.js'

export interface VerifierOptions {
  issuers: readonly IssuerSettings[]
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  network?: Network | undefined
  /** In milliseconds since 1970. */
  now?: (() => number) | undefined
}

/** Whose a token is, and what it allows. */
export interface Verified {
  principal: string
  grant: Grant
}

interface Known {
  owner: TokenOwner
  verified: Verified
  /** In milliseconds since 1970. */
  until: number
}

const MAX_TOKEN = 16_384
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** What access tokens call themselves, in lower case. Some issuers leave it out. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt']
/** Milliseconds for which a checked token is not checked again: a JWT, another one, and one that is not active. */
const KEPT = 60_000
const KEPT_ACTIVE = 30_000
const KEPT_REFUSED = 5_000
const MAX_KNOWN = 10_000

export class Verifier {
  readonly #now: () => number
  readonly #issuers: ReadonlyMap<string, { settings: IssuerSettings; keys: KeySet }>
  /** Stands before an issuer where clients cannot register; undefined without one. */
  readonly facade: Facade | undefined
  readonly #introspection: { settings: IssuerSettings; asked: Introspection } | undefined
  /** By digest, in the order in which they were checked. */
  readonly #known = new Map<string, Known>()
  /** When tokens may be asked about again, by digest. */
  readonly #refused = new Map<string, number>()
  readonly #running = new Map<string, Promise<Known | undefined>>()

  constructor({ issuers: configured, allow, network = {}, now = Date.now }: VerifierOptions) {
    this.#now = now
    const issuers = new Issuers(now)
    const parts = configured.map((settings) => {
      const { issuer, jwksUri } = settings
      const reach = reachOf(issuer, { allow, authServerMetadataUrl: jwksUri }, network)
      return { settings, reach, keys: new KeySet({ settings, issuers, reach, now }) }
    })
    this.#issuers = new Map(parts.map((part) => [part.settings.issuer, part]))
    const [fronted] = parts.flatMap(({ settings: { issuer, facade }, reach }) =>
      facade ? [{ issuer, settings: facade, reach, issuers }] : [],
    )
    this.facade = fronted && new Facade(fronted)
    const asked = parts.find(({ settings }) => settings.introspection)
    this.#introspection = asked && { settings: asked.settings, asked: new Introspection({ ...asked, issuers }) }
  }

  /**
   * Whose a token is, if it is accepted at an endpoint with these addresses. At once if it was checked before. Rejects with a
   * Fault if it cannot be checked now, or if it leaves out what is needed.
   */
  readonly verify = (
    token: string,
    addresses: ReadonlySet<string>,
  ): Verified | undefined | Promise<Verified | undefined> => {
    if (token.length > MAX_TOKEN) return undefined
    const digest = hash('sha256', token, 'base64')
    const known = this.#known.get(digest)
    if (known && known.until > this.#now()) return isFor(known.owner, addresses) ? known.verified : undefined
    return this.#check(token, digest).then((one) => one && (isFor(one.owner, addresses) ? one.verified : undefined))
  }

  /** Checks a token, once for all that show it meanwhile. */
  #check(token: string, digest: string): Promise<Known | undefined> {
    let running = this.#running.get(digest)
    if (!running) {
      running = this.#checkNow(token, digest).finally(() => this.#running.delete(digest))
      this.#running.set(digest, running)
    }
    return running
  }

  async #checkNow(token: string, digest: string): Promise<Known | undefined> {
    const isJwt = JWT.test(token)
    const owner = isJwt ? await this.#ownerOfJwt(token) : await this.#ownerOfOther(token, digest)
    if (!owner) return undefined
    const { claims, settings, ms } = owner
    const found = ownerOf(claims, settings, this.#now() / 1_000)
    if (!found) return undefined
    const until = Math.min((claims['exp'] as number) * 1_000, this.#now() + ms)
    const known = { owner: found, verified: { principal: principalOf(found), grant: found.grant }, until }
    keep(this.#known, digest, known, (one) => one.until <= this.#now())
    return known
  }

  async #ownerOfJwt(token: string): Promise<Checked | undefined> {
    const issuer = this.#issuerOf(token)
    if (!issuer) return undefined
    const { settings, keys } = issuer
    const known = await keys.known()
    const claims = await this.#verified(token, settings, known)
    if (claims !== 'no key') return claims && { claims, settings, ms: KEPT }
    const renewed = await keys.renewed(known)
    const again = renewed && (await this.#verified(token, settings, renewed))
    return again === undefined || again === 'no key' ? undefined : { claims: again, settings, ms: KEPT }
  }

  /** The configured issuer that a token names, if its header is acceptable. Nothing of it is believed. */
  #issuerOf(token: string): { settings: IssuerSettings; keys: KeySet } | undefined {
    try {
      const { alg, typ, crit } = decodeProtectedHeader(token)
      const { iss } = decodeJwt(token)
      const found = iss === undefined ? undefined : this.#issuers.get(iss)
      const isKnown = TYPES.includes(typeof typ === 'string' ? typ.toLowerCase() : typ)
      return isKnown && crit === undefined && found?.settings.algorithms.includes(alg ?? '') ? found : undefined
    } catch {
      return undefined
    }
  }

  /** The claims of a JWT. Undefined if it is not valid, `no key` if it is signed with a key that is not there. */
  async #verified(
    token: string,
    settings: IssuerSettings,
    find: JWTVerifyGetKey,
  ): Promise<Claims | undefined | 'no key'> {
    const options = {
      issuer: settings.issuer,
      algorithms: [...settings.algorithms],
      clockTolerance: LEEWAY,
      requiredClaims: ['sub', 'exp'],
      currentDate: new Date(this.#now()),
    }
    try {
      return (await jwtVerify(token, find, options)).payload
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return 'no key'
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return undefined
      // The token does not say which: one of them fits.
      for await (const key of error) {
        const payload = await jwtVerify(token, key, options).then(
          (verified) => verified.payload,
          () => undefined,
        )
        if (payload) return payload
      }
      return undefined
    }
  }

  async #ownerOfOther(token: string, digest: string): Promise<Checked | undefined> {
    if (!this.#introspection || (this.#refused.get(digest) ?? 0) > this.#now()) return undefined
    const { settings, asked } = this.#introspection
    const claims = await asked.claimsOf(token)
    if (claims) return { claims, settings, ms: KEPT_ACTIVE }
    keep(this.#refused, digest, this.#now() + KEPT_REFUSED, (until) => until <= this.#now())
    return undefined
  }
}

interface Checked {
  claims: Claims
  settings: IssuerSettings
  /** Milliseconds for which that may be believed. */
  ms: number
}

/** Puts an entry last, and removes the oldest ones: those that are over, and those for which there is no room. */
function keep<T>(kept: Map<string, T>, key: string, value: T, isOver: (value: T) => boolean): void {
  kept.delete(key)
  kept.set(key, value)
  for (const [oldest, one] of kept) {
    if (kept.size <= MAX_KNOWN && !isOver(one)) break
    kept.delete(oldest)
  }
}

/** Two issuers may have the same subject, and both texts may have any characters. */
function principalOf({ issuer, subject }: TokenOwner): string {
  const text = `${issuer.length}:${issuer}${subject.length}:${subject}`
  return `j:${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
