/** The bridge: creates the mounts and the listeners, and starts, reloads and shuts down. */

import { getHeapStatistics } from 'node:v8'
import type { FastifyInstance } from 'fastify'
import { INSPECT_ADDRESS } from '../config/schema/inspect.js'
import {
  ConfigError,
  isLoopback,
  type Listen,
  parseListen,
  type Settings,
  servedPaths,
  shareOf,
} from '../config/settings.js'
import { homeFolder } from '../discovery/home.js'
import { EventStore } from '../downstream/http/event-store.js'
import { Refusals } from '../downstream/http/refusals.js'
import type { PipeOptions } from '../downstream/stdio.js'
import { INSPECT } from '../inspect/address.js'
import { socketFolder } from '../inspect/socket.js'
import type { ServerNow } from '../inspect/views.js'
import type { Log } from '../logging.js'
import type { PemFiles } from '../net/pem-files.js'
import { CountedWindows } from '../plugins/counted-windows.js'
import type { HealthOptions } from '../plugins/health.js'
import type { WellKnownOptions } from '../plugins/well-known.js'
import { keepResults } from '../policy/cache/results.js'
import type { Gauge } from '../ports/events.js'
import { Bound } from '../protocol/bound.js'
import { Fault } from '../protocol/fault.js'
import { Memory } from '../protocol/memory.js'
import type { RedisReplicas } from '../replicas/replicas.js'
import { keyOf } from '../seal.js'
import { pause } from '../time.js'
import type { Verdict } from '../upstream/era/verdict.js'
import type { Server } from '../upstream/server.js'
import { filesAt } from './certificates.js'
import { type BridgeContext, observerOf } from './context.js'
import type { Listener } from './listener.js'
import { Mount } from './mount.js'
import { mountSettings, planOf } from './mount-settings.js'
import type { Shared } from './shared.js'

/**
 * Called with the result of a server's warm-up: its verdict, or a Fault; undefined if that needs the credential of a
 * caller. It is awaited.
 */
export type WarmedUp = (mount: Mount, verdict: Verdict | Fault | undefined) => unknown

/** The result of a reload: names of servers, by what happened to them. */
export interface Changes {
  added: string[]
  changed: string[]
  removed: string[]
  /** Changed options that need a restart. Their previous values stay in use. */
  fixed: string[]
}

/** Milliseconds between two checks during shutdown, and for sending the last answers. */
const DRAIN_CHECK = 20
const LAST_WORDS = 500
/** Most connections to the `admin` address. */
const ADMIN_CONNECTIONS = 100
/** Most servers that are warmed up at the same time. */
const AT_ONCE = 4
/** Options that need a restart. */
export const NEED_RESTART = [
  'listen',
  'tls',
  'socketMode',
  'admin',
  'redis',
  'metrics',
  'log',
  'inspect',
  'discover',
  'registry',
  'discoverAllow',
  'discoverLoopback',
  'readOnlyTools',
  'trustStore',
  'oauth',
] as const

/** One bridge in one process. */
export class Bridge {
  #settings: Settings
  readonly #context: BridgeContext
  readonly #log: Log
  readonly #shared: Shared
  readonly #refusals: Refusals
  readonly #replicas: RedisReplicas | undefined
  /** The counts for limits of requests. A reload does not begin them anew. */
  readonly #windows: CountedWindows
  #mounts: ReadonlyMap<string, Mount>
  /** Retired mounts, whose calls have not ended yet. */
  readonly #retiring = new Set<Mount>()
  #listen: (Listen & { kind: 'http' }) | undefined
  #listener: Listener | undefined
  #front: FastifyInstance | undefined
  #admin: Listener | undefined
  #adminUrl: string | undefined
  #inspectUrl: string | undefined
  /** Makes reloads run one after another. */
  #reloading: Promise<unknown> = Promise.resolve()
  /** The HTTP requests of clients. */
  readonly #requests = { open: 0, draining: false }
  /** Whether clients can still answer questions of parked calls. */
  #answerable = true
  #stopping = false
  #hurried = false

  constructor(settings: Settings, context: BridgeContext) {
    this.#settings = settings
    this.#context = context
    this.#log = context.log
    const { calls, subscriptions } = settings.limits
    const share = shareOf(settings)
    this.#replicas = context.replicas
    const { replicas } = context
    this.#windows = new CountedWindows(replicas && ((name, ms) => replicas.records.count('rate', name, ms)))
    const memory = new Memory({ max: memoryOf(settings), share })
    this.#refusals = new Refusals(context.log, observerOf(context))
    this.#shared = {
      replicas: this.#replicas,
      calls: new Bound({ max: calls, share }),
      subscriptions: new Bound({ max: subscriptions, share }),
      memory,
      results: keepResults(memory),
      events: new EventStore(memory),
      refusals: this.#refusals,
      loggedCalls: settings.log.calls,
    }
    const names = Object.keys(settings.mcpServers)
    this.#mounts = new Map(
      names.map((name) => [name, new Mount(name, mountSettings(name, settings), this.#shared, context)]),
    )
  }

  /** The server of the first mount, for commands that have only one. */
  get server(): Server {
    const [mount] = this.#mounts.values()
    return (mount as Mount).server
  }

  /** The address of the inspector, without its token; undefined without an inspector on HTTP. */
  get inspectUrl(): string | undefined {
    return this.#inspectUrl
  }

  /** The `admin` address, if there is one. */
  get adminUrl(): string | undefined {
    return this.#adminUrl
  }

  /** The mounts, by name of their server. */
  get mounts(): ReadonlyMap<string, Mount> {
    return this.#mounts
  }

  /** Serves HTTP. Resolves to the URLs of the endpoints, by name of their server. */
  async listen(listen: Listen & { kind: 'http' } = httpListen(this.#settings)): Promise<ReadonlyMap<string, string>> {
    const { limits, admin } = this.#settings
    this.#listen = listen
    this.#front = await this.#build()
    this.#listener = await this.#listenerOf(this.#front, limits.connections)
    this.#replicas?.serve((request, response) => this.#listener?.front.routing(request, response))
    await this.#replicas?.connect()
    const origin = await this.#listener.listen(listen)
    if (admin !== undefined) await this.#serveAdmin(httpListen({ ...this.#settings, listen: admin }))
    else if (this.#context.inspector) await this.#serveInspector()
    return new Map([...servedPaths(this.#settings, listen)].map(([name, [first]]) => [name, origin + first]))
  }

  /** Serves the only server on stdio, until the input ends or the output is closed. */
  async pipe(streams: Pick<PipeOptions, 'input' | 'output'>): Promise<void> {
    const [mount] = this.#mounts.values()
    const { inspector, env } = this.#context
    const folder = inspector && socketFolder(env, homeFolder())
    if (folder !== undefined) await inspector?.serveSocket(folder, this.#now)
    await (mount as Mount).pipe({ ...streams, patience: this.#settings.timeouts.drainTimeout })
    this.#answerable = false
  }

  /** Connects to the servers before the first call. Calls `report` with the result of each server. */
  warmUp(report: WarmedUp): Promise<void> {
    return this.#warmUp([...this.#mounts.values()], report)
  }

  async #warmUp(waiting: Mount[], report: WarmedUp): Promise<void> {
    const next = async (): Promise<void> => {
      const mount = waiting.shift()
      if (!mount) return
      const verdict = await mount.server.warmUp().catch((error: unknown) => Fault.from(error))
      if (!this.#stopping) await report(mount, verdict)
      return next()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
  }

  /**
   * Applies another configuration. Unchanged servers keep their sessions and calls. Changed and removed servers get
   * `drainTimeout` to end their calls in progress. New and changed ones are warmed up at once; `report` is called with
   * each result. Rejects if the new configuration cannot be applied; then the previous one stays in use.
   */
  reload(settings: Settings, report: WarmedUp = () => {}): Promise<Changes> {
    const reloaded = this.#reloading.then(() => this.#reload(settings, report))
    this.#reloading = reloaded.catch(() => {})
    return reloaded
  }

  /**
   * Shuts down: for `drainDelay` only readiness fails; then nothing new is admitted, and calls in progress have
   * `drainTimeout` to end; then everything is ended, the servers' processes last. With `hurry`, without waiting.
   */
  async close(hurry = false): Promise<void> {
    this.#stopping = true
    this.#hurried ||= hurry
    const { drainDelay, drainTimeout } = this.#settings.timeouts
    if (this.#listener) await this.#until(performance.now() + drainDelay, () => false)
    this.#requests.draining = true
    for (const mount of this.#all) mount.drain()
    this.#logDraining()
    await this.#until(performance.now() + drainTimeout, () => this.#idle)
    for (const mount of this.#all) mount.cut()
    for (const until = performance.now() + LAST_WORDS; this.#requests.open > 0 && performance.now() < until; )
      await pause(DRAIN_CHECK)
    this.#listener?.close()
    this.#admin?.close()
    this.#refusals.close()
    await this.#context.inspector?.close()
    await this.#replicas?.close()
    await Promise.all([this.#front?.close(), ...this.#all.map((mount) => mount.close(this.#hurried))])
  }

  get #all(): readonly Mount[] {
    return [...this.#mounts.values(), ...this.#retiring]
  }

  get #idle(): boolean {
    return (
      this.#requests.open === 0 &&
      this.#all.every(({ busy }) => busy.calls === 0 && !(busy.parked > 0 && this.#answerable))
    )
  }

  /** The readiness: not while shutting down, and not while no server is reachable. */
  #state(): ReturnType<HealthOptions['state']> {
    const healths = [...this.#mounts].map(([name, mount]) => [name, { ...mount.health, ...mount.busy }] as const)
    const servers = Object.fromEntries(healths)
    if (this.#stopping) return { ready: false, status: 'draining', servers }
    const reachable = healths.some(([, { state }]) => state === 'ready')
    const unknown = healths.some(([, { state }]) => state === 'unknown')
    // A request for the readiness makes the bridge try the servers again.
    if (!reachable) for (const mount of this.#mounts.values()) mount.server.warmUp().catch(() => {})
    return {
      ready: reachable,
      status: reachable ? 'ready' : unknown ? 'starting' : 'no server can be reached',
      servers,
    }
  }

  get #metrics(): HealthOptions['metrics'] {
    const { metrics } = this.#context
    return metrics && { contentType: metrics.contentType, text: () => metrics.text(this.#gauges()) }
  }

  /** The usage of all bounds that can be read cheaply. */
  #gauges(): Gauge[] {
    const { calls, subscriptions, memory, results } = this.#shared
    return [
      { bound: 'memory', used: memory.used, limit: memory.max },
      { bound: 'calls', used: calls.used, limit: calls.max },
      { bound: 'subscriptions', used: subscriptions.used, limit: subscriptions.max },
      { bound: 'connections', used: this.#listener?.connections ?? 0, limit: this.#settings.limits.connections },
      { bound: 'cached_results', used: results.size, limit: results.max },
      { bound: 'cached_bytes', used: results.calculatedSize, limit: results.maxSize },
      ...[...this.#mounts.values()].flatMap(({ gauges }) => gauges),
    ]
  }

  async #build(settings = this.#settings, mounts = this.#mounts): Promise<FastifyInstance> {
    const listen = this.#listen as Listen & { kind: 'http' }
    // Metrics reveal the servers and their use, so they are served only on the loopback or with `auth.tokens`.
    const known = isLoopback(listen.host) || settings.auth?.tokens !== undefined
    const metrics = known ? this.#metrics : undefined
    const options = { state: () => this.#state(), detailed: false, metrics }
    const { front } = await import('./http-app.js')
    const served = [...mounts].map(async ([name, mount]) => [name, await mount.http()] as const)
    return front({
      settings,
      listen,
      mounts: new Map(await Promise.all(served)),
      refusals: this.#refusals,
      health: settings.admin === undefined ? options : undefined,
      published: await publisher(settings, listen, mounts),
      requests: this.#requests,
      windows: this.#windows,
      isCarried: (connection) => this.#replicas?.isCarried(connection) ?? false,
    })
  }

  async #serveAdmin(listen: Listen & { kind: 'http' }): Promise<void> {
    const health = { state: () => this.#state(), detailed: true, metrics: this.#metrics }
    const { adminFront } = await import('./http-app.js')
    const admin = await adminFront({
      settings: this.#settings,
      listen,
      refusals: this.#refusals,
      health,
      ...this.#inspect,
    })
    this.#admin = await this.#listenerOf(admin, ADMIN_CONNECTIONS)
    this.#adminUrl = await this.#admin.listen(listen)
    if (this.#context.inspector) this.#inspectUrl = this.#adminUrl + INSPECT
  }

  /** Serves the inspector at its own address; if another process has its port, at any other port. */
  async #serveInspector(): Promise<void> {
    const listen = httpListen({ listen: INSPECT_ADDRESS })
    const { adminFront } = await import('./http-app.js')
    const admin = await adminFront({ settings: this.#settings, listen, refusals: this.#refusals, ...this.#inspect })
    const listener = await this.#listenerOf(admin, ADMIN_CONNECTIONS)
    this.#admin = listener
    const url = await listener.listen(listen).catch(() => listener.listen({ ...listen, port: 0 }))
    this.#inspectUrl = url + INSPECT
  }

  get #inspect(): { inspect?: (app: FastifyInstance) => Promise<void> } {
    const { inspector } = this.#context
    return inspector ? { inspect: (app) => inspector.register(app, this.#now) } : {}
  }

  /** What the inspector shows of the servers now. */
  readonly #now = (): ServerNow[] =>
    [...this.#mounts].map(([name, mount]) => ({ name, ...mount.health, ...mount.busy }))

  /** The certificate of the bridge, if it has one. */
  get #pem(): PemFiles | undefined {
    const { tls } = this.#settings
    return tls && filesAt('tls', tls, this.#log)
  }

  async #listenerOf(front: FastifyInstance, maxConnections: number): Promise<Listener> {
    const { Listener } = await import('./listener.js')
    return new Listener(front, {
      maxConnections,
      write: this.#settings.timeouts.write,
      pem: this.#pem,
      socketMode: Number.parseInt(this.#settings.socketMode, 8),
      refused: (fault, request) => this.#refusals.note(fault, request),
    })
  }

  async #reload(wanted: Settings, report: WarmedUp): Promise<Changes> {
    const before = this.#settings
    const fixed = NEED_RESTART.filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(before[key]))
    const settings = { ...wanted, ...Object.fromEntries(fixed.map((key) => [key, before[key]])) } as Settings
    const changes: Changes = { added: [], changed: [], removed: [], fixed: [...fixed] }
    const mounts = new Map<string, Mount>()
    for (const name of Object.keys(settings.mcpServers)) {
      const old = this.#mounts.get(name)
      const own = mountSettings(name, settings)
      const same = old?.plan === planOf(name, own, this.#context.lead?.(name)?.plan)
      if (!same) changes[old ? 'changed' : 'added'].push(name)
      mounts.set(name, same && old ? old : new Mount(name, own, this.#shared, this.#context))
    }
    const fresh = [...mounts.values()].filter((mount) => this.#mounts.get(mount.name) !== mount)
    const gone = [...this.#mounts.values()].filter((mount) => mounts.get(mount.name) !== mount)
    changes.removed = gone.map(({ name }) => name).filter((name) => !mounts.has(name))
    try {
      if (this.#stopping) throw new Fault('draining', 'The bridge is shutting down')
      if (this.#listener) {
        this.#front = await this.#build(settings, mounts)
        this.#listener.front = this.#front
        this.#listener.maxConnections = settings.limits.connections
        this.#listener.write = settings.timeouts.write
      }
    } catch (error) {
      for (const mount of fresh) await mount.close(true)
      throw error
    }
    this.#settings = settings
    this.#mounts = mounts
    if (this.#replicas) this.#replicas.keys = settings.stateKeys.map(keyOf)
    Object.assign(this.#shared.calls, { max: settings.limits.calls, share: shareOf(settings) })
    Object.assign(this.#shared.subscriptions, { max: settings.limits.subscriptions, share: shareOf(settings) })
    this.#shared.memory.resize({ max: memoryOf(settings), share: shareOf(settings) })
    this.#context.watch?.witness({ kind: 'config', text: `servers: ${inWords(changes)}` })
    this.#warmUp(fresh, report).catch(() => {})
    for (const mount of gone)
      this.#retire(mount).catch((error: unknown) =>
        this.#log.error({ event: 'server_close_failed', err: error }, 'shutting down a removed server failed'),
      )
    return changes
  }

  /** Closes a mount that is no longer served, when its calls have ended or `drainTimeout` has passed. */
  async #retire(mount: Mount): Promise<void> {
    this.#retiring.add(mount)
    mount.drain()
    const { drainTimeout } = this.#settings.timeouts
    await this.#until(performance.now() + drainTimeout, () => mount.busy.calls === 0 || this.#stopping)
    if (this.#stopping) return
    mount.cut()
    await mount.close(false)
    this.#retiring.delete(mount)
  }

  #logDraining(): void {
    if (this.#idle || this.#hurried) return
    const calls = this.#all.reduce((sum, { busy }) => sum + busy.calls, 0)
    const parked = this.#all.reduce((sum, { busy }) => sum + busy.parked, 0)
    const fields = { requests: this.#requests.open, calls, parked }
    this.#log.info({ event: 'draining', ...fields }, 'waiting for requests in progress')
  }

  /** Waits until a deadline, until `reached` is true, or until the shutdown is hurried. */
  async #until(deadline: number, reached: () => boolean): Promise<void> {
    while (performance.now() < deadline && !this.#hurried && !reached()) await pause(DRAIN_CHECK)
  }
}

function inWords({ added, changed, removed }: Changes): string {
  const parts = Object.entries({ added, changed, removed }).filter(([, names]) => names.length > 0)
  return parts.map(([what, names]) => `${what} ${names.join(', ')}`).join('; ') || 'unchanged'
}

/** The list of servers that the bridge publishes; undefined if it publishes none. */
async function publisher(
  settings: Settings,
  listen: Listen & { kind: 'http' },
  mounts: ReadonlyMap<string, Mount>,
): Promise<WellKnownOptions['published'] | undefined> {
  const { publish, publicUrl: base, auth } = settings
  if (!publish || base === undefined) return undefined
  const { publishing, publisherOf } = await import('../discovery/publish.js')
  const { readSigningKey } = await import('../discovery/trust/keys.js')
  const key = publish.key === undefined ? undefined : await readSigningKey(publish.key).catch(unusable)
  const paths = servedPaths(settings, listen)
  const wants = auth?.tokens ? ({ type: 'bearer' } as const) : undefined
  const content = () => ({
    publisher: publish.publisher ?? publisherOf(base),
    base,
    servers: [...mounts].flatMap(([name, { identity, isTrusted }]) => {
      const path = paths.get(name)?.at(-1)
      return identity && isTrusted && path !== undefined ? [{ name, path, ...identity, auth: wants }] : []
    }),
  })
  const published = publishing({ content, key })
  return async () => {
    await Promise.all([...mounts.values()].flatMap((mount) => (mount.isTrusted ? [mount.introduce()] : [])))
    return published()
  }
}

function unusable(cause: unknown): never {
  throw new ConfigError([{ path: 'publish.key', message: cause instanceof Error ? cause.message : String(cause) }])
}

/** Bytes of the memory ledger: as configured, otherwise a quarter of the heap limit. */
function memoryOf({ limits }: Settings): number {
  return limits.memory ?? Math.floor(getHeapStatistics().heap_size_limit / 4)
}

function httpListen(settings: Pick<Settings, 'listen'>): Listen & { kind: 'http' } {
  const listen = parseListen(settings.listen)
  if (listen.kind !== 'http') throw new TypeError('listen is stdio, not an HTTP address')
  return listen
}
