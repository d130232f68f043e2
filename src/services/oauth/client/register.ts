/**
 * How the bridge becomes a client of an issuer: by configuration, by a metadata document, or by registration (RFC
 * 7591).
 */

import { Fault } from '../../../base/fault/fault.js'
import { guardedRequest } from '../../../base/net/fetch.js'
import { type IssuerMetadata, memberOffTheWeb, registration } from '../documents.js'
import { failed, networkFault, unavailable, unsafe } from '../failure.js'
import { objectIn } from '../get-object.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import type { Client } from '../store/record.js'
import { configuredMethod, type Method } from './client-auth.js'
import type { ClientSettings } from './settings.js'

/** How a client is known to an issuer; `none` if no way is supported. */
export function clientChoice(server: IssuerMetadata, settings: ClientSettings): Client['how'] | 'none' {
  if (settings.clientId !== undefined) return 'configured'
  if (server.client_id_metadata_document_supported === true && settings.clientMetadataUrl !== undefined)
    return 'document'
  return server.registration_endpoint === undefined ? 'none' : 'registered'
}

/** A client that needs no registration; undefined if it must register. Throws a Fault if neither is possible. */
export function knownClient(
  server: IssuerMetadata,
  settings: ClientSettings,
  redirectUri: string | undefined,
  now = Date.now(),
): Client | undefined {
  const method = configuredMethod(settings, server.token_endpoint_auth_methods_supported)
  const common = { issuer: server.issuer, ...(redirectUri !== undefined && { redirectUri }), since: now }
  const how = clientChoice(server, settings)
  switch (how) {
    case 'configured':
      return { ...common, how, id: settings.clientId ?? '', method }
    case 'document':
      return { ...common, how, id: settings.clientMetadataUrl ?? '', method: settings.key ? method : 'none' }
    case 'registered':
      return undefined
    case 'none': {
      const enter = redirectUri === undefined ? '' : `. Its redirect URI is ${redirectUri}`
      throw new Fault(
        'clientNeeded',
        `The authorization server ${quoted(server.issuer)} does not register clients: ` +
          `register a client there, and set "oauth.clientId"${enter}`,
      )
    }
  }
}

/** A client to register. */
export interface RegistrationRequest {
  server: IssuerMetadata
  settings: ClientSettings
  /** On this machine, with the host `localhost`, or on the page of the bridge. Undefined for a sign-in on any device. */
  redirectUri: string | undefined
  /** The address has to be exactly this one. */
  isFixed?: boolean
  scopes: readonly string[]
  reach: Reach
  now?: number
}

/** The grant of sign-ins on any device (RFC 8628, 3.4). */
const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code'
const TIME_LIMIT = 10_000
/** Methods that a registered client can use, best first. A public client needs no secret. */
const METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const satisfies readonly Method[]
/** Registration errors after which other metadata may succeed (RFC 7591, 3.2.2). */
const ABOUT_METADATA: ReadonlySet<string> = new Set(['invalid_redirect_uri', 'invalid_client_metadata'])
const CODE = /^[\w.:-]{1,64}$/

/**
 * Registers a client. If the issuer rejects the metadata, tries again: with the address in place of `localhost`, and
 * without scopes, because an issuer may not know the scopes of resources at registration.
 */
export async function register(request: RegistrationRequest): Promise<Client> {
  const { redirectUri, isFixed = false, server, scopes } = request
  const byAddress = isFixed ? redirectUri : redirectUri?.replace('//localhost:', '//127.0.0.1:')
  const variants = [
    request,
    ...(byAddress === redirectUri ? [] : [{ ...request, redirectUri: byAddress }]),
    ...(scopes.length === 0 ? [] : [{ ...request, scopes: [] }]),
  ]
  let refusal: string | undefined
  for (const variant of variants) {
    const registered = await registerOnce(variant)
    if (typeof registered !== 'string') return registered
    refusal ??= registered
    if (!ABOUT_METADATA.has(registered)) break
  }
  throw failed(
    `The authorization server ${quoted(server.issuer)} refused to register the bridge (${refusal}). Set "oauth.clientId"`,
  )
}

/** Resolves to the error code if the registration is refused. */
async function registerOnce(request: RegistrationRequest): Promise<Client | string> {
  const { server, settings, redirectUri, scopes, reach, now = Date.now() } = request
  const what = `The authorization server ${quoted(server.issuer)}`
  const supported = server.token_endpoint_auth_methods_supported ?? []
  const asked = METHODS.find((one) => (supported.length > 0 ? supported : ['client_secret_basic']).includes(one))
  if (!asked)
    throw failed(`${what} supports no authentication method that a registered client can use. Set "oauth.clientId"`)
  const renews = server.grant_types_supported?.includes('refresh_token') ?? true
  const body = {
    client_name: settings.clientName ?? 'MCP Bridge',
    redirect_uris: redirectUri === undefined ? [] : [redirectUri],
    grant_types: [redirectUri === undefined ? DEVICE_CODE : 'authorization_code', ...(renews ? ['refresh_token'] : [])],
    response_types: redirectUri === undefined ? [] : ['code'],
    token_endpoint_auth_method: asked,
    // OpenID Connect Registration, 2: plain HTTP on a loopback address is for native applications.
    application_type: redirectUri?.startsWith('https:') ? 'web' : 'native',
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  }
  const { status, bytes } = await guardedRequest(server.registration_endpoint ?? '', {
    ...reach,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    timeLimit: TIME_LIMIT,
  }).catch((error: unknown) => {
    throw networkFault(error, what)
  })
  if (status >= 500 || status === 429 || status === 408) throw unavailable(`${what} answered HTTP ${status}`)
  const said = objectIn(bytes)
  if (status !== 200 && status !== 201) {
    const code = said && 'error' in said ? said.error : undefined
    return typeof code === 'string' && CODE.test(code) ? code : `HTTP ${status}`
  }
  const { success, data } = registration.safeParse(said)
  if (!success || memberOffTheWeb(said ?? {}) !== undefined)
    throw unsafe(`${what} answered with an invalid registration`)
  const secret = data.client_secret ?? undefined
  // The issuer decides the method, not the request.
  const method = data.token_endpoint_auth_method ?? (secret === undefined ? 'none' : asked)
  if (!isMethod(method) || (method !== 'none' && secret === undefined))
    throw failed(
      `${what} registered the bridge with an authentication method that it cannot use (${quoted(method)}). Set "oauth.clientId"`,
    )
  return {
    issuer: server.issuer,
    how: 'registered',
    id: data.client_id,
    ...(secret !== undefined && method !== 'none' && { secret }),
    method,
    ...(redirectUri !== undefined && { redirectUri }),
    since: now,
  }
}

function isMethod(method: string): method is (typeof METHODS)[number] {
  return (METHODS as readonly string[]).includes(method)
}
