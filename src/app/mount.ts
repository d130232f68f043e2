/** A mount: one server as the bridge serves it, with its policies, and the `serverInfo` of the bridge. */

import { Bound } from '../base/limits/bound.js'
import { forwardedTo, shareOf } from '../config/settings.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { ServerStatus } from '../mcp/ports/server-status.js'
import type { Era } from '../mcp/protocol/eras.js'
import { ROOTS_CHANGED } from '../mcp/protocol/methods.js'
import type { Upstream } from '../mcp/protocol/upstream.js'
import { describeServer } from '../middle/describe/server.js'
import { Admission } from '../middle/policy/admission.js'
import { type ForwardedHeader, lackedBy } from '../middle/policy/forwarding.js'
import { adviceOn, whyInLine } from '../servers/advice.js'
import type { AddressHealth, UpstreamServer } from '../servers/server.js'
import type { Accounts } from '../services/oauth/client/accounts.js'
import type { SignIn } from '../services/oauth/sign-in.js'
import { ClientSide } from './client-side.js'
import { type BridgeContext, logOf, observerOf } from './context.js'
import { type MountPlan, type MountSettings, planOf } from './mount-settings.js'
import { MountPolicies } from './policies.js'
import type { Served } from './served.js'
import { timesOf } from './server-options.js'
import { ServerSide } from './server-side.js'
import type { Shared } from './shared.js'

/** The self-description of a server. */
export interface ServerIdentity {
  identity: { name: string; version: string }
  capabilities: Record<string, unknown>
}

/** The known health of a server. */
export interface Health extends Pick<ServerStatus, 'era' | 'revision' | 'why' | 'next'> {
  state: 'ready' | 'unknown' | 'down'
  /** Each of its addresses, if it has several. */
  addresses?: readonly AddressHealth[]
}

/** Milliseconds for which the self-description of a server is cached. */
const INTRODUCED = 300_000
const RESTS = 'It is started when something of it is used'

/** A served server. */
export class Mount implements Served {
  readonly name: string
  /** Its server, with accounts and certificates. */
  readonly side: ServerSide
  readonly clients: ClientSide
  /** The server behind all policies. */
  readonly upstream: Upstream
  readonly policies: MountPolicies
  /** The headers of callers that it gets. */
  readonly forwarded: readonly ForwardedHeader[]
  /** What it is made of. If a reload does not change it, the mount stays. */
  readonly plan: MountPlan
  readonly #log: ReturnType<typeof logOf>
  /** The settings now: a reload may change a part of them. */
  readonly #settings: MountSettings
  /** The time limits of calls. */
  readonly #times: { idle: number; total: number }
  readonly #admission: Admission
  readonly #calls: Bound
  readonly #signIn: SignIn | undefined
  /** The circuit breaker of a discovered server. */
  readonly #breaker: (() => { open: boolean; until: number }) | undefined
  /** It is started when something of it is used. */
  #rests = false
  #identity: { known?: ServerIdentity | undefined; since: number } | undefined

  /** `kept` is the server of another mount, which stays until this mount takes it over. */
  constructor(name: string, given: MountSettings, shared: Shared, context: BridgeContext, kept?: ServerSide) {
    const settings = { ...given }
    const { names, resolve, version } = context
    const trust = context.lead?.(name)
    this.name = name
    this.#settings = settings
    this.plan = planOf(name, settings, trust?.plan)
    this.#log = logOf({ kind: 'server', name, eraOf: () => this.era }, shared, context)
    this.side = kept ?? new ServerSide(name, settings, shared, context)
    if (!kept) this.side.owner = this
    this.forwarded = forwardedTo(settings.server)
    this.#breaker = trust?.state
    this.#signIn = signInOf(name, this.side, settings, shared, context)
    this.#calls = new Bound(callBoundIn(settings))
    this.#times = callTimesIn(settings)
    this.#admission = new Admission({
      calls: [
        { bound: shared.calls, where: 'with the bridge', option: 'limits.calls' },
        { bound: this.#calls, where: 'with the server', option: 'limits.callsPerServer' },
      ],
      subscriptions: [{ bound: shared.subscriptions, where: 'with the bridge', option: 'limits.subscriptions' }],
      timeouts: this.#times,
      signIn: this.#signIn,
    })
    const parts = { name, settings, shared, trust, observe: observerOf(context), names, resolve }
    this.policies = new MountPolicies(parts, this.server.handle)
    this.upstream = this.#upstream()
    const taken = new Set(this.forwarded.map(({ from }) => from))
    this.clients = new ClientSide({
      ...{ name, settings, shared, version },
      upstream: this.upstream,
      log: this.#log,
      admission: this.#admission,
      forwarded: this.forwarded.length > 0 ? () => ({ names: taken, list: this.forwarded }) : undefined,
    })
  }

  #upstream(): Upstream {
    const { server, policies, forwarded } = this
    const { quarantine, withholds, carriesUnknown, translates, asks } = policies
    return {
      handle: policies.admittedBy(this.#admission, forwarded),
      notify: (notice) => {
        if (quarantine && !quarantine.open) return undefined
        if (notice.method !== ROOTS_CHANGED && !carriesUnknown(notice)) return undefined
        if (lackedBy(notice, forwarded)) return undefined
        if (!server.answers(notice)) return server.notify(notice)
        const leave = this.#admission.enter({ principal: notice.principal, endless: false })
        return server.notify(notice)?.finally(leave)
      },
      carriesUnknown,
      asks,
      ...(withholds && { withholds }),
      legacyRoute: async (sender, address) => {
        if (translates || lackedBy(sender, forwarded)) return 'translate'
        const route = () => server.legacyRoute(sender, address)
        return this.#signIn ? this.#signIn.legacyRoute(sender, route) : route()
      },
      connected: (principal, client, maySleep) =>
        server.connected(principal, (client && quarantine?.asking(client)) ?? client, maySleep),
    }
  }

  get server(): UpstreamServer {
    return this.side.server
  }

  /** The accounts at the server, if the bridge signs in to it. */
  get accounts(): Accounts | undefined {
    return this.side.accounts
  }

  /** Has the server from now on, with these settings: the mount before it has it no longer. */
  takeOver(settings: MountSettings): void {
    this.side.owner = this
    this.side.adapt(settings)
  }

  /** Applies settings that differ from its own only in what does not change its plan: sessions, processes and calls go on. */
  adapt(settings: MountSettings): void {
    Object.assign(this.#settings, settings)
    Object.assign(this.#calls, callBoundIn(settings))
    Object.assign(this.#times, callTimesIn(settings))
    this.side.adapt(settings)
    this.clients.adapt()
  }

  get busy(): { calls: number; parked: number } {
    return { calls: Math.max(this.#calls.used, this.#admission.inFlight), parked: this.server.parked }
  }

  get gauges(): Gauge[] {
    const { used, max: limit } = this.#calls
    return [
      ...this.server.gauges,
      { bound: 'calls_per_server', server: this.name, used, limit },
      ...this.clients.gauges,
    ]
  }

  /** The expiry of the client certificate, in milliseconds since 1970; undefined without one. */
  get certificateExpiresAt(): number | undefined {
    return this.side.pem?.expiresAt
  }

  /** The era of the server, if it is known. */
  get era(): Era | undefined {
    return this.server.verdict?.era
  }

  /** What `/readyz` reports about the server. */
  get health(): Health {
    const { verdict, down, everAnswered, addresses } = this.server
    const several = addresses && { addresses }
    if (down) {
      const { next } = adviceOn(down, this.accounts?.loginName)
      return { state: 'down', why: whyInLine(down), ...(next !== undefined && { next }), ...several }
    }
    if (!everAnswered) return { ...(this.#rests ? { state: 'ready', why: RESTS } : { state: 'unknown' }), ...several }
    return { state: 'ready', era: verdict?.era, revision: verdict?.revision, why: verdict?.why, ...several }
  }

  /** To be called when it is not started before something of it is used. */
  rest(): void {
    this.#rests = true
  }

  /** The pause after failures, in which the server is not called; undefined without one. */
  get pause(): { failures?: number; ms: number } | undefined {
    const { open, until } = this.#breaker?.() ?? { open: false, until: 0 }
    return open ? { ms: Math.max(0, until - performance.now()) } : this.server.pause
  }

  /** The self-description of the server; undefined before `introduce` has succeeded. */
  get identity(): ServerIdentity | undefined {
    return this.#identity?.known
  }

  /** Requests the self-description of the server, unless it is cached. Never rejects. */
  async introduce(): Promise<void> {
    const { known, since } = this.#identity ?? { since: Number.NEGATIVE_INFINITY }
    if (performance.now() - since < (known ? INTRODUCED : INTRODUCED / 10)) return
    this.#identity = { known, since: performance.now() }
    try {
      const { server, capabilities } = await describeServer(this.server, { tools: 'left out' })
      const { name, version } = server ?? {}
      if (name && version)
        this.#identity = { known: { identity: { name, version }, capabilities }, since: performance.now() }
    } catch (error) {
      this.#log.debug({ event: 'server_not_published', err: error }, 'server not published: it did not describe itself')
    }
  }

  /** Milliseconds after which an idle program ends. */
  get idleLimit(): number {
    const { idle, clientIdle } = timesOf(this.#settings, this.#settings.server)
    return idle ?? clientIdle
  }

  /** Whether the server was discovered, and is not configured. Only then its trust may change. */
  get isFound(): boolean {
    return this.policies.quarantine !== undefined
  }

  /** Whether the server is configured or trusted. Only then it may be published and be a member of groups. */
  get isTrusted(): boolean {
    return this.policies.quarantine?.open ?? true
  }

  /** Reads the list of tools if a decision about trust requires it. */
  learnTools(): void {
    if (!this.pause) this.policies.learnTools(this.#log)
  }

  drain(): void {
    this.#admission.close()
    this.#admission.end()
    this.policies.drain()
    this.clients.drain()
    if (this.side.owner !== this) this.clients.leaveNamed()
  }

  leave(): Promise<void> {
    return this.clients.leave()
  }

  cut(): void {
    this.#admission.cut()
    this.clients.cut()
  }

  async close(hurry: boolean): Promise<void> {
    this.drain()
    this.cut()
    this.clients.close()
    this.policies.close()
    if (this.side.owner === this) await this.side.close(hurry)
  }
}

/** What signs in to the server; undefined if the bridge does not. */
function signInOf(
  name: string,
  { accounts }: ServerSide,
  { page }: MountSettings,
  { replicas }: Shared,
  { signIn, version }: BridgeContext,
): SignIn | undefined {
  if (!accounts || !signIn) return undefined
  const { loginName, isPersonal } = accounts
  const asksElsewhere = page && isPersonal && replicas !== undefined
  return new signIn.code.SignIn({ name, loginName, accounts, version, asksElsewhere })
}

function callBoundIn(settings: MountSettings) {
  return { max: settings.limits.callsPerServer, share: shareOf(settings) }
}

function callTimesIn(settings: MountSettings) {
  const { call: idle, callTotal: total } = timesOf(settings, settings.server)
  return { idle, total }
}
