/** An issuer of access tokens whose keys the test has, so that it can also make tokens that are wrong. */
import { createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type JWK, SignJWT } from 'jose'
import type { Test } from 'tap'
import { rsaKeys } from './rsa-keys.js'

type Json = Record<string, unknown>

export class TokenIssuer {
  readonly url: string
  /** Paths that were asked for. */
  readonly asked: string[] = []
  /** The same, with their headers and bodies. */
  readonly received: { path: string; text: string }[] = []
  /** Public keys, as they are published. */
  keys: JWK[]
  /** What is known of tokens that are no JWTs. */
  readonly opaque = new Map<string, Json>()
  /** More of its metadata. */
  metadata: Json = {}
  /** Answers instead, if it is set. */
  instead: ((path: string, response: ServerResponse) => void) | undefined
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject

  private constructor(url: string, privateKey: KeyObject, publicKey: KeyObject) {
    this.url = url
    this.privateKey = privateKey
    this.publicKey = publicKey
    this.keys = [{ ...publicKey.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' } as JWK]
  }

  static async start(t: Test): Promise<TokenIssuer> {
    let own: TokenIssuer
    const server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        own.received.push({ path: request.url ?? '', text: `${request.rawHeaders.join('\n')}\n\n${body}` })
        own.#answer(request.url ?? '', body, response)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { privateKey, publicKey } = rsaKeys()
    own = new TokenIssuer(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, privateKey, publicKey)
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return own
  }

  /** A token with these claims besides the usual ones; undefined leaves one out. */
  token(claims: Json = {}, header: Json = {}, key: KeyObject = this.privateKey): Promise<string> {
    const now = Math.floor(Date.now() / 1_000)
    const all = { iss: this.url, sub: 'alice', iat: now, exp: now + 600, jti: randomUUID(), ...claims }
    const { crit, ...rest } = { alg: 'RS256', kid: 'k1', typ: 'at+jwt', ...header } as Json
    const jwt = new SignJWT(all).setProtectedHeader({ ...rest, ...(crit !== undefined && { crit }) } as { alg: string })
    // What is critical is not known to the library either.
    return crit === undefined ? jwt.sign(key) : Promise.resolve(this.raw({ ...rest, crit }, all))
  }

  /** A token that no library makes. */
  raw(header: Json, claims: Json | string, signature?: string): string {
    const part = (value: Json | string) =>
      Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
    const text = `${part(header)}.${part(claims)}`
    return `${text}.${signature ?? createHmac('sha256', 'x').update(text).digest('base64url')}`
  }

  #answer(path: string, body: string, response: ServerResponse): void {
    this.asked.push(path)
    if (this.instead) return this.instead(path, response)
    const json = (value: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (path === '/.well-known/oauth-authorization-server')
      return void json({
        issuer: this.url,
        jwks_uri: `${this.url}/jwks`,
        introspection_endpoint: `${this.url}/introspect`,
        token_endpoint: `${this.url}/token`,
        ...this.metadata,
      })
    if (path === '/jwks') return void json({ keys: this.keys })
    if (path === '/introspect')
      return void json(this.opaque.get(new URLSearchParams(body).get('token') ?? '') ?? { active: false })
    response.writeHead(404).end()
  }
}
