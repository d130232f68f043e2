/**
 * An authorization server that gives tokens without a person: for tokens of others (RFC 8693), as assertions about a person
 * (ID-JAG), and for assertions (RFC 7523). It is strict in what it takes.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, decodeJwt, type JWK, type JWTPayload, jwtVerify, SignJWT } from 'jose'
import type { Test } from 'tap'
import type { Introspection } from './oidc.js'
import { plant } from './secrets.js'

type Json = Record<string, unknown>

/** Whose tokens are taken. */
export interface Trusted {
  readonly issuer: string
  readonly keys: JWK[]
}

export interface DelegateOptions {
  trusts?: readonly Trusted[]
  /** Seconds that its access tokens hold. */
  lifetime?: number
}

export interface DelegateRequest {
  params: URLSearchParams
  client: string | undefined
  status: number
}

export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag'
const TYPE = /^urn:ietf:params:oauth:token-type:(?:access_token|id_token|jwt)$/

class Refusal extends Error {
  readonly code: string

  constructor(code: string, why: string) {
    super(why)
    this.code = code
  }
}

export class Delegate implements Trusted {
  readonly issuer: string
  readonly requests: DelegateRequest[] = []
  readonly keys: JWK[]
  trusts: readonly Trusted[]
  lifetime: number
  /** Answers in its place, if it is set. */
  instead: ((request: DelegateRequest, response: ServerResponse) => boolean) | undefined
  /** Until then, token requests are not answered. */
  hold: Promise<void> | undefined
  /** The secrets of its clients. */
  readonly clients = new Map([['bridge', 'CANARY-bridge-secret']])
  readonly #pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  readonly #used = new Set<string>()

  private constructor(issuer: string, { trusts = [], lifetime = 300 }: DelegateOptions) {
    this.issuer = issuer
    this.trusts = trusts
    this.lifetime = lifetime
    this.keys = [{ ...this.#pair.publicKey.export({ format: 'jwk' }), kid: 'd1', use: 'sig', alg: 'ES256' } as JWK]
  }

  static async start(t: Test, options: DelegateOptions = {}): Promise<Delegate> {
    let own: Delegate
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        own.#answer(request.url ?? '', body, request.headers.authorization, response).catch(() => response.destroy())
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    own = new Delegate(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, options)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  /** Token requests of one grant. */
  grants(type: string): readonly DelegateRequest[] {
    return this.requests.filter(({ params }) => params.get('grant_type') === type)
  }

  /** A token with these claims besides the usual ones. */
  sign(claims: JWTPayload, seconds = 300, typ = 'at+jwt'): Promise<string> {
    const now = Math.floor(Date.now() / 1_000)
    const all = { iss: this.issuer, iat: now, exp: now + seconds, jti: randomUUID(), ...claims }
    return new SignJWT(all).setProtectedHeader({ alg: 'ES256', kid: 'd1', typ }).sign(this.#pair.privateKey)
  }

  /** What it says of a token, to the server that the token is for. */
  async introspect(token: string): Promise<Introspection & { sub?: string }> {
    const found = await jwtVerify(token, createLocalJWKSet({ keys: this.keys }), {
      issuer: this.issuer,
      typ: 'at+jwt',
    }).catch(() => undefined)
    return { active: found !== undefined, ...(found?.payload as object) }
  }

  async #answer(path: string, body: string, authorization: string | undefined, response: ServerResponse) {
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    if (path === '/.well-known/oauth-authorization-server')
      return void json({
        issuer: this.issuer,
        token_endpoint: `${this.issuer}/token`,
        jwks_uri: `${this.issuer}/jwks`,
        grant_types_supported: [EXCHANGE, JWT_BEARER],
        token_endpoint_auth_methods_supported: ['client_secret_basic'],
      })
    if (path === '/jwks') return void json({ keys: this.keys })
    if (path !== '/token') return void response.writeHead(404).end()
    const params = new URLSearchParams(body)
    plant(params)
    const request: DelegateRequest = { params, client: this.#clientIn(authorization), status: 200 }
    this.requests.push(request)
    await this.hold
    if (this.instead?.(request, response)) return
    try {
      if (request.client === undefined) throw new Refusal('invalid_client', 'The client is unknown')
      const answer = await this.#token(params, request.client)
      plant(answer)
      json(answer)
    } catch (error) {
      const code = error instanceof Refusal ? error.code : 'invalid_grant'
      request.status = 400
      json({ error: code, error_description: 'CANARY-description' }, 400)
    }
  }

  #clientIn(authorization = ''): string | undefined {
    const [id = '', secret] = Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
      .toString()
      .split(':')
    return secret !== undefined && this.clients.get(decodeURIComponent(id)) === decodeURIComponent(secret)
      ? id
      : undefined
  }

  async #token(params: URLSearchParams, client: string): Promise<Json> {
    switch (params.get('grant_type') ?? '') {
      case EXCHANGE:
        return this.#exchange(params, client)
      case JWT_BEARER: {
        const claims = await this.#verified(params.get('assertion') ?? '', { audience: this.issuer, typ: undefined })
        if (claims['client_id'] !== undefined && claims['client_id'] !== client)
          throw new Refusal('invalid_grant', 'The assertion is for another client')
        if (claims.jti !== undefined && this.#used.has(claims.jti)) throw new Refusal('invalid_grant', 'Used before')
        if (claims.jti !== undefined) this.#used.add(claims.jti)
        return this.#access(String(claims['resource'] ?? params.get('resource')), claims.sub, client, params)
      }
      default:
        throw new Refusal('unsupported_grant_type', 'No such grant')
    }
  }

  async #exchange(params: URLSearchParams, client: string): Promise<Json> {
    if (!TYPE.test(params.get('subject_token_type') ?? '')) throw new Refusal('invalid_request', 'subject_token_type')
    const { sub } = await this.#verified(params.get('subject_token') ?? '', {})
    const [resource, audience] = [params.get('resource'), params.get('audience')]
    if (params.get('requested_token_type') !== ID_JAG)
      return { ...(await this.#access(resource ?? audience ?? '', sub, client, params)), issued_token_type: ACCESS }
    if (!audience || !resource) throw new Refusal('invalid_request', 'audience and resource are required')
    const assertion = await this.sign(
      { sub: String(sub), aud: audience, resource, client_id: client },
      300,
      'oauth-id-jag+jwt',
    )
    return { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 300 }
  }

  async #access(aud: string, sub: string | undefined, client: string, params: URLSearchParams): Promise<Json> {
    const scope = params.get('scope') ?? ''
    const token = await this.sign(
      { sub: String(sub), aud, client_id: client, scope, act: { sub: client } },
      this.lifetime,
    )
    return {
      access_token: token,
      token_type: 'Bearer',
      expires_in: this.lifetime,
      refresh_token: `CANARY-${randomUUID()}`,
    }
  }

  async #verified(token: string, options: { audience?: string; typ?: string | undefined }): Promise<JWTPayload> {
    const { iss } = decodeJwt(token)
    const trusted = this.trusts.find(({ issuer }) => issuer === iss)
    if (!trusted) throw new Refusal('invalid_grant', 'The issuer is not trusted')
    const { audience } = options
    const { payload } = await jwtVerify(token, createLocalJWKSet({ keys: trusted.keys }), {
      issuer: trusted.issuer,
      requiredClaims: ['exp', 'sub'],
      ...(audience !== undefined && { audience }),
    })
    return payload
  }
}

const ACCESS = 'urn:ietf:params:oauth:token-type:access_token'
