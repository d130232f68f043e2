/**
 * An authorization server made of another library than the one of the other tests: @node-oauth/oauth2-server. Its tokens are
 * no JWTs, so it answers introspection, and it knows no `resource`. Whoever comes is signed in and agrees.
 */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import { plant } from '../support/secrets.js'
import { install, type Package } from './install.js'

type Json = Record<string, unknown>

/** As much of the library as is used. */
interface Library {
  new (
    options: Json,
  ): {
    authorize(request: object, response: Answer, options: Json): Promise<unknown>
    token(request: object, response: Answer, options: Json): Promise<unknown>
  }
  Request: new (given: Json) => object
  Response: new (given: Json) => Answer
}
interface Answer {
  status: number
  headers: Record<string, string>
  body: object
}
interface Token {
  accessToken: string
  accessTokenExpiresAt: Date
  refreshToken?: string
  scope?: string[]
}

const LIBRARY: Package = { name: '@node-oauth/oauth2-server', version: '5.3.0' }
const USER = { id: 'person' }
const GRANTS = ['authorization_code', 'refresh_token']

export class OAuth2Server {
  /** The client of the bridge, which may ask about tokens. */
  static readonly bridge = { clientId: 'bridge', clientSecret: 'bridge-secret-0123456789' }
  readonly issuer: string
  /** Requests, by path. */
  readonly asked: string[] = []
  readonly #library: Library
  readonly #server: InstanceType<Library>
  readonly #clients = new Map<string, Json>()
  readonly #codes = new Map<string, Json>()
  readonly #tokens = new Map<string, Token & { client: Json }>()

  private constructor(issuer: string, library: Library) {
    this.issuer = issuer
    this.#library = library
    this.#server = new library({ model: this.#model() })
  }

  static async start(t: Test): Promise<OAuth2Server> {
    const folder = await install(LIBRARY)
    const library = createRequire(join(folder, 'package.json'))(folder) as Library
    let own: OAuth2Server
    const server = createServer((request, response) => {
      own.#answer(request, response).catch(() => response.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    own = new OAuth2Server(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, library)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  /** Registers a client beforehand. */
  register(client: { id: string; redirectUris: string[] }): void {
    this.#clients.set(client.id, { ...client, grants: GRANTS })
  }

  #model(): object {
    return {
      getClient: async (id: string) => this.#clients.get(id),
      saveAuthorizationCode: async (code: Json, client: Json, user: Json) => {
        this.#codes.set(String(code['authorizationCode']), { ...code, client, user })
        return { ...code, client, user }
      },
      getAuthorizationCode: async (code: string) => this.#codes.get(code),
      revokeAuthorizationCode: async ({ authorizationCode }: Json) => this.#codes.delete(String(authorizationCode)),
      saveToken: async (token: Token, client: Json, user: Json) => {
        const saved = { ...token, client, user }
        for (const one of [token.accessToken, token.refreshToken ?? '']) this.#tokens.set(one, saved)
        plant({ access_token: token.accessToken, refresh_token: token.refreshToken })
        return saved
      },
      getAccessToken: async (token: string) => this.#tokens.get(token),
      getRefreshToken: async (token: string) => this.#tokens.get(token),
      revokeToken: async ({ refreshToken }: Token) => this.#tokens.delete(refreshToken ?? ''),
      validateScope: async (_user: Json, _client: Json, scope: string[] = []) => scope,
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const url = new URL(request.url ?? '', this.issuer)
    this.asked.push(url.pathname)
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    const form = new URLSearchParams(text)
    switch (url.pathname) {
      case '/.well-known/oauth-authorization-server':
        return void json({
          issuer: this.issuer,
          ...Object.fromEntries(
            ['authorization', 'token', 'registration', 'introspection'].map((name) => [
              `${name}_endpoint`,
              `${this.issuer}/${name}`,
            ]),
          ),
          response_types_supported: ['code'],
          grant_types_supported: GRANTS,
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
        })
      case '/registration': {
        const { redirect_uris } = JSON.parse(text) as { redirect_uris: string[] }
        const id = randomUUID()
        this.register({ id, redirectUris: redirect_uris })
        return void json({ client_id: id, redirect_uris, token_endpoint_auth_method: 'none' }, 201)
      }
      case '/introspection':
        return void json(this.#said(request, form.get('token') ?? ''))
      case '/authorization':
      case '/token':
        return this.#throughLibrary(url, request, form, response)
      default:
        return void json({}, 404)
    }
  }

  #said({ headers }: IncomingMessage, token: string): object {
    const { clientId, clientSecret } = OAuth2Server.bridge
    const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    const known = headers.authorization === basic ? this.#tokens.get(token) : undefined
    if (known?.accessToken !== token) return { active: false }
    const exp = Math.floor(known.accessTokenExpiresAt.getTime() / 1_000)
    const scope = known.scope?.join(' ')
    return { active: true, sub: USER.id, client_id: known.client['id'], exp, scope, aud: 'api://bridge' }
  }

  async #throughLibrary(
    { pathname, searchParams }: URL,
    { method, headers }: IncomingMessage,
    form: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    const query = Object.fromEntries(searchParams)
    const body = Object.fromEntries(form)
    const given = new this.#library.Request({ method, headers: { 'content-length': '1', ...headers }, query, body })
    const answer = new this.#library.Response({})
    try {
      await (pathname === '/token'
        ? this.#server.token(given, answer, {
            requireClientAuthentication: Object.fromEntries(GRANTS.map((grant) => [grant, false])),
          })
        : this.#server.authorize(given, answer, { authenticateHandler: { handle: () => USER } }))
    } catch {
      // What is wrong is in the answer.
    }
    const { status, headers: said, body: content } = answer
    response.writeHead(status, { ...said, 'content-type': 'application/json' }).end(JSON.stringify(content ?? {}))
  }
}
