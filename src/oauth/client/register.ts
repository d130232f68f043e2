/** How the bridge becomes a client of an issuer: as configured, by a document of its own, or by registering (RFC 7591). */
import { guardedRequest } from '../../net/fetch.js'
import { Fault } from '../../protocol/fault.js'
import { type IssuerMetadata, registration } from '../documents.js'
import { failed, networkFault, quoted, unavailable, unsafe } from '../failure.js'
import { objectIn } from '../get-object.js'
import type { Reach } from '../reach.js'
import type { Client } from '../store/record.js'
import { configuredMethod, type Method } from './client-auth.js'
import type { ClientSettings } from './settings.js'

/** In which way a client is known to an issuer; `none` where there is no way. */
export function clientChoice(server: IssuerMetadata, settings: ClientSettings): Client['how'] | 'none' {
  if (settings.clientId !== undefined) return 'configured'
  if (server.client_id_metadata_document_supported === true && settings.clientMetadataUrl !== undefined)
    return 'document'
  return server.registration_endpoint === undefined ? 'none' : 'registered'
}

/** A client that need not be registered; undefined where that is the only way. Throws a Fault where there is none. */
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
        `The authorization server ${quoted(server.issuer)} registers nobody by itself: ` +
          `register a client there, and set "oauth.clientId"${enter}`,
      )
    }
  }
}

export interface RegistrationRequest {
  server: IssuerMetadata
  settings: ClientSettings
  /** On this machine, by the name `localhost`. */
  redirectUri: string
  scopes: readonly string[]
  reach: Reach
  now?: number
}

const TIME_LIMIT = 10_000
/** Methods that a registered client can use, best first. A client that can keep no secret needs none. */
const METHODS = ['none', 'client_secret_basic', 'client_secret_post'] as const satisfies readonly Method[]
/** Errors of a registration that other metadata may mend (RFC 7591, 3.2.2). */
const ABOUT_METADATA: ReadonlySet<string> = new Set(['invalid_redirect_uri', 'invalid_client_metadata'])
const CODE = /^[\w.:-]{1,64}$/

/**
 * Registers a client. Where that is refused for what can be said otherwise, tries again: with the address in the place of
 * `localhost`, and without scopes, because not every issuer knows at registration those of its resources.
 */
export async function register(request: RegistrationRequest): Promise<Client> {
  const { redirectUri, server, scopes } = request
  const byAddress = redirectUri.replace('//localhost:', '//127.0.0.1:')
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
    `The authorization server ${quoted(server.issuer)} does not register the bridge (${refusal}). Set "oauth.clientId"`,
  )
}

/** Gives the error code where the registration is refused. */
async function registerOnce(request: RegistrationRequest): Promise<Client | string> {
  const { server, settings, redirectUri, scopes, reach, now = Date.now() } = request
  const what = `The authorization server ${quoted(server.issuer)}`
  const supported = server.token_endpoint_auth_methods_supported ?? []
  const asked = METHODS.find((one) => (supported.length > 0 ? supported : ['client_secret_basic']).includes(one))
  if (!asked) throw failed(`${what} authenticates clients in no way that a registered one can. Set "oauth.clientId"`)
  const renews = server.grant_types_supported?.includes('refresh_token') ?? true
  const body = {
    client_name: settings.clientName ?? 'MCP Bridge',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', ...(renews ? ['refresh_token'] : [])],
    response_types: ['code'],
    token_endpoint_auth_method: asked,
    application_type: 'native',
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
  if (status >= 500 || status === 429 || status === 408) throw unavailable(`${what} answers with HTTP ${status}`)
  const said = objectIn(bytes)
  if (status !== 200 && status !== 201) {
    const code = said && 'error' in said ? said.error : undefined
    return typeof code === 'string' && CODE.test(code) ? code : `HTTP ${status}`
  }
  const { success, data } = registration.safeParse(said)
  if (!success) throw unsafe(`${what} gives a registration that is none`)
  const secret = data.client_secret ?? undefined
  // What the issuer says of the method counts, not what was asked for.
  const method = data.token_endpoint_auth_method ?? (secret === undefined ? 'none' : asked)
  if (!isMethod(method) || (method !== 'none' && secret === undefined))
    throw failed(
      `${what} registers the bridge for a way to authenticate that it has not (${quoted(method)}). Set "oauth.clientId"`,
    )
  return {
    issuer: server.issuer,
    how: 'registered',
    id: data.client_id,
    ...(secret !== undefined && method !== 'none' && { secret }),
    method,
    redirectUri,
    since: now,
  }
}

function isMethod(method: string): method is (typeof METHODS)[number] {
  return (METHODS as readonly string[]).includes(method)
}
