/** A mount: one server as the bridge serves it, with its policies, the sessions of its clients, and its relay. */

import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isStdio, shareOf, ssePaths } from '../config/settings.js'
import type { Logger } from '../downstream/call-log.js'
import { endpoint } from '../downstream/http/endpoint.js'
import type { EventStore } from '../downstream/http/event-store.js'
import { extraPaths, METADATA } from '../downstream/http/extra-paths.js'
import type { Refusals } from '../downstream/http/refusals.js'
import { Relay } from '../downstream/http/relay.js'
import type { HttpSession } from '../downstream/http/session.js'
import { Sessions } from '../downstream/http/sessions.js'
import { type SseSession, sse } from '../downstream/http/sse.js'
import type { SessionSettings } from '../downstream/legacy/session.js'
import { type PipeOptions, servePipe } from '../downstream/stdio.js'
import type { Accounts } from '../oauth/client/accounts.js'
import type { Results } from '../policy/cache/results.js'
import { type Cache, isOfCache } from '../policy/cache.js'
import { compose } from '../policy/compose.js'
import { Drain } from '../policy/drain.js'
import { Gate, limits } from '../policy/limits.js'
import { Quarantine } from '../policy/quarantine.js'
import { SignIn } from '../policy/sign-in.js'
import { timeout } from '../policy/timeout.js'
import { unavailable } from '../policy/unavailable.js'
import type { Gauge } from '../ports/events.js'
import type { Replicas } from '../ports/replicas.js'
import { Bound } from '../protocol/bound.js'
import type { Upstream } from '../protocol/call.js'
import type { Memory } from '../protocol/memory.js'
import { Server } from '../upstream/server.js'
import { accountsOf } from './accounts.js'
import type { BridgeContext } from './context.js'
import { inspect } from './inspect.js'
import { type MountSettings, planOf } from './mount-settings.js'
import { cacheOf, scopesOf, watched } from './pipeline.js'
import { serverOptions, timesOf } from './server-options.js'

/** What all mounts share. */
export interface Shared {
  calls: Bound
  subscriptions: Bound
  /** The memory ledger. */
  memory: Memory
  /** Events kept for clients that resume a stream. */
  events: EventStore
  /** Cached results. */
  results: Results
  /** Counts and logs requests that are refused before they become calls. */
  refusals: Refusals
  /** The other replicas, if there are several. */
  replicas?: Replicas | undefined
}

/** How a server describes itself. */
export interface Identity {
  identity: { name: string; version: string }
  capabilities: Record<string, unknown>
}

/** The health of a server, as far as it is known. */
export interface Health {
  state: 'ready' | 'unknown' | 'down'
  era?: string | undefined
  revision?: string | undefined
  /** The evidence for the server's era, or why the server is down. */
  why?: string | undefined
}

/** Where a server is served. */
export interface Reach {
  paths: readonly string[]
  /** The address at which a client has reached the bridge. */
  address(request: FastifyRequest): string
  /** The path of `publicUrl`; `/` without one. */
  publicPath: string
}

/** Milliseconds for which a server's description of itself is used. */
const INTRODUCED = 300_000

/** A served server. */
export class Mount {
  readonly name: string
  readonly server: Server
  /** The accounts at the server, if the bridge signs in to it. */
  readonly accounts: Accounts | undefined
  /** A text of everything that the mount depends on. If it is unchanged by a reload, the mount stays. */
  readonly plan: string
  readonly #settings: MountSettings
  readonly #log: Logger
  readonly #upstream: Upstream
  readonly #gate: Gate
  readonly #calls: Bound
  readonly #drain = new Drain()
  readonly #cache: Cache | undefined
  /** Stops listening to the changes that other replicas report. */
  readonly #unsubscribe: (() => void) | undefined
  /** Sessions of legacy clients, by transport. */
  readonly #sessions: { http: Sessions<HttpSession>; sse: Sessions<SseSession> }
  readonly #sessionSettings: SessionSettings
  readonly #relay: Relay | undefined
  readonly #replicas: Replicas | undefined
  readonly #memory: Memory
  readonly #events: EventStore
  readonly #refusals: Refusals
  readonly #quarantine: Quarantine | undefined
  /** Answers for a discovered server while it is unavailable. */
  readonly #unavailable: ReturnType<typeof unavailable> | undefined
  #identity: { known?: Identity | undefined; since: number } | undefined

  constructor(name: string, settings: MountSettings, shared: Shared, context: BridgeContext) {
    const own = settings.server
    this.name = name
    const trust = context.lead?.(name)
    this.plan = planOf(name, settings, trust?.plan)
    this.#settings = settings
    const { log, metrics, tracer } = context
    const observe = metrics?.observe
    this.#log = Object.assign(log.child({ server: name }), { telemetry: { server: name, observe, tracer } })
    this.#replicas = shared.replicas
    this.#refusals = shared.refusals
    this.#memory = shared.memory
    this.#events = shared.events
    // The bridge never signs in to a server that nobody has configured.
    this.accounts = trust
      ? undefined
      : accountsOf(name, own, settings, context, () => this.server.verdict?.era === 'modern')
    const { accounts } = this
    const { replicas, memory } = shared
    const reach = { connect: trust?.connect, accounts }
    this.server = new Server(serverOptions(name, own, settings, context, memory, replicas, reach))
    const signIn = accounts && new SignIn({ name, loginName: accounts.loginName, accounts, version: context.version })
    const { callsPerServer, clientSessions } = settings.limits
    const { clientIdle, clientGone, keepAlive } = settings.timeouts
    const share = shareOf(settings)
    const keeping = {
      max: clientSessions,
      share,
      idle: clientIdle,
      gone: clientGone,
      keepAlive,
      replicas: shared.replicas,
    }
    this.#sessions = { http: new Sessions(keeping), sse: new Sessions(keeping) }
    const { strictRevisions, emulateTasks } = settings.compat
    this.#sessionSettings = {
      strict: own.strictRevisions ?? strictRevisions,
      emulateTasks,
      answerWithin: timesOf(settings, own).answer,
      serverInfo: JSON.stringify({ name: 'mcp-bridge', version: context.version }),
      begin: (abort) => this.#drain.begin(abort),
    }
    this.#calls = new Bound({ max: callsPerServer, share })
    this.#gate = new Gate(
      [
        { bound: shared.calls, where: 'with the bridge' },
        { bound: this.#calls, where: 'with the server' },
      ],
      [{ bound: shared.subscriptions, where: 'with the bridge' }],
    )
    const { call, callTotal } = timesOf(settings, own)
    const cache = cacheOf(name, own, settings, shared.results, observe)
    this.#cache = cache
    this.#unsubscribe =
      cache && shared.replicas?.hear(name, { changed: (notice) => cache.drop(notice), missed: () => cache.missed() })
    const scoped = scopesOf(own, settings, trust)
    const quarantine = trust && new Quarantine({ name, trustStatus: trust.trustStatus, readOnly: trust.readOnly })
    this.#quarantine = quarantine
    // Relay and tunnels bypass the policies, so they are not used if every call must be checked.
    const checksCalls = trust !== undefined || scoped !== undefined
    this.#unavailable = trust && unavailable({ name, state: trust.state, memory })
    this.#upstream = {
      handle: compose(
        this.server.handle,
        limits(this.#gate),
        this.#drain.policy,
        ...(signIn ? [signIn.policy] : []),
        timeout({ idle: call, total: callTotal }),
        ...(scoped ? [scoped] : []),
        ...(trust && quarantine && this.#unavailable
          ? [this.#unavailable.policy, quarantine.policy, watched(trust)]
          : []),
        ...(this.#cache ? [this.#cache.policy] : []),
      ),
      notify: (notice) => {
        if (!quarantine || quarantine.open) this.server.notify(notice)
      },
      legacyRoute: async (sender) => {
        if (checksCalls) return 'translate'
        return signIn
          ? signIn.legacyRoute(sender, () => this.server.legacyRoute(sender))
          : this.server.legacyRoute(sender)
      },
      connected: (principal) => this.server.connected(principal),
    }
    const relayed = checksCalls ? undefined : this.server.relayed
    const keeps = this.#cache && isOfCache
    const accountOf = signIn && ((principal: string) => signIn.for(principal))
    const known = shared.replicas && { server: name, records: shared.replicas.records, idle: clientIdle }
    const sessions = { max: clientSessions, share, shared: known }
    const asked = { accountOf, isOurs: signIn?.isOurs, keeps }
    this.#relay = relayed && new Relay({ relayed, ...asked, log: this.#log, gate: this.#gate, sessions, memory })
  }

  /** Number of calls in progress, and of parked calls. */
  get busy(): { calls: number; parked: number } {
    return { calls: this.#calls.used, parked: this.server.parked }
  }

  /** The usage of this server's own bounds. */
  get gauges(): Gauge[] {
    const server = this.name
    const { clientSessions: limit } = this.#settings.limits
    return [
      ...this.server.gauges,
      { bound: 'calls_per_server', server, used: this.#calls.used, limit: this.#calls.max },
      { bound: 'client_sessions', server, used: this.#sessions.http.size, limit },
      { bound: 'client_sessions_sse', server, used: this.#sessions.sse.size, limit },
      { bound: 'relayed_sessions', server, used: this.#relay?.sessions.size ?? 0, limit },
    ]
  }

  /** What `/readyz` reports about the server. */
  get health(): Health {
    const { verdict, down, met } = this.server
    if (down) return { state: 'down', why: down.message }
    if (!met) return { state: 'unknown' }
    return { state: 'ready', era: verdict?.era, revision: verdict?.revision, why: verdict?.why }
  }

  /** How the server describes itself; undefined before `introduce` has succeeded. */
  get identity(): Identity | undefined {
    return this.#identity?.known
  }

  /** Asks the server to describe itself, unless it was asked recently. Never rejects. */
  async introduce(): Promise<void> {
    const { known, since } = this.#identity ?? { since: Number.NEGATIVE_INFINITY }
    if (performance.now() - since < (known ? INTRODUCED : INTRODUCED / 10)) return
    this.#identity = { known, since: performance.now() }
    try {
      const { server, capabilities } = await inspect(this.server, { tools: 'left out' })
      const { name, version } = server ?? {}
      if (name && version)
        this.#identity = { known: { identity: { name, version }, capabilities }, since: performance.now() }
    } catch (error) {
      this.#log.debug({ event: 'server_not_published', err: error }, 'server not published: it did not describe itself')
    }
  }

  /** Whether the server may be published: it is configured or trusted. */
  get isTrusted(): boolean {
    return !this.#quarantine || this.#quarantine.open
  }

  /** Registers the paths of this server at a Fastify instance. */
  async register(app: FastifyInstance, { paths, address, publicPath }: Reach): Promise<void> {
    const { compat, timeouts, auth } = this.#settings
    const { relayed } = this.server
    const passthrough = auth?.passthrough ?? false
    const common = {
      upstream: this.#upstream,
      log: this.#log,
      settings: this.#sessionSettings,
      replicas: this.#replicas,
      memory: this.#memory,
      refusals: this.#refusals,
    }
    for (const path of paths) {
      const metadata = (request: FastifyRequest) => new URL(METADATA + path, address(request)).href
      const refusing = { draftErrorCodes: compat.draftErrorCodes, ...(passthrough && { passthrough: { metadata } }) }
      if (relayed && passthrough) {
        const resource = (request: FastifyRequest) => new URL(path, address(request)).href
        await app.register(extraPaths, { relayed, paths: metadataPaths(relayed.url, path), resource, passthrough })
      }
      await app.register(endpoint, {
        ...common,
        path,
        sessions: this.#sessions.http,
        events: this.#events,
        relay: this.#relay,
        refusing,
        compat,
        keepAlive: timeouts.keepAlive,
        commitAfter: timeouts.commitAfter,
      })
      await app.register(sse, {
        ...common,
        paths: ssePaths(path),
        publicPrefix: prefixOf(publicPath, path),
        sessions: this.#sessions.sse,
      })
    }
    const further = new Map(this.#further.map((path) => [path, path]))
    const [first = ''] = paths
    const resource = (request: FastifyRequest) => new URL(first, address(request)).href
    if (relayed && further.size > 0) await app.register(extraPaths, { relayed, paths: further, resource, passthrough })
  }

  /** Paths of this server without authentication: clients read there how to authenticate. */
  open({ paths }: Pick<Reach, 'paths'>): readonly string[] {
    const { relayed } = this.server
    if (!relayed) return []
    const metadata = this.#settings.auth?.passthrough
      ? paths.flatMap((path) => [...metadataPaths(relayed.url, path).keys()])
      : []
    return [...metadata, ...this.#further]
  }

  /**
   * Serves stdio until the input ends or the output is closed. After the input has ended, requests in flight have
   * `patience` milliseconds.
   */
  async pipe(streams: Pick<PipeOptions, 'input' | 'output' | 'patience'>): Promise<void> {
    // When the input ends, the subscriptions of this pipe end too, but not those of other pipes of this server.
    const endings = new Drain()
    streams.input.once('end', () => endings.end())
    await servePipe({
      ...streams,
      upstream: { ...this.#upstream, handle: compose(this.#upstream.handle, endings.policy) },
      compat: this.#settings.compat,
      log: this.#log,
      lineLimit: this.#settings.limits.lineBytes,
      memory: this.#memory,
      settings: this.#sessionSettings,
    })
  }

  /** Lets calls in progress end. Admits nothing new except what continues them. */
  drain(): void {
    this.#gate.close()
    this.#drain.end()
    this.#unsubscribe?.()
    this.#cache?.close()
    this.#relay?.drain()
    this.#sessions.http.drain()
    this.#sessions.sse.drain()
  }

  /** Ends the calls in progress with an error. */
  cut(): void {
    this.#drain.cut()
    this.#relay?.cut()
  }

  /** Ends everything, the server last. With `hurry`, at once. */
  async close(hurry: boolean): Promise<void> {
    this.drain()
    this.cut()
    this.#sessions.http.close()
    this.#sessions.sse.close()
    this.accounts?.close()
    this.#unavailable?.close()
    await this.server.close(hurry)
  }

  get #further(): readonly string[] {
    const { server } = this.#settings
    return isStdio(server) ? [] : server.paths
  }
}

/** The prefix that clients put before a path. The public URL is the address of the bridge, or of this endpoint. */
function prefixOf(publicPath: string, path: string): string {
  return publicPath.endsWith(path) ? publicPath.slice(0, -path.length) : publicPath.replace(/\/$/, '')
}

/** The well-known path of an endpoint's metadata at the bridge, and of the server's metadata at the server. */
function metadataPaths({ pathname }: URL, path: string): Map<string, string> {
  return new Map([[METADATA + path, METADATA + pathname.replace(/\/$/, '')]])
}
