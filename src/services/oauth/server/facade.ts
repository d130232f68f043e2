/**
 * Stands before an identity provider where clients cannot register: gives everybody the one client that is registered
 * there, and passes their requests on in the form that the provider takes. It keeps no code and no token, and issues none:
 * redirect addresses are registered and checked at the provider, and PKCE binds each code to its client. Only codes of
 * sign-ins that have begun here, and refresh tokens that it has passed back, are sent on, because they are sent with the
 * secret.
 */
import { keyOf, Sealer } from '../../../base/crypto/seal.js'
import { guardedRequest } from '../../../base/net/fetch.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import { clientAuthOf, configuredMethod } from '../client/client-auth.js'
import { objectIn } from '../get-object.js'
import type { Issuers } from '../issuers.js'
import type { Reach } from '../reach.js'
import { readScopes } from '../scopes.js'
import { BegunSignIns, type SharedBegun } from './begun.js'
import { FairSlots } from './fair-slots.js'
import { atProvider } from './scope-names.js'
import type { FacadeSettings } from './settings.js'

export interface FacadeOptions {
  /** The provider. */
  issuer: string
  settings: FacadeSettings
  /** The names by which clients request scopes, by those in tokens. */
  scopeNames?: Readonly<Record<string, string>> | undefined
  issuers: Issuers
  reach: Reach
  /** What other replicas with the same facade know, if there are any. */
  shared?: SharedBegun | undefined
}

/** An error of OAuth: the client receives its code. */
class FacadeError extends Error {
  override name = 'FacadeError'
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** Most token requests at once. */
const MAX_TOKEN_REQUESTS = 32
const TIME_LIMIT = 10_000
/** Parameters of the authorization request that are passed on. `resource` is not: such providers refuse it. */
const AUTHORIZE = ['redirect_uri', 'state', 'code_challenge', 'code_challenge_method', 'prompt', 'login_hint', 'nonce']
/** Parameters of token requests that are passed on, by grant. Without `scope`, a refresh asks for what was granted. */
const TOKEN: Readonly<Record<string, readonly string[]>> = {
  authorization_code: ['code', 'redirect_uri', 'code_verifier'],
  refresh_token: ['refresh_token'],
}
/** Without these, a request cannot succeed. */
const REQUIRED = ['code', 'code_verifier', 'refresh_token']
/** A refresh token behind its signature, as clients have it. */
const MARKED = /^([^.]*\.[^.]*)\.(.+)$/s
/** Members of the provider's answer that are passed back. */
const ANSWER = ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope', 'error', 'error_description']

export class Facade {
  readonly #options: FacadeOptions
  readonly #slots = new FairSlots({ max: MAX_TOKEN_REQUESTS })
  readonly #begun: BegunSignIns
  /** Marks refresh tokens. All replicas have the secret, and it is the same after a restart. */
  readonly #seal: Sealer | undefined

  constructor(options: FacadeOptions) {
    const { clientSecret } = options.settings
    this.#options = options
    this.#begun = new BegunSignIns(options)
    this.#seal = clientSecret === undefined ? undefined : new Sealer([keyOf(clientSecret)], 'refresh token')
  }

  /** The answer to a registration: the one client, with the addresses that the caller says it has. Nothing is kept. */
  register(asked: unknown): object {
    const { redirect_uris: given, client_name: name } = (typeof asked === 'object' && asked !== null ? asked : {}) as {
      redirect_uris?: unknown
      client_name?: unknown
    }
    const isList = Array.isArray(given) && given.length > 0 && given.length <= 20
    if (!isList || !given.every((one) => typeof one === 'string' && parseUrl(one) !== undefined))
      throw new FacadeError('invalid_redirect_uri', 'redirect_uris has to be a list of addresses')
    return {
      client_id: this.#options.settings.clientId,
      redirect_uris: given,
      ...(typeof name === 'string' && { client_name: name.slice(0, 200) }),
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }

  /** The provider's address for the browser, for an authorization request. */
  async authorize(query: URLSearchParams): Promise<string> {
    const { scopeNames, settings } = this.#options
    const { clientId, scopes } = settings
    checkOnce(query)
    this.#checkClient(query)
    if (query.get('response_type') !== 'code')
      throw new FacadeError('unsupported_response_type', 'response_type has to be code')
    if (query.get('code_challenge_method') !== 'S256' || !(await this.#begun.begin(query.get('code_challenge') ?? '')))
      throw new FacadeError('invalid_request', 'PKCE with S256 is required')
    const { authorization_endpoint: place } = await this.#metadata()
    if (place === undefined)
      throw new FacadeError('server_error', 'The identity provider has no authorization_endpoint')
    const url = new URL(place)
    const scope = atProvider(readScopes(query.get('scope') ?? ''), scopes, scopeNames).join(' ')
    const sent = {
      response_type: 'code',
      client_id: clientId,
      ...(scope !== '' && { scope }),
      ...only(query, AUTHORIZE),
    }
    for (const [name, value] of Object.entries(sent)) url.searchParams.set(name, value)
    return url.href
  }

  /** The provider's answer to a token request from an address. The secret goes with it, if there is one. */
  async token(form: URLSearchParams, from: string): Promise<{ status: number; answer: object }> {
    checkOnce(form)
    this.#checkClient(form)
    const grant = form.get('grant_type') ?? ''
    const names = Object.hasOwn(TOKEN, grant) ? TOKEN[grant] : undefined
    if (!names)
      throw new FacadeError('unsupported_grant_type', 'Only authorization_code and refresh_token are supported')
    const lacking = REQUIRED.find((name) => names.includes(name) && !form.get(name))
    if (lacking !== undefined) throw new FacadeError('invalid_request', `${lacking} is missing`)
    const sent: Record<string, string> = { grant_type: grant, ...only(form, names) }
    const isKnown =
      grant === 'refresh_token' ? this.#unmark(sent) : await this.#begun.isBegun(form.get('code_verifier') ?? '')
    if (isKnown === false) throw new FacadeError('invalid_grant', 'It is not from a sign-in that has begun here')
    return this.#slots.use(
      { from, isKnown: isKnown === true },
      () => this.#send(sent),
      () => new FacadeError('temporarily_unavailable', 'Too many token requests', 503),
    )
  }

  /** Puts the provider's refresh token in place of the one that the client has. Returns false if it is not from here. */
  #unmark(sent: Record<string, string>): boolean | undefined {
    if (!this.#seal) return undefined
    const [, signature = '', token = ''] = MARKED.exec(sent['refresh_token'] ?? '') ?? []
    sent['refresh_token'] = token
    return this.#seal.isSigned(signature, token)
  }

  /** The provider's answer, with a mark on its refresh token. */
  #marked(answer: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const { refresh_token: token } = answer
    return this.#seal && typeof token === 'string'
      ? { ...answer, refresh_token: `${this.#seal.sign(token)}.${token}` }
      : answer
  }

  async #send(parameters: Record<string, string>): Promise<{ status: number; answer: object }> {
    const { issuer, settings, reach } = this.#options
    const { clientId, clientSecret } = settings
    const metadata = await this.#metadata()
    const { token_endpoint: place, token_endpoint_auth_methods_supported: supported } = metadata
    if (place === undefined) throw new FacadeError('server_error', 'The identity provider has no token_endpoint', 502)
    const own = { grant: 'code', clientSecret } as const
    const method = configuredMethod(own, supported)
    const body = new URLSearchParams({ ...parameters, client_id: clientId })
    const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' })
    const authenticate = await clientAuthOf({ issuer, how: 'configured', id: clientId, method, since: 0 }, own)
    await authenticate({ issuer }, { client_id: clientId }, body, headers)
    const request = { ...reach, method: 'POST', timeLimit: TIME_LIMIT, body: body.toString() } as const
    const { status, bytes } = await guardedRequest(place, { ...request, headers: Object.fromEntries(headers) }).catch(
      () => {
        throw new FacadeError('temporarily_unavailable', 'The identity provider is unavailable', 503)
      },
    )
    const answer = objectIn(bytes) as Readonly<Record<string, unknown>> | undefined
    if (!answer || status >= 500)
      throw new FacadeError('temporarily_unavailable', 'The identity provider is unavailable', 503)
    return {
      status: status === 200 ? 200 : 400,
      answer: Object.fromEntries(Object.entries(this.#marked(answer)).filter(([name]) => ANSWER.includes(name))),
    }
  }

  #metadata() {
    const { issuer, issuers, reach } = this.#options
    return issuers.find({ issuer, reach }).catch(() => {
      throw new FacadeError('temporarily_unavailable', 'The identity provider is unavailable', 503)
    })
  }

  /** Another client would get the secret of this one. */
  #checkClient(given: URLSearchParams): void {
    if (given.get('client_id') !== this.#options.settings.clientId)
      throw new FacadeError('invalid_client', 'The client is unknown here: register first', 401)
  }
}

function checkOnce(given: URLSearchParams): void {
  const names = [...given.keys()].filter((name) => name !== 'resource')
  if (new Set(names).size !== names.length) throw new FacadeError('invalid_request', 'A parameter is there twice')
}

function only(given: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (given.has(name) ? [[name, given.get(name) ?? '']] : [])))
}
