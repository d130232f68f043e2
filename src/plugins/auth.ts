/**
 * Determines the principal of a request (MCP 2026-07-28, basic/authorization): by a configured token, or by a token
 * that the server checks. The rest of the bridge knows callers only by their principal.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { ANONYMOUS } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The principal: the name of a token, `t:` and the digest of a token that the server checks, `local` or `anon`. */
    principal: string
    /** The exact Authorization to forward to the server; only with `passthrough`. */
    credential: string | undefined
  }
}

/** How callers are authenticated. */
export type AuthMode =
  /** No authentication. On a loopback address the caller is the person at this machine. */
  | { kind: 'none'; loopback: boolean }
  /** Secrets by the names of their principals. */
  | { kind: 'tokens'; tokens: Readonly<Record<string, string>> }
  /** The server checks tokens: they are forwarded, and callers with different tokens are kept apart. */
  | { kind: 'passthrough' }

/** Authentication, and its exceptions. */
export interface AuthOptions {
  mode: AuthMode
  /** Address of the metadata of the protected resource (RFC 9728), sent with refusals. */
  resourceMetadata?: string | undefined
  /**
   * Paths that are served without authentication. For a route it is the route's own path, so that another spelling does
   * not open a closed one; otherwise the requested path.
   */
  open?: ReadonlySet<string> | undefined
}

interface Caller {
  principal: string
  credential?: string
}

type Refusal = keyof typeof REFUSALS

/** RFC 6750, section 3: a request without a token gets no error code, one with a wrong token gets `invalid_token`. */
const REFUSALS = {
  missing: { message: 'This bridge requires a token, as in "Authorization: Bearer <token>"', error: undefined },
  wrong: { message: 'Unknown token', error: 'invalid_token' },
} as const

const NO_PATHS: ReadonlySet<string> = new Set()
const ANYBODY: Caller = { principal: ANONYMOUS }
const BEARER = /^bearer(?: +|$)/i

/**
 * A Fastify plugin that sets the principal of each request, or refuses it: with 401, or with 429 over a limit of
 * `rate-limit`.
 */
export const auth = plugin<AuthOptions>(async function auth(app, { mode, resourceMetadata, open = NO_PATHS }) {
  const identify = identifierFor(mode)

  app.decorateRequest('principal', ANYBODY.principal)
  app.decorateRequest('credential', undefined)

  app.addHook('onRequest', (request, reply, done) => {
    if (open.has(request.routeOptions.url ?? pathOf(request))) {
      done()
      return
    }
    const caller = identify(request)
    if (typeof caller === 'string') {
      const { message, error } = REFUSALS[caller]
      const refuse = () => {
        reply.header('www-authenticate', challenge({ resource_metadata: resourceMetadata, error }))
        done(new Fault('unauthorized', message))
      }
      // Only wrong tokens count: clients without one learn from the refusal where to get it.
      if (caller === 'wrong' && app.countWrongToken) app.countWrongToken(request).then(refuse, done)
      else refuse()
      return
    }
    request.principal = caller.principal
    request.credential = caller.credential
    if (app.countRequest) app.countRequest(request).then(() => done(), done)
    else done()
  })
})

function identifierFor(mode: AuthMode): (request: FastifyRequest) => Caller | Refusal {
  switch (mode.kind) {
    case 'none': {
      const caller = mode.loopback ? { principal: 'local' } : ANYBODY
      return () => caller
    }
    case 'tokens': {
      const known = Object.entries(mode.tokens).map(([principal, secret]) => ({ principal, digest: sha256(secret) }))
      return (request) => ownerOf(bearerToken(authorization(request)), known)
    }
    case 'passthrough':
      return (request) => bearerOf(authorization(request))
  }
}

/** Takes the same time for every token: compares digests, and always all of them. */
function ownerOf(token: string | undefined, known: readonly { principal: string; digest: Buffer }[]): Caller | Refusal {
  if (token === undefined) return 'missing'
  const digest = sha256(token)
  let owner: Caller | Refusal = 'wrong'
  for (const one of known) {
    if (timingSafeEqual(digest, one.digest)) owner = { principal: one.principal }
  }
  return owner
}

/** An Authorization that is not a bearer token is forwarded too; its whole text identifies the caller. */
function bearerOf(credential: string | undefined): Caller {
  if (credential === undefined) return ANYBODY
  const token = BEARER.test(credential) ? bearerToken(credential) : credential
  if (token === undefined) return { ...ANYBODY, credential }
  return { principal: `t:${sha256(token).toString('hex').slice(0, 32)}`, credential }
}

/**
 * The Authorization of a request. Of two, Node keeps the first, but a proxy before the bridge may have read the other.
 */
function authorization({ raw: { headers, rawHeaders } }: FastifyRequest): string | undefined {
  const times = rawHeaders.filter((text, i) => i % 2 === 0 && text.toLowerCase() === 'authorization').length
  if (times > 1) throw new Fault('invalidRequest', 'The header Authorization appears twice')
  return headers.authorization || undefined
}

/** The token after `Bearer`, in any form; undefined if it is empty or the scheme is another. */
function bearerToken(credential: string | undefined): string | undefined {
  const scheme = BEARER.exec(credential ?? '')?.[0]
  return scheme === undefined ? undefined : credential?.slice(scheme.length) || undefined
}

function challenge(params: Readonly<Record<string, string | undefined>>): string {
  const said = Object.entries(params).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}="${value.replace(/["\\]/g, '\\$&')}"`],
  )
  return said.length === 0 ? 'Bearer' : `Bearer ${said.join(', ')}`
}

/** The requested path, without its query. */
function pathOf({ url }: FastifyRequest): string {
  return url.replace(/[?#].*$/s, '')
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
