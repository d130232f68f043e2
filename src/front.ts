/** What the bridge is over HTTP: what is registered here, in the order in which a request meets it, is all there is. */
import { type FastifyError, type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import type { Pino } from './app.js'
import { isLoopback, type Listen, type Settings, secretOf, servedPaths } from './config.js'
import { refuse } from './downstream/http/replies.js'
import type { Mount } from './mount.js'
import { type AuthMode, auth } from './plugins/auth.js'
import { type HealthOptions, health, OPEN } from './plugins/health.js'
import { origin } from './plugins/origin.js'
import { PUBLIC, type WellKnownOptions, wellKnown } from './plugins/well-known.js'
import { Fault, type FaultName } from './protocol/fault.js'

export interface FrontOptions {
  settings: Settings
  listen: Listen & { kind: 'http' }
  mounts: ReadonlyMap<string, Mount>
  log: Pino
  /** How the bridge is doing is told here as well, unless that has an address of its own. */
  health: HealthOptions | undefined
  /** What is told to those who look for servers, if anything is. */
  published: WellKnownOptions['published'] | undefined
  /** A request has come; gives what is to be called when it has been answered whole. */
  onRequest(): () => void
  /** Whether the bridge is being stopped. */
  draining(): boolean
}

/** Builds what answers HTTP requests. It listens nowhere: requests are given to its `routing`. */
export async function front(options: FrontOptions): Promise<FastifyInstance> {
  const { settings, listen, mounts, log, draining } = options
  const app = fastify({ logger: false, bodyLimit: settings.limits.bodyBytes, exposeHeadRoutes: false })
  const served = servedPaths(settings, listen)
  const endpoints = [...served.values()].flat()

  app.setNotFoundHandler((_request, reply) => refuse(reply, new Fault('noSuchPath', nothingHere(endpoints))))
  app.setErrorHandler<FastifyError>((error, _request, reply) => refuse(reply, faultOf(error, log)))
  app.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', options.onRequest())
    if (draining()) {
      reply.header('connection', 'close')
      // A stream that is opened now would have to end at once.
      if (request.method === 'GET' && !OPEN.includes(request.routeOptions.url ?? ''))
        throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    }
    done()
  })

  const own = settings.publicUrl === undefined ? [] : [new URL(settings.publicUrl)]
  const names = own.map(({ hostname }) => hostname)
  const { published } = options
  const reachable = [...(options.health ? OPEN : []), ...(published ? PUBLIC : [])]
  await app.register(origin, {
    allowedHosts: [...settings.allowedHosts, ...names, ...(isLoopback(listen.host) ? [] : [listen.host])],
    allowedOrigins: [...settings.allowedOrigins, ...own.map((url) => url.origin)],
    open: reachable,
  })
  const open = [...mounts].flatMap(([name, mount]) => mount.open({ paths: served.get(name) ?? [] }))
  await app.register(auth, {
    mode: authMode(settings, listen.host),
    open: (path) => [...reachable, ...open].some((known) => path === known || path === known.replace(/\/\*$/, '')),
  })
  if (options.health) await app.register(health, options.health)
  if (published) await app.register(wellKnown, { published })
  const address = (request: FastifyRequest) => settings.publicUrl ?? `${request.protocol}://${request.host}`
  for (const [name, mount] of mounts) await mount.register(app, { paths: served.get(name) ?? [], address })
  await app.ready()
  return app
}

function nothingHere(endpoints: readonly string[]): string {
  const [first, ...more] = endpoints
  if (first === undefined) return 'Nothing here: no server has been found yet'
  if (more.length > 5) return `Nothing here: the ${endpoints.length} MCP endpoints are at paths like ${first}`
  return more.length === 0
    ? `Nothing here: the MCP endpoint is ${first}`
    : `Nothing here: the MCP endpoints are ${endpoints.join(', ')}`
}

/** Who is asked for what on an address. On stdio nobody is: there it is whoever started the bridge. */
function authMode({ auth }: Settings, host: string): AuthMode {
  if (auth?.tokens) {
    const tokens = Object.entries(auth.tokens).map(([name, token]) => [name, secretOf(token)] as const)
    return { kind: 'tokens', tokens: Object.fromEntries(tokens) }
  }
  return auth?.passthrough ? { kind: 'passthrough' } : { kind: 'none', loopback: isLoopback(host) }
}

/** What Fastify makes of a request that it does not take, in the words of the protocol. */
const FASTIFY_FAULTS: Readonly<Record<string, FaultName>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'bodyTooLarge',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupportedMediaType',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalidRequest',
}

function faultOf(error: FastifyError | Fault, log: Pino): Fault {
  if (error instanceof Fault) return error
  // The client has left a stream that had not begun: there is nobody to tell, and the call says so itself.
  if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return new Fault('requestTimeout', 'The client has gone')
  const name =
    FASTIFY_FAULTS[error.code] ??
    (error.statusCode !== undefined && error.statusCode < 500 ? 'invalidRequest' : undefined)
  if (name) return new Fault(name, error.message, { cause: error })
  log.error({ err: error }, 'request failed')
  return Fault.from(error)
}
