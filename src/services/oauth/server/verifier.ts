/**
 * Checks access tokens of identity providers (MCP 2026-07-28, basic/authorization, token handling), JWTs by the keys of
 * their issuer, others by asking it, and keeps the verdict for a while. Only addresses of configured issuers are
 * contacted, whatever a token says.
 */

import { digest, digestedPrincipal } from '../../../base/crypto/digest.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import type { Signal } from '../../../base/time/hang-up.js'
import type { IssuerState } from '../../../mcp/ports/events.js'
import type { Grant } from '../../../mcp/protocol/call.js'
import { ShownToken } from '../../../mcp/protocol/shown-token.js'
import { Issuers } from '../issuers.js'
import { quoted } from '../quoted.js'
import { issuerReach, type Network } from '../reach.js'
import type { SharedBegun } from './begun.js'
import {
  expected,
  forAnother,
  isFor,
  LEEWAY_SECONDS,
  ownerOf,
  type TokenOwner,
  type TokenRefusal,
  type TokenSaid,
} from './claims.js'
import { Facade } from './facade.js'
import { Introspection } from './introspection.js'
import { IssuerDocument } from './issuer-document.js'
import { type IssuerKeys, KeySet, type KeySetOptions } from './key-set.js'
import { KID, PemKeys } from './pem-keys.js'
import type { IssuerSettings } from './settings.js'
import { type Signer, saidIn, signedBy } from './signed.js'
import { TokenLife } from './token-life.js'

export interface VerifierOptions {
  issuers: readonly IssuerSettings[]
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  network?: Network | undefined
  /** What the replicas know of each other's sign-ins at the facade, if there are any. */
  shared?: SharedBegun | undefined
  /** Whether the result includes the token, for token exchange. It is not stored beyond the request. */
  shows?: boolean | undefined
  /** Called when keys of an issuer cannot be had, or can be had again. */
  report?: KeySetOptions['report']
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
/** The same, as AWS load balancers write it. */
const PADDED_JWT = /^[\w-]+={0,2}\.[\w-]+={0,2}\.[\w-]+={0,2}$/
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
  readonly #issuers: ReadonlyMap<string, { settings: IssuerSettings; keys: IssuerKeys }>
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
    shared,
    shows = false,
    report,
    now = Date.now,
  }: VerifierOptions) {
    this.#now = now
    this.#shows = shows
    const issuers = new Issuers(now)
    const parts = configured.map((settings) => {
      const reach = issuerReach(settings, allow, network)
      const { issuer, jwksUri } = settings
      const keys = jwksUri?.includes(KID)
        ? new PemKeys({ issuer, place: jwksUri, reach, now })
        : new KeySet({ settings, issuers, reach, now, report })
      return { settings, reach, keys }
    })
    this.#issuers = new Map(parts.map((part) => [part.settings.issuer, part]))
    const [fronted] = parts.flatMap(({ settings: { issuer, facade, scopeNames }, reach }) =>
      facade ? [{ issuer, settings: facade, scopeNames, reach, issuers, shared }] : [],
    )
    this.facade = fronted && new Facade(fronted)
    const [alone, ...others] = parts.filter(({ settings: { header } }) => header === undefined)
    this.issuerDocument =
      alone && others.length === 0 && !this.facade
        ? new IssuerDocument({ issuer: alone.settings.issuer, reach: alone.reach, now })
        : undefined
    const asked = parts.find(({ settings }) => settings.introspection)
    this.#introspection = asked && { settings: asked.settings, asked: new Introspection({ ...asked, issuers }) }
  }

  /** Fetches the keys of all issuers, so that the first token does not wait, and a failure is known. Never rejects. */
  async prepare(): Promise<void> {
    await Promise.all([...this.#issuers.values()].map(({ keys }) => keys.prepare()))
  }

  /** Whether the keys of the issuers can be had. */
  get states(): IssuerState[] {
    return [...this.#issuers.values()].map(({ keys }) => keys.state)
  }

  /** Fetches no more keys by itself. */
  stop(): void {
    for (const { keys } of this.#issuers.values()) keys.close()
  }

  /**
   * Whose a token is, if it is accepted at an endpoint with these addresses, or why it is not. `from` is the address of the
   * client that shows it. At once if it was checked before. Rejects with a Fault if it cannot be checked now, or if it leaves out what is needed.
   */
  readonly verify = (
    token: string,
    addresses: ReadonlySet<string>,
    from = 'none',
    header?: string,
  ): Verified | TokenRefusal | Promise<Verified | TokenRefusal> => {
    if (token.length > MAX_TOKEN) return { why: `it has more than ${MAX_TOKEN} characters` }
    // One token may be accepted in one header, and not in another. No header has an empty name.
    const key = digest(`${header ?? ''} ${token}`)
    const known = this.#known.get(key)
    if (known && known.until > this.#now()) return this.#shownAt(addresses, known, token, key)
    return this.#check({ token, header }, key, from).then((one) =>
      'why' in one ? one : this.#shownAt(addresses, one, token, key),
    )
  }

  /** The owner of the token at an endpoint with these addresses; with the token, if it is to be exchanged. */
  #shownAt(addresses: ReadonlySet<string>, known: Known, token: string, digest: string): Verified | TokenRefusal {
    const verified = at(known, addresses)
    if (!this.#shows || known.settings.header !== undefined || 'why' in verified) return verified
    return { ...verified, grant: { ...verified.grant, shown: new ShownToken(token, digest, known.owner.expires) } }
  }

  /** Checks a token. Concurrent requests with the same token share one check. */
  #check(token: Shown, digest: string, from: string): Promise<Known | TokenRefusal> {
    let running = this.#running.get(digest)
    if (!running) {
      running = this.#checkNow(token, digest, from).finally(() => this.#running.delete(digest))
      this.#running.set(digest, running)
    }
    return running
  }

  async #checkNow(token: Shown, digest: string, from: string): Promise<Known | TokenRefusal> {
    const checked = await this.#readNow(token, digest, from)
    const before = this.#known.get(digest)
    if ('why' in checked) {
      before?.life.refuse()
      return checked
    }
    const { owner, settings, until } = checked
    const life = before && !before.life.aborted ? before.life : new TokenLife(this.#endOf(owner, settings), this.#now)
    const verified = { principal: principalOf(owner), grant: owner.grant, ends: life }
    const known = { settings, owner, verified, life, until }
    this.#known.set(digest, known)
    return known
  }

  /** When what is open with a token ends. A token that has just expired is still accepted, because clocks differ. */
  #endOf({ expires }: TokenOwner, { header }: IssuerSettings): number {
    // A proxy sends another assertion with each request, often of a minute, and ends what is open by itself.
    if (header !== undefined) return Number.POSITIVE_INFINITY
    return expires > this.#now() ? expires : expires + LEEWAY_SECONDS * 1_000
  }

  /** Ends what is open with the tokens that were accepted. */
  close(): void {
    this.stop()
    for (const { life } of this.#known.values()) life.refuse()
  }

  async #readNow({ token, header }: Shown, digest: string, from: string): Promise<Read | TokenRefusal> {
    const isJwt = (header === undefined ? JWT : PADDED_JWT).test(token)
    if (!isJwt && header !== undefined) return { why: `the header ${header} has no JWT` }
    const checked = isJwt ? await this.#checkedJwt({ token, header }) : await this.#checkedOther(token, digest, from)
    if ('why' in checked) return checked
    const { said, settings, ms } = checked
    const owner = ownerOf(said, settings, this.#now() / 1_000)
    if ('why' in owner) return owner
    return { settings, owner, until: Math.min(owner.expires, this.#now() + ms) }
  }

  async #checkedJwt(shown: Shown): Promise<Checked | TokenRefusal> {
    const { token } = shown
    const issuer = await this.#issuerOf(shown)
    if ('why' in issuer) return issuer
    const { settings, keys, key } = issuer
    const { moment } = keys
    const first = await signedBy(token, issuer, await keys.known())
    if ('said' in first) return { ...first, settings, ms: KEPT }
    const { why } =
      'why' in first ? first : { why: `none of the keys of ${quoted(settings.issuer)} has its kid and kind` }
    // The issuer may have published another key a moment ago, also in place of a known one.
    const mayLook = 'noKey' in first ? !keys.isUnknown(key) : 'wrong' in first && keys.mayCompare
    if (!mayLook) return { why }
    const again = await signedBy(token, issuer, await keys.after(moment))
    if ('said' in again) return { ...again, settings, ms: KEPT }
    if ('noKey' in again) keys.noteUnknown(key)
    return { why }
  }

  /** The configured issuer that a token names, if its header is acceptable. Nothing in the token is trusted yet. */
  async #issuerOf({ token, header }: Shown): Promise<(Signer & { keys: IssuerKeys; key: string }) | TokenRefusal> {
    const said = saidIn(token, { isAssertion: header !== undefined })
    if (!said) return { why: 'it looks like a JWT, but its header or claims are no JSON object' }
    const { alg, typ, crit, iss, kid } = said
    if (!TYPES.includes(typeof typ === 'string' ? typ.toLowerCase() : typ))
      return { why: expected('typ', typ, ['at+jwt', 'JWT']) }
    if (crit !== undefined) return { why: 'its header has crit, of which nothing is known' }
    const found = typeof iss === 'string' ? (this.#issuers.get(iss) ?? (await this.#issuerCalled(iss))) : undefined
    if (!found || found.settings.header !== header) return { why: expected('iss', iss, this.#issuersIn(header)) }
    const { algorithms } = found.settings
    if (!algorithms.includes(String(alg))) return { why: expected('alg', alg, algorithms) }
    return { ...found, typ, key: digest(JSON.stringify([alg, kid])) }
  }

  /** The issuers of tokens in a header. */
  #issuersIn(header: string | undefined): readonly string[] {
    return [...this.#issuers.values()].flatMap(({ settings }) => (settings.header === header ? settings.issuer : []))
  }

  /** The issuer whose metadata say that it has another name in its tokens. Rejects with a Fault if they cannot be had now. */
  async #issuerCalled(iss: string): Promise<{ settings: IssuerSettings; keys: IssuerKeys } | undefined> {
    await this.prepare()
    const all = [...this.#issuers.values()]
    const called = all.find(({ keys }) => keys.alias === iss)
    if (!called) await all.find(({ settings }) => hostOf(settings.issuer) === hostOf(iss))?.keys.known()
    return called
  }

  async #checkedOther(token: string, digest: string, from: string): Promise<Checked | TokenRefusal> {
    if (!this.#introspection) return { why: 'it is no JWT, and no issuer of "auth.issuers" has "introspection"' }
    const refused = this.#refused.get(digest)
    if (refused && refused.until > this.#now()) return refused
    const { settings, asked } = this.#introspection
    // A token that was active before is not made up.
    const answer = await asked.claimsOf(token, { from, isKnown: this.#known.has(digest) })
    if ('claims' in answer) return { said: { claims: answer.claims, by: 'introspection' }, settings, ms: KEPT_ACTIVE }
    const until = this.#now() + KEPT_REFUSED
    this.#refused.set(digest, { ...answer, until })
    return answer
  }
}

/** A token, and the header that it came in, if that is not Authorization. */
interface Shown {
  token: string
  header: string | undefined
}

interface Checked {
  said: TokenSaid
  settings: IssuerSettings
  /** Milliseconds for which that may be believed. */
  ms: number
}

function hostOf(address: string): string | undefined {
  return parseUrl(address)?.hostname
}

/** The owner of a token, if it is for an endpoint with these addresses. */
function at({ owner, verified, settings }: Known, addresses: ReadonlySet<string>): Verified | TokenRefusal {
  return isFor(owner, addresses) ? verified : forAnother(owner, addresses, settings)
}

/**
 * The principal of the owner of a token. Two issuers may have the same name, a name may be of several kinds, and all texts may
 * have any characters.
 */
export function principalOf({ issuer, kind, name }: Pick<TokenOwner, 'issuer' | 'kind' | 'name'>): string {
  const text = `${kind === 'sub' ? '' : `${kind}:`}${issuer.length}:${issuer}${name.length}:${name}`
  return digestedPrincipal('subject', text)
}
