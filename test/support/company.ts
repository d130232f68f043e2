/**
 * A company: its identity provider, bridges at one public address, and a server of somebody else that wants its own sign-in,
 * by an identity provider of its own.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { BridgeContext } from '../../src/app/context.js'
import { type Started, startBridge } from './bridge.js'
import { freePort } from './free-port.js'
import { Oidc, type OidcOptions } from './oidc.js'
import { visit } from './person.js'
import { PlainHttp, sendText } from './plain-http.js'
import { personParts } from './sign-in-parts.js'

type Json = Record<string, unknown>

export interface CompanyOptions {
  replicas?: number
  /** What the server speaks. */
  era?: 'modern' | 'legacy'
  /** Further settings of the bridges. */
  settings?: Json
  /** What callers show: tokens of the identity provider by default. */
  auth?: Json
  vendor?: OidcOptions
  /** Scopes that a call wants. */
  wants?: string
  /** More of what is around the bridges. */
  context?: Partial<BridgeContext>
}

export interface Company {
  /** Where everybody reaches the bridges. */
  origin: string
  url: string
  /** The identity provider of the company. */
  idp: Oidc
  /** That of the server. */
  vendor: Oidc
  server: Vendor
  bridges: Started[]
  /** A token of the identity provider for an employee. */
  tokenOf(person: string, url?: string): Promise<string>
  /** From now on, who comes to one of the providers is this one. */
  becomes(person: string): void
}

/** A server that knows whose token it is shown. */
interface Vendor {
  url: string
  /** Calls, by whose account they were made with. */
  calls: Map<string, number>
  /** What must not happen: a session that was opened with the token of somebody else. */
  mixed: string[]
}

const CLIENT = { client_id: 'tester', client_secret: 'secret-of-the-tester' }
const CALLBACK = 'http://127.0.0.1:9/callback'

export async function startCompany(t: Test, options: CompanyOptions = {}): Promise<Company> {
  const { replicas = 1, era = 'modern', settings = {}, auth } = options
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const idp = await Oidc.start(t, {
    jwt: true,
    scopes: 'mcp',
    clients: [
      {
        client_id: 'bridge',
        client_secret: 'secret-of-the-bridge',
        redirect_uris: [`${origin}/sign-in/browser/callback`],
      },
      { ...CLIENT, redirect_uris: [CALLBACK] },
    ],
  })
  const vendor = await Oidc.start(t, options.vendor)
  const server = await startVendor(t, vendor, era, options.wants)
  const { signIn } = personParts(t, { person: 'none' })
  const bridges = await Promise.all(
    Array.from({ length: replicas }, () =>
      startBridge(
        t,
        { url: server.url },
        {
          publicUrl: origin,
          auth: auth ?? {
            issuers: [{ issuer: idp.issuer }],
            browser: { clientId: 'bridge', clientSecret: 'secret-of-the-bridge' },
          },
          ...settings,
        },
        { signIn, ...options.context },
      ),
    ),
  )
  await balance(
    t,
    port,
    bridges.map(({ url }) => new URL(url).port),
  )
  const becomes = (person: string) => {
    idp.options.person = person
    vendor.options.person = person
  }
  const tokenOf = async (person: string, resource = `${origin}/mcp`) => {
    idp.options.person = person
    const verifier = randomBytes(32).toString('base64url')
    const asked = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT.client_id,
      redirect_uri: CALLBACK,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      state: 'x',
      scope: 'mcp',
      resource,
    })
    const { callback } = await visit(`${idp.issuer}/auth?${asked}`, { back: false })
    const answer = await fetch(`${idp.issuer}/token`, {
      method: 'POST',
      body: new URLSearchParams({
        ...CLIENT,
        grant_type: 'authorization_code',
        code: callback?.searchParams.get('code') ?? '',
        redirect_uri: CALLBACK,
        code_verifier: verifier,
        resource,
      }),
    })
    return ((await answer.json()) as { access_token: string }).access_token
  }
  return { origin, url: `${origin}/mcp`, idp, vendor, server, bridges, tokenOf, becomes }
}

/** What stands before the replicas: each request goes to the next one. */
async function balance(t: Test, port: number, ports: readonly string[]): Promise<void> {
  let next = 0
  const pass = (from: IncomingMessage, to: ServerResponse) => {
    const { method, url, headers } = from
    const sent = httpRequest({ host: '127.0.0.1', port: ports[next++ % ports.length], method, path: url, headers })
    sent.on('response', (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.on('error', () => to.destroy()).pipe(to)
    })
    sent.on('error', () => to.destroy())
    to.on('close', () => sent.destroy())
    from.pipe(sent)
  }
  const proxy = createServer(pass)
  await new Promise<void>((resolve) => proxy.listen(port, '127.0.0.1', resolve))
  t.teardown(() => {
    proxy.closeAllConnections()
    proxy.close()
  })
}

async function startVendor(t: Test, vendor: Oidc, era: 'modern' | 'legacy', wants = 'mcp:read'): Promise<Vendor> {
  const own: Vendor = { url: '', calls: new Map(), mixed: [] }
  /** Owners of sessions. */
  const sessions = new Map<string, string>()
  const known = new Map<string, { sub?: string; active: boolean }>()
  const server = await PlainHttp.start(t, ({ message, path, headers }, response) => {
    server.received.length = 0
    if (path.startsWith('/.well-known/oauth-protected-resource'))
      return sendText(response, JSON.stringify({ resource: own.url, authorization_servers: [vendor.issuer] }))
    const answer = async () => {
      const token = headers.authorization?.replace(/^Bearer /, '')
      const whose = token === undefined ? undefined : (known.get(token) ?? (await vendor.introspect(token)))
      if (token !== undefined && whose?.active) known.set(token, whose)
      const { sub } = whose?.active ? whose : {}
      if (sub === undefined) {
        const challenge = `Bearer resource_metadata="${server.origin}/.well-known/oauth-protected-resource/mcp", scope="${wants}"`
        return response.writeHead(401, { 'www-authenticate': challenge }).end()
      }
      if (message === undefined) return response.writeHead(405).end()
      const session = headers['mcp-session-id']
      if (typeof session === 'string' && sessions.get(session) !== sub)
        own.mixed.push(`${sub} in the session of ${sessions.get(session)}`)
      if (message['id'] === undefined) return response.writeHead(202).end()
      const { result, opened } = resultOf(message, sub)
      if (opened !== undefined) sessions.set(opened, sub)
      const text = JSON.stringify({ jsonrpc: '2.0', id: message['id'], ...result })
      if (opened !== undefined) response.setHeader('mcp-session-id', opened)
      return sendText(response, text)
    }
    answer().catch(() => response.destroy())
  })
  own.url = server.url
  const resultOf = (message: Json, owner: string): { result: Json; opened?: string } => {
    const complete = era === 'modern' ? { resultType: 'complete' } : {}
    const is = (result: Json) => ({ result: { result: { ...complete, ...result } } })
    switch (`${era} ${String(message['method'])}`) {
      case 'modern server/discover':
        return is({
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: { listChanged: true } },
          ttlMs: 0,
          cacheScope: 'private',
        })
      case 'legacy initialize':
        return {
          ...is({
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'vendor', version: '1' },
          }),
          opened: randomUUID(),
        }
      case 'legacy ping':
        return is({})
      case 'modern tools/list':
      case 'legacy tools/list': {
        const tools = ['whoami', `of-${owner}`].map((name) => ({ name, inputSchema: { type: 'object' } }))
        // It says that everybody may have it, which is wrong.
        return is({ tools, ...(era === 'modern' && { ttlMs: 60_000, cacheScope: 'public' }) })
      }
      case 'modern tools/call':
      case 'legacy tools/call':
        own.calls.set(owner, (own.calls.get(owner) ?? 0) + 1)
        return is({ content: [{ type: 'text', text: owner }] })
      default:
        return { result: { error: { code: -32601, message: 'Method not found' } } }
    }
  }
  return own
}
