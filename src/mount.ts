/** One server as it is served: itself, the policies around it, the sessions of its legacy clients, what is passed on to it. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Surroundings } from './app.js'
import { isStdio, type ServerSettings, type Settings, ssePaths, transportOf } from './config.js'
import { beside, METADATA } from './downstream/http/beside.js'
import { endpoint } from './downstream/http/endpoint.js'
import { Relay } from './downstream/http/relay.js'
import type { HttpSession } from './downstream/http/session.js'
import { Sessions } from './downstream/http/sessions.js'
import { type SseSession, sse } from './downstream/http/sse.js'
import type { Logger } from './downstream/record.js'
import type { SessionSettings } from './downstream/session.js'
import { type PipeOptions, servePipe } from './downstream/stdio.js'
import { inspect } from './inspect.js'
import type { Results } from './policy/cache/results.js'
import { Cache, isOfCache } from './policy/cache.js'
import { compose } from './policy/compose.js'
import { Endings } from './policy/endings.js'
import { type Bound, Gate, limits } from './policy/limits.js'
import { globs, MAX_NAME, Quarantine } from './policy/quarantine.js'
import { scopes } from './policy/scopes.js'
import { timeout } from './policy/timeout.js'
import { type UnavailableOptions, unavailable } from './policy/unavailable.js'
import type { Policy, Upstream } from './protocol/call.js'
import type { Gauge, Observe } from './protocol/event.js'
import { Fault } from './protocol/fault.js'
import type { Replicas } from './protocol/replicas.js'
import type { Standing, ToolList } from './protocol/standing.js'
import type { Json } from './rpc/splice.js'
import { keyOf } from './seal.js'
import { HttpTransport } from './upstream/http.js'
import type { Connect } from './upstream/origin.js'
import { Server, type ServerOptions } from './upstream/server.js'
import { SseTransport } from './upstream/sse.js'
import { StdioTransport } from './upstream/stdio.js'

/** What all servers share. */
export interface Shared {
  calls: Bound
  subscriptions: Bound
  /** What is kept of results. */
  results: Results
  /** The others, where this bridge is one of several. */
  replicas?: Replicas | undefined
}

/** What is known of a server that has been found, and that it is kept on a lead for. */
export interface Lead {
  /** What its connections are made under: while it is the same, they can stay. */
  plan: string
  connect: Connect
  standing(tools: ToolList | undefined): Standing
  /** Globs of tools that may be called in quarantine. */
  readOnly: readonly string[]
  /** Whether it is left alone at this moment. */
  state: UnavailableOptions['state']
  /** Scopes that its manifest asks for. */
  required(tool: string): readonly string[]
  /** It has said again who it is. */
  heard(serverInfo: Json): void
  /** It could not be reached. */
  missed(): void
}

/** What a server says of itself. */
export interface Identity {
  identity: { name: string; version: string }
  capabilities: Record<string, unknown>
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
/** Milliseconds for which what a server has said of itself holds. */
const INTRODUCED = 300_000
/** Subscriptions with which changes are heard of what is kept of one server. */
const MAX_LISTENED = 256

export class Mount {
  readonly name: string
  readonly server: Server
  /** What this server and all that is kept for it are made of: while it is the same, it can stay. */
  readonly plan: string
  readonly #settings: Settings
  readonly #log: Logger
  readonly #upstream: Upstream
  readonly #gate: Gate
  readonly #calls: Bound
  readonly #endings = new Endings()
  readonly #cache: Cache | undefined
  /** Hears nothing of other replicas any more. */
  readonly #deafen: (() => void) | undefined
  /** Sessions of legacy clients, by transport. */
  readonly #sessions: { http: Sessions<HttpSession>; sse: Sessions<SseSession> }
  readonly #sessionSettings: SessionSettings
  readonly #relay: Relay | undefined
  readonly #replicas: Replicas | undefined
  readonly #quarantine: Quarantine | undefined
  #identity: { known?: Identity | undefined; since: number } | undefined

  constructor(name: string, settings: Settings, shared: Shared, surroundings: Surroundings) {
    const own = settings.mcpServers[name] as ServerSettings
    this.name = name
    const lead = surroundings.lead?.(name)
    this.plan = planOf(name, settings, lead)
    this.#settings = settings
    const { log, metrics, tracer } = surroundings
    const observe = metrics?.observe
    this.#log = Object.assign(log.child({ server: name }), { telemetry: { server: name, observe, tracer } })
    this.#replicas = shared.replicas
    this.server = new Server(serverOptions(name, own, settings, surroundings, shared.replicas, lead?.connect))
    const { callsPerServer, clientSessions } = settings.limits
    const { clientIdle, keepAlive } = settings.timeouts
    const keeping = { max: clientSessions, idle: clientIdle, keepAlive, replicas: shared.replicas }
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
    const cache = cacheOf(name, own, settings, shared.results, observe)
    this.#cache = cache
    this.#deafen =
      cache && shared.replicas?.hear(name, { changed: (notice) => cache.drop(notice), missed: () => cache.missed() })
    const scoped = scopesOf(own, settings, lead)
    const quarantine = lead && new Quarantine({ name, standing: lead.standing, readOnly: lead.readOnly })
    this.#quarantine = quarantine
    // What has to be looked at call by call goes no way on which nobody looks.
    const looksAtCalls = lead !== undefined || scoped !== undefined
    this.#upstream = {
      handle: compose(
        this.server.handle,
        limits(this.#gate),
        this.#endings.policy,
        timeout({ idle: call, total: callTotal }),
        ...(scoped ? [scoped] : []),
        ...(lead && quarantine ? [unavailable({ name, state: lead.state }), quarantine.policy, watched(lead)] : []),
        ...(this.#cache ? [this.#cache.policy] : []),
      ),
      notify: (notice) => {
        if (!quarantine || quarantine.open) this.server.notify(notice)
      },
      legacyLeg: (sender) => (looksAtCalls ? Promise.resolve('translate') : this.server.legacyLeg(sender)),
    }
    const relayed = looksAtCalls ? undefined : this.server.relayed
    const keeps = this.#cache && isOfCache
    const known = shared.replicas && { server: name, records: shared.replicas.records, idle: clientIdle }
    const passing = { log: this.#log, gate: this.#gate, maxSessions: clientSessions, keeps, shared: known }
    this.#relay = relayed && new Relay({ relayed, ...passing })
  }

  /** Calls that have been let in and are not over, and those whose clients have been asked something. */
  get busy(): { calls: number; parked: number } {
    return { calls: this.#calls.open, parked: this.server.parked }
  }

  /** How far the bounds are reached that are this server's own. */
  get gauges(): Gauge[] {
    const server = this.name
    const { clientSessions: limit } = this.#settings.limits
    return [
      ...this.server.gauges,
      { bound: 'calls_per_server', server, used: this.#calls.open, limit: this.#calls.max },
      { bound: 'client_sessions', server, used: this.#sessions.http.size, limit },
      { bound: 'client_sessions_sse', server, used: this.#sessions.sse.size, limit },
      { bound: 'relayed_sessions', server, used: this.#relay?.sessions ?? 0, limit },
    ]
  }

  get health(): Health {
    const { verdict, down } = this.server
    if (down) return { state: 'down', why: down.message }
    if (!verdict) return { state: 'unknown' }
    return { state: 'ready', era: verdict.era, revision: verdict.revision, why: verdict.why }
  }

  /** What the server says of itself, as far as it has been asked. */
  get identity(): Identity | undefined {
    return this.#identity?.known
  }

  /** Asks the server what it says of itself, unless it has been asked lately. Never rejects. */
  async introduce(): Promise<void> {
    const { known, since } = this.#identity ?? { since: 0 }
    if (Date.now() - since < (known ? INTRODUCED : INTRODUCED / 10)) return
    this.#identity = { known, since: Date.now() }
    try {
      const { server, capabilities } = await inspect(this.server, undefined, false)
      const { name, version } = server ?? {}
      if (name && version) this.#identity = { known: { identity: { name, version }, capabilities }, since: Date.now() }
    } catch (error) {
      this.#log.debug({ err: error }, 'the server says nothing of itself, and is not published')
    }
  }

  /** Whether the server may be recommended to others. */
  get isTrusted(): boolean {
    return !this.#quarantine || this.#quarantine.open
  }

  /** Makes what is served over HTTP known to a Fastify instance. */
  async register(app: FastifyInstance, { paths, address }: Reach): Promise<void> {
    const { compat, timeouts, auth } = this.#settings
    const { relayed } = this.server
    const passthrough = auth?.passthrough ?? false
    const common = {
      upstream: this.#upstream,
      log: this.#log,
      settings: this.#sessionSettings,
      replicas: this.#replicas,
    }
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
    this.#deafen?.()
    this.#cache?.close()
    this.#relay?.drain()
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
export function planOf(name: string, settings: Settings, lead?: Lead): string {
  const { compat, limits, timeouts, auth, stateKeys, redis } = settings
  const { drainDelay: _delay, drainTimeout: _timeout, ...times } = timeouts
  const { path: _path, ...own } = settings.mcpServers[name] as ServerSettings
  return JSON.stringify([
    name,
    own,
    compat,
    limits,
    times,
    auth?.passthrough ?? false,
    stateKeys,
    redis,
    scopesByPrincipal(settings),
    lead?.plan,
  ])
}

/** Keeps tools from those who do not have the scopes for them, where any tool asks for some. */
function scopesOf(own: ServerSettings, settings: Settings, lead: Lead | undefined): Policy | undefined {
  const rules = Object.entries(own.scopes).map(([glob, wanted]) => ({ named: globs([glob]), wanted }))
  if (rules.length === 0 && !lead) return undefined
  const known = new Map(Object.entries(scopesByPrincipal(settings)).map(([name, list]) => [name, new Set(list)]))
  return scopes({
    required: (tool) => [
      // Of a name that no glob is compared with, nobody can tell that it takes less than any other.
      ...rules.flatMap(({ named, wanted }) => (named(tool) || tool.length > MAX_NAME ? wanted : [])),
      ...(lead?.required(tool) ?? []),
    ],
    scopesOf: (principal) => known.get(principal),
  })
}

function scopesByPrincipal({ auth }: Settings): Record<string, readonly string[]> {
  const entries = Object.entries(auth?.tokens ?? {})
  return Object.fromEntries(entries.map(([name, token]) => [name, typeof token === 'string' ? [] : token.scopes]))
}

/** Hears what a server that was found says of itself, and that it cannot be reached. */
function watched({ heard, missed }: Lead): Policy {
  return (next) =>
    async function* watchedCall(call) {
      try {
        for await (const reply of next(call)) {
          if (reply.kind !== 'notification' && reply.server !== undefined) heard(reply.server)
          yield reply
        }
      } catch (error) {
        if (error instanceof Fault && error.fault === 'upstreamUnavailable') missed()
        throw error
      }
    }
}

/** The time limits of a server: its own, and those of all where it has none. */
function timesOf(settings: Settings, own: ServerSettings): Settings['timeouts'] {
  const given = Object.entries(own.timeouts).filter(([, time]) => time !== undefined)
  return { ...settings.timeouts, ...Object.fromEntries(given) }
}

/** What keeps results of a server, if they are to be kept. */
function cacheOf(
  name: string,
  own: ServerSettings,
  { limits }: Settings,
  results: Results,
  observe: Observe | undefined,
): Cache | undefined {
  if (own.cache === 'off') return undefined
  // What listens to a legacy server holds a session that a caller could have; and one that is a single call's hears nothing.
  const sessions = isStdio(own) ? limits.processes : limits.sessions
  const subscriptions = own.session === 'per-request' ? 0 : Math.min(MAX_LISTENED, Math.floor(sessions / 2))
  const shared = own.cacheFor === 'public'
  return new Cache({ server: name, mode: own.cache, shared, results, subscriptions, observe })
}

/** Metadata are where clients look for them, on both sides. */
function metadataPaths({ pathname }: URL, path: string): Map<string, string> {
  return new Map([[METADATA + path, METADATA + pathname.replace(/\/$/, '')]])
}

/** What the server of an entry is made of. */
export function serverOptions(
  name: string,
  settings: ServerSettings,
  all: Settings,
  { log, version, env, metrics }: Surroundings,
  replicas?: Replicas,
  connect?: Connect,
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
    observe: metrics?.observe,
    replicas,
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
      onChild: (what) => metrics?.observe({ kind: 'child', server: name, what }),
    })
    return { ...common, transport, timeouts: times('stdio'), maxSessions: limits.processes }
  }
  const headers = Object.fromEntries(Object.entries(settings.headers).map(([key, value]) => [key.toLowerCase(), value]))
  const bounds = {
    bodyLimit: limits.answerBytes,
    streamLimit: limits.streamBytes,
    connections: limits.callsPerServer * 2 + limits.subscriptions,
  }
  const reach = { url: new URL(settings.url), headers, connect, ...bounds }
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
