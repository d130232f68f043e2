/**
 * The HTTP application of the bridge: all hooks and routes, in the order in which a request meets them, and the proxies
 * whose `X-Forwarded-For` it believes.
 */
import { type FastifyInstance, type FastifyRequest, type FastifyServerOptions, fastify } from 'fastify'
import { Fault } from '../base/fault/fault.js'
import { ISSUER_METADATA } from '../base/texts/well-known.js'
import { checkRequest, readHeaders } from '../clients/http/headers.js'
import type { Refusals } from '../clients/http/refusals.js'
import { refuse } from '../clients/http/replies.js'
import { plainAddresses } from '../clients/plugins/address.js'
import { type AuthMode, auth, type PrincipalOf } from '../clients/plugins/auth.js'
import type { Verify } from '../clients/plugins/callers.js'
import type { CountedWindows } from '../clients/plugins/counted-windows.js'
import { publish } from '../clients/plugins/documents.js'
import { type FacadeRoutes, facade, facadeMetadata, facadePaths } from '../clients/plugins/facade.js'
import { type HealthOptions, health, OPEN } from '../clients/plugins/health.js'
import { MAX_ENTRY, managedServers, SERVERS_PATH } from '../clients/plugins/managed-servers.js'
import { origin } from '../clients/plugins/origin.js'
import {
  metadataPaths,
  prefixOf,
  protectedEndpoints,
  protectedResource,
} from '../clients/plugins/protected-resource.js'
import { rateLimit } from '../clients/plugins/rate-limit.js'
import { publicAddresses, reachedThrough } from '../clients/plugins/reached.js'
import { type ServerCardsOptions, serverCards } from '../clients/plugins/server-cards.js'
import { type SignInRoutes, signInPage, signInPaths } from '../clients/plugins/sign-in.js'
import type { TokenLives } from '../clients/plugins/token-lives.js'
import { PUBLIC, type WellKnownOptions, wellKnown } from '../clients/plugins/well-known.js'
import {
  directIssuers,
  FACADE,
  type HttpListen,
  isLoopback,
  requestedScopes,
  type Settings,
  secretOf,
  ssePaths,
} from '../config/settings.js'
import type { ManagedServers } from '../mcp/ports/managed-servers.js'
import type { Replicas } from '../mcp/ports/replicas.js'
import type { OverHttp } from '../mcp/protocol/upstream.js'
import type { AuditLog } from '../middle/policy/audit.js'
import { limitBodyTime } from './body-time.js'
import type { HttpMount } from './http-mount.js'
import { refuseInJsonRpc, sendContinue } from './refusing.js'

/** The requests of clients, counted by all applications of a bridge. */
interface Requests {
  /** The number of requests with incomplete answers. */
  open: number
  /** The bridge is shutting down. */
  draining: boolean
}

/** The HTTP side of a mount, and its paths. */
export interface MountEndpoint {
  mount: HttpMount
  paths: readonly string[]
  /** The server that clients find there, if there is one alone, as of `Reach`. */
  overHttp: OverHttp | undefined
  /** By path, the server that had it before a group took it over. */
  before?: ReadonlyMap<string, HttpMount>
}

/** Options of the application for clients. */
export interface FrontOptions {
  settings: Settings
  listen: HttpListen
  /** Everything that is served, and where. */
  endpoints: readonly MountEndpoint[]
  refusals: Refusals
  /** Where the audit log goes, if there is one. */
  audit?: AuditLog | undefined
  /** Health and metrics; undefined if `admin` has its own address for them. */
  health: HealthOptions | undefined
  /** What is published of the servers; undefined if nothing is. */
  publisher: (WellKnownOptions & ServerCardsOptions) | undefined
  requests: Requests
  /** Checks tokens of identity providers; undefined if there are none. */
  verify: Verify | undefined
  /** When configured tokens end; undefined if there is nothing to end. */
  lives?: TokenLives | undefined
  /** Stands in front of an identity provider; undefined if clients use the provider directly. */
  facade?: Omit<FacadeRoutes, 'issuer' | 'path'> | undefined
  /**
   * Finds the metadata of the only identity provider, as it publishes them: clients of 2025-03-26 look for them at the root of the
   * bridge. Undefined without exactly one, or with a facade in front of it.
   */
  issuerDocument?: { find(): Promise<object> } | undefined
  /** The page where people sign in to servers; undefined without one. */
  page?: SignInRoutes | undefined
  /** The counts of requests for their limits. */
  windows: CountedWindows
  /** The other replicas, if there are several. */
  replicas: Pick<Replicas, 'isForwarded' | 'checkBody'> | undefined
  /** Another server of this process has received the requests, and may know who sends them; undefined for a listener. */
  attached: { principalOf: PrincipalOf | undefined } | undefined
}

/** Builds the application for clients. It does not listen: the listener passes requests to its `routing`. */
export async function front(options: FrontOptions): Promise<FastifyInstance> {
  const { settings, listen, endpoints, refusals, requests, replicas } = options
  const { bodyBytes } = settings.limits
  const { trustedProxies, auth: configured } = settings
  const app: FastifyInstance = fastify({
    ...inJsonRpc(() => app),
    bodyLimit: bodyBytes,
    routerOptions: { ignoreTrailingSlash: true },
    trustProxy: trustedProxies.length > 0 && trustedProxies,
  })
  const paths = endpoints.flatMap((one) => one.paths)
  const notFound = notFoundMessage(paths)
  refuseInJsonRpc(app, { refusals, notFound, bodyBytes, audit: options.audit })
  const over = () => requests.open--
  app.addHook('onRequest', (request, reply, done) => {
    requests.open++
    reply.raw.on('close', over)
    if (trustedProxies.length > 0) plainAddresses(request)
    checkRequest(request.raw)
    // A stream that opens now would have to end at once. One of a session may go on at another replica.
    const isOfSession = request.headers['mcp-session-id'] !== undefined
    if (requests.draining && request.method === 'GET' && !isOfSession && !OPEN.includes(request.routeOptions.url ?? ''))
      throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    done()
  })
  if (options.attached) app.addHook('preParsing', limitBodyTime)

  const own = settings.publicUrl === undefined ? [] : [new URL(settings.publicUrl)]
  const { publisher } = options
  const { verify, issuerDocument } = options
  const before = options.facade && { ...options.facade, ...facadeAt(settings, endpoints) }
  const guarded =
    verify && directIssuers(settings.auth).length > 0 ? protectedBy(settings, endpoints, before?.issuer) : undefined
  const isForwarded = ({ raw }: FastifyRequest) => replicas?.isForwarded(raw) ?? false
  const reached = reachedThrough(trustedProxies, isForwarded)
  const addresses = publicAddresses(settings.publicUrl, paths, reached)
  const metadata = [
    ...(guarded ? metadataPaths(guarded.endpoints).keys() : []),
    ...(before ? facadeMetadata(before) : []),
    ...(issuerDocument ? [ISSUER_METADATA] : []),
    ...endpoints.flatMap(({ mount, ...at }) => mount.metadata({ ...at, addresses })),
  ]
  const reachable = [
    ...(options.health ? OPEN : []),
    ...(publisher ? [...PUBLIC, ...publisher.cardPaths] : []),
    ...metadata,
  ]
  await app.register(origin, {
    allowedHosts: hostsOf(settings, listen),
    allowedOrigins: [...settings.allowedOrigins, ...own.map((url) => url.origin)],
    open: reachable,
    ...(trustedProxies.length > 0 && { reached }),
  })
  await app.register(rateLimit, {
    requests: settings.limits.requestsPerMinute,
    wrongTokens: configured && !configured.passthrough ? settings.limits.wrongTokensPerMinute : undefined,
    windows: options.windows,
    isForwarded,
  })
  const pages = options.page ? signInPaths(options.page.path) : []
  const open = endpoints.flatMap(({ mount, overHttp }) => mount.open({ overHttp }))
  await app.register(auth, {
    mode: authMode(settings, options),
    endpoints: guarded?.endpoints,
    required: settings.auth?.scopes,
    pages: new Set(pages),
    open: new Set(
      [...reachable, ...open, ...pages, ...(before ? facadePaths(before) : [])].flatMap((path) => [
        path,
        path.replace(/\/\*$/, ''),
      ]),
    ),
  })
  app.addHook('preParsing', (request, reply, payload, done) => {
    // Refused here, because Fastify's own 404 would read the body first.
    if (request.is404) throw new Fault('noSuchPath', notFound)
    if (request.headers.expect !== undefined) sendContinue(request, reply, bodyBytes)
    done(null, payload)
  })
  if (replicas)
    app.addHook('preHandler', (request, _reply, done) => {
      replicas.checkBody(request.raw, request.body)
      done()
    })
  if (options.health) await app.register(health, options.health)
  if (publisher) {
    await app.register(wellKnown, publisher)
    await app.register(serverCards, publisher)
  }
  if (guarded) await app.register(protectedResource, guarded)
  if (before) await app.register(facade, before)
  if (issuerDocument) publish(app, ISSUER_METADATA, async () => ({ body: JSON.stringify(await issuerDocument.find()) }))
  if (options.page) await app.register(signInPage, options.page)
  for (const { mount, ...where } of endpoints) await mount.register(app, { ...where, addresses })
  await app.ready()
  return app
}

/** Options of the application for operators. */
export interface AdminOptions extends Pick<FrontOptions, 'listen'> {
  settings: Pick<Settings, 'publicUrl' | 'allowedHosts'>
  refusals: Pick<Refusals, 'note'>
  health?: HealthOptions
  /** Servers that operators change; undefined if they cannot. */
  managed?: ManagedServers | undefined
  /** The path of the inspector, and what adds its routes. */
  inspector?: { path: string; register(app: FastifyInstance): Promise<void> }
}

/** Builds the application at the `admin` address. `Host` may be any IP address, but only known names. */
export async function adminFront({
  settings,
  listen,
  refusals,
  health: options,
  managed,
  inspector,
}: AdminOptions): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify(inJsonRpc(() => app))
  const paths = [
    ...(options ? [...OPEN, '/status', '/metrics'] : []),
    ...(managed?.token() === undefined ? [] : [SERVERS_PATH]),
    ...(inspector ? [inspector.path] : []),
  ]
  refuseInJsonRpc(app, {
    refusals,
    notFound: `Not found: this address serves only ${paths.join(', ')}`,
    bodyBytes: managed ? MAX_ENTRY : 0,
  })
  app.addHook('onRequest', (request, _reply, done) => {
    checkRequest(request.raw)
    // Refuses repeated headers that must be single: of two hosts, the checked one may not be the used one.
    readHeaders(request.raw)
    done()
  })
  const allowedHosts = hostsOf(settings, listen)
  await app.register(origin, { allowedHosts, allowedOrigins: [], addresses: true, open: ['/healthz'] })
  if (options) await app.register(health, options)
  if (managed) await app.register(managedServers, managed)
  await inspector?.register(app)
  await app.ready()
  return app
}

/** Builds an application for a socket that only its user can open: nothing of a request has to be checked. */
export function socketFront(): FastifyInstance {
  const app: FastifyInstance = fastify({ ...inJsonRpc(() => app), forceCloseConnections: true })
  app.setErrorHandler((error, _request, reply) => refuse(reply, Fault.from(error)))
  return app
}

/** The host names of the bridge at a listen address, in addition to the names of the loopback. */
function hostsOf({ publicUrl, allowedHosts }: AdminOptions['settings'], { host }: HttpListen): string[] {
  const own = publicUrl === undefined ? [] : [new URL(publicUrl).hostname]
  return [...allowedHosts, ...own, ...(isLoopback(host) ? [] : [host.includes(':') ? `[${host}]` : host])]
}

/** Replaces the compilers that Fastify loads by default: no route of the bridge has a schema. */
const NO_SCHEMAS = { buildValidator: noSchemas, buildSerializer: noSchemas }

function noSchemas(): never {
  throw new TypeError('Routes of the bridge have no schemas')
}

/** Options of every application: it refuses an invalid request target with a JSON-RPC error too. */
function inJsonRpc(app: () => FastifyInstance): FastifyServerOptions {
  return {
    logger: false,
    frameworkErrors: (error, request, reply) => app().errorHandler(error, request, reply),
    schemaController: { compilersFactory: NO_SCHEMAS },
  }
}

function notFoundMessage(endpoints: readonly string[]): string {
  const [first, ...more] = endpoints
  if (first === undefined) return 'Not found: no server has been discovered yet'
  if (more.length > 5) return `Not found: the ${endpoints.length} MCP endpoints are at paths like ${first}`
  return more.length === 0
    ? `Not found: the MCP endpoint is ${first}`
    : `Not found: the MCP endpoints are ${endpoints.join(', ')}`
}

/** How clients authenticate at a listen address, or in an application. */
function authMode({ auth }: Settings, { verify, lives, listen, attached }: FrontOptions): AuthMode {
  if (auth?.passthrough) return { kind: 'passthrough' }
  if (!auth && attached?.principalOf) return { kind: 'application', principalOf: attached.principalOf }
  // Where an application listens is not known.
  if (!auth) return { kind: 'none', loopback: !attached && isLoopback(listen.host) }
  const tokens = Object.entries(auth.tokens ?? {}).map(([name, token]) => [name, secretOf(token)] as const)
  const assertions = [...new Set((auth.issuers ?? []).flatMap(({ header }) => header ?? []))]
  return { kind: 'tokens', tokens: Object.fromEntries(tokens), lives, verify, forwarded: auth.forwarded, assertions }
}

/** The endpoints for which clients can get tokens, with their metadata. */
function protectedBy(
  { auth, publicUrl = '' }: Settings,
  endpoints: readonly MountEndpoint[],
  before: string | undefined,
) {
  const issuers = directIssuers(auth)
  const scopes = requestedScopes(auth)
  const served = endpoints.map(
    ({ paths }) =>
      new Map(
        paths.flatMap((path) => {
          const { stream, messages } = ssePaths(path)
          // Clients know the address of the stream, and get that of messages from it.
          return [
            [path, path],
            [stream, stream],
            [messages, stream],
          ] as const
        }),
      ),
  )
  return {
    endpoints: protectedEndpoints({ publicUrl, served, scopes }),
    issuers: issuers.map((one) => (one.facade && before !== undefined ? before : one.issuer)),
    scopes,
  }
}

/** The facade in front of an identity provider, and its paths. */
function facadeAt({ publicUrl = '' }: Settings, endpoints: readonly MountEndpoint[]): { issuer: string; path: string } {
  const { origin, pathname } = new URL(publicUrl)
  const prefix = prefixOf(
    pathname,
    endpoints.flatMap(({ paths }) => paths),
  )
  return { issuer: `${origin}${prefix}${FACADE}`, path: FACADE }
}
