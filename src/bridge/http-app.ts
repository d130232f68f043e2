/** What the bridge is over HTTP: what is registered here, in the order in which a request meets it, is all there is. */
import {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  fastify,
} from 'fastify'
import { isLoopback, type Listen, type Settings, secretOf, servedPaths } from '../config/settings.js'
import { tooLarge } from '../downstream/http/body.js'
import { checkRequest } from '../downstream/http/headers.js'
import { type Refusals, refusedOf } from '../downstream/http/refusals.js'
import { refuse } from '../downstream/http/replies.js'
import { type AuthMode, auth } from '../plugins/auth.js'
import { type HealthOptions, health, OPEN } from '../plugins/health.js'
import { origin } from '../plugins/origin.js'
import { PUBLIC, type WellKnownOptions, wellKnown } from '../plugins/well-known.js'
import { Fault, type FaultName } from '../protocol/fault.js'
import { linger } from './linger.js'
import type { Mount } from './mount.js'

export interface FrontOptions {
  settings: Settings
  listen: Listen & { kind: 'http' }
  mounts: ReadonlyMap<string, Mount>
  refusals: Refusals
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
  const { settings, listen, mounts, refusals, draining } = options
  const { bodyBytes } = settings.limits
  const app: FastifyInstance = fastify({ ...inJsonRpc(() => app), bodyLimit: bodyBytes, exposeHeadRoutes: false })
  const served = servedPaths(settings, listen)
  const nothing = nothingHere([...served.values()].flat())
  refusing(app, { refusals, nothingHere: nothing, bodyBytes })
  app.addHook('onRequest', (request, reply, done) => {
    reply.raw.once('close', options.onRequest())
    checkRequest(request.raw)
    if (draining()) {
      reply.header('connection', 'close')
      // A stream that is opened now would have to end at once.
      if (request.method === 'GET' && !OPEN.includes(request.routeOptions.url ?? ''))
        throw new Fault('draining', 'The bridge is shutting down', { retryAfter: 1 })
    }
    done()
  })

  const own = settings.publicUrl === undefined ? [] : [new URL(settings.publicUrl)]
  const { published } = options
  const reachable = [...(options.health ? OPEN : []), ...(published ? PUBLIC : [])]
  await app.register(origin, {
    allowedHosts: hostsOf(settings, listen),
    allowedOrigins: [...settings.allowedOrigins, ...own.map((url) => url.origin)],
    open: reachable,
  })
  const open = [...mounts].flatMap(([name, mount]) => mount.open({ paths: served.get(name) ?? [] }))
  await app.register(auth, {
    mode: authMode(settings, listen.host),
    open: (path) => [...reachable, ...open].some((known) => path === known || path === known.replace(/\/\*$/, '')),
  })
  app.addHook('onRequest', (request, _reply, done) => {
    // Now, because for its own answer Fastify would read the body first.
    if (request.is404) throw new Fault('noSuchPath', nothing)
    done()
  })
  app.addHook('preParsing', (request, reply, payload, done) => {
    askForTheRest(request, reply, bodyBytes)
    done(null, payload)
  })
  if (options.health) await app.register(health, options.health)
  if (published) await app.register(wellKnown, { published })
  const address = (request: FastifyRequest) => settings.publicUrl ?? `${request.protocol}://${request.host}`
  const publicPath = own[0]?.pathname ?? '/'
  for (const [name, mount] of mounts) await mount.register(app, { paths: served.get(name) ?? [], address, publicPath })
  await app.ready()
  return app
}

export interface AdminOptions extends Pick<FrontOptions, 'settings' | 'listen' | 'refusals'> {
  health: HealthOptions
}

/** Builds what answers at the address for operators: by any address of the machine, but only by names that are known. */
export async function adminFront({ settings, listen, refusals, health: told }: AdminOptions): Promise<FastifyInstance> {
  const app: FastifyInstance = fastify(inJsonRpc(() => app))
  refusing(app, { refusals, nothingHere: `Nothing here but ${OPEN.join(', ')} and /metrics`, bodyBytes: 0 })
  app.addHook('onRequest', (request, _reply, done) => {
    checkRequest(request.raw)
    done()
  })
  const allowedHosts = hostsOf(settings, listen)
  await app.register(origin, { allowedHosts, allowedOrigins: [], addresses: true, open: ['/healthz'] })
  await app.register(health, told)
  await app.ready()
  return app
}

/** Names under which the bridge is reached at an address, beside those of the loopback. */
function hostsOf({ publicUrl, allowedHosts }: Settings, { host }: Listen & { kind: 'http' }): string[] {
  const own = publicUrl === undefined ? [] : [new URL(publicUrl).hostname]
  return [...allowedHosts, ...own, ...(isLoopback(host) ? [] : [host])]
}

/** Options of Fastify, with which it also refuses a target that it cannot read in the way in which it refuses all else. */
function inJsonRpc(app: () => FastifyInstance): FastifyServerOptions {
  return { logger: false, frameworkErrors: (error, request, reply) => app().errorHandler(error, request, reply) }
}

/** Has what is refused told in JSON-RPC, and noted. */
function refusing(
  app: FastifyInstance,
  { refusals, nothingHere, bodyBytes }: { refusals: Refusals; nothingHere: string; bodyBytes: number },
): void {
  const refuseWith = (fault: Fault, request: FastifyRequest, reply: FastifyReply) => {
    if (!reply.raw.destroyed) refusals.note(fault, refusedOf(request))
    hearOut(request, reply)
    return refuse(reply, fault)
  }
  app.setNotFoundHandler((request, reply) => refuseWith(new Fault('noSuchPath', nothingHere), request, reply))
  app.setErrorHandler<FastifyError>((error, request, reply) =>
    refuseWith(faultOf(error, request, bodyBytes), request, reply),
  )
}

/** A client that waits to be told whether its body is wanted. */
function waitsToSend({ headers: { expect } }: FastifyRequest): boolean {
  return expect?.toLowerCase() === '100-continue'
}

/** Tells a client that waits for it to send the rest of its request. Throws a Fault where that would be too much. */
function askForTheRest(request: FastifyRequest, reply: FastifyReply, bodyBytes: number): void {
  if (!waitsToSend(request)) return
  if (Number(request.headers['content-length']) > bodyBytes) throw tooLarge(bodyBytes)
  reply.raw.writeContinue()
  delete request.raw.headers.expect
}

/** A client that is still sending reads its answer when it has sent all: until then, what it sends is read and dropped. */
function hearOut(request: FastifyRequest, reply: FastifyReply): void {
  const { raw } = request
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers
  if (raw.complete || raw.destroyed || (coding === undefined && Number(length) === 0)) return
  // Who waits to be asked for the rest sends nothing now.
  if (waitsToSend(request)) {
    reply.header('connection', 'close')
    return
  }
  const closes = !reply.raw.shouldKeepAlive
  reply.removeHeader('connection')
  reply.raw.shouldKeepAlive = true
  setImmediate(() => {
    const stop = raw.complete || raw.destroyed ? () => {} : linger(raw.socket)
    const over = () => {
      stop()
      if (closes) raw.socket.end()
    }
    if (raw.closed) over()
    else raw.once('close', over)
  })
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
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupportedMediaType',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalidRequest',
}

function faultOf(error: FastifyError | Fault, { method }: FastifyRequest, bodyBytes: number): Fault {
  if (error instanceof Fault) return error
  // The client has left a stream that had not begun: there is nobody to tell, and the call says so itself.
  if (error.code === 'ERR_STREAM_PREMATURE_CLOSE') return new Fault('requestTimeout', 'The client has gone')
  if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') return tooLarge(bodyBytes)
  const name =
    FASTIFY_FAULTS[error.code] ??
    (error.statusCode !== undefined && error.statusCode < 500 ? 'invalidRequest' : undefined)
  if (name) return new Fault(name, error.message, { cause: error })
  // What is posted may have been a call, and this have happened on the way back.
  return Fault.from(error, method === 'POST')
}
