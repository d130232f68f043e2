/** One server as it is served: itself, the policies around it, the sessions of its legacy clients, what is passed on to it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Pino, Surroundings } from './app.js'
import { isStdio, type ServerSettings, type Settings, ssePaths, transportOf } from './config.js'
import { beside, METADATA } from './downstream/http/beside.js'
import { endpoint } from './downstream/http/endpoint.js'
import { Relay } from './downstream/http/relay.js'
import type { HttpSession } from './downstream/http/session.js'
import { Sessions } from './downstream/http/sessions.js'
import { type SseSession, sse } from './downstream/http/sse.js'
import type { SessionSettings } from './downstream/session.js'
import { type PipeOptions, servePipe } from './downstream/stdio.js'
import { compose } from './policy/compose.js'
import { Endings } from './policy/endings.js'
import { type Bound, Gate, limits } from './policy/limits.js'
import { timeout } from './policy/timeout.js'
import type { Upstream } from './protocol/call.js'
import { HttpTransport } from './upstream/http.js'
import { keyOf } from './upstream/seal.js'
import { Server, type ServerOptions } from './upstream/server.js'
import { SseTransport } from './upstream/sse.js'
import { StdioTransport } from './upstream/stdio.js'

/** What all servers share. */
export interface Shared {
  calls: Bound
  subscriptions: Bound
}

/** How a server is doing, as far as anybody has found out. */
export interface Health {
  state: 'ready' | 'unknown' | 'down'
  era?: string | undefined
  revision?: string | undefined
  /** How it is known what the server speaks, or why it cannot be had. */
  why?: string | undefined
}

/** Where and to whom a server is served. */
export interface Reach {
  paths: readonly string[]
  /** The address under which a client has reached the bridge. */
  address(request: FastifyRequest): string
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
const PROBE_TIMEOUT = { http: 10_000, sse: 10_000, stdio: 15_000 }

export class Mount {
  readonly name: string
  readonly server: Server
  /** What this server and all that is kept for it are made of: while it is the same, it can stay. */
  readonly plan: string
  readonly #settings: Settings
  readonly #log: Pino
  readonly #upstream: Upstream
  readonly #gate: Gate
  readonly #calls: Bound
  readonly #endings = new Endings()
  /** Sessions of legacy clients, by transport. */
  readonly #sessions: { http: Sessions<HttpSession>; sse: Sessions<SseSession> }
  readonly #sessionSettings: SessionSettings
  readonly #relay: Relay | undefined

  constructor(name: string, settings: Settings, shared: Shared, surroundings: Surroundings) {
    const own = settings.mcpServers[name] as ServerSettings
    this.name = name
    this.plan = planOf(name, settings)
    this.#settings = settings
    this.#log = surroundings.log
    this.server = new Server(serverOptions(name, own, settings, surroundings))
    const { callsPerServer, clientSessions } = settings.limits
    const { clientIdle, keepAlive } = settings.timeouts
    const keeping = { max: clientSessions, idle: clientIdle, keepAlive }
    this.#sessions = { http: new Sessions(keeping), sse: new Sessions(keeping) }
    const { strictRevisions, emulateTasks } = settings.compat
    this.#sessionSettings = {
      strict: own.strictRevisions ?? strictRevisions,
      emulateTasks,
      serverInfo: JSON.stringify({ name: 'mcp-bridge', version: surroundings.version }),
    }
    this.#calls = { max: callsPerServer, open: 0, where: 'with the server' }
    this.#gate = new Gate([shared.calls, this.#calls], [shared.subscriptions])
    const { call, callTotal } = timesOf(settings, own)
    this.#upstream = {
      handle: compose(
        this.server.handle,
        limits(this.#gate),
        this.#endings.policy,
        timeout({ idle: call, total: callTotal }),
      ),
      notify: (notice) => this.server.notify(notice),
      legacyLeg: (sender) => this.server.legacyLeg(sender),
    }
    const { relayed } = this.server
    this.#relay = relayed && new Relay({ relayed, log: this.#log, gate: this.#gate, maxSessions: clientSessions })
  }

  /** Calls that have been let in and are not over, and those whose clients have been asked something. */
  get busy(): { calls: number; parked: number } {
    return { calls: this.#calls.open, parked: this.server.parked }
  }

  get health(): Health {
    const { verdict, down } = this.server
    if (down) return { state: 'down', why: down.message }
    if (!verdict) return { state: 'unknown' }
    return { state: 'ready', era: verdict.era, revision: verdict.revision, why: verdict.why }
  }

  /** Makes what is served over HTTP known to a Fastify instance. */
  async register(app: FastifyInstance, { paths, address }: Reach): Promise<void> {
    const { compat, timeouts, auth } = this.#settings
    const { relayed } = this.server
    const passthrough = auth?.passthrough ?? false
    const common = { upstream: this.#upstream, log: this.#log, settings: this.#sessionSettings }
    for (const path of paths) {
      const metadata = (request: FastifyRequest) => new URL(METADATA + path, address(request)).href
      const refusing = { draftErrorCodes: compat.draftErrorCodes, ...(passthrough && { passthrough: { metadata } }) }
      if (relayed && passthrough) {
        const resource = (request: FastifyRequest) => new URL(path, address(request)).href
        await app.register(beside, { relayed, paths: metadataPaths(relayed.url, path), resource, passthrough })
      }
      await app.register(endpoint, {
        ...common,
        path,
        sessions: this.#sessions.http,
        relay: this.#relay,
        refusing,
        compat,
        keepAlive: timeouts.keepAlive,
        commitAfter: timeouts.commitAfter,
      })
      await app.register(sse, { ...common, paths: ssePaths(path), sessions: this.#sessions.sse })
    }
    const further = new Map(this.#further.map((path) => [path, path]))
    const [first = ''] = paths
    const resource = (request: FastifyRequest) => new URL(first, address(request)).href
    if (relayed && further.size > 0) await app.register(beside, { relayed, paths: further, resource, passthrough })
  }

  /** Paths of this server that are served without asking who it is: whoever asks has still to learn where to go. */
  open({ paths }: Pick<Reach, 'paths'>): readonly string[] {
    const { relayed } = this.server
    if (!relayed) return []
    const metadata = this.#settings.auth?.passthrough
      ? paths.flatMap((path) => [...metadataPaths(relayed.url, path).keys()])
      : []
    return [...metadata, ...this.#further]
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

  /** Lets what is in flight end, and takes nothing new but answers of clients that have been asked something. */
  drain(): void {
    this.#gate.close()
    this.#endings.end()
    this.#sessions.http.drain()
    this.#sessions.sse.drain()
  }

  /** Tells callers whose calls have not ended that they will not. */
  cut(): void {
    this.#endings.cut()
  }

  async close(hurry: boolean): Promise<void> {
    this.drain()
    this.cut()
    this.#sessions.http.close()
    this.#sessions.sse.close()
    await this.server.close(hurry)
  }

  get #further(): readonly string[] {
    const own = this.#settings.mcpServers[this.name] as ServerSettings
    return isStdio(own) ? [] : own.paths
  }
}

/** All of the configuration that a mount is made of. Where it is served is not: that can change around it. */
export function planOf(name: string, settings: Settings): string {
  const { compat, limits, timeouts, auth, stateKeys, redis } = settings
  const { drainDelay: _delay, drainTimeout: _timeout, ...times } = timeouts
  const { path: _path, ...own } = settings.mcpServers[name] as ServerSettings
  return JSON.stringify([name, own, compat, limits, times, auth?.passthrough ?? false, stateKeys, redis])
}

/** The time limits of a server: its own, and those of all where it has none. */
function timesOf(settings: Settings, own: ServerSettings): Settings['timeouts'] {
  const given = Object.entries(own.timeouts).filter(([, time]) => time !== undefined)
  return { ...settings.timeouts, ...Object.fromEntries(given) }
}

/** Metadata are where clients look for them, on both sides. */
function metadataPaths({ pathname }: URL, path: string): Map<string, string> {
  return new Map([[METADATA + path, METADATA + pathname.replace(/\/$/, '')]])
}

function serverOptions(
  name: string,
  settings: ServerSettings,
  all: Settings,
  { log, version, env }: Surroundings,
): ServerOptions {
  const { limits, auth, stateKeys } = all
  const timeouts = timesOf(all, settings)
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
