/** Serves an authorization server in front of an identity provider that does not register clients. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import { ISSUER_METADATA } from '../../base/texts/well-known.js'
import { addressOf } from './address.js'
import { acceptForms, FORM_BYTES, publish } from './documents.js'

/** The handlers and their paths. */
export interface FacadeRoutes {
  /** The issuer as clients know it, and its path at the bridge. */
  issuer: string
  path: string
  scopes: readonly string[]
  /** It is the only authorization server: its metadata are also at the root, where clients of 2025-03-26 look. */
  alone: boolean
  register(asked: unknown): object
  authorize(query: URLSearchParams): Promise<string>
  /** `from` is the address of the client. */
  token(form: URLSearchParams, from: string): Promise<{ status: number; answer: object }>
}

type Place = Pick<FacadeRoutes, 'issuer' | 'path' | 'alone'>

/** The paths of the metadata: as clients request them, and without the prefix that a proxy may remove. */
export function facadeMetadata({ issuer, path, alone }: Place): readonly string[] {
  const own = [new URL(issuer).pathname, path].map((one) => ISSUER_METADATA + one)
  return [...new Set([...own, ...(alone ? [ISSUER_METADATA] : [])])]
}

/** All paths. They require no token, because clients get one here. */
export function facadePaths(routes: Place): readonly string[] {
  return [...facadeMetadata(routes), ...['register', 'authorize', 'token'].map((name) => `${routes.path}/${name}`)]
}

export async function facade(app: FastifyInstance, routes: FacadeRoutes): Promise<void> {
  const { issuer, path, scopes } = routes
  const metadata = JSON.stringify({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
  })
  for (const place of facadeMetadata(routes)) publish(app, place, () => ({ body: metadata }))
  acceptForms(app)
  app.post(`${path}/register`, { bodyLimit: FORM_BYTES }, (request, reply) =>
    answer(reply, async () => reply.code(201).send(routes.register(request.body))),
  )
  app.get(`${path}/authorize`, (request, reply) =>
    answer(reply, async () => {
      const query = new URLSearchParams(request.url.split('?')[1] ?? '')
      return reply.redirect(await routes.authorize(query), 302)
    }),
  )
  app.post(`${path}/token`, (request, reply) =>
    answer(reply, async () => {
      const form = request.body instanceof URLSearchParams ? request.body : new URLSearchParams()
      const { status, answer: said } = await routes.token(form, addressOf(request))
      return reply.code(status).send(said)
    }),
  )
}

/** Sends an answer, or an OAuth error. */
async function answer(reply: FastifyReply, send: () => Promise<FastifyReply>): Promise<FastifyReply> {
  reply.header('cache-control', 'no-store')
  try {
    return await send()
  } catch (error) {
    const { code, status, message } = error as { code?: unknown; status?: unknown; message: string }
    if (typeof code !== 'string' || typeof status !== 'number') throw error
    if (status === 503) reply.header('retry-after', '5')
    return reply.code(status).send({ error: code, error_description: message })
  }
}
