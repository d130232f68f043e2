/** A real authorization server (oidc-provider), where whoever comes is signed in and agrees, unless a test says otherwise. */
import { randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { errors, type GrantRequest, Provider } from 'oidc-provider'
import type { Test } from 'tap'
import { rsaKeys } from './rsa-keys.js'
import { plant } from './secrets.js'

export interface OidcOptions {
  port?: number
  /** The address that others know it by, if something stands before it that says so in X-Forwarded-Proto. */
  issuer?: string
  /** Whether access tokens are JWTs. */
  jwt?: boolean
  /** The resource of tokens for clients that name none. */
  defaultResource?: string
  /** Scopes that resources have. */
  scopes?: string
  /** Seconds that an access token holds. */
  lifetime?: number
  /** Clients that are registered beforehand. */
  clients?: readonly object[]
  /** Whether clients may register. */
  registration?: boolean
  /** Whether clients may name scopes of resources when they register. */
  registersScopes?: boolean
  /** Documents of clients, by their addresses. */
  documents?: Readonly<Record<string, object>>
  /** Who signs in next; `person` by default. */
  person?: string
  /** What a person answers: yes by default. */
  declines?: boolean
  refreshTokens?: boolean
  /** Whether it exchanges its JWTs for tokens of other resources (RFC 8693). */
  exchanges?: boolean
  /** Whether proofs of a key need a nonce. */
  nonces?: boolean
  /** Whether people may sign in on any device (RFC 8628); they may by default. */
  devices?: boolean
  /** Shows a page with a form before it takes anybody for signed in. The page submits it by itself, with JavaScript. */
  page?: boolean
}

export interface OidcRequest {
  method: string
  path: string
  params: URLSearchParams
  authorization: string | undefined
  status?: number
}

export interface Introspection {
  active: boolean
  aud?: string
  scope?: string
  client_id?: string
  token_type?: string
  /** The key that it is bound to. */
  cnf?: { jkt?: string }
  sub?: string
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const EXCHANGED = ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'scope']
const RESOURCE_SERVER = { client_id: 'resource-server', client_secret: 'resource-server-secret' }

export class Oidc {
  readonly issuer: string
  /** Where it listens. */
  readonly address: string
  readonly provider: Provider
  readonly requests: OidcRequest[] = []
  /** What the next requests of a path are answered with, in the place of the authorization server. */
  readonly instead = new Map<string, (request: OidcRequest, response: ServerResponse) => void>()
  options: OidcOptions

  private constructor(server: Server, options: OidcOptions) {
    this.options = options
    this.address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.issuer = options.issuer ?? this.address
    this.provider = new Provider(this.issuer, configuration(options))
    this.provider.proxy = options.issuer !== undefined
    if (options.exchanges) this.provider.registerGrantType(EXCHANGE, (context) => this.#exchange(context), EXCHANGED)
  }

  static async start(t: Test, options: OidcOptions = {}): Promise<Oidc> {
    let oidc: Oidc
    const server = createServer((request, response) => oidc.#answer(request, response))
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve))
    oidc = new Oidc(server, options)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return oidc
  }

  /** Its public keys. */
  async keys(): Promise<JSONWebKeySet> {
    return (await (await fetch(`${this.address}/jwks`)).json()) as JSONWebKeySet
  }

  /** Gives the person of a token another one, for the resource that is asked for. */
  async #exchange(context: GrantRequest): Promise<void> {
    const { provider } = this
    const { params, client } = context.oidc
    const { subject_token = '', resource = '', scope = '' } = params
    const { payload } = await jwtVerify(subject_token, createLocalJWKSet(await this.keys()), {
      issuer: this.issuer,
    }).catch(() => {
      throw new errors.InvalidGrant('The token is not valid')
    })
    const accountId = payload.sub ?? ''
    const grant = new provider.Grant({ accountId, clientId: client.clientId })
    grant.addResourceScope(resource, scope)
    const token = new provider.AccessToken({ accountId, client, grantId: await grant.save(), gty: EXCHANGE, scope })
    token.resourceServer = new provider.ResourceServer(resource, { scope, accessTokenFormat: 'opaque' })
    context.body = {
      access_token: await token.save(),
      issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      token_type: 'Bearer',
      expires_in: token.expiration,
      scope,
    }
  }

  /** Requests of one path. */
  of(path: string): readonly OidcRequest[] {
    return this.requests.filter((one) => one.path === path)
  }

  /** Token requests of one grant. */
  grants(type: string): readonly OidcRequest[] {
    return this.of('/token').filter(({ params }) => params.get('grant_type') === type)
  }

  /** What the authorization server says of a token, to the resource server. */
  async introspect(token: string): Promise<Introspection> {
    const { client_id, client_secret } = RESOURCE_SERVER
    const answer = await fetch(`${this.address}/token/introspection`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}` },
      body: new URLSearchParams({ token }),
    })
    return (await answer.json()) as Introspection
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    const url = new URL(request.url ?? '', this.issuer)
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
      const seen: OidcRequest = {
        method: request.method ?? '',
        path: url.pathname,
        params: isForm ? new URLSearchParams(body.toString()) : url.searchParams,
        authorization: request.headers.authorization,
      }
      this.requests.push(seen)
      plant(seen.params)
      plantAnswer(response)
      response.on('finish', () => {
        seen.status = response.statusCode
      })
      const instead = this.instead.get(url.pathname)
      if (instead) return instead(seen, response)
      // What has been read is given on as oidc-provider takes it from other frameworks.
      Object.assign(request, { body: isForm ? Object.fromEntries(seen.params) : parsed(body) })
      if (url.pathname.startsWith('/interaction/')) this.#interact(request, response).catch(() => response.destroy())
      else this.provider.callback()(request, response)
    })
  }

  /** Signs the person in and agrees for them. */
  async #interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.options.page && request.method === 'GET') {
      const form = '<form method="post"><input name="user" value="person"><button>Sign in</button></form>'
      const script = '<script>document.forms[0].submit()</script>'
      response.setHeader('content-type', 'text/html').end(`<!doctype html><title>Log in</title>${form}${script}`)
      return
    }
    const { provider } = this
    const { prompt, params, session, grantId } = await provider.interactionDetails(request, response)
    const finish = (result: object, mergeWithLastSubmission: boolean) =>
      provider.interactionFinished(request, response, result, { mergeWithLastSubmission })
    if (this.options.declines) return finish({ error: 'access_denied', error_description: 'CANARY-description' }, false)
    const { person = 'person' } = this.options
    if (prompt.name === 'login') return finish({ login: { accountId: person } }, false)
    const accountId = session?.accountId ?? person
    const found = grantId === undefined ? undefined : await provider.Grant.find(grantId)
    const grant = found ?? new provider.Grant({ accountId, clientId: String(params['client_id']) })
    const scope = String(params['scope'] ?? '')
    grant.addOIDCScope(`openid offline_access ${scope}`)
    for (const resource of [params['resource'] ?? []].flat()) grant.addResourceScope(String(resource), scope)
    return finish({ consent: { grantId: await grant.save() } }, true)
  }
}

/** Remembers the secrets in an answer, which may be a redirect. */
function plantAnswer(response: ServerResponse): void {
  const end = response.end.bind(response) as (...given: unknown[]) => ServerResponse
  response.end = ((...given: unknown[]) => {
    const [body] = given
    const location = response.getHeader('location')
    if (typeof location === 'string' && URL.canParse(location)) plant(new URL(location).searchParams)
    if (typeof body === 'string' || Buffer.isBuffer(body)) plant((parsed(Buffer.from(body)) ?? {}) as object as Secrets)
    return end(...given)
  }) as ServerResponse['end']
}
type Secrets = Readonly<Record<string, unknown>>

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

function configuration(options: OidcOptions): object {
  const { scopes = 'mcp:read mcp:write', lifetime = 3_600, clients = [], registration = true, documents = {} } = options
  const { privateKey } = rsaKeys()
  return {
    clients: [{ ...RESOURCE_SERVER, redirect_uris: [], response_types: [], grant_types: [] }, ...clients],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    claims: { openid: ['sub', 'email'] },
    conformIdTokenClaims: false,
    scopes: ['openid', 'offline_access', ...(options.registersScopes === false ? [] : scopes.split(' '))],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt'],
    enabledJWA: { clientAuthSigningAlgValues: ['ES256', 'RS256'] },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: registration },
      revocation: { enabled: true, allowedPolicy: () => true },
      introspection: { enabled: true, allowedPolicy: () => true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: options.devices ?? true },
      userinfo: { enabled: false },
      dPoP: { enabled: true, nonceSecret: randomBytes(32), requireNonce: () => options.nonces ?? false },
      clientIdMetadataDocument: { enabled: Object.keys(documents).length > 0, ack: 'draft-02' },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: scopes,
          accessTokenTTL: lifetime,
          accessTokenFormat: options.jwt ? 'jwt' : 'opaque',
          ...(options.jwt && { jwt: { sign: { alg: 'RS256' } } }),
        }),
        useGrantedResource: () => options.defaultResource !== undefined,
        ...(options.defaultResource !== undefined && { defaultResource: () => options.defaultResource }),
      },
    },
    fetch: (url: string | URL) => {
      const found = documents[String(url)]
      return Promise.resolve(new Response(JSON.stringify(found ?? {}), { status: found ? 200 : 404 }))
    },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com` }),
    }),
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => options.refreshTokens ?? true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    ttl: {
      AccessToken: lifetime,
      ClientCredentials: lifetime,
      AuthorizationCode: 60,
      Grant: 86_400,
      Interaction: 600,
      Session: 86_400,
      RefreshToken: 86_400,
    },
  }
}
