/**
 * Finds out who asks, the principal (MCP 2026-07-28, basic/authorization): by a token that the configuration names, or by
 * one that is the server's affair. Further in, a caller is known by nothing else.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { ANONYMOUS } from '../protocol/call.js'
import { Fault } from '../protocol/fault.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks: the name of a token, `t:` and a digest of a token that is not ours to check, `local` or `anon`. */
    principal: string
    /** The Authorization to be sent on to the server, to the letter; never anything unless it is passed through. */
    credential: string | undefined
  }
}

export type AuthMode =
  /** Nobody is asked for anything. On a loopback it is whoever works at this machine. */
  | { kind: 'none'; loopback: boolean }
  /** Secrets by the names of their principals. */
  | { kind: 'tokens'; tokens: Readonly<Record<string, string>> }
  /** The server decides: what a caller shows is kept apart from what others show, and sent on. */
  | { kind: 'passthrough' }

export interface AuthOptions {
  mode: AuthMode
  /** Address of the metadata of the protected resource (RFC 9728), for those who are sent to fetch a token. */
  resourceMetadata?: string | undefined
  /**
   * Paths that are served without asking who it is. Where a route matches it is the route's own, so that no other way of
   * writing it opens what is closed; else the path as it was asked for.
   */
  open?: ((path: string) => boolean) | undefined
}

interface Caller {
  principal: string
  credential?: string
}

type Refusal = keyof typeof REFUSALS

/** RFC 6750, section 3: who showed no token is told what is wanted, and only who showed one that it is wrong. */
const REFUSALS = {
  missing: { message: 'This bridge asks for a token, as in "Authorization: Bearer <token>"', error: undefined },
  wrong: { message: 'The token is not one that this bridge knows', error: 'invalid_token' },
} as const

const ANYBODY: Caller = { principal: ANONYMOUS }
const BEARER = /^bearer(?: +|$)/i

export const auth = plugin<AuthOptions>(async function auth(app, { mode, resourceMetadata, open = () => false }) {
  const identify = identifierFor(mode)

  app.decorateRequest('principal', ANYBODY.principal)
  app.decorateRequest('credential', undefined)

  app.addHook('onRequest', (request, reply, done) => {
    if (open(pathOf(request))) {
      done()
      return
    }
    const caller = identify(request)
    if (typeof caller === 'string') {
      const { message, error } = REFUSALS[caller]
      reply.header('www-authenticate', challenge({ resource_metadata: resourceMetadata, error }))
      throw new Fault('unauthorized', message)
    }
    request.principal = caller.principal
    request.credential = caller.credential
    done()
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

/** Takes as long whoever it is and however much of a token is right: digests are compared, and always all of them. */
function ownerOf(token: string | undefined, known: readonly { principal: string; digest: Buffer }[]): Caller | Refusal {
  if (token === undefined) return 'missing'
  const digest = sha256(token)
  let owner: Caller | Refusal = 'wrong'
  for (const one of known) {
    if (timingSafeEqual(digest, one.digest)) owner = { principal: one.principal }
  }
  return owner
}

/** What is no bearer token is passed on as well, and told apart by the whole of it. */
function bearerOf(credential: string | undefined): Caller {
  if (credential === undefined) return ANYBODY
  const token = BEARER.test(credential) ? bearerToken(credential) : credential
  if (token === undefined) return { ...ANYBODY, credential }
  return { principal: `t:${sha256(token).toString('hex').slice(0, 32)}`, credential }
}

/** The one Authorization of a request. Of two, Node keeps the first, and a proxy before us may have read the other. */
function authorization({ raw: { headers, rawHeaders } }: FastifyRequest): string | undefined {
  const times = rawHeaders.filter((text, i) => i % 2 === 0 && text.toLowerCase() === 'authorization').length
  if (times > 1) throw new Fault('invalidRequest', 'Header authorization came twice')
  return headers.authorization || undefined
}

/** What follows the word Bearer, whatever it is made of; undefined where that is nothing, or the scheme another. */
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

function pathOf({ routeOptions, url }: FastifyRequest): string {
  return routeOptions.url ?? url.replace(/[?#].*$/s, '')
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
