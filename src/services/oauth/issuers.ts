/** The metadata of authorization servers: fetched, validated and cached (RFC 8414, OpenID Connect Discovery). */

import { Fault } from '../../base/fault/fault.js'
import { BoundedMap } from '../../base/limits/bounded.js'
import { parseAddress } from '../../base/net/address.js'
import type { RequestOptions } from '../../base/net/fetch.js'
import { isLoopback } from '../../base/net/guard.js'
import { withoutBrackets } from '../../base/texts/parse-url.js'
import { printable } from '../../base/texts/printable.js'
import { ENDPOINTS, type IssuerMetadata, issuerMetadata, memberOffTheWeb } from './documents.js'
import { failed, networkFault, quotedAddress, unsafe } from './failure.js'
import { getObject } from './get-object.js'
import { sameIssuer } from './issuer.js'
import { quoted } from './quoted.js'
import type { Reach } from './reach.js'
import { issuerMetadataPlaces } from './well-known.js'

/** Milliseconds for which metadata is cached. */
const KEPT = 600_000
const MAX_ISSUERS = 64

/** Whose metadata to find. */
export interface IssuerQuestion {
  /** May be undefined if `metadataUrl` is set: then the metadata names the issuer. */
  issuer: string | undefined
  metadataUrl?: string | undefined
  reach: Reach
  /** Do not use the cache. */
  fresh?: boolean
}

/** A cache of metadata. */
export class Issuers {
  readonly #now: () => number
  readonly #known = new BoundedMap<string, { until: number; metadata: Promise<IssuerMetadata> }>(MAX_ISSUERS)

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The metadata of an issuer. Rejects with a Fault if there is none that may be used. */
  find(question: IssuerQuestion): Promise<IssuerMetadata> {
    const key = keyOf(question)
    const known = this.#known.get(key)
    if (known && known.until > this.#now() && !question.fresh) return known.metadata
    const metadata = fetchMetadata(question)
    this.#known.set(key, { until: this.#now() + KEPT, metadata })
    metadata.catch(() => {
      if (this.#known.get(key)?.metadata === metadata) this.#known.delete(key)
    })
    return metadata
  }
}

function keyOf({ issuer, reach, metadataUrl }: IssuerQuestion): string {
  return JSON.stringify([issuer, metadataUrl, reach.allowed, reach.allowLoopback])
}

/**
 * The metadata at one address. It must be valid and name this issuer (RFC 8414, 3.3). Undefined if there is
 * none. Rejects with a Fault if it must not be used.
 */
export async function metadataAt(
  place: string,
  issuer: string | undefined,
  reach: RequestOptions,
): Promise<IssuerMetadata | undefined> {
  const got = await getObject(place, reach)
  if (got.kind !== 'object') return undefined
  const { success, data } = issuerMetadata.safeParse(got.value)
  if (!success) throw unsafe(`${quotedAddress(place)} has no valid metadata of an authorization server`)
  if (issuer !== undefined && !sameIssuer(data.issuer, issuer))
    throw unsafe(
      `The metadata of the authorization server ${quoted(issuer)} names ${quoted(data.issuer)} as the issuer. ` +
        'If both are the same, set "oauth.issuer" (--issuer) to the second',
    )
  for (const name of ENDPOINTS) checkEndpoint(name, data[name], reach)
  const off = memberOffTheWeb(got.value)
  if (off !== undefined)
    throw unsafe(
      `The metadata of the authorization server ${quoted(data.issuer)} name an address that is not on the web: ${printable(off, 100)}`,
    )
  return data
}

async function fetchMetadata({ issuer, metadataUrl, reach }: IssuerQuestion): Promise<IssuerMetadata> {
  let failure: unknown
  for (const place of metadataUrl === undefined ? placesOf(issuer ?? '') : [metadataUrl]) {
    try {
      const metadata = await metadataAt(place, issuer, reach)
      if (metadata) return metadata
    } catch (error) {
      // An error at one address does not exclude the next one.
      if (!isUnavailable(error)) throw error
      failure = error
    }
  }
  throw failure ?? failed(`The authorization server ${quoted(issuer ?? metadataUrl ?? '')} publishes no metadata`)
}

function placesOf(issuer: string): readonly string[] {
  if (/[?#]/.test(issuer)) throw unsafe(`The issuer ${quotedAddress(issuer)} has a query or a fragment`)
  try {
    const { protocol, username, password } = parseAddress(issuer)
    // Other schemes have no origin that could publish metadata, or one that is not their own.
    if (protocol !== 'https:' && protocol !== 'http:')
      throw unsafe(`The issuer ${quoted(issuer)} is not an https:// address`)
    if (username !== '' || password !== '') throw unsafe('The issuer has a user name or password in its address')
    return issuerMetadataPlaces(issuer)
  } catch (error) {
    throw networkFault(error, quoted(issuer))
  }
}

/** Endpoints must use TLS, or be on this machine if the server is there too, or at a host that may be contacted without. */
function checkEndpoint(name: string, endpoint: string | undefined, { allowLoopback, plain }: RequestOptions): void {
  if (endpoint === undefined) return
  try {
    const { protocol, hostname, username, password } = parseAddress(endpoint)
    const isPlain = username === '' && password === '' && !endpoint.includes('#')
    const host = withoutBrackets(hostname)
    const mayBePlain = (allowLoopback && isLoopback(host)) || plain?.includes(host)
    if (isPlain && (protocol === 'https:' || (protocol === 'http:' && mayBePlain))) return
  } catch {
    // Reported below.
  }
  throw unsafe(
    `The authorization server names ${quotedAddress(endpoint)} as its ${name}, ` +
      'which must be an https:// address without user name, password and fragment',
  )
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Fault && error.fault === 'upstreamUnavailable'
}
