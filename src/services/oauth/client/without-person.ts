/** Obtains tokens without a person: for the bridge itself, for a workload, or for a caller, on whose behalf it calls. */
import type { ShownToken } from '../../../mcp/protocol/shown-token.js'
import { failed } from '../failure.js'
import type { Issuers } from '../issuers.js'
import { quoted } from '../quoted.js'
import { type Network, reachOf } from '../reach.js'
import type { Client, Token } from '../store/record.js'
import { configuredMethod } from './client-auth.js'
import { clientCredentials, type GrantContext, type Granted, GrantRefused, grantedBy, ID_JAG } from './grants.js'
import { readSecretFile } from './secret-file.js'
import type { ClientSettings, IdpSettings, SubjectType } from './settings.js'

/** A request for a token, at the authorization server of a server. */
export interface MachineRequest extends GrantContext {
  settings: ClientSettings
  issuers: Issuers
  network: Network | undefined
  asked: readonly string[]
  /** The token of the caller, for grants that need one. */
  shown: ShownToken | undefined
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'
const USABLE = [ACCESS_TOKEN, 'urn:ietf:params:oauth:token-type:jwt']

/** What a refusal means for the operator, by its error code. */
const MEANING: Readonly<Record<string, string>> = {
  invalid_grant: 'it does not accept what it was shown',
  invalid_target: 'it gives no tokens for this server: "oauth.resource" or "oauth.exchange.audience" may help',
  invalid_scope: 'it does not give these scopes: set "oauth.scopes"',
  invalid_client: 'it does not accept the credentials of the bridge',
  unauthorized_client: 'this client may not use the grant there',
  unsupported_grant_type: 'it does not have the grant',
}

/** A token for the server. Rejects with a Fault. */
export async function obtainWithoutPerson(request: MachineRequest): Promise<Granted> {
  const { settings, server, asked } = request
  const what = `The authorization server ${quoted(server.issuer)}`
  switch (settings.grant) {
    case 'jwt-bearer':
      return orRefused(`${what} refused the assertion in "oauth.assertionFile"`, () =>
        bearing(request, readSecretFile(settings.assertionFile ?? '', 'oauth.assertionFile')),
      )
    case 'token-exchange': {
      const shown = usable(request)
      const granted = await orRefused(`${what} did not exchange the token of the caller`, () =>
        exchanged(request, shown.open()),
      )
      return { ...granted, token: limited(granted.token, shown) }
    }
    case 'id-jag': {
      const assertion = await asserted(request)
      const granted = await orRefused(`${what} refused the assertion of the identity provider`, () =>
        bearing(request, assertion),
      )
      return { ...granted, token: limited(granted.token, request.shown) }
    }
    case 'client_credentials':
    case 'code':
    case 'device':
    case 'token':
      return orRefused(`${what} refused a token for the bridge`, () => clientCredentials(request, asked))
  }
}

/** RFC 7523, 2.1. */
function bearing(request: MachineRequest, assertion: string): Promise<Granted> {
  return grantedBy(JWT_BEARER, request, { assertion, client_id: request.client.id }, request.asked)
}

/** RFC 8693, 2.1. */
function exchanged(request: MachineRequest, subject: string): Promise<Granted> {
  const { audience, subjectTokenType = 'access_token' } = request.settings.exchange ?? {}
  const parameters = {
    subject_token: subject,
    subject_token_type: typeOf(subjectTokenType),
    requested_token_type: ACCESS_TOKEN,
    ...(audience !== undefined && { audience }),
  }
  return grantedBy(EXCHANGE, request, parameters, request.asked, USABLE)
}

/** The identity provider's assertion of who the caller is, for the server's authorization server (SEP-990). */
async function asserted(request: MachineRequest): Promise<string> {
  const { server, resource, settings, issuers, network, asked, now } = request
  const idp = settings.idp as IdpSettings
  const { issuer, clientId = '', subjectTokenFile: file } = idp
  const subject = file === undefined ? usable(request).open() : readSecretFile(file, 'oauth.idp.subjectTokenFile')
  const { subjectTokenType = file === undefined ? 'access_token' : 'id_token' } = idp
  const reach = reachOf(issuer, { allow: settings.allow }, network)
  const provider = await issuers.find({ issuer, reach })
  const method = configuredMethod(idp, provider.token_endpoint_auth_methods_supported)
  const client: Client = { issuer, how: 'configured', id: clientId, method, since: 0 }
  const context = { server: provider, client, resource, settings: idp, option: 'oauth.idp', reach, now }
  const parameters = {
    subject_token: subject,
    subject_token_type: typeOf(subjectTokenType),
    requested_token_type: ID_JAG,
    audience: server.issuer,
  }
  const { token } = await orRefused(`The identity provider ${quoted(issuer)} did not assert who the caller is`, () =>
    grantedBy(EXCHANGE, context, parameters, asked, [ID_JAG]),
  )
  return token.access
}

function typeOf(type: SubjectType): string {
  return `urn:ietf:params:oauth:token-type:${type}`
}

/** The caller's token, if the issuer can still accept it. Throws a Fault. */
function usable({ shown, now = Date.now }: MachineRequest): ShownToken {
  if (!shown) throw failed('The bridge calls this server on behalf of its callers, and this one has shown no token')
  if (shown.expires > now()) return shown
  throw failed('The token of the caller has expired, so it cannot be exchanged. The client has to renew it')
}

/** The token, valid for no longer than the caller's token that it was obtained for. It cannot be renewed without that. */
function limited({ refresh: _, ...token }: Token, shown: ShownToken | undefined): Token {
  return shown ? { ...token, expires: Math.min(token.expires ?? Number.POSITIVE_INFINITY, shown.expires) } : token
}

async function orRefused(what: string, ask: () => Promise<Granted>): Promise<Granted> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof GrantRefused)) throw error
    const meaning = Object.hasOwn(MEANING, error.code) ? `: ${MEANING[error.code]}` : ''
    throw failed(`${what} (${error.code})${meaning}`)
  }
}
