/** An authorization server that does as it is told: as it has to by itself, and wrong in one thing where a test says so. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { plant } from './secrets.js'

type Json = Record<string, unknown>

export interface AsRequest {
  method: string
  path: string
  params: URLSearchParams
  body: Json
  headers: IncomingHttpHeaders
}

export interface Script {
  /** MessageOrigin of what the metadata would be. */
  metadata?: (metadata: Json) => Json | undefined
  /** Where its metadata are, under its origin. */
  place?: string
  /** Added to its origin, for its issuer. */
  path?: string
  /** MessageOrigin of the parameters that the browser is sent back with. */
  callback?: (params: URLSearchParams) => void
  register?: (request: AsRequest) => [status: number, answer: Json]
  /** Undefined for what it would be. */
  token?: (request: AsRequest, nth: number) => Answer | undefined
  /** Until then, token requests are not answered. */
  hold?: Promise<void>
}

export type Answer = readonly [status: number, answer: Json | string, headers?: Readonly<Record<string, string>>]

export class ScriptedAs {
  readonly issuer: string
  readonly origin: string
  readonly requests: AsRequest[] = []
  script: Script
  /** Until when a request is not answered, if it is one of those. */
  hold: ((request: AsRequest) => Promise<void> | undefined) | undefined
  /** A page in place of the way back, for requests for which there is one. */
  page:
    | ((request: AsRequest) => [status: number, text: string, headers?: Record<string, string>] | undefined)
    | undefined
  readonly #challenges = new Map<string, string>()
  #tokens = 0

  private constructor(origin: string, script: Script) {
    this.origin = origin
    this.issuer = origin + (script.path ?? '')
    this.script = script
  }

  static async start(t: Test, script: Script = {}): Promise<ScriptedAs> {
    let own: ScriptedAs
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { pathname, searchParams } = new URL(request.url ?? '', own.origin)
        const text = Buffer.concat(chunks).toString()
        const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')
        own.#received(response, {
          method: request.method ?? '',
          path: pathname,
          params: isForm ? new URLSearchParams(text) : searchParams,
          body: isForm || text === '' ? {} : (JSON.parse(text) as Json),
          headers: request.headers,
        })
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    own = new ScriptedAs(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, script)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  of(path: string): readonly AsRequest[] {
    return this.requests.filter((one) => one.path === path)
  }

  /** Tokens that have been given. */
  get tokens(): number {
    return this.#tokens
  }

  #received(response: ServerResponse, request: AsRequest): void {
    this.requests.push(request)
    plant(request.params)
    const hold = this.hold?.(request) ?? (request.path === '/token' ? this.script.hold : undefined)
    if (hold === undefined) return this.#answer(response, request)
    hold.then(() => this.#answer(response, request)).catch(() => response.destroy())
  }

  #answer(response: ServerResponse, request: AsRequest): void {
    const { script, origin, issuer } = this
    const json = (status: number, answer: Json | string, headers: Readonly<Record<string, string>> = {}) => {
      if (typeof answer !== 'string') plant(answer)
      response
        .writeHead(status, { 'content-type': 'application/json', ...headers })
        .end(typeof answer === 'string' ? answer : JSON.stringify(answer))
    }
    const place = script.place ?? `/.well-known/oauth-authorization-server${script.path ?? ''}`
    switch (request.path) {
      case place: {
        const metadata = {
          issuer,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          revocation_endpoint: `${origin}/revoke`,
          response_types_supported: ['code'],
          grant_types_supported: ['authorization_code', 'refresh_token'],
          token_endpoint_auth_methods_supported: ['none'],
          code_challenge_methods_supported: ['S256'],
          authorization_response_iss_parameter_supported: true,
        }
        const said = script.metadata ? script.metadata(metadata) : metadata
        return void (said === undefined ? response.writeHead(404).end() : json(200, said))
      }
      case '/register':
        return void json(
          ...(script.register?.(request) ?? [201, { client_id: `client-${this.of('/register').length}` }]),
        )
      case '/authorize': {
        const { params } = request
        const page = this.page?.(request)
        if (page) return void response.writeHead(page[0], page[2]).end(page[1])
        const back = new URL(params.get('redirect_uri') ?? '')
        const code = `CANARY-code-${this.of('/authorize').length}`
        this.#challenges.set(code, params.get('code_challenge') ?? '')
        const answer = new URLSearchParams({ code, state: params.get('state') ?? '', iss: issuer })
        script.callback?.(answer)
        plant(answer)
        back.search = answer.toString()
        return void response.writeHead(302, { location: back.href }).end()
      }
      case '/token': {
        const scripted = script.token?.(request, this.of('/token').length)
        return void json(...(scripted ?? this.#token(request)))
      }
      case '/revoke':
        return void response.writeHead(200).end()
      default:
        return void response.writeHead(404).end()
    }
  }

  #token({ params }: AsRequest): Answer {
    if (params.get('grant_type') === 'authorization_code') {
      const verifier = params.get('code_verifier') ?? ''
      const challenge = this.#challenges.get(params.get('code') ?? '')
      if (challenge !== createHash('sha256').update(verifier).digest('base64url'))
        return [400, { error: 'invalid_grant' }]
    }
    const nth = `${++this.#tokens}-of-${new URL(this.origin).port}`
    return [
      200,
      {
        access_token: `CANARY-access-${nth}`,
        token_type: 'Bearer',
        expires_in: 3600,
        refresh_token: `CANARY-refresh-${nth}`,
      },
    ]
  }
}
