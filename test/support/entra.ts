/**
 * An identity provider that behaves as Entra v2 does, as far as clients of MCP stumble over it: no registration, no RFC 8414
 * document, `resource` refused, bare scopes refused, `.default` refused beside others, redirect addresses checked, and
 * tokens for the application's id.
 */
import { createHash, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import type { Test } from 'tap'
import { rsaKeys } from './rsa-keys.js'
import { plant } from './secrets.js'

const ID = '11111111-2222-3333-4444-555555555555'
const SECRET = 'entra-secret-0123456789'

export class Entra {
  static readonly id = ID
  static readonly secret = SECRET
  readonly origin: string
  readonly redirects: string[]
  /** Of access tokens, as `requestedAccessTokenVersion` of an application says. */
  readonly version: 1 | 2
  /** Requests, by path. */
  readonly asked: { path: string; params: URLSearchParams }[] = []
  readonly #keys = rsaKeys()
  readonly #codes = new Map<string, URLSearchParams>()
  /** What was asked for with each refresh token. */
  readonly #refresh = new Map<string, string>()
  /** The roles of the person who signs in. */
  readonly roles: readonly string[]

  private constructor(origin: string, redirects: string[], version: 1 | 2, roles: readonly string[]) {
    this.roles = roles
    this.origin = origin
    this.redirects = redirects
    this.version = version
  }

  static async start(
    t: Test,
    redirects: string[],
    version: 1 | 2 = 2,
    roles: readonly string[] = ['Mcp.Admin'],
  ): Promise<Entra> {
    let own: Entra
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        own.#answer(request, Buffer.concat(chunks).toString(), response).catch(() => response.destroy())
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    own = new Entra(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, redirects, version, roles)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  get issuer(): string {
    return `${this.origin}/tenant/v2.0`
  }

  /** The issuer of tokens of version 1, whatever endpoints were used. */
  get firstIssuer(): string {
    return `${this.origin}/sts/tenant/`
  }

  async #answer(request: IncomingMessage, body: string, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', this.origin)
    const params = request.method === 'POST' ? new URLSearchParams(body) : url.searchParams
    this.asked.push({ path: url.pathname, params })
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    const refuse = (error: string, text: string) => json({ error, error_description: text }, 400)
    if (url.pathname === '/tenant/v2.0/.well-known/openid-configuration')
      return void json({
        issuer: this.issuer,
        authorization_endpoint: `${this.origin}/tenant/oauth2/v2.0/authorize`,
        token_endpoint: `${this.origin}/tenant/oauth2/v2.0/token`,
        jwks_uri: `${this.origin}/tenant/keys`,
        token_endpoint_auth_methods_supported: ['client_secret_post', 'client_secret_basic'],
      })
    if (url.pathname === '/sts/tenant/.well-known/openid-configuration')
      return void json({ issuer: this.firstIssuer, jwks_uri: `${this.origin}/tenant/keys` })
    if (url.pathname === '/tenant/keys')
      return void json({ keys: [{ ...this.#keys.publicKey.export({ format: 'jwk' }), kid: 'e1', use: 'sig' }] })
    if (params.has('resource')) return void refuse('invalid_target', 'AADSTS9010010: The resource parameter is refused')
    const scopes = (params.get('scope') ?? '').split(' ').filter((one) => one !== '')
    if (scopes.some((one) => !/^(?:api:\/\/|openid$|profile$|offline_access$)/.test(one)))
      return void refuse('invalid_scope', 'AADSTS70011: The scope is not valid')
    if (scopes.some((one) => one.endsWith('/.default')) && scopes.length > 1)
      return void refuse('invalid_scope', 'AADSTS70011: .default cannot be combined')
    if (params.get('client_id') !== ID) return void refuse('unauthorized_client', 'AADSTS700016')
    if (url.pathname === '/tenant/oauth2/v2.0/authorize') {
      const back = params.get('redirect_uri') ?? ''
      if (!this.redirects.includes(back)) return void refuse('invalid_request', 'AADSTS50011: redirect address')
      const code = randomUUID()
      this.#codes.set(code, params)
      const to = new URL(back)
      to.searchParams.set('code', code)
      to.searchParams.set('state', params.get('state') ?? '')
      return void response.writeHead(302, { location: to.href }).end()
    }
    if (url.pathname !== '/tenant/oauth2/v2.0/token') return void response.writeHead(404).end()
    const basic = `Basic ${Buffer.from(`${ID}:${SECRET}`).toString('base64')}`
    if (params.get('client_secret') !== SECRET && request.headers.authorization !== basic)
      return void refuse('invalid_client', 'AADSTS7000215')
    let granted = ''
    if (params.get('grant_type') === 'refresh_token') {
      granted = this.#refresh.get(params.get('refresh_token') ?? '') ?? ''
      if (!this.#refresh.delete(params.get('refresh_token') ?? '')) return void refuse('invalid_grant', 'AADSTS70008')
    } else {
      const code = params.get('code') ?? ''
      const asked = this.#codes.get(code)
      this.#codes.delete(code)
      const proof = createHash('sha256')
        .update(params.get('code_verifier') ?? '')
        .digest('base64url')
      if (!asked || asked.get('code_challenge') !== proof) return void refuse('invalid_grant', 'AADSTS501481')
      if (asked.get('redirect_uri') !== params.get('redirect_uri')) return void refuse('invalid_grant', 'AADSTS50011')
      granted = asked.get('scope') ?? ''
    }
    const named = granted.split(' ').filter((one) => one.startsWith('api://'))
    const refresh = `refresh-${randomUUID()}`
    this.#refresh.set(refresh, granted)
    const answer = {
      token_type: 'Bearer',
      expires_in: 3_600,
      access_token: await this.#token(named.map((one) => one.replace(/^.*\//, '').replace('.default', 'mcp'))),
      refresh_token: refresh,
    }
    plant(answer)
    json({ ...answer, scope: named.join(' '), ext_expires_in: 3_600 })
  }

  #token(scopes: readonly string[]): Promise<string> {
    const now = Math.floor(Date.now() / 1_000)
    const claims = { scp: scopes.join(' '), roles: this.roles, tid: 'tenant' }
    const versioned =
      this.version === 2
        ? { iss: this.issuer, aud: ID, ver: '2.0', azp: ID }
        : { iss: this.firstIssuer, aud: `api://${ID}`, ver: '1.0', appid: ID }
    return new SignJWT({
      ...claims,
      ...versioned,
      sub: 'AAAA',
      iat: now,
      nbf: now,
      exp: now + 3_600,
      uti: randomUUID(),
    })
      .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid: 'e1' })
      .sign(this.#keys.privateKey)
  }
}
