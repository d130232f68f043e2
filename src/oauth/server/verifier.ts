/**
 * Checks access tokens of identity providers (MCP 2026-07-28, basic/authorization, token handling), JWTs by the keys of
 * their issuer, others by asking it, and keeps the verdict for a while. Only addresses of configured issuers are
 * contacted, whatever a token says.
 */

import { decodeJwt, decodeProtectedHeader, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { digest, digestedPrincipal } from '../../crypto/digest.js'
import { BoundedMap } from '../../limits/bounded.js'
import type { Grant } from '../../protocol/call.js'
import { ShownToken } from '../../protocol/shown-token.js'
import type { Signal } from '../../time/hang-up.js'
import { quoted } from '../failure.js'
import { Issuers } from '../issuers.js'
import { type Network, reachOf } from '../reach.js'
import {
  type Claims,
  expected,
  forAnother,
  isFor,
  LEEWAY_SECONDS,
  ownerOf,
  type TokenOwner,
  type TokenRefusal,
} from './claims.js'
import { Facade } from './facade.js'
import { Introspection } from './introspection.js'
import { IssuerDocument } from './issuer-document.js'
import { KeySet } from './key-set.js'
import type { IssuerSettings } from './settings.js'
import { TokenLife } from './token-life.js'

export interface VerifierOptions {
  issuers: readonly IssuerSettings[]
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  network?: Network | undefined
  /** Whether other replicas have the same issuers. */
  replicated?: boolean | undefined
  /** Whether the result includes the token, for token exchange. It is not stored beyond the request. */
  shows?: boolean | undefined
  /** In milliseconds since 1970. */
  now?: (() => number) | undefined
}

/** The owner of a token, and what the token allows. */
export interface Verified {
  principal: string
  grant: Grant
  /** Aborts when the token has expired, or is no longer accepted. */
  ends: Signal
}

/** What a valid token says. */
interface Read {
  settings: IssuerSettings
  owner: TokenOwner
  /** Until when that may be believed, in milliseconds since 1970. */
  until: number
}

interface Known extends Read {
  verified: Verified
  life: TokenLife
}

const MAX_TOKEN = 16_384
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** The `typ` of access tokens, in lower case. Some issuers leave it out. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt']
/** Milliseconds for which the result of a check is cached: of a JWT, an opaque token, and an inactive one. */
const KEPT = 60_000
const KEPT_ACTIVE = 30_000
const KEPT_REFUSED = 5_000
const MAX_KNOWN = 10_000

export class Verifier {
  readonly #now: () => number
  readonly #shows: boolean
  readonly #issuers: ReadonlyMap<string, { settings: IssuerSettings; keys: KeySet }>
  /** Stands in front of an issuer where clients cannot register; undefined if there is none. */
  readonly facade: Facade | undefined
  /** The metadata of the only issuer, if clients use it directly. */
  readonly issuerDocument: IssuerDocument | undefined
  readonly #introspection: { settings: IssuerSettings; asked: Introspection } | undefined
  /** By digest, in the order in which they were checked. */
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN)
  /** Why tokens were refused, and until when that is cached, by digest. */
  readonly #refused = new BoundedMap<string, TokenRefusal & { until: number }>(MAX_KNOWN)
  readonly #running = new Map<string, Promise<Known | TokenRefusal>>()

  constructor({
    issuers: configured,
    allow,
    network = {},
    replicated = false,
    shows = false,
    now = Date.now,
  }: VerifierOptions) {
    this.#now = now
    this.#shows = shows
    const issuers = new Issuers(now)
    const parts = configured.map((settings) => {
      const { issuer, jwksUri } = settings
      const reach = reachOf(issuer, { allow, authServerMetadataUrl: jwksUri }, network)
      return { settings, reach, keys: new KeySet({ settings, issuers, reach, now }) }
    })
    this.#issuers = new Map(parts.map((part) => [part.settings.issuer, part]))
    const [fronted] = parts.flatMap(({ settings: { issuer, facade }, reach }) =>
      facade ? [{ issuer, settings: facade, reach, issuers, replicated }] : [],
    )
    this.facade = fronted && new Facade(fronted)
    const [alone, ...others] = parts
    this.issuerDocument =
      alone && others.length === 0 && !this.facade
        ? new IssuerDocument({ issuer: alone.settings.issuer, reach: alone.reach, now })
        : undefined
    const asked = parts.find(({ settings }) => settings.introspection)
    this.#introspection = asked && { settings: asked.settings, asked: new Introspection({ ...asked, issuers }) }
  }

  /**
   * Whose a token is, if it is accepted at an endpoint with these addresses, or why it is not. `from` is the address of the
   * client that shows it. At once if it was checked before. Rejects with a Fault if it cannot be checked now, or if it leaves out what is needed.
   */
  readonly verify = (
    token: string,
    addresses: ReadonlySet<string>,
    from = 'none',
  ): Verified | TokenRefusal | Promise<Verified | TokenRefusal> => {
    if (token.length > MAX_TOKEN) return { why: `it has more than ${MAX_TOKEN} characters` }
    const key = digest(token)
    const known = this.#known.get(key)
    if (known && known.until > this.#now()) return this.#shownAt(addresses, known, token, key)
    return this.#check(token, key, from).then((one) => ('why' in one ? one : this.#shownAt(addresses, one, token, key)))
  }

  /** The owner of the token at an endpoint with these addresses; with the token, if it is to be exchanged. */
  #shownAt(addresses: ReadonlySet<string>, known: Known, token: string, digest: string): Verified | TokenRefusal {
    const verified = at(known, addresses)
    if (!this.#shows || 'why' in verified) return verified
    return { ...verified, grant: { ...verified.grant, shown: new ShownToken(token, digest, known.owner.expires) } }
  }

  /** Checks a token. Concurrent requests with the same token share one check. */
  #check(token: string, digest: string, from: string): Promise<Known | TokenRefusal> {
    let running = this.#running.get(digest)
    if (!running) {
      running = this.#checkNow(token, digest, from).finally(() => this.#running.delete(digest))
      this.#running.set(digest, running)
    }
    return running
  }

  async #checkNow(token: string, digest: string, from: string): Promise<Known | TokenRefusal> {
    const checked = await this.#readNow(token, digest, from)
    const before = this.#known.get(digest)
    if ('why' in checked) {
      before?.life.refuse()
      return checked
    }
    const { owner, settings, until } = checked
    const life = before && !before.life.aborted ? before.life : new TokenLife(this.#endOf(owner), this.#now)
    const verified = { principal: principalOf(owner), grant: owner.grant, ends: life }
    const known = { settings, owner, verified, life, until }
    this.#known.set(digest, known)
    return known
  }

  /** When what is open with a token ends. A token that has just expired is still accepted, because clocks differ. */
  #endOf({ expires }: TokenOwner): number {
    return expires > this.#now() ? expires : expires + LEEWAY_SECONDS * 1_000
  }

  /** Ends what is open with the tokens that were accepted. */
  close(): void {
    for (const { life } of this.#known.values()) life.refuse()
  }

  async #readNow(token: string, digest: string, from: string): Promise<Read | TokenRefusal> {
    const isJwt = JWT.test(token)
    const checked = isJwt ? await this.#checkedJwt(token) : await this.#checkedOther(token, digest, from)
    if ('why' in checked) return checked
    const { claims, settings, ms } = checked
    const owner = ownerOf(claims, settings, this.#now() / 1_000)
    if ('why' in owner) return owner
    return { settings, owner, until: Math.min(owner.expires, this.#now() + ms) }
  }

  async #checkedJwt(token: string): Promise<Checked | TokenRefusal> {
    const issuer = this.#issuerOf(token)
    if ('why' in issuer) return issuer
    const { settings, keys } = issuer
    const known = await keys.known()
    const first = await this.#verified(token, settings, known)
    if (!('noKey' in first)) return first
    const renewed = await keys.renewed(known)
    const again = renewed ? await this.#verified(token, settings, renewed) : first
    return 'noKey' in again ? { why: `none of the keys of ${quoted(settings.issuer)} has its kid and kind` } : again
  }

  /** The configured issuer that a token names, if its header is acceptable. Nothing in the token is trusted yet. */
  #issuerOf(token: string): { settings: IssuerSettings; keys: KeySet } | TokenRefusal {
    const said = saidIn(token)
    if (!said) return { why: 'it looks like a JWT, but its header or claims are no JSON object' }
    const { alg, typ, crit, iss } = said
    if (!TYPES.includes(typeof typ === 'string' ? typ.toLowerCase() : typ))
      return { why: expected('typ', typ, ['at+jwt', 'JWT']) }
    if (crit !== undefined) return { why: 'its header has crit, of which nothing is known' }
    const found = typeof iss === 'string' ? this.#issuers.get(iss) : undefined
    if (!found) return { why: expected('iss', iss, [...this.#issuers.keys()]) }
    const { algorithms } = found.settings
    return algorithms.includes(String(alg)) ? found : { why: expected('alg', alg, algorithms) }
  }

  /** The claims of a JWT, if it is valid and signed with a known key. */
  async #verified(
    token: string,
    settings: IssuerSettings,
    find: JWTVerifyGetKey,
  ): Promise<Checked | TokenRefusal | { noKey: true }> {
    const options = {
      issuer: settings.issuer,
      algorithms: [...settings.algorithms],
      clockTolerance: LEEWAY_SECONDS,
      requiredClaims: ['sub', 'exp'],
      currentDate: new Date(this.#now()),
    }
    const verifyWith = async (key: JWTVerifyGetKey) => {
      const { payload } = await jwtVerify(token, key, options)
      return { claims: payload, settings, ms: KEPT }
    }
    const refused = (error: unknown): TokenRefusal => {
      if (!(error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed))
        return { why: `its signature is not one of ${quoted(settings.issuer)}` }
      const same = ownerOf(error.payload, settings, this.#now() / 1_000)
      return 'why' in same ? same : { why: error.message }
    }
    try {
      return await verifyWith(find)
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return { noKey: true }
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return refused(error)
      // The token does not say which: one of them fits.
      let last = refused(undefined)
      for await (const key of error) {
        const one = await verifyWith(() => key).catch(refused)
        if (!('why' in one)) return one
        last = one
      }
      return last
    }
  }

  async #checkedOther(token: string, digest: string, from: string): Promise<Checked | TokenRefusal> {
    if (!this.#introspection) return { why: 'it is no JWT, and no issuer of "auth.issuers" has "introspection"' }
    const refused = this.#refused.get(digest)
    if (refused && refused.until > this.#now()) return refused
    const { settings, asked } = this.#introspection
    // A token that was active before is not made up.
    const answer = await asked.claimsOf(token, { from, isKnown: this.#known.has(digest) })
    if ('claims' in answer) return { ...answer, settings, ms: KEPT_ACTIVE }
    const until = this.#now() + KEPT_REFUSED
    this.#refused.set(digest, { ...answer, until })
    return answer
  }
}

interface Checked {
  claims: Claims
  settings: IssuerSettings
  /** Milliseconds for which that may be believed. */
  ms: number
}

/** The owner of a token, if it is for an endpoint with these addresses. */
function at({ owner, verified, settings }: Known, addresses: ReadonlySet<string>): Verified | TokenRefusal {
  return isFor(owner, addresses) ? verified : forAnother(owner, addresses, settings)
}

/** The header and claims of a JWT, unverified; undefined if it is not a JWT. */
function saidIn(token: string): Readonly<Record<'alg' | 'typ' | 'crit' | 'iss', unknown>> | undefined {
  try {
    const { alg, typ, crit } = decodeProtectedHeader(token)
    return { alg, typ, crit, iss: decodeJwt(token).iss }
  } catch {
    return undefined
  }
}

/** The principal of a person. Two issuers may have the same subject, and both texts may have any characters. */
export function principalOf({ issuer, subject }: Pick<TokenOwner, 'issuer' | 'subject'>): string {
  const text = `${issuer.length}:${issuer}${subject.length}:${subject}`
  return digestedPrincipal('subject', text)
}
