/** Puts the bridge together: what is registered here, in the order in which a request meets it, is all there is. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type FastifyError, type FastifyInstance, type FastifyRequest, fastify } from 'fastify'
import type { Logger as Pino } from 'pino'
import {
  isLoopback,
  isStdio,
  type Listen,
  parseListen,
  type ServerSettings,
  type Settings,
  ssePaths,
  transportOf,
} from './config.js'
import { beside, METADATA } from './downstream/http/beside.js'
import { endpoint } from './downstream/http/endpoint.js'
import { Relay } from './downstream/http/relay.js'
import { refuse } from './downstream/http/replies.js'
import type { HttpSession } from './downstream/http/session.js'
import { Sessions } from './downstream/http/sessions.js'
import { type SseSession, sse } from './downstream/http/sse.js'
import type { SessionSettings } from './downstream/session.js'
import { type PipeOptions, servePipe } from './downstream/stdio.js'
import { type AuthMode, auth } from './plugins/auth.js'
import { origin } from './plugins/origin.js'
import { compose } from './policy/compose.js'
import { endings } from './policy/endings.js'
import { type Gate, gate, limits } from './policy/limits.js'
import { timeout } from './policy/timeout.js'
import type { Upstream } from './protocol/call.js'
import { Fault, type FaultName } from './protocol/fault.js'
import { HttpTransport } from './upstream/http.js'
import { keyOf } from './upstream/seal.js'
import { Server, type ServerOptions } from './upstream/server.js'
import { SseTransport } from './upstream/sse.js'
import { StdioTransport } from './upstream/stdio.js'

export interface Surroundings {
  log: Pino
  version: string
  /** What children inherit, if they inherit anything. */
  env: Readonly<Record<string, string | undefined>>
}

/** What every child gets from the environment of the bridge; the rest is named in the configuration. */
const INHERITED = [
  'HOME',
  'LOGNAME',
  'PATH',
  'SHELL',
  'TERM',
  'USER',
  'LANG',
  'TMPDIR',
  'APPDATA',
  'LOCALAPPDATA',
  'PATHEXT',
  'SYSTEMROOT',
  'TEMP',
  'USERNAME',
  'USERPROFILE',
]
/** Milliseconds. */
const DRAIN_CHECK = 20
const PROBE_TIMEOUT = { http: 10_000, sse: 10_000, stdio: 15_000 }

export class Bridge {
  readonly server: Server
  readonly #settings: Settings
  readonly #log: Pino
  readonly #upstream: Upstream
  readonly #enter: Gate
  /** Aborts when the bridge is being stopped. */
  readonly #stopping = new AbortController()
  /** Sessions of legacy clients, by transport. */
  readonly #sessions: { http: Sessions<HttpSession>; sse: Sessions<SseSession> }
  readonly #sessionSettings: SessionSettings
  #app: FastifyInstance | undefined
  /** HTTP requests that have not been answered whole. */
  #open = 0
  #hurried = false

  constructor(settings: Settings, { log, version, env }: Surroundings) {
    this.#settings = settings
    this.#log = log
    const [name, server] = Object.entries(settings.mcpServers)[0] as [string, ServerSettings]
    this.server = new Server(serverOptions(name, server, settings, { log, version, env }))
    const { calls, callsPerServer, subscriptions, clientSessions } = settings.limits
    const { call, callTotal, clientIdle, keepAlive } = settings.timeouts
    const keeping = { max: clientSessions, idle: clientIdle, keepAlive }
    this.#sessions = { http: new Sessions(keeping), sse: new Sessions(keeping) }
    const { strictRevisions: strict, emulateTasks } = settings.compat
    this.#sessionSettings = { strict, emulateTasks, serverInfo: JSON.stringify({ name: 'mcp-bridge', version }) }
    this.#enter = gate(
      [
        { max: calls, open: 0, where: 'with the bridge' },
        { max: callsPerServer, open: 0, where: 'with the server' },
      ],
      [{ max: subscriptions, open: 0, where: 'with the bridge' }],
    )
    this.#upstream = {
      handle: compose(
        this.server.handle,
        limits(this.#enter),
        endings(this.#stopping.signal),
        timeout({ idle: call, total: callTotal }),
      ),
      notify: (notice) => this.server.notify(notice),
      legacyLeg: (sender) => this.server.legacyLeg(sender),
    }
  }

  /** Serves HTTP. Resolves to the address of the endpoint. */
  async listen(listen: Listen & { kind: 'http' } = httpListen(this.#settings)): Promise<string> {
    const app = await this.#http(listen)
    this.#app = app
    const address = await app.listen({ host: listen.host, port: listen.port })
    return address + listen.path
  }

  /** Serves a pipe until its input ends. */
  pipe(streams: Pick<PipeOptions, 'input' | 'output'>): Promise<void> {
    return servePipe({
      ...streams,
      upstream: this.#upstream,
      compat: this.#settings.compat,
      log: this.#log,
      lineLimit: this.#settings.limits.lineBytes,
      settings: this.#sessionSettings,
    })
  }

  /** Lets requests in flight end, for a while; then ends everything, the servers' processes last. In a hurry, at once. */
  async close(hurry = false): Promise<void> {
    this.#stopping.abort()
    const app = this.#app
    if (app && !hurry) {
      app.server.close()
      this.#sessions.http.drain()
      this.#sessions.sse.drain()
      const deadline = Date.now() + this.#settings.timeouts.drain
      while (this.#open > 0 && Date.now() < deadline && !this.#hurried) await sleep(DRAIN_CHECK)
    }
    this.#hurried ||= hurry
    this.#sessions.http.close()
    this.#sessions.sse.close()
    app?.server.closeAllConnections()
    await Promise.all([app?.close(), this.server.close(hurry)])
  }

  async #http(listen: Listen & { kind: 'http' }): Promise<FastifyInstance> {
    const { limits, timeouts, compat, allowedHosts, allowedOrigins, publicUrl } = this.#settings
    const app = fastify({
      logger: false,
      bodyLimit: limits.bodyBytes,
      exposeHeadRoutes: false,
      // Without these a request that comes a byte at a time is waited for without end.
      requestTimeout: 30_000,
      keepAliveTimeout: 65_000,
      http: { headersTimeout: 5_000, connectionsCheckingInterval: 1_000, maxHeaderSize: 16 * 1024 },
    })
    app.server.maxConnections = limits.connections
    // More than are accepted, so that the excess is seen rather than cut off unseen.
    app.server.maxHeadersCount = 200

    app.setNotFoundHandler((_request, reply) =>
      refuse(reply, new Fault('noSuchPath', `Nothing here: the MCP endpoint is ${listen.path}`)),
    )
    app.setErrorHandler<FastifyError>((error, _request, reply) => refuse(reply, faultOf(error, this.#log)))

    app.addHook('onRequest', (_request, reply, done) => {
      this.#open++
      reply.raw.once('close', () => this.#open--)
      done()
    })
    const own = publicUrl === undefined ? [] : [new URL(publicUrl)]
    const names = [
      ...allowedHosts,
      ...own.map(({ hostname }) => hostname),
      ...(isLoopback(listen.host) ? [] : [listen.host]),
    ]
    await app.register(origin, {
      allowedHosts: names,
      allowedOrigins: [...allowedOrigins, ...own.map((url) => url.origin)],
    })
    const address = (request: FastifyRequest) => publicUrl ?? `${request.protocol}://${request.host}`
    const { relayed } = this.server
    const paths = new Map(besidePaths(this.#settings, listen.path))
    const metadata = (request: FastifyRequest) => new URL(METADATA + listen.path, address(request)).href
    const refusing = {
      draftErrorCodes: compat.draftErrorCodes,
      ...(this.#settings.auth?.passthrough && { passthrough: { metadata } }),
    }
    await app.register(auth, {
      mode: authMode(this.#settings, listen.host),
      open: (path) => [...paths.keys()].some((known) => path === known || path === known.replace(/\/\*$/, '')),
    })
    if (relayed && paths.size > 0) {
      const resource = (request: FastifyRequest) => new URL(listen.path, address(request)).href
      await app.register(beside, { relayed, paths, resource, passthrough: this.#settings.auth?.passthrough ?? false })
    }
    const common = {
      upstream: this.#upstream,
      log: this.#log,
      settings: this.#sessionSettings,
    }
    await app.register(endpoint, {
      ...common,
      path: listen.path,
      sessions: this.#sessions.http,
      relay:
        relayed &&
        new Relay({
          relayed,
          path: listen.path,
          log: this.#log,
          refusing,
          enter: this.#enter,
          maxSessions: limits.clientSessions,
        }),
      refusing,
      compat,
      keepAlive: timeouts.keepAlive,
      commitAfter: timeouts.commitAfter,
    })
    await app.register(sse, {
      ...common,
      paths: ssePaths(listen),
      sessions: this.#sessions.sse,
    })
    return app
  }
}

function httpListen(settings: Settings): Listen & { kind: 'http' } {
  const listen = parseListen(settings.listen)
  if (listen.kind !== 'http') throw new TypeError('The configuration says to listen on stdio')
  return listen
}

/** Paths that are passed on to the server, by where they are there. Metadata are where clients look for them, on both sides. */
function besidePaths({ mcpServers, auth }: Settings, path: string): [string, string][] {
  const [server] = Object.values(mcpServers)
  if (!server || isStdio(server)) return []
  const { pathname } = new URL(server.url)
  const own: [string, string][] = auth?.passthrough ? [[METADATA + path, METADATA + pathname.replace(/\/$/, '')]] : []
  return [...own, ...server.paths.map((one): [string, string] => [one, one])]
}

/** Who is asked for what on an address. On stdio nobody is: there it is whoever started the bridge. */
function authMode({ auth }: Settings, host: string): AuthMode {
  if (auth?.tokens) return { kind: 'tokens', tokens: auth.tokens }
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

function serverOptions(
  name: string,
  settings: ServerSettings,
  { limits, timeouts, auth, stateKeys }: Settings,
  { log, version, env }: Surroundings,
): ServerOptions {
  const common = {
    name,
    era: settings.era,
    isolation: settings.session,
    passthrough: auth?.passthrough ?? false,
    tasks: settings.tasks,
    roots: settings.roots,
    clientInfo: JSON.stringify({ name: 'mcp-bridge', version }),
    log: log.child({ server: name }),
    parked: {
      ttl: timeouts.answer,
      max: limits.parked,
      maxPerPrincipal: limits.parkedPerPrincipal,
      ...(stateKeys.length > 0 && { keys: stateKeys.map(keyOf) }),
    },
  }
  const times = (kind: 'http' | 'sse' | 'stdio') => ({
    probe: timeouts.probe ?? PROBE_TIMEOUT[kind],
    initialize: timeouts.initialize,
    idle: timeouts.idle,
  })
  if (isStdio(settings)) {
    const { command, args, cwd } = settings
    const inherited = Object.fromEntries(INHERITED.flatMap((key) => (env[key] === undefined ? [] : [[key, env[key]]])))
    const transport = new StdioTransport({
      command,
      args,
      cwd,
      env: { ...inherited, ...settings.env },
      lineLimit: limits.lineBytes,
      onStderr: (line) => common.log.debug({ line }, 'stderr of the server'),
    })
    return { ...common, transport, timeouts: times('stdio'), maxSessions: limits.processes }
  }
  const headers = Object.fromEntries(Object.entries(settings.headers).map(([key, value]) => [key.toLowerCase(), value]))
  const bounds = {
    bodyLimit: limits.answerBytes,
    streamLimit: limits.streamBytes,
    connections: limits.callsPerServer * 2 + limits.subscriptions,
  }
  const reach = { url: new URL(settings.url), headers, ...bounds }
  const kind = transportOf(settings)
  const sse = new SseTransport(reach)
  return {
    ...common,
    transport: kind === 'sse' ? sse : new HttpTransport(reach),
    ...(kind === undefined && { fallback: sse }),
    timeouts: times(kind === 'sse' ? 'sse' : 'http'),
    maxSessions: limits.sessions,
  }
}
