/** A mount: one server as the bridge serves it, with its policies, and the `serverInfo` of the bridge. */

import type { Fault } from '../base/fault/fault.js'
import { Bound } from '../base/limits/bound.js'
import type { SessionSettings } from '../clients/legacy/session.js'
import type { Logger } from '../clients/logger.js'
import type { PipePlace } from '../clients/stdio.js'
import { forwardedTo, isStdio, shareOf } from '../config/settings.js'
import type { Gauge } from '../mcp/ports/events.js'
import type { Handler, Policy, Sender } from '../mcp/protocol/call.js'
import type { Era } from '../mcp/protocol/eras.js'
import { ROOTS_CHANGED } from '../mcp/protocol/methods.js'
import type { OverHttp, Upstream } from '../mcp/protocol/upstream.js'
import { describeServer, ownCall } from '../middle/describe/server.js'
import { Admission } from '../middle/policy/admission.js'
import type { Cache } from '../middle/policy/cache/cache.js'
import { callbacks } from '../middle/policy/callbacks.js'
import { hidesNothing } from '../middle/policy/choice/choice.js'
import { choosing } from '../middle/policy/choice/seen.js'
import { compose } from '../middle/policy/compose.js'
import { reading as readingResults } from '../middle/policy/cut/reading.js'
import { type ForwardedHeader, lackedBy, requiring } from '../middle/policy/forwarding.js'
import { type Pages, reading } from '../middle/policy/pages.js'
import { SimplifiedTools } from '../middle/policy/portable/simplified.js'
import { Quarantine } from '../middle/policy/quarantine.js'
import { subscribers } from '../middle/policy/subscribers.js'
import { ToolNames } from '../middle/policy/tool-names.js'
import { unavailable } from '../middle/policy/unavailable.js'
import { adviceOn, whyInLine } from '../servers/advice.js'
import type { AddressHealth, UpstreamServer } from '../servers/server.js'
import type { Accounts } from '../services/oauth/client/accounts.js'
import { ClientSide, type Pipe } from './client-side.js'
import { type BridgeContext, logOf, observerOf } from './context.js'
import type { HidingServer } from './hidden.js'
import type { HttpMount } from './http-mount.js'
import { type MountPlan, type MountSettings, planOf } from './mount-settings.js'
import {
  approvalOf,
  auditOf,
  cacheOf,
  choiceOf,
  cuttingOf,
  learning,
  portableOf,
  requiredScopes,
  scopesOf,
  toolLimitsOf,
  watched,
  withheldBy,
} from './pipeline.js'
import { publicHosts } from './public-hosts.js'
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
export interface Health {
  state: 'ready' | 'unknown' | 'down'
  era?: string | undefined
  revision?: string | undefined
  /** The evidence for the era, or the reason why the server is down. */
  why?: string | undefined
  /** What the operator can do about a server that is down. */
  next?: string
  /** Each of its addresses, if it has several. */
  addresses?: readonly AddressHealth[]
}

/** Milliseconds for which the self-description of a server is cached. */
const INTRODUCED = 300_000
const LIST = 'tools/list'
const RESTS = 'It is started when something of it is used'
/** Milliseconds before the list of tools is read again for a decision about trust. */
const LEARN_AGAIN = 10_000

/** A served server. */
export class Mount implements Served {
  readonly name: string
  readonly server: UpstreamServer
  /** The server behind all policies. */
  readonly upstream: Upstream
  /** The accounts at the server, if the bridge signs in to it. */
  readonly accounts: Accounts | undefined
  /** The headers of callers that it gets. */
  readonly forwarded: readonly ForwardedHeader[]
  /** The parts that decide what is hidden from clients, for the inspector. */
  readonly hiding: HidingServer
  /** What portable schemas make of its tools. */
  readonly simplified = new SimplifiedTools()
  /** What it is made of. If a reload does not change it, the mount stays. */
  readonly plan: MountPlan
  readonly #log: Logger
  readonly #side: ServerSide
  /** The settings now: a reload may change a part of them. */
  readonly #settings: MountSettings
  readonly #sessionSettings: SessionSettings
  /** The time limits of calls. */
  readonly #times: { idle: number; total: number }
  readonly #clients: ClientSide
  readonly #admission: Admission
  readonly #calls: Bound
  readonly #cache: Cache | undefined
  /** Stops listening to the changes that other replicas report. */
  readonly #unsubscribe: (() => void) | undefined
  readonly #quarantine: Quarantine | undefined
  /** The server without quarantine and the policies before it: the quarantine reads the list of tools here. */
  readonly #behind: Handler
  /** Whether the bridge lists the tools for the names in metrics and traces. */
  readonly #learnsNames: boolean
  /** The time when the list of tools was last read for a decision about trust. */
  #learned = Number.NEGATIVE_INFINITY
  /** Answers for a discovered server while it is unavailable. */
  readonly #unavailable: ReturnType<typeof unavailable> | undefined
  /** The circuit breaker of a discovered server. */
  readonly #breaker: (() => { open: boolean; until: number }) | undefined
  /** It is started when something of it is used. */
  #rests = false
  #identity: { known?: ServerIdentity | undefined; since: number } | undefined

  /** `kept` is the server of another mount, which stays until this mount takes it over. */
  constructor(name: string, given: MountSettings, shared: Shared, context: BridgeContext, kept?: ServerSide) {
    const settings = { ...given }
    this.#settings = settings
    const own = settings.server
    this.name = name
    const trust = context.lead?.(name)
    this.plan = planOf(name, settings, trust?.plan)
    const { names } = context
    const observe = observerOf(context)
    this.#log = logOf({ kind: 'server', name, eraOf: () => this.era }, shared, context)
    const side = kept ?? new ServerSide(name, settings, shared, context)
    if (!kept) side.owner = this
    this.#side = side
    this.server = side.server
    const { accounts } = side
    this.accounts = accounts
    const { memory } = shared
    const signIn =
      accounts &&
      context.signIn &&
      new context.signIn.code.SignIn({
        name,
        loginName: accounts.loginName,
        accounts,
        version: context.version,
        asksElsewhere: settings.page && accounts.isPersonal && shared.replicas !== undefined,
      })
    this.#sessionSettings = {
      ...sessionSettingsIn(settings),
      serverInfo: JSON.stringify({ name: 'mcp-bridge', version: context.version }),
      begin: (abort: (reason: Fault) => void) => this.#admission.begin(abort),
    }
    this.#calls = new Bound(callBoundIn(settings))
    this.#times = callTimesIn(settings)
    this.#admission = new Admission({
      calls: [
        { bound: shared.calls, where: 'with the bridge' },
        { bound: this.#calls, where: 'with the server' },
      ],
      subscriptions: [{ bound: shared.subscriptions, where: 'with the bridge' }],
      timeouts: this.#times,
      signIn,
    })
    const cache = cacheOf(name, own, settings, shared.results, observe)
    this.#cache = cache
    this.#unsubscribe =
      cache && shared.replicas?.hear(name, { changed: (notice) => cache.drop(notice), missed: () => cache.missed() })
    const choosingOf = { ...own, tools: choosing(own.tools) }
    const chosen = choiceOf(name, choosingOf, memory)
    const listed = new ToolNames({ server: name, memory })
    const scoped = scopesOf(own, settings, trust, { name, memory, listed })
    const audited = auditOf(name, settings, shared.audit)
    const limited = toolLimitsOf(name, settings, shared.countCall, listed)
    const quarantine =
      trust &&
      new Quarantine({
        name,
        trustStatus: trust.trustStatus,
        readOnly: trust.readOnly,
        ...(trust.now && { date: trust.now }),
      })
    this.#quarantine = quarantine
    const forwarded = forwardedTo(own)
    this.forwarded = forwarded
    const taken = new Set(forwarded.map(({ from }) => from))
    const required = requiring(name, forwarded)
    const approved = approvalOf(name, own, shared, {
      within: () => timesOf(this.#settings, this.#settings.server).answer,
      observe,
    })
    const hides = !hidesNothing(choosingOf)
    // No client has a session of its own with a server whose trust may change, because it learns there who the client is, and
    // asks it; nor where updates of resources are hidden, or clients share a process; nor where tokens are exchanged, which
    // needs the token of each call; nor where people approve calls, because the bridge asks them itself.
    const translates =
      trust !== undefined ||
      approved !== undefined ||
      (hides && own.resources !== undefined) ||
      own.process === 'single' ||
      accounts?.onBehalf === true
    this.#breaker = trust?.state
    this.#unavailable = trust && unavailable({ name, state: trust.state, memory })
    this.#behind = compose(
      this.server.handle,
      ...(trust ? [watched(trust)] : []),
      ...(this.#cache ? [this.#cache.policy] : []),
      ...(names ? [learning(name, names)] : []),
    )
    this.hiding = { name, own, required: requiredScopes(own, trust), behind: this.#behind }
    this.#learnsNames = names !== undefined && !trust
    // An unknown notification could name a hidden item.
    const carriesUnknown = (sender: Pick<Sender, 'principal' | 'grant'>) => !hides && (scoped?.hasAll(sender) ?? true)
    const ofEvents = [
      callbacks({ allowed: own.events?.callbacks ?? [], whyNotPublic: publicHosts(context.resolve) }),
      subscribers({ server: name, owners: shared.subscribers, passthrough: settings.auth?.passthrough ?? false }),
    ]
    const { lists, calls } = readingResults({ server: name, isOn: () => this.cutsResults, kept: shared.kept, memory })
    const cut = cuttingOf(name, own, shared, observe)
    const answered = (more: readonly Policy[]) =>
      compose(
        this.#behind,
        // Before the choice, which does not know the bridge's own tool and resources.
        ...(own.results ? [lists, calls] : []),
        // Translates names into those of the server, which scopes and trust use.
        ...(chosen ? [chosen] : []),
        ...(scoped ? [scoped.policy] : []),
        ...more,
        ...(scoped || limited ? [listed.policy] : []),
        ...(quarantine && this.#unavailable ? [this.#unavailable.policy, quarantine.policy] : []),
        // After what refuses calls, so that nobody is asked in vain.
        ...(approved ? [approved] : []),
        // Last, so that it counts only calls that go to the server.
        ...(limited ? [limited] : []),
        ...cut,
      )
    this.upstream = {
      // First the audit log, so that it records refusals of the other policies.
      handle: compose(
        this.#admission.admit(answered([]), this.#admission.admit(answered(ofEvents))),
        ...(audited ? [audited] : []),
        ...(required ? [required] : []),
        // Before all others, which know the tools as the server has defined them.
        ...portableOf({ server: name, schemas: own.schemas, memory, told: this.simplified.note }),
      ),
      notify: (notice) => {
        if (quarantine && !quarantine.open) return undefined
        if (notice.method !== ROOTS_CHANGED && !carriesUnknown(notice)) return undefined
        if (lackedBy(notice, forwarded)) return undefined
        if (!this.server.answers(notice)) return this.server.notify(notice)
        const leave = this.#admission.enter({ principal: notice.principal, endless: false })
        return this.server.notify(notice)?.finally(leave)
      },
      carriesUnknown,
      ...(scoped && {
        withholds: withheldBy(this.#behind, ...(chosen ? [chosen] : []), scoped.policy, listed.policy),
      }),
      legacyRoute: async (sender, address) => {
        if (translates || lackedBy(sender, forwarded)) return 'translate'
        return signIn
          ? signIn.legacyRoute(sender, () => this.server.legacyRoute(sender, address))
          : this.server.legacyRoute(sender, address)
      },
      connected: (principal, client, maySleep) =>
        this.server.connected(principal, (client && quarantine?.asking(client)) ?? client, maySleep),
    }
    this.#clients = new ClientSide({
      name,
      isGroup: false,
      upstream: this.upstream,
      log: this.#log,
      settings,
      further: isStdio(own) ? [] : own.paths,
      sessionSettings: this.#sessionSettings,
      forwarded: forwarded.length > 0 ? () => ({ names: taken, list: forwarded }) : undefined,
      shared,
    })
  }

  /** Its server, with accounts and certificates. */
  get side(): ServerSide {
    return this.#side
  }

  /** Has the server from now on, with these settings: the mount before it has it no longer. */
  takeOver(settings: MountSettings): void {
    this.#side.owner = this
    this.#side.adapt(settings)
  }

  /** Applies settings that differ from its own only in what does not change its plan: sessions, processes and calls go on. */
  adapt(settings: MountSettings): void {
    Object.assign(this.#settings, settings)
    Object.assign(this.#sessionSettings, sessionSettingsIn(settings))
    Object.assign(this.#calls, callBoundIn(settings))
    Object.assign(this.#times, callTimesIn(settings))
    this.#side.adapt(settings)
    this.#clients.adapt()
  }

  get busy(): { calls: number; parked: number } {
    return { calls: Math.max(this.#calls.used, this.#admission.inFlight), parked: this.server.parked }
  }

  get sessions(): number {
    return this.#clients.sessions
  }

  get gauges(): Gauge[] {
    const { used, max: limit } = this.#calls
    return [
      ...this.server.gauges,
      { bound: 'calls_per_server', server: this.name, used, limit },
      ...this.#clients.gauges,
    ]
  }

  /** The expiry of the client certificate, in milliseconds since 1970; undefined without one. */
  get certificateExpiresAt(): number | undefined {
    return this.#side.pem?.expiresAt
  }

  /** The era of the server, if it is known. */
  get era(): Era | undefined {
    return this.server.verdict?.era
  }

  /** What `/readyz` reports about the server. */
  get health(): Health {
    const { addresses } = this.server
    return { ...this.#health, ...(addresses && { addresses }) }
  }

  get #health(): Health {
    const { verdict, down, everAnswered } = this.server
    if (down) {
      const { next } = adviceOn(down, this.accounts?.loginName)
      return { state: 'down', why: whyInLine(down), ...(next !== undefined && { next }) }
    }
    if (!everAnswered) return this.#rests ? { state: 'ready', why: RESTS } : { state: 'unknown' }
    return { state: 'ready', era: verdict?.era, revision: verdict?.revision, why: verdict?.why }
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

  /** Whether long results of its tools are cut. */
  get cutsResults(): boolean {
    return this.#settings.server.results !== undefined
  }

  /** Whether the server was discovered, and is not configured. Only then its trust may change. */
  get isFound(): boolean {
    return this.#quarantine !== undefined
  }

  /**
   * Reads the list of tools if a decision about trust requires it: clients may not do so before the server is trusted. Tries
   * again later after a failure.
   */
  learnTools(): void {
    if (!this.#quarantine?.needsTools || this.pause || performance.now() - this.#learned < LEARN_AGAIN) return
    this.#learned = performance.now()
    this.#quarantine.learnTools(ownCall(LIST), this.#behind).catch((error: unknown) => {
      this.#log.debug({ event: 'tools_not_learned', err: error }, 'tools not listed: the server stays in quarantine')
    })
  }

  /** Reads the list of tools for metrics and traces. Without that, names are known once a client has listed them. */
  learnNames(): void {
    if (!this.#learnsNames) return
    const read = async (pages: Pages) => {
      for await (const _page of pages);
    }
    reading(ownCall(LIST), LIST, this.#behind, this.name, read).catch(() => {})
  }

  /** Whether the server is configured or trusted. Only then it may be published and be a member of groups. */
  get isTrusted(): boolean {
    return !this.#quarantine || this.#quarantine.open
  }

  /** Undefined if the server is not reached over Streamable HTTP. */
  get overHttp(): OverHttp | undefined {
    return this.server.overHttp
  }

  http(): Promise<HttpMount> {
    return this.#clients.http()
  }

  get place(): PipePlace {
    return this.#clients.place
  }

  pipe(streams: Pipe): Promise<void> {
    return this.#clients.pipe(streams)
  }

  drain(): void {
    this.#admission.close()
    this.#admission.end()
    this.#unsubscribe?.()
    this.#cache?.close()
    this.#clients.drain()
    if (this.#side.owner !== this) this.#clients.leaveNamed()
  }

  leave(): Promise<void> {
    return this.#clients.leave()
  }

  cut(): void {
    this.#admission.cut()
    this.#clients.cut()
  }

  get unanswered(): number {
    return this.#clients.unanswered
  }

  async close(hurry: boolean): Promise<void> {
    this.drain()
    this.cut()
    this.#clients.close()
    this.#unavailable?.close()
    if (this.#side.owner === this) await this.#side.close(hurry)
  }
}

/** What sessions of clients take from settings. */
function sessionSettingsIn(settings: MountSettings) {
  const { server: own, compat } = settings
  const { strictRevisions, emulateTasks } = compat
  const { answer: answerWithin } = timesOf(settings, own)
  return { strict: own.strictRevisions ?? strictRevisions, emulateTasks, answerWithin }
}

function callBoundIn(settings: MountSettings) {
  return { max: settings.limits.callsPerServer, share: shareOf(settings) }
}

function callTimesIn(settings: MountSettings) {
  const { call: idle, callTotal: total } = timesOf(settings, settings.server)
  return { idle, total }
}
