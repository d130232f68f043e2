/**
 * Identifies the person in a browser by a sign-in at the identity provider of the company (OpenID Connect Core, 3.1:
 * code, PKCE, nonce, and an ID token that is checked by the keys of the issuer).
 */

import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { authorizationCodeGrantRequest } from 'oauth4webapi'
import { randomId } from '../../../base/crypto/seal.js'
import { Fault } from '../../../base/fault/fault.js'
import { printable } from '../../../base/texts/printable.js'
import { clientAuthOf, configuredMethod } from '../client/client-auth.js'
import { AuthorizationRefused, serverOf } from '../client/grants.js'
import type { IssuerMetadata } from '../documents.js'
import { failed, networkFault, unsafe } from '../failure.js'
import { guarded } from '../guarded-fetch.js'
import { Issuers } from '../issuers.js'
import { authorizationAddress, checkedResponse, isAnswerTo, newSecrets } from '../person/authorization.js'
import { quoted } from '../quoted.js'
import { issuerReach, type Network, type Reach } from '../reach.js'
import { LEEWAY_SECONDS } from '../server/claims.js'
import { KeySet } from '../server/key-set.js'
import { principalOf } from '../server/verifier.js'

/** The identity provider, and the bridge as its client. */
export interface CompanyOptions {
  issuer: string
  jwksUri?: string | undefined
  algorithms: readonly string[]
  clientId: string
  clientSecret?: string | undefined
  /** Besides `openid`. */
  scopes: readonly string[]
  /** The redirect URI for browsers. */
  redirectUri: string
  /** Hosts and networks of issuers that are not public. */
  allow?: readonly string[] | undefined
  network?: Network | undefined
  now?: (() => number) | undefined
}

/** The secrets of a sign-in, which the browser keeps sealed. */
export interface CompanySecrets {
  /** The digest of the state. */
  state: string
  verifier: string
  nonce: string
}

/** A person. */
export interface KnownPerson {
  principal: string
  /** A name for the page. */
  who: string
}

const MAX_PERSON_NAME = 100
/** Claims with a name, best first. */
const NAMES = ['name', 'email', 'preferred_username', 'sub'] as const

/** The sign-in of browsers at the identity provider. */
export class Company {
  readonly #options: CompanyOptions
  readonly #now: () => number
  readonly #reach: Reach
  readonly #issuers: Issuers
  readonly #keys: KeySet

  constructor(options: CompanyOptions) {
    const { issuer, jwksUri, allow, network = {}, now = Date.now } = options
    this.#options = options
    this.#now = now
    this.#reach = issuerReach({ issuer, jwksUri }, allow, network)
    this.#issuers = new Issuers(now)
    this.#keys = new KeySet({ settings: { issuer, jwksUri }, issuers: this.#issuers, reach: this.#reach, now })
  }

  /** Resolves to the address for the browser, and the secrets that it keeps. Rejects with a Fault. */
  async begin(): Promise<{ address: string; secrets: CompanySecrets }> {
    const { clientId, scopes, redirectUri, issuer } = this.#options
    const { authorization_endpoint: endpoint } = await this.#metadata()
    if (endpoint === undefined) throw failed(`The identity provider ${quoted(issuer)} has no authorization endpoint`)
    const nonce = randomId()
    const secrets = { ...newSecrets(), nonce }
    const client = { issuer, how: 'configured', id: clientId, method: 'none', since: 0 } as const
    const asked = ['openid', ...scopes]
    const address = await authorizationAddress(endpoint, { ...secrets, client, redirectUri, asked }, { nonce })
    return { address, secrets }
  }

  /** The person who has signed in. Undefined if it is the answer to another sign-in. Rejects with a Fault. */
  async finish(params: URLSearchParams, secrets: CompanySecrets): Promise<KnownPerson | undefined> {
    if (!isAnswerTo(params, secrets)) return undefined
    const server = await this.#metadata()
    const response = this.#responseIn(params, server)
    const claims = await this.#verified(await this.#redeem(server, response, secrets.verifier))
    const { sub, nonce, azp } = claims
    const { issuer, clientId } = this.#options
    if (nonce !== secrets.nonce || (azp !== undefined && azp !== clientId) || typeof sub !== 'string' || sub === '')
      throw unsafe(`The ID token of ${quoted(issuer)} is not for this sign-in`)
    const name = NAMES.map((claim) => claims[claim]).find((one) => typeof one === 'string' && one !== '')
    return { principal: principalOf({ issuer, kind: 'sub', name: sub }), who: printable(String(name), MAX_PERSON_NAME) }
  }

  /** The answer, if it has a code. Throws a Fault. */
  #responseIn(params: URLSearchParams, server: IssuerMetadata): URLSearchParams {
    const { issuer, clientId } = this.#options
    try {
      return checkedResponse(params, server, clientId)
    } catch (error) {
      if (!(error instanceof AuthorizationRefused)) throw error
      throw failed(`The identity provider ${quoted(issuer)} answered with the error ${error.code}`)
    }
  }

  #metadata(): Promise<IssuerMetadata> {
    return this.#issuers.find({ issuer: this.#options.issuer, reach: this.#reach })
  }

  /** Resolves to the ID token. */
  async #redeem(server: IssuerMetadata, response: URLSearchParams, verifier: string): Promise<string> {
    const { issuer, clientId, clientSecret, redirectUri } = this.#options
    const own = { grant: 'code', clientSecret } as const
    const method = configuredMethod(own, server.token_endpoint_auth_methods_supported)
    const auth = await clientAuthOf({ issuer, how: 'configured', id: clientId, method, since: 0 }, own)
    const what = `The identity provider ${quoted(issuer)}`
    const answer = await authorizationCodeGrantRequest(
      serverOf({ server }),
      { client_id: clientId },
      auth,
      response,
      redirectUri,
      verifier,
      guarded(this.#reach),
    ).catch((error: unknown) => {
      throw networkFault(error, what)
    })
    const said = ((await answer.json().catch(() => undefined)) ?? {}) as Readonly<Record<string, unknown>>
    const { error, id_token: token } = said
    if (answer.status !== 200)
      throw failed(`${what} refused the code (${typeof error === 'string' ? printable(error, 64) : answer.status})`)
    if (typeof token !== 'string') throw failed(`${what} gave no ID token`)
    return token
  }

  /** The claims of an ID token. Rejects with a Fault if it is not valid. */
  async #verified(token: string): Promise<JWTPayload> {
    const { moment } = this.#keys
    try {
      return await this.#check(token, await this.#keys.known()).catch(async (error: unknown) => {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
        return await this.#check(token, await this.#keys.after(moment))
      })
    } catch (error) {
      throw error instanceof Fault ? error : this.#invalid(error)
    }
  }

  async #check(token: string, keys: JWTVerifyGetKey): Promise<JWTPayload> {
    const { issuer, clientId, algorithms } = this.#options
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms: [...algorithms],
      clockTolerance: LEEWAY_SECONDS,
      requiredClaims: ['sub', 'exp', 'iat'],
      currentDate: new Date(this.#now()),
    })
    return payload
  }

  #invalid(cause: unknown): Error {
    return unsafe(`The ID token of ${quoted(this.#options.issuer)} is not valid`, cause)
  }
}
