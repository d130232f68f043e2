/** Finds the authorization server and the resource of a server (MCP 2026-07-28, authorization server discovery). */

import { Fault } from '../../../base/fault/fault.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import type { Wanted } from '../challenge.js'
import { type IssuerMetadata, memberOffTheWeb, type ResourceMetadata, resourceMetadata } from '../documents.js'
import { failed, quotedAddress, unsafe } from '../failure.js'
import { getObject } from '../get-object.js'
import { sameIssuer } from '../issuer.js'
import { type Issuers, metadataAt } from '../issuers.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import { canonicalResource, covers } from '../resource.js'
import { legacyMetadataPlace, resourceMetadataPlaces } from '../well-known.js'
import type { ClientSettings } from './settings.js'

/** What the discovery depends on. */
export interface DiscoveryQuestion {
  /** The server's address, as configured. */
  url: string
  /** The server's challenge. */
  wanted: Wanted | undefined
  settings: ClientSettings
  /** The issuer of the current tokens. */
  known: string | undefined
  /** The server speaks 2026-07-28, so it must publish metadata of its resource. */
  modern: boolean
  /** Do not use cached metadata of authorization servers. */
  fresh: boolean
  issuers: Issuers
  reach: Reach
}

/** The authorization server of a server, and the parameters for its tokens. */
export interface Found {
  /** The `resource` parameter of every request; undefined if none is sent. */
  resource: string | undefined
  server: IssuerMetadata
  /** Scopes in the metadata of the resource. */
  scopes: readonly string[] | undefined
  /** Tokens have to be bound to a key (RFC 9449). */
  dpop: boolean
  /** Nothing was published: these are the default endpoints of 2025-03-26. */
  guessed?: boolean
}

/** In this revision a server is its own authorization server (MCP 2025-03-26, server metadata discovery). */
const LEGACY_HEADERS = { 'mcp-protocol-version': '2025-03-26' }

/** Rejects with a Fault if no authorization server is found, or none that may be used. */
export async function discover(question: DiscoveryQuestion): Promise<Found> {
  const { url, settings, issuers, reach, fresh, wanted } = question
  const { endpoints } = settings
  if (endpoints) {
    const { resource = canonicalResource(url) } = settings
    const server = configuredServer({ ...settings, endpoints })
    return {
      resource: resource === false ? undefined : resource,
      server,
      scopes: undefined,
      dpop: wanted?.dpop === true,
    }
  }
  const metadata = await resourceMetadataOf(question)
  if (!metadata) return withoutMetadata(question)
  if (!covers(metadata.resource, url))
    throw unsafe(
      `The server is at ${quotedAddress(url)}, but its metadata is for ${quotedAddress(metadata.resource)}, ` +
        'which does not cover it. ' +
        'The operator of the server must correct that',
    )
  const issuer = chooseIssuer(metadata, question)
  const { authServerMetadataUrl: metadataUrl } = settings
  return {
    resource: settings.resource === false ? undefined : (settings.resource ?? metadata.resource),
    server: await issuers.find(
      metadataUrl === undefined ? { issuer, reach, fresh } : { issuer: settings.issuer, metadataUrl, reach, fresh },
    ),
    scopes: metadata.scopes_supported,
    dpop: wanted?.dpop === true || metadata.dpop_bound_access_tokens_required === true,
  }
}

/** The metadata of the resource; undefined if there is none. */
async function resourceMetadataOf({ url, wanted, reach }: DiscoveryQuestion): Promise<ResourceMetadata | undefined> {
  const named = wanted?.metadata
  // A metadata address on another origin is ignored: the server may only point to its own.
  const places = named !== undefined && isOnOrigin(named, url) ? [named] : resourceMetadataPlaces(url)
  let withheld: string | undefined
  for (const place of places) {
    const got = await getObject(place, reach)
    if (got.kind === 'withheld') withheld ??= `${quotedAddress(place)} answered HTTP ${got.status}`
    if (got.kind !== 'object') continue
    const { success, data } = resourceMetadata.safeParse(got.value)
    if (!success || memberOffTheWeb(got.value) !== undefined)
      throw unsafe(`${quotedAddress(place)} has no valid metadata of a protected resource`)
    return data
  }
  if (withheld !== undefined) throw failed(`The server's metadata is not public: ${withheld}`)
  return undefined
}

function isOnOrigin(address: string, url: string): boolean {
  return parseUrl(address)?.origin === new URL(url).origin
}

function chooseIssuer(
  { authorization_servers: listed = [] }: ResourceMetadata,
  { settings, known }: DiscoveryQuestion,
): string {
  const { issuer, clientId } = settings
  if (issuer !== undefined) {
    // A client registered at one issuer is unknown to others.
    const isListed = listed.some((one) => one === issuer || withSlash(one) === withSlash(issuer))
    if (clientId !== undefined && listed.length > 0 && !isListed)
      throw new Fault(
        'clientNeeded',
        `"oauth.clientId" belongs to the issuer ${quoted(issuer)}, but the server names ${listed.map(quoted).join(', ')}. ` +
          'Correct "oauth.issuer" and "oauth.clientId"',
      )
    return issuer
  }
  const [first] = listed
  if (first === undefined) throw failed('The metadata of the server names no authorization server. Set "oauth.issuer"')
  return (known === undefined ? undefined : listed.find((one) => sameIssuer(one, known))) ?? first
}

const withSlash = (issuer: string) => `${issuer.replace(/\/$/, '')}/`

async function withoutMetadata(question: DiscoveryQuestion): Promise<Found> {
  const { url, settings, modern, issuers, reach, fresh, wanted } = question
  const dpop = wanted?.dpop === true
  const { issuer, authServerMetadataUrl: metadataUrl, resource = canonicalResource(url) } = settings
  if (issuer !== undefined || metadataUrl !== undefined) {
    const server = await issuers.find({ issuer, metadataUrl, reach, fresh })
    return { resource: resource === false ? undefined : resource, server, scopes: undefined, dpop }
  }
  if (modern) throw failed('The server publishes no metadata about its authorization server. Set "oauth.issuer"')
  return { resource: undefined, ...(await ownServer(url, reach)), scopes: undefined, dpop }
}

/** The authorization server of a server of 2025-03-26, which is the server itself. */
export async function ownServer(url: string, reach: Reach): Promise<Pick<Found, 'server' | 'guessed'>> {
  const { origin } = new URL(url)
  const found = await metadataAt(legacyMetadataPlace(url), origin, { ...reach, headers: LEGACY_HEADERS })
  return found ? { server: found } : { server: defaultEndpoints(origin), guessed: true }
}

/** An authorization server whose endpoints are configured. Its issuer is the origin of the token endpoint, if it is not configured. */
export function configuredServer({ issuer, endpoints }: ConfiguredServer): IssuerMetadata {
  const { token, authorization, device } = endpoints
  return {
    ...BARE,
    issuer: issuer ?? new URL(token).origin,
    token_endpoint: token,
    authorization_endpoint: authorization,
    device_authorization_endpoint: device,
    id_token_signing_alg_values_supported: ['RS256', 'ES256', 'PS256', 'EdDSA'],
  }
}

interface ConfiguredServer extends Pick<ClientSettings, 'issuer'> {
  endpoints: NonNullable<ClientSettings['endpoints']>
}

/** The metadata of an authorization server that publishes none. Everybody who has written it has to use PKCE. */
const BARE = {
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: undefined,
  grant_types_supported: undefined,
  id_token_signing_alg_values_supported: undefined,
  scopes_supported: undefined,
  authorization_response_iss_parameter_supported: undefined,
  client_id_metadata_document_supported: undefined,
} satisfies Partial<IssuerMetadata>

/** The default endpoints of MCP 2025-03-26, for servers without metadata. Clients of that revision must use PKCE. */
function defaultEndpoints(origin: string): IssuerMetadata {
  return {
    ...BARE,
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
  }
}
