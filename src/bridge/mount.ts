/** A mount: one server as the bridge serves it, with its policies. Its HTTP side is made when it is served over HTTP. */

import { shareOf } from '../config/settings.js'
import type { RelayOptions } from '../downstream/http/relay.js'
import type { SessionSettings } from '../downstream/legacy/session.js'
import type { Logger } from '../downstream/logger.js'
import { type PipeOptions, servePipe } from '../downstream/stdio.js'
import type { Accounts } from '../oauth/client/accounts.js'
import { type Cache, isOfCache } from '../policy/cache.js'
import { compose } from '../policy/compose.js'
import { Drain } from '../policy/drain.js'
import { Gate, limits } from '../policy/limits.js'
import { Quarantine } from '../policy/quarantine.js'
import { SignIn } from '../policy/sign-in.js'
import { timeout } from '../policy/timeout.js'
import { unavailable } from '../policy/unavailable.js'
import type { Gauge } from '../ports/events.js'
import { Bound } from '../protocol/bound.js'
import type { Upstream } from '../protocol/call.js'
import { Server } from '../upstream/server.js'
import { accountsOf } from './accounts.js'
import { type BridgeContext, observerOf } from './context.js'
import type { HttpMount } from './http-mount.js'
import { inspect } from './inspect.js'
import { type MountSettings, planOf } from './mount-settings.js'
import { cacheOf, scopesOf, watched } from './pipeline.js'
import { serverOptions, timesOf } from './server-options.js'
import type { Shared } from './shared.js'

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
  readonly #sessionSettings: SessionSettings
  /** How the relay is made; undefined if nothing may be relayed. */
  readonly #relay: Omit<RelayOptions, 'sessions'> | undefined
  readonly #shared: Shared
  #http: Promise<HttpMount> | undefined
  /** The HTTP side, once it is made. */
  #served: HttpMount | undefined
  readonly #quarantine: Quarantine | undefined
  /** Answers for a discovered server while it is unavailable. */
  readonly #unavailable: ReturnType<typeof unavailable> | undefined
  /** The circuit breaker of a discovered server. */
  readonly #breaker: (() => { open: boolean; until: number }) | undefined
  #identity: { known?: Identity | undefined; since: number } | undefined

  constructor(name: string, settings: MountSettings, shared: Shared, context: BridgeContext) {
    const own = settings.server
    this.name = name
    const trust = context.lead?.(name)
    this.plan = planOf(name, settings, trust?.plan)
    this.#settings = settings
    const { log, tracer, watch } = context
    const observe = observerOf(context)
    // The inspector is told of calls otherwise.
    const telemetry = { server: name, observe, observeCall: context.metrics?.observe, tracer, watch }
    this.#log = Object.assign(log.child({ server: name }), { telemetry, calls: shared.loggedCalls })
    this.#shared = shared
    // The bridge never signs in to a server that nobody has configured.
    this.accounts = trust
      ? undefined
      : accountsOf(name, own, settings, context, () => this.server.verdict?.era === 'modern')
    const { accounts } = this
    const { replicas, memory } = shared
    const reach = { connect: trust?.connect, accounts }
    this.server = new Server(serverOptions(name, own, settings, context, memory, replicas, reach))
    const signIn = accounts && new SignIn({ name, loginName: accounts.loginName, accounts, version: context.version })
    const { callsPerServer } = settings.limits
    const share = shareOf(settings)
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
    this.#breaker = trust?.state
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
    const asked = { accountOf, isOurs: signIn?.isOurs, keeps }
    this.#relay = relayed && { relayed, ...asked, log: this.#log, gate: this.#gate, memory }
  }

  /** Number of calls in progress, and of parked calls. */
  get busy(): { calls: number; parked: number } {
    return { calls: this.#calls.used, parked: this.server.parked }
  }

  /** The usage of this server's own bounds. */
  get gauges(): Gauge[] {
    const { used, max: limit } = this.#calls
    return [
      ...this.server.gauges,
      { bound: 'calls_per_server', server: this.name, used, limit },
      ...(this.#served?.gauges ?? []),
    ]
  }

  /** What `/readyz` reports about the server. */
  get health(): Health {
    const { verdict, down, met } = this.server
    if (down) return { state: 'down', why: down.message }
    if (!met) return { state: 'unknown' }
    return { state: 'ready', era: verdict?.era, revision: verdict?.revision, why: verdict?.why }
  }

  /** The time in which the server is not called because it has failed; undefined if it is called. */
  get pause(): { failures?: number; ms: number } | undefined {
    const { open, until } = this.#breaker?.() ?? { open: false, until: 0 }
    return open ? { ms: Math.max(0, until - performance.now()) } : this.server.pause
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

  /** The HTTP side. It is loaded and made when it is asked for the first time. */
  http(): Promise<HttpMount> {
    this.#http ??= this.#makeHttp()
    return this.#http
  }

  async #makeHttp(): Promise<HttpMount> {
    const { HttpMount } = await import('./http-mount.js')
    this.#served = new HttpMount({
      name: this.name,
      relayed: this.server.relayed,
      upstream: this.#upstream,
      log: this.#log,
      settings: this.#settings,
      sessionSettings: this.#sessionSettings,
      relay: this.#relay,
      shared: this.#shared,
    })
    return this.#served
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
      memory: this.#shared.memory,
      settings: this.#sessionSettings,
    })
  }

  /** Lets calls in progress end. Admits nothing new except what continues them. */
  drain(): void {
    this.#gate.close()
    this.#drain.end()
    this.#unsubscribe?.()
    this.#cache?.close()
    this.#served?.drain()
  }

  /** Ends the calls in progress with an error. */
  cut(): void {
    this.#drain.cut()
    this.#served?.cut()
  }

  /** Ends everything, the server last. With `hurry`, at once. */
  async close(hurry: boolean): Promise<void> {
    this.drain()
    this.cut()
    this.#served?.close()
    this.accounts?.close()
    this.#unavailable?.close()
    await this.server.close(hurry)
  }
}
