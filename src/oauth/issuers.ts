/** Authorization servers: their metadata, fetched, checked, and kept for a while (RFC 8414, OpenID Connect Discovery). */
import { parseAddress } from '../net/address.js'
import { bare } from '../net/connect.js'
import type { RequestOptions } from '../net/fetch.js'
import { isLoopback } from '../net/guard.js'
import { Fault } from '../protocol/fault.js'
import { ENDPOINTS, type IssuerMetadata, issuerMetadata } from './documents.js'
import { failed, networkFault, quoted, quotedAddress, unsafe } from './failure.js'
import { getObject } from './get-object.js'
import type { Reach } from './reach.js'
import { issuerMetadataPlaces } from './well-known.js'

/** Milliseconds for which metadata are kept. */
const KEPT = 600_000
const MAX_ISSUERS = 64

export interface IssuerQuestion {
  /** May be left out where the configuration says where the metadata are: whoever they name is the issuer then. */
  issuer: string | undefined
  metadataUrl?: string | undefined
  reach: Reach
  /** What is kept does not do. */
  fresh?: boolean
}

export class Issuers {
  readonly #now: () => number
  readonly #known = new Map<string, { until: number; metadata: Promise<IssuerMetadata> }>()

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** The metadata of an issuer. Rejects with a Fault where there are none that may be used. */
  find(question: IssuerQuestion): Promise<IssuerMetadata> {
    const key = keyOf(question)
    const known = this.#known.get(key)
    if (known && known.until > this.#now() && !question.fresh) return known.metadata
    const metadata = fetchMetadata(question)
    this.#known.delete(key)
    this.#known.set(key, { until: this.#now() + KEPT, metadata })
    for (const oldest of this.#known.keys()) if (this.#known.size > MAX_ISSUERS) this.#known.delete(oldest)
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
 * Metadata that are at one place: checked, and those of the issuer, to the byte (RFC 8414, 3.3). Undefined where there are
 * none. Rejects with a Fault where they must not be used.
 */
export async function metadataAt(
  place: string,
  issuer: string | undefined,
  reach: RequestOptions,
): Promise<IssuerMetadata | undefined> {
  const got = await getObject(place, reach)
  if (got.kind !== 'object') return undefined
  const { success, data } = issuerMetadata.safeParse(got.value)
  if (!success) throw unsafe(`${quotedAddress(place)} has no metadata of an authorization server`)
  if (issuer !== undefined && data.issuer !== issuer)
    throw unsafe(
      `The metadata of the authorization server ${quoted(issuer)} name ${quoted(data.issuer)} as the issuer. ` +
        'If both are the same, set "oauth.issuer" to the second',
    )
  for (const name of ENDPOINTS) checkEndpoint(name, data[name], reach)
  return data
}

async function fetchMetadata({ issuer, metadataUrl, reach }: IssuerQuestion): Promise<IssuerMetadata> {
  let failure: unknown
  for (const place of metadataUrl === undefined ? placesOf(issuer ?? '') : [metadataUrl]) {
    try {
      const metadata = await metadataAt(place, issuer, reach)
      if (metadata) return metadata
    } catch (error) {
      // What is not available at one place may be at the next.
      if (!isUnavailable(error)) throw error
      failure = error
    }
  }
  throw failure ?? failed(`The authorization server ${quoted(issuer ?? metadataUrl ?? '')} publishes no metadata`)
}

function placesOf(issuer: string): readonly string[] {
  if (/[?#]/.test(issuer)) throw unsafe(`The issuer ${quoted(issuer)} has a query or a fragment`)
  try {
    return issuerMetadataPlaces(issuer)
  } catch (error) {
    throw networkFault(error, quoted(issuer))
  }
}

/** Endpoints are reached by TLS, or on this machine, where the server is there as well. */
function checkEndpoint(name: string, endpoint: string | undefined, { allowLoopback }: RequestOptions): void {
  if (endpoint === undefined) return
  try {
    const { protocol, hostname } = parseAddress(endpoint)
    if (protocol === 'https:' || (protocol === 'http:' && allowLoopback && isLoopback(bare(hostname)))) return
  } catch {
    // Said below.
  }
  throw unsafe(
    `The authorization server names ${quotedAddress(endpoint)} as its ${name}, which has to be an https:// address`,
  )
}

function isUnavailable(error: unknown): boolean {
  return error instanceof Fault && error.fault === 'upstreamUnavailable'
}
