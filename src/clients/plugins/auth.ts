/**
 * Determines the principal of a request (MCP 2026-07-28, basic/authorization): by a configured token, by a token of an
 * identity provider, by what a proxy says, or by a token that the server checks. The rest of the bridge knows callers only
 * by their principal, and what they may do by their grant.
 */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import plugin from 'fastify-plugin'
import { digestedPrincipal, sha256 } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import type { Signal } from '../../base/time/hang-up.js'
import { ANONYMOUS, type CallersHeaders, canGet, type Grant } from '../../mcp/protocol/call.js'
import { addressOf } from './address.js'
import { type ByProxy, byProxy, type ProxyOptions } from './by-proxy.js'
import type { AuthenticatedCaller, Verify, WrongToken } from './callers.js'
import { challenge, type ProtectedEndpoint } from './protected-resource.js'
import { closeAtEnd, type TokenLives } from './token-lives.js'

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The principal: the name of a token, `j:` and a digest of issuer and subject, `f:` and a digest of the user that a proxy
     * names, `t:` and the digest of a token that the server checks, `u:` and the name that an application gives, `local` or
     * `anon`.
     */
    principal: string
    /** What the caller may do, as its token of this request says. */
    grant: Grant | undefined
    /** Aborts when the token of this request ends: when it has expired, or is no longer accepted. */
    ends: Signal | undefined
    /** The challenge for a caller that can get another token. */
    challengeFor: ((fault: Fault, grant: Grant) => string) | undefined
    /** Headers for servers: the exact Authorization with `passthrough`, and those of `forward`. */
    credential: CallersHeaders | undefined
  }
}

/** How callers are authenticated. */
export type AuthMode =
  /** No authentication. On a loopback address the caller is the person at this machine. */
  | { kind: 'none'; loopback: boolean }
  /** What callers show decides. Each way is optional. */
  | {
      kind: 'tokens'
      /** Secrets by the names of their principals. */
      tokens?: Readonly<Record<string, string>> | undefined
      /** When these tokens end. */
      lives?: TokenLives | undefined
      /** Checks tokens of identity providers. */
      verify?: Verify | undefined
      forwarded?: ProxyOptions['forwarded']
      /** Headers in which proxies send signed assertions, in lower case. */
      assertions?: ProxyOptions['assertions']
    }
  /** The server checks tokens: they are forwarded, and callers with different tokens are kept apart. */
  | { kind: 'passthrough' }
  /** The application around the bridge knows its callers. It names the principal, or refuses with undefined. */
  | { kind: 'application'; principalOf: PrincipalOf }

/** The principal of a request, as the application around the bridge knows it. */
export type PrincipalOf = (request: FastifyRequest['raw']) => string | undefined

/** Authentication, and its exceptions. */
export interface AuthOptions {
  mode: AuthMode
  /** Endpoints that clients can get tokens for, by their own paths. Elsewhere, no token of an identity provider counts. */
  endpoints?: ReadonlyMap<string, ProtectedEndpoint> | undefined
  /** Scopes without which such a token is refused. */
  required?: readonly string[] | undefined
  /** Routes that are served without authentication, by their own paths: another spelling does not open a closed one. */
  open?: ReadonlySet<string> | undefined
  /** Routes of pages for people: open, but a proxy may name the person. */
  pages?: ReadonlySet<string> | undefined
}

type Refusal = keyof typeof REFUSALS

/** RFC 6750, section 3: a request without a token gets no error code, one with a wrong token gets `invalid_token`. */
const REFUSALS = {
  missing: { message: 'This bridge requires a token, as in "Authorization: Bearer <token>"', error: undefined },
  wrong: { message: 'Unknown token', error: 'invalid_token' },
  unknown: { message: 'The application around this bridge does not know the caller', error: undefined },
} as const

const NO_PATHS: ReadonlySet<string> = new Set()
const NO_ENDPOINTS: ReadonlyMap<string, ProtectedEndpoint> = new Map()
const ANYBODY: AuthenticatedCaller = { principal: ANONYMOUS }
const BEARER = /^bearer(?: +|$)/i

/**
 * A Fastify plugin that sets the principal of each request, or refuses it: with 401, with 403 if its token lacks a scope,
 * or with 429 over a limit of `rate-limit`.
 */
export const auth = plugin<AuthOptions>(async function auth(app, options) {
  const { mode, endpoints = NO_ENDPOINTS, required = [], open = NO_PATHS, pages = NO_PATHS } = options
  const proxy = mode.kind === 'tokens' ? byProxy(mode) : undefined
  const identify = identifierFor(mode, proxy)
  const askProxy: Identify = (request) => proxy?.of(request, NO_PATHS) ?? ANYBODY

  app.decorateRequest('principal', ANYBODY.principal)
  app.decorateRequest('credential', undefined)
  app.decorateRequest('grant', undefined)
  app.decorateRequest('ends', undefined)
  app.decorateRequest('challengeFor', undefined)

  app.addHook('onRequest', (request, reply, done) => {
    const path = request.routeOptions.url
    const isPage = proxy !== undefined && path !== undefined && pages.has(path)
    // What is served nowhere is not found, with any token or none.
    if (path === undefined || (open.has(path) && !isPage)) {
      proxy?.strip(request)
      done()
      return
    }
    const asked = { request, reply, done, endpoint: isPage ? undefined : endpoints.get(path), isPage }
    const ask = isPage ? askProxy : identify
    const caller = typeof ask === 'function' ? ask(request, asked.endpoint) : ask
    if (caller instanceof Promise) caller.then((identified) => take(identified, asked), done)
    else take(caller, asked)
  })

  function take(identified: Identified, asked: Asked): void {
    const { request, reply, done, endpoint, isPage } = asked
    proxy?.strip(request)
    if (typeof identified === 'string') return refuse(identified, undefined, asked)
    if ('why' in identified) return refuse('wrong', identified.why, asked)
    const { principal, credential, grant, ends } = identified
    // It may have ended while it was checked.
    if (ends?.aborted) return refuse('wrong', undefined, asked)
    request.principal = principal
    request.grant = grant
    if (isPage) return done()
    request.credential = credential
    request.ends = ends
    if (ends) closeAtEnd(ends, reply.raw)
    if (grant?.issuer !== undefined) {
      const missing = required.filter((scope) => !grant.scopes.has(scope))
      if (canGet(missing, grant)) request.challengeFor = endpoint?.challengeFor
      if (missing.length > 0) return done(lacking(missing, [...grant.scopes, ...missing]))
    }
    if (app.countRequest) app.countRequest(request).then(() => done(), done)
    else done()
  }

  function refuse(refusal: Refusal, said: string | undefined, { request, reply, done, endpoint, isPage }: Asked): void {
    const { message, error } = REFUSALS[refusal]
    const scope = error === undefined ? endpoint?.scope : undefined
    const refused = () => {
      if (!isPage) reply.header('www-authenticate', challenge({ resource_metadata: endpoint?.metadata, scope, error }))
      done(new Fault('unauthorized', message, { said }))
    }
    // Only wrong tokens count: clients without one learn from the refusal where to get it.
    if (refusal === 'wrong' && app.countWrongToken) app.countWrongToken(request).then(refused, done)
    else refused()
  }
})

/** A request whose caller is to be known. */
interface Asked {
  request: FastifyRequest
  reply: FastifyReply
  done: HookHandlerDoneFunction
  endpoint: ProtectedEndpoint | undefined
  /** A page for people: a proxy may name the person, and nobody else is asked for. */
  isPage: boolean
}

function lacking(missing: readonly string[], all: readonly string[]): Fault {
  const message = `The token has not the scope ${missing.join(' ')}, which this bridge requires`
  return new Fault('insufficientScope', message, { data: { scope: all.join(' ') } })
}

type Identify = (request: FastifyRequest, endpoint: ProtectedEndpoint | undefined) => Identified | Promise<Identified>

/** The caller, or why there is none. */
type Identified = AuthenticatedCaller | WrongToken | Refusal

/** How to find the caller of a request, or who it always is. */
function identifierFor(mode: AuthMode, proxy: ByProxy | undefined): Identify | AuthenticatedCaller {
  switch (mode.kind) {
    case 'none':
      return { principal: mode.loopback ? 'local' : ANONYMOUS }
    case 'tokens':
      return byWhatIsShown(mode, proxy)
    case 'passthrough':
      return (request) => bearerOf(authorization(request))
    case 'application': {
      const { principalOf } = mode
      return ({ raw }) => {
        const principal = principalOf(raw)
        return principal ? { principal } : 'unknown'
      }
    }
  }
}

function byWhatIsShown(
  { tokens = {}, lives, verify }: AuthMode & { kind: 'tokens' },
  proxy: ByProxy | undefined,
): Identify {
  const known = digestsOf(tokens, lives)
  return (request, endpoint) => {
    const user = proxy?.of(request, endpoint?.addresses ?? NO_PATHS)
    if (user !== undefined) return user
    const token = bearerToken(authorization(request))
    if (token === undefined) return 'missing'
    const owner = known.length === 0 ? undefined : ownerOf(token, known)
    return owner ?? (verify && endpoint ? verify(token, endpoint.addresses, addressOf(request)) : 'wrong')
  }
}

function digestsOf(tokens: Readonly<Record<string, string>>, lives?: TokenLives) {
  return Object.entries(tokens).map(([principal, secret]) => ({
    digest: sha256(secret),
    owner: { principal, ends: lives?.of(principal, secret) },
  }))
}

/** Finds the principal of a token that somebody has entered, among secrets by the names of their principals. */
export function tokenOwner(tokens: Readonly<Record<string, string>>): (token: string) => string | undefined {
  const known = digestsOf(tokens)
  return (token) => ownerOf(token, known)?.principal
}

/** Takes the same time for every token: compares digests, and always all of them. */
function ownerOf(
  token: string,
  known: readonly { owner: AuthenticatedCaller; digest: Buffer }[],
): AuthenticatedCaller | undefined {
  const digest = sha256(token)
  let owner: AuthenticatedCaller | undefined
  for (const one of known) {
    if (timingSafeEqual(digest, one.digest)) owner = one.owner
  }
  return owner
}

/** An Authorization that is not a bearer token is forwarded too; its whole text identifies the caller. */
function bearerOf(authorization: string | undefined): AuthenticatedCaller {
  if (authorization === undefined) return ANYBODY
  const token = BEARER.test(authorization) ? bearerToken(authorization) : authorization
  const credential = { authorization }
  if (token === undefined) return { ...ANYBODY, credential }
  return { principal: digestedPrincipal('token', token), credential }
}

/**
 * The Authorization of a request. If there are two, Node keeps the first, but a proxy in front of the bridge may have
 * read the other.
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
