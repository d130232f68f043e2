/** The bridge: creates the mounts, and starts, reloads and shuts down. */

import { keyOf } from '../base/crypto/seal.js'
import { Fault } from '../base/fault/fault.js'
import type { Log } from '../base/log/events.js'
import { pause } from '../base/time/pause.js'
import type { PipeOptions, PipePlace } from '../clients/stdio/stdio.js'
import { changedOptions } from '../config/changed.js'
import { groupPaths, type HttpListen, httpListen, type Settings, servedPaths, signsIn } from '../config/settings.js'
import type { BridgeStatus } from '../mcp/ports/bridge-status.js'
import type { Conditions, Gauge } from '../mcp/ports/events.js'
import type { InspectedBridge } from '../mcp/ports/inspected-bridge.js'
import type { UpstreamServer } from '../servers/server.js'
import type { HttpReplicas } from '../services/replicas/replicas.js'
import type { MetricData } from '../services/telemetry/metrics.js'
import type { BridgeContext } from './context.js'
import type { GroupMount } from './group-mount.js'
import { HttpService } from './http-service.js'
import { InspectorFront } from './inspector-front.js'
import type { Front } from './listener.js'
import type { Mount } from './mount.js'
import { NextMounts } from './next-mounts.js'
import type { Served } from './served.js'
import { type Services, servicesFor } from './services.js'
import type { Shared } from './shared.js'
import { changeShared, sharedFor } from './shared-parts.js'
import { addressesInUse, certificatesOf, gaugesOf, processNow, readinessOf, serversNow, statusOf } from './status.js'
import { type Ready, readinessTogether, statusTogether } from './together.js'
import { type WarmedUp, warmUp } from './warm-up.js'

/** The result of a reload: names of servers, by what happened to them. */
export interface ReloadResult {
  added: string[]
  changed: string[]
  removed: string[]
  /** Changed options that are in use now, by their paths. */
  options: string[]
  /** Changed options that need a restart. Their previous values stay in use. */
  fixed: string[]
}

/** Milliseconds between two checks during shutdown, and how many there are while the last answers are sent. */
const DRAIN_CHECK = 20
const LAST_CHECKS = 50
/** Options that need a restart. */
export const NEED_RESTART = [
  'listen',
  'tls',
  'socketMode',
  'admin',
  'redis',
  'replicas',
  'workers',
  'metrics',
  'metricsTools',
  'log',
  'inspect',
  'discover',
  'registry',
  'discoverAllow',
  'discoverLoopback',
  'readOnlyTools',
  'trustStore',
  'oauth',
  'audit',
  'lists',
] as const

/** One bridge in one process. */
export class Bridge {
  #settings: Settings
  readonly #context: BridgeContext
  readonly #log: Log
  readonly #shared: Shared
  readonly #replicas: HttpReplicas | undefined
  readonly #http: HttpService
  /** What the inspector shows, and a way to call what is served. */
  readonly inspected: InspectedBridge & Required<Pick<InspectedBridge, 'status'>>
  readonly #inspectorFront: InspectorFront
  #mounts: NextMounts
  /** The URLs of the endpoints of groups, by name, since it listens. */
  groupUrls: ReadonlyMap<string, string> = new Map()
  /** Retired mounts that still have calls in progress. */
  readonly #retiring = new Set<Served>()
  /** What the client on stdio is served, and how it is served something else. */
  #piped: { served: Served; move(to: PipePlace): void } | undefined
  /** Makes reloads run one after another. */
  #reloading: Promise<unknown> = Promise.resolve()
  /** Whether clients can still answer questions of parked calls. */
  #answerable = true
  #stopping = false
  #hurried = false

  constructor(settings: Settings, context: BridgeContext) {
    this.#settings = settings
    this.#context = { ...context }
    this.#log = context.log
    this.#replicas = context.replicas
    this.#shared = sharedFor(settings, context)
    const { metrics, workers } = context
    workers?.tells({
      status: () => this.inspected.status(),
      readiness: () => this.#readiness,
      metrics: () => metrics?.data(this.#gauges, this.#conditions) ?? [],
    })
    this.inspected = {
      servers: () => serversNow(this.mounts),
      simplified: (group) => this.groups.get(group)?.simplified ?? [],
      status: () => statusOf(context.version, this.#readiness, this.mounts),
      process: () => processNow(context.version),
      targets: () => this.#inspectorFront.targets(),
      hidden: (name) => this.#inspectorFront.hidden(name),
      bodyBytes: settings.limits.bodyBytes,
      call: (name, request) => this.#inspectorFront.call(name, request),
    }
    this.#http = new HttpService({
      context: this.#context,
      shared: this.#shared,
      state: async () => (workers ? readinessTogether(await workers.gather<Ready>('readiness')) : this.#readiness),
      status: async () =>
        workers ? statusTogether(await workers.gather<BridgeStatus>('status')) : this.inspected.status(),
      metrics: metrics && {
        contentType: metrics.contentType,
        text: async () =>
          workers
            ? metrics.together(await workers.gather<MetricData[]>('metrics'))
            : metrics.text(this.#gauges, this.#conditions),
      },
      inspected: this.inspected,
    })
    const { requests, windows } = this.#http
    const { refusals, audit } = this.#shared
    const now = () => ({ settings: this.#settings, mounts: this.#mounts })
    this.#inspectorFront = new InspectorFront(now, { refusals, audit, requests, windows })
    this.#takeDesk(context.services)
    this.#mounts = new NextMounts(settings, this.#shared, this.#context)
  }

  /** The server of the first mount, for commands that have only one. */
  get server(): UpstreamServer {
    const [mount] = this.mounts.values()
    return (mount as Mount).server
  }

  /** The address of the inspector, without its token; undefined without an inspector on HTTP. */
  get inspectUrl(): string | undefined {
    return this.#http.operators.inspectUrl
  }

  /** The `admin` address, if there is one. */
  get adminUrl(): string | undefined {
    return this.#http.operators.adminUrl
  }

  /** The mounts, by name of their server. */
  get mounts(): ReadonlyMap<string, Mount> {
    return this.#mounts.servers
  }

  /** The groups by name. */
  get groups(): ReadonlyMap<string, GroupMount> {
    return this.#mounts.groups
  }

  /** Serves HTTP. Resolves to the URLs of the endpoints, by name of their server. */
  async listen(listen: HttpListen = httpListen(this.#settings.listen)): Promise<ReadonlyMap<string, string>> {
    const origin = await this.#http.listen(listen, this.#settings, this.#mounts)
    const urls = (paths: ReadonlyMap<string, readonly string[]>) =>
      new Map([...paths].map(([name, [first]]) => [name, origin + first]))
    this.groupUrls = urls(groupPaths(this.#settings, listen))
    return urls(servedPaths(this.#settings, listen))
  }

  /** Serves HTTP without listening. Resolves to the handler for requests that another server of this process receives. */
  attach(): Promise<Front['routing']> {
    return this.#http.attach(httpListen(this.#settings.listen), this.#settings, this.#mounts)
  }

  /**
   * Serves the only group, or else the only server, on stdio, until the input ends or the output is closed. After a reload
   * the client is served what is the only one then.
   */
  async pipe(streams: Pick<PipeOptions, 'input' | 'output'>): Promise<void> {
    await this.#context.inspector?.serveSocket(this.inspected)
    const { onlyOne: served } = this.#mounts
    const moves = (move: (to: PipePlace) => void) => {
      this.#piped = { served: served as Served, move }
    }
    await served?.clients.pipe({ ...streams, moves, patience: this.#settings.timeouts.drainTimeout })
    this.#piped = undefined
    this.#answerable = false
  }

  /** Connects to the servers before the first call. Calls `report` with the result of each server. */
  warmUp(report: WarmedUp): Promise<void> {
    return this.#warmUp([...this.mounts.values()], report)
  }

  #warmUp(mounts: readonly Mount[], report: WarmedUp): Promise<void> {
    return warmUp(mounts, report, {
      mounts: () => this.mounts,
      groups: () => this.groups,
      isStopping: () => this.#stopping,
    })
  }

  /**
   * Applies another configuration. Servers keep their processes, sessions and calls, unless what they are made of has changed:
   * then, as when they are removed, they get `drainTimeout` to end their calls in progress. New and changed ones are warmed up at once; `report` is called with
   * each result. Rejects if the new configuration cannot be applied; then the previous one stays in use.
   */
  reload(settings: Settings, report: WarmedUp = () => {}): Promise<ReloadResult> {
    const reloaded = this.#reloading.then(() => this.#reload(settings, report))
    this.#reloading = reloaded.catch(() => {})
    return reloaded
  }

  /**
   * Shuts down: for `drainDelay` readiness fails, and each answer ends its connection; then nothing new is admitted, and calls
   * in progress have `drainTimeout` to end; then everything is ended, the servers' processes last. With `hurry`, without
   * waiting.
   */
  async close(hurry = false): Promise<void> {
    this.#stopping = true
    this.#hurried ||= hurry
    const { drainDelay, drainTimeout } = this.#settings.timeouts
    this.#http.leave()
    this.#replicas?.leave()
    if (this.#http.listening) await this.#until(performance.now() + drainDelay, () => false)
    this.#http.requests.draining = true
    for (const mount of this.#all) mount.drain()
    const left = Promise.all(this.#all.map((mount) => mount.leave()))
    this.#logDraining()
    await this.#until(performance.now() + drainTimeout, () => this.#idle)
    for (const mount of this.#all) mount.cut()
    if (!this.#hurried) await this.#http.stopAccepting()
    // Counted in checks, because on a busy machine everything takes longer, and clients need their turns.
    for (let checks = 0; !this.#isAnswered && checks < LAST_CHECKS; checks++) await pause(DRAIN_CHECK)
    this.#http.stopListening()
    this.#shared.refusals.close()
    await this.#context.inspector?.close()
    await left
    await this.#replicas?.close()
    await Promise.all([this.#http.close(), ...this.#all.map((mount) => mount.close(this.#hurried))])
    // In a store that replicas share, questions stay: another replica takes the answers.
    if (!this.#replicas) await this.#shared.watched.end()
    await this.#shared.audit?.close()
  }

  /** Groups come first, so that their calls end before their servers do. */
  get #all(): readonly Served[] {
    return [...this.groups.values(), ...this.mounts.values(), ...this.#retiring]
  }

  get #idle(): boolean {
    return (
      this.#http.requests.open === 0 &&
      this.#all.every(({ busy }) => busy.calls === 0 && !(busy.parked > 0 && this.#answerable))
    )
  }

  /** Whether all requests are answered and, unless hurried, all connections closed: clients may use open ones again. */
  get #isAnswered(): boolean {
    return this.#hurried || !this.#http.listening ? this.#http.requests.open === 0 : this.#http.connections === 0
  }

  get #readiness(): ReturnType<typeof readinessOf> {
    return readinessOf(this.mounts, this.groups, {
      isStopping: this.#stopping,
      redisUp: this.#replicas?.isUp,
      issuers: this.#http.issuers.states,
      piped: this.#piped?.served,
    })
  }

  get #gauges(): Gauge[] {
    const connections = { used: this.#http.connections, limit: this.#settings.limits.connections }
    return gaugesOf(this.#shared, connections, [...this.mounts.values(), ...this.groups.values()])
  }

  get #conditions(): Conditions {
    return {
      redisUp: this.#replicas?.isUp,
      redisMayEvict: this.#replicas?.mayEvict,
      issuers: this.#http.issuers.states,
      addresses: addressesInUse(this.mounts),
      certificates: certificatesOf(this.mounts, [this.#http.certificate, this.#replicas?.certificate]),
    }
  }

  /** Loads what these settings need, and nothing needed before. */
  async #load(settings: Settings): Promise<void> {
    this.#takeDesk(await servicesFor(settings))
    if (signsIn(settings)) this.#context.signIn ??= await this.#context.loadSignIn?.()
  }

  #takeDesk({ Desk }: Services = {}): void {
    const { replicas } = this.#context
    this.#shared.desk ??= Desk && new Desk(replicas && ((name, ms) => replicas.records.claim('ticket', name, ms)))
  }

  async #reload(wanted: Settings, report: WarmedUp): Promise<ReloadResult> {
    const before = this.#settings
    const fixed = NEED_RESTART.filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(before[key]))
    const settings = { ...wanted, ...Object.fromEntries(fixed.map((key) => [key, before[key]])) } as Settings
    await this.#load(settings)
    const next = new NextMounts(settings, this.#shared, this.#context, { ...this.#mounts, settings: before })
    try {
      if (this.#stopping) throw new Fault('draining', 'The bridge is shutting down')
      next.adapt()
      await this.#http.replace(settings, next)
    } catch (error) {
      await next.undo()
      throw error
    }
    const { fresh, gone } = next
    const changes: ReloadResult = {
      ...next.changes,
      options: changedOptions(before, settings),
      fixed: changedOptions(picked(before, fixed), picked(wanted, fixed)),
    }
    next.take()
    this.#settings = settings
    this.#mounts = next
    this.#movePipe()
    const keys = settings.stateKeys.map(keyOf)
    if (this.#replicas) this.#replicas.keys = keys
    changeShared(this.#shared, settings, keys)
    this.#context.recorder?.note('config', `servers: ${inWords(changes)}`)
    this.#warmUp([...fresh], report).catch(() => {})
    for (const one of gone)
      this.#retire(one).catch((error: unknown) =>
        this.#log.error({ event: 'server_close_failed', err: error }, 'shutting down a removed server failed'),
      )
    return changes
  }

  /** Serves the client on stdio what is the only one now. */
  #movePipe(): void {
    const { onlyOne: served } = this.#mounts
    if (!this.#piped || !served || this.#piped.served === served) return
    this.#piped.served = served
    this.#piped.move(served.clients.place)
  }

  /** Closes a mount that is no longer served, when its calls have ended or `drainTimeout` has passed. */
  async #retire(mount: Served): Promise<void> {
    this.#retiring.add(mount)
    mount.drain()
    const { drainTimeout } = this.#settings.timeouts
    await this.#until(performance.now() + drainTimeout, () => mount.busy.calls === 0 || this.#stopping)
    if (this.#stopping) return
    mount.cut()
    for (let checks = 0; mount.clients.unanswered > 0 && checks < LAST_CHECKS; checks++) await pause(DRAIN_CHECK)
    await mount.close(false)
    this.#retiring.delete(mount)
  }

  #logDraining(): void {
    if (this.#idle || this.#hurried) return
    const calls = this.#all.reduce((sum, { busy }) => sum + busy.calls, 0)
    const parked = this.#all.reduce((sum, { busy }) => sum + busy.parked, 0)
    const fields = { requests: this.#http.requests.open, calls, parked }
    this.#log.info({ event: 'draining', ...fields }, 'waiting for requests in progress')
  }

  /** Waits until a deadline, until `reached` is true, or until the shutdown is hurried. */
  async #until(deadline: number, reached: () => boolean): Promise<void> {
    while (performance.now() < deadline && !this.#hurried && !reached()) await pause(DRAIN_CHECK)
  }
}

function picked(settings: Settings, keys: readonly (keyof Settings)[]): object {
  return Object.fromEntries(keys.map((key) => [key, settings[key]]))
}

function inWords({ added, changed, removed }: ReloadResult): string {
  const parts = Object.entries({ added, changed, removed }).filter(([, names]) => names.length > 0)
  return parts.map(([what, names]) => `${what} ${names.join(', ')}`).join('; ') || 'unchanged'
}
