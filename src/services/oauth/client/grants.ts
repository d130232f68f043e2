/** Requests to a token endpoint, one function for each grant. */
import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type ClientAuth,
  customFetch,
  type DeviceAuthorizationResponse,
  type DPoPRequestOptions,
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  genericTokenEndpointRequest,
  getValidatedIdTokenClaims,
  isDPoPNonceError,
  type Client as LibraryClient,
  processDeviceAuthorizationResponse,
  processGenericTokenEndpointResponse,
  processRevocationResponse,
  ResponseBodyError,
  revocationRequest,
  type TokenEndpointResponse,
} from 'oauth4webapi'
import { Fault } from '../../../base/fault/fault.js'
import { type Answered, guardedRequest } from '../../../base/net/fetch.js'
import type { IssuerMetadata } from '../documents.js'
import { networkFault, unavailable } from '../failure.js'
import { quoted } from '../quoted.js'
import type { Reach } from '../reach.js'
import { readScopes } from '../scopes.js'
import type { Client, ProofKey, Token, TokenRecord } from '../store/record.js'
import { clientAuthOf, dependsOnEncoding } from './client-auth.js'
import { proverOf } from './proof-key.js'
import { regular } from './regular.js'
import type { ClientCredentials, ClientSettings } from './settings.js'

/** The parties to a request: issuer, client and resource. */
export interface GrantContext {
  server: IssuerMetadata
  client: Client
  resource: string | undefined
  settings: ClientCredentials & Pick<ClientSettings, 'bearer'>
  /** The option that has the settings. */
  option?: string | undefined
  /** The key to bind the token to. */
  key?: ProofKey | undefined
  reach: Reach
  now?: (() => number) | undefined
  /** Called before each request for a token. If it rejects, nothing is sent. */
  beforeAsking?: (() => Promise<void>) | undefined
}

/** A token, and the client with the authentication that the issuer accepted. */
export interface Granted {
  token: Token
  client: Client
  /** The key that the token is bound to; undefined if it is bound to none. */
  key?: ProofKey | undefined
}

/** Puts what was granted into a record. */
export function keepGranted(record: TokenRecord, { token, client, key }: Granted): void {
  record.token = token
  record.client = client
  record.asked = { issuer: token.issuer, scopes: token.asked }
  if (key) record.key = key
  else delete record.key
}

/** The authorization server refused a grant. */
export class GrantRefused extends Error {
  override name = 'GrantRefused'
  /** The OAuth error code. */
  readonly code: string

  constructor(code: string, options?: ErrorOptions) {
    super(`The authorization server answered with the error ${code}`, options)
    this.code = code
  }

  /** The authorization server does not know the client, or not any more. It may have forgotten its registration. */
  get isOfClient(): boolean {
    return this.code === 'invalid_client' || this.code === 'unauthorized_client'
  }
}

/** The answer has no ID token, and the server is to be shown one. */
class NoIdToken extends Fault {}

/** The authorization server refused the sign-in, in its response to the browser. */
export class AuthorizationRefused extends GrantRefused {
  override name = 'AuthorizationRefused'
}

/** The kind of token by which an identity provider asserts to an authorization server who a person is. */
export const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
/** The type of tokens other than access tokens (RFC 8693, 2.2.1). */
const NO_ACCESS = { n_a: () => {} }
const TIME_LIMIT = 10_000
/** A token short enough for the header limits of most servers. */
const TOKEN = /^[\x21-\x7e]{1,16384}$/
const CODE = /^[\w.:-]{1,64}$/
/** Error codes after which another attempt may succeed. */
const TRANSIENT: ReadonlySet<string> = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])

/** Redeems the code of a validated authorization response (`validateAuthResponse`). */
export function redeemCode(
  context: GrantContext,
  { response, verifier, redirectUri, asked }: CodeToRedeem,
): Promise<Granted> {
  return granted(context, { asked, granted: asked }, (server, client, auth, options) =>
    authorizationCodeGrantRequest(server, client, auth, response, redirectUri, verifier, {
      ...options,
      additionalParameters: withResource(context, {}),
    }),
  )
}

/** A code, and what its request contained. */
export interface CodeToRedeem {
  response: URLSearchParams
  verifier: string
  redirectUri: string
  asked: readonly string[]
}

/** Requests another access token. Scopes are not sent, so the granted ones stay. */
export async function refresh(context: GrantContext, before: Token): Promise<Granted> {
  const old = before.refresh ?? ''
  const parameters = withResource(context, { refresh_token: old })
  const { token, ...rest } = await granted(context, before, (server, client, auth, options) =>
    genericTokenEndpointRequest(server, client, auth, 'refresh_token', parameters, options),
  ).catch((error: unknown) => {
    // Not every authorization server renews ID tokens. A person can sign in again.
    throw error instanceof NoIdToken ? new GrantRefused('no_id_token', { cause: error }) : error
  })
  return { ...rest, token: { ...token, refresh: token.refresh ?? old } }
}

/** Requests a token for the client itself. */
export function clientCredentials(context: GrantContext, asked: readonly string[]): Promise<Granted> {
  return grantedBy('client_credentials', context, {}, asked)
}

/** Asks for the codes of a sign-in on any device (RFC 8628, 3.1). Rejects with a GrantRefused or a Fault. */
export async function requestDeviceCode(
  context: GrantContext,
  asked: readonly string[],
): Promise<DeviceAuthorizationResponse> {
  const { client, settings, server } = context
  try {
    const auth = await clientAuthOf(client, settings)
    const parameters = withResource(context, asked.length > 0 ? { scope: asked.join(' ') } : {})
    const [library, known] = [serverOf(context), { client_id: client.id }]
    const response = await deviceAuthorizationRequest(library, known, auth, parameters, requestOptions(context))
    return await processDeviceAuthorizationResponse(library, known, response)
  } catch (error) {
    throw refusalOf(error, server)
  }
}

/** Asks whether the person has signed in (RFC 8628, 3.4). Rejects with a GrantRefused while they have not. */
export function redeemDeviceCode(context: GrantContext, code: string, asked: readonly string[]): Promise<Granted> {
  // Scopes were sent with the first request.
  return granted(context, { asked, granted: asked }, (server, client, auth, options) =>
    deviceCodeGrantRequest(server, client, auth, code, {
      ...options,
      additionalParameters: withResource(context, {}),
    }),
  )
}

/** Revokes a token (RFC 7009). Rejects unless the issuer confirms it. */
export async function revoke(context: GrantContext, token: Token): Promise<void> {
  const { client, settings } = context
  const [text, hint] = token.refresh === undefined ? [token.access, 'access_token'] : [token.refresh, 'refresh_token']
  const auth = await clientAuthOf(client, settings)
  const response = await revocationRequest(serverOf(context), { client_id: client.id }, auth, text, {
    ...requestOptions(context),
    additionalParameters: { token_type_hint: hint },
  })
  await processRevocationResponse(response)
}

/** The issuer's metadata in the form of oauth4webapi. */
export function serverOf({ server }: Pick<GrantContext, 'server'>): AuthorizationServer {
  const said = Object.entries(server).filter(([, value]) => value !== undefined)
  return Object.fromEntries(said) as unknown as AuthorizationServer
}

type Options = ReturnType<typeof requestOptions> & DPoPRequestOptions
type Ask = (server: AuthorizationServer, client: LibraryClient, auth: ClientAuth, options: Options) => Promise<Response>
/** The requested scopes, those that count as granted if the answer names none, and the kinds of tokens that may come. */
interface Expected extends Readonly<Record<'asked' | 'granted', readonly string[]>> {
  issued?: readonly string[] | undefined
}

/**
 * Requests a token by one of the grants that have no function of their own. `issued`: the kinds of tokens that may come, if
 * the answer says which one it is (RFC 8693, 2.2.1).
 */
export function grantedBy(
  type: string,
  context: GrantContext,
  parameters: Record<string, string>,
  asked: readonly string[],
  issued?: readonly string[],
): Promise<Granted> {
  const all = withResource(context, { ...parameters, ...(asked.length > 0 && { scope: asked.join(' ') }) })
  return granted(context, { asked, granted: asked, issued }, (server, client, auth, options) =>
    genericTokenEndpointRequest(server, client, auth, type, all, options),
  )
}

async function granted(context: GrantContext, expected: Expected, ask: Ask): Promise<Granted> {
  const { client, settings } = context
  try {
    return await request(context, expected, client, ask)
  } catch (error) {
    const isUnknown = error instanceof GrantRefused && error.code === 'invalid_client'
    if (!isUnknown || !dependsOnEncoding(client, settings)) throw error
    // An issuer may expect the parts of Basic credentials unencoded. The form that worked is stored.
    const other = { ...client, plain: client.plain !== true }
    return request(context, expected, other, ask)
  }
}

async function request(context: GrantContext, expected: Expected, client: Client, ask: Ask): Promise<Granted> {
  const { asked, granted, issued } = expected
  const { server, resource, settings, now = Date.now } = context
  const [library, known] = [serverOf(context), { client_id: client.id }]
  const began = now()
  let answer: TokenEndpointResponse
  try {
    const auth = await clientAuthOf(client, settings, context.option)
    const options = { ...requestOptions(context), ...(context.key && { DPoP: await proverOf(context.key) }) }
    const once = async () => {
      const response = await ask(library, known, auth, options)
      return processGenericTokenEndpointResponse(library, known, response, { recognizedTokenTypes: NO_ACCESS })
    }
    // The nonce for the second attempt is in the answer to the first.
    answer = await once().catch((error: unknown) => {
      if (context.key && isDPoPNonceError(error)) return once()
      throw error
    })
  } catch (error) {
    throw refusalOf(error, server)
  }
  const { refresh_token, scope, token_type } = answer
  const { text: access, ends } = bearerIn(answer, context, began)
  const kind = answer['issued_token_type']
  if (issued && kind !== undefined && !issued.includes(String(kind)))
    throw new Fault('authFailed', `${nameOf(server)} answered with a token of another kind than it was asked for`)
  const types = issued?.includes(ID_JAG) ? ['n_a'] : context.key ? ['dpop', 'bearer'] : ['bearer']
  if (!types.includes(token_type) || !TOKEN.test(access) || (refresh_token !== undefined && !TOKEN.test(refresh_token)))
    throw new Fault('authFailed', `${nameOf(server)} answered with a token that cannot be sent as a bearer token`)
  const isBound = token_type === 'dpop'
  const token = {
    issuer: server.issuer,
    ...(resource !== undefined && { resource }),
    access,
    type: isBound ? ('dpop' as const) : ('bearer' as const),
    ...(ends !== undefined && { expires: ends }),
    ...(refresh_token !== undefined && { refresh: refresh_token }),
    asked: [...asked],
    granted: [...(scope === undefined ? granted : readScopes(scope))],
    since: began,
  }
  return { token, client, ...(isBound && { key: context.key }) }
}

/** The token for the server, and when it ends, in milliseconds since 1970. */
function bearerIn(
  answer: TokenEndpointResponse,
  { settings, server }: GrantContext,
  began: number,
): { text: string; ends: number | undefined } {
  const { access_token, expires_in: seconds, id_token } = answer
  if (settings.bearer !== 'id_token') {
    const ends = seconds === undefined ? undefined : began + Math.round(Math.min(seconds, 10 ** 9) * 1_000)
    return { text: access_token, ends }
  }
  if (id_token === undefined)
    throw new NoIdToken(
      'authFailed',
      `${nameOf(server)} gave no ID token: the scope "openid" may have to be allowed there`,
    )
  const { exp } = getValidatedIdTokenClaims(answer) ?? {}
  return { text: id_token, ends: exp === undefined ? undefined : exp * 1_000 }
}

/** A thrown error as a GrantRefused or a Fault. It keeps only the code of what the authorization server wrote. */
function refusalOf(error: unknown, server: IssuerMetadata): Error {
  if (error instanceof Fault) return error
  if (error instanceof ResponseBodyError && !TRANSIENT.has(error.error))
    return new GrantRefused(CODE.test(error.error) ? error.error : 'unknown')
  if (error instanceof ResponseBodyError) return unavailable(`${nameOf(server)} is unavailable (${error.error})`)
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return new Fault('authFailed', `${nameOf(server)} gave an invalid OAuth answer${code === '' ? '' : ` (${code})`}`)
}

function nameOf({ issuer }: IssuerMetadata): string {
  return `The authorization server ${quoted(issuer)}`
}

function withResource({ resource }: GrantContext, parameters: Record<string, string>): Record<string, string> {
  return resource === undefined ? parameters : { ...parameters, resource }
}

function requestOptions({ server, reach, beforeAsking, settings }: GrantContext) {
  return {
    // Plain HTTP was checked when the metadata was read, and is checked again when connecting.
    [allowInsecureRequests]: true,
    [customFetch]: async (
      url: string,
      { method, headers, body }: { method: string; headers: object; body?: unknown },
    ) => {
      await beforeAsking?.()
      return regular(
        ...(await post(url, method, headers, String(body ?? ''), server, reach)),
        settings.bearer === 'id_token',
      )
    },
  }
}

/** Rejects with a Fault if there is no answer, or one without a decision. */
async function post(
  url: string,
  method: string,
  headers: object,
  body: string,
  server: IssuerMetadata,
  reach: Reach,
): Promise<[number, Headers, Uint8Array]> {
  const what = nameOf(server)
  let answered: Answered
  try {
    answered = await guardedRequest(url, {
      ...reach,
      method: method === 'POST' ? 'POST' : 'GET',
      headers: headers as Record<string, string>,
      body,
      timeLimit: TIME_LIMIT,
    })
  } catch (error) {
    throw networkFault(error, what)
  }
  const { status } = answered
  const retryAfter = secondsOf(answered.headers['retry-after'])
  if (status >= 500 || status === 429 || status === 408)
    throw unavailable(`${what} answered HTTP ${status}`, retryAfter === undefined ? {} : { retryAfter })
  if (status >= 300 && status < 400)
    throw new Fault('authFailed', `${what} redirected a token request. Redirects are not followed`)
  const own = new Headers()
  for (const [name, value] of Object.entries(answered.headers))
    for (const one of [value ?? []].flat()) own.append(name, one)
  return [status, own, answered.bytes]
}

function secondsOf(header: string | string[] | undefined): number | undefined {
  const seconds = Number(header)
  return header !== undefined && Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 3_600) : undefined
}
