/** A server behind sign-in: lets requests through to another server if they bring a token that is for this address. */
import { createHash } from 'node:crypto'
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { calculateJwkThumbprint, EmbeddedJWK, type JWK, jwtVerify } from 'jose'
import type { Test } from 'tap'
import type { Oidc } from './oidc.js'

export interface GuardedOptions {
  /** Requests that need no token, by what their body says. */
  open?: (message: { method?: string }) => boolean
  /** The scope that a request needs. */
  scopeFor?: (message: { method?: string; params?: { name?: string } }) => string | undefined
  /** The origin that clients know it by, if something stands before it. */
  origin?: string
  /** Whether tokens have to be bound to a key, and each request needs a proof with the newest nonce. */
  dpop?: boolean
}

export interface RecordedEvent {
  method: string
  /** What the body says. */
  message: { method?: string; params?: { name?: string } }
  authorization: string | undefined
  status: number
}

/** Who gives tokens for the server, and can be asked about them. */
export type TokenAuthority = Pick<Oidc, 'issuer' | 'introspect'>

const METADATA = '/.well-known/oauth-protected-resource/mcp'

export class Guarded {
  readonly seen: RecordedEvent[] = []
  readonly #oidc: TokenAuthority
  readonly #target: URL
  readonly #options: GuardedOptions
  /** Tokens that are not taken any more, whatever their authorization server says. */
  readonly revoked = new Set<string>()
  /** The nonce that the next proof needs. */
  nonce = 'nonce-0'
  /** Proofs that were accepted: none is accepted twice. */
  readonly proofs = new Set<string>()
  #address = ''

  private constructor(oidc: TokenAuthority, target: string, options: GuardedOptions) {
    this.#oidc = oidc
    this.#target = new URL(target)
    this.#options = options
  }

  static async start(t: Test, oidc: TokenAuthority, target: string, options: GuardedOptions = {}): Promise<Guarded> {
    const guarded = new Guarded(oidc, target, options)
    const server = createServer((request, response) => {
      guarded.#take(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    guarded.#address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return guarded
  }

  get url(): string {
    return `${this.#origin}/mcp`
  }

  /** Where it listens. */
  get address(): string {
    return this.#address
  }

  get #origin(): string {
    return this.#options.origin ?? this.#address
  }

  /** Requests that were refused. */
  get refused(): readonly RecordedEvent[] {
    return this.seen.filter(({ status }) => status === 401 || status === 403)
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (request.url === METADATA) {
      const metadata = {
        resource: this.url,
        authorization_servers: [this.#oidc.issuer],
        scopes_supported: ['mcp:read'],
      }
      response.setHeader('content-type', 'application/json').end(JSON.stringify(metadata))
      return
    }
    const message = (body.length === 0 ? {} : JSON.parse(body.toString())) as RecordedEvent['message']
    const { authorization } = request.headers
    const seen: RecordedEvent = { method: request.method ?? '', message, authorization, status: 0 }
    this.seen.push(seen)
    const { dpop = false } = this.#options
    const asked = await (dpop ? this.#unproven(request) : this.#refusal(authorization, message))
    const refusal = this.#options.open?.(message) ? undefined : asked
    if (dpop) response.setHeader('dpop-nonce', this.nonce)
    if (refusal) {
      seen.status = refusal.status
      const challenge = `${dpop ? 'DPoP' : 'Bearer'} resource_metadata="${this.#origin}${METADATA}"${refusal.more}`
      response.writeHead(refusal.status, { 'www-authenticate': challenge, 'content-type': 'text/plain' }).end('Refused')
      return
    }
    const { host: _host, authorization: _authorization, ...headers } = request.headers
    const { hostname, port } = this.#target
    const path = (request.url ?? '').replace('/mcp', this.#target.pathname)
    const passed = forward({ hostname, port, path, method: request.method, headers }, (answer) => {
      seen.status = answer.statusCode ?? 0
      response.writeHead(seen.status, answer.headers)
      response.flushHeaders()
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    response.on('close', () => passed.destroy())
    passed.end(body)
  }

  /** What is missing in a request that has to have a proof. An accepted proof uses up its nonce. */
  async #unproven({ method, headers }: IncomingMessage): Promise<{ status: 401; more: string } | undefined> {
    const token = /^DPoP (.+)$/.exec(headers.authorization ?? '')?.[1]
    if (token === undefined) return { status: 401, more: '' }
    const { active, aud, cnf } = await this.#oidc.introspect(token)
    const proof = String(headers['dpop'] ?? '')
    const found = await jwtVerify(proof, EmbeddedJWK, {
      typ: 'dpop+jwt',
      algorithms: ['ES256'],
      requiredClaims: ['jti'],
    })
      .then(async ({ payload, protectedHeader: { jwk } }) => {
        const { htm, htu, ath, nonce, jti = '' } = payload
        const isOurs =
          htm === method && htu === this.url && ath === createHash('sha256').update(token).digest('base64url')
        const isOwner = cnf?.jkt === (await calculateJwkThumbprint(jwk as JWK)) && !Object.hasOwn(jwk as JWK, 'd')
        return isOurs && isOwner && !this.proofs.has(jti) ? { nonce, jti } : undefined
      })
      .catch(() => undefined)
    if (!found || !active || aud !== this.url) return { status: 401, more: ', error="invalid_dpop_proof"' }
    if (found.nonce !== this.nonce) return { status: 401, more: ', error="use_dpop_nonce"' }
    this.proofs.add(found.jti)
    this.nonce = `nonce-${this.proofs.size}`
    return undefined
  }

  async #refusal(
    authorization: string | undefined,
    message: RecordedEvent['message'],
  ): Promise<{ status: 401 | 403; more: string } | undefined> {
    const token = authorization?.replace(/^Bearer /, '')
    if (token === undefined) return { status: 401, more: '' }
    const { active, aud, scope = '' } = await this.#oidc.introspect(token)
    if (!active || aud !== this.url || this.revoked.has(token)) return { status: 401, more: ', error="invalid_token"' }
    const needed = this.#options.scopeFor?.(message)
    if (needed === undefined || scope.split(' ').includes(needed)) return undefined
    return { status: 403, more: `, error="insufficient_scope", scope="${needed}"` }
  }
}
