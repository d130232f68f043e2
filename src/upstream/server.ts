/** One upstream server: picks the legacy or the modern half for its detected era. */
import type { Gauge, Observe } from '../ports/events.js'
import type { ChangeNotice, Replicas } from '../ports/replicas.js'
import type { AccountsByPrincipal } from '../protocol/account.js'
import { Bound } from '../protocol/bound.js'
import {
  ANONYMOUS,
  type Call,
  type Connect,
  type Handler,
  type LegacyRoute,
  type Notice,
  type Relayed,
  type Reply,
  type Sender,
  type Upstream,
} from '../protocol/call.js'
import { canBeAsked, carriedCapabilities, clientName } from '../protocol/capabilities.js'
import { type Era, NEWEST_LEGACY, NEWEST_MODERN } from '../protocol/eras.js'
import { Fault, isOfSignIn, needsSignIn } from '../protocol/fault.js'
import { initializeParams } from '../protocol/legacy-server.js'
import { lift } from '../protocol/lift.js'
import { type Loan, type Memory, SMALL } from '../protocol/memory.js'
import { writeMeta } from '../protocol/meta.js'
import { methodTraits } from '../protocol/methods.js'
import { Occupancy } from '../protocol/occupancy.js'
import { memoize } from '../rpc/memoize.js'
import { own } from '../rpc/own.js'
import { edit, type Json, objectIn, parseObject, value, write } from '../rpc/splice.js'
import { Detection } from './era/detection.js'
import { probe } from './era/probe.js'
import { SharedVerdicts } from './era/shared-verdicts.js'
import { starting } from './era/starting.js'
import type { Verdict } from './era/verdict.js'
import { Contradiction, callFault, contradicts, credentialOf, errorIn, refusedCall } from './failure.js'
import { handedOver } from './handover.js'
import { Askers } from './legacy/askers.js'
import { legacyHandler, type TaskMode } from './legacy/handler.js'
import { ParkedCalls, type ParkedOptions } from './legacy/parked.js'
import { type Lease, SessionPool } from './legacy/pool.js'
import { type OpenLine, ReopeningTunnel } from './legacy/reopening-tunnel.js'
import { type Identity, LegacySession, type SessionLog } from './legacy/session.js'
import { LegacyTasks } from './legacy/tasks.js'
import { negotiated } from './legacy/tunnel.js'
import { Tunnels } from './legacy/tunnels.js'
import { type Lift, rememberingLists } from './lists.js'
import { ModernServer } from './modern/handler.js'
import { Peer } from './peer.js'
import { ChannelError, type Transport } from './transport/channel.js'
import { HttpTransport } from './transport/http.js'
import { channelError } from './transport/origin.js'
import { Starts } from './transport/stdio/starts.js'

/** To whom sessions belong (isolation of callers from each other). */
export type Isolation = 'per-principal' | 'shared' | 'per-request'

export interface ServerOptions {
  name: string
  transport: Transport
  /** Tried when an HTTP address does not take `initialize`: HTTP+SSE at the same place. */
  fallback?: Transport
  era: 'auto' | Era
  isolation: Isolation
  tasks: TaskMode
  /** Whether a tool that says that this is safe is called once more when its answer was lost. */
  retry: 'off' | 'safe'
  /** Callers bring credentials of their own, which are sent on. */
  passthrough: boolean
  /** In whose name the server is asked, where the bridge signs in to it. */
  accounts?: AccountsByPrincipal | undefined
  /** What the server may know of folders: what its clients say, nothing, or these. */
  roots: 'ask' | 'off' | readonly string[]
  /** The bridge's own Implementation, where no client gives one. */
  clientInfo: Json
  log: SessionLog
  /** Who counts what happens, if anybody does. */
  observe?: Observe | undefined
  /** Milliseconds. Without `idle`, idle sessions end only to make room. */
  timeouts: { probe: number; initialize: number; idle?: number | undefined }
  /** Sessions, or processes of a program, at once. */
  maxSessions: number
  /** The part of what others leave that one principal may use; 1 by default. */
  share?: number
  /** More than one principal can exist. */
  several?: boolean
  /** Processes that one principal may start in a minute, after `maxSessions` at once. No limit by default. */
  startsPerMinute?: number | undefined
  /** For calls that wait for their clients' answers. */
  parked: Omit<ParkedOptions, 'server' | 'replica' | 'memory'>
  memory: Memory
  /** The others, where this bridge is one of several. */
  replicas?: Pick<Replicas, 'id' | 'records' | 'tell' | 'hear'> | undefined
}

/** Milliseconds after which a server is asked again what it speaks before another session is opened. */
const ASK_AGAIN = 300_000
/** HTTP statuses of `initialize` that say nothing about where the endpoint is. */
const ABOUT_SOMETHING_ELSE: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** Milliseconds between checks for idle sessions, at most. */
const SWEEP_EVERY = 30_000
/** Milliseconds for which a task is asked to be kept, and tasks that may be known at once. */
const TASK_TTL = 3_600_000
const MAX_TASKS = 1_000
/** No principal's name. */
const EVERYBODY = ''
const NOBODY: Sender = { caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' }

export class Server implements Upstream {
  readonly #options: ServerOptions
  readonly #detection: Detection
  /** All sessions with the server, or all its processes. */
  readonly #occupancy: Occupancy
  readonly #pool: SessionPool
  readonly #starts: Starts | undefined
  readonly #sweeper: NodeJS.Timeout | undefined
  /** What has been seen to ask its client something. */
  readonly #askers = new Askers()
  /** Clients that are connected, by principal. */
  readonly #clients = new Map<string, number>()
  readonly #parked: ParkedCalls
  readonly #tasks: LegacyTasks
  readonly #legacy: Handler
  readonly #modern: ModernServer
  /** Takes results into the middle. Of lists of tools, which are long and stay the same, it is done once. */
  readonly #lift: Lift
  readonly #lists: Loan
  /** What is declared to the server for clients with these capabilities. */
  readonly #declared: (capabilities: Json) => Json
  /** The answer to a server that asks for roots, where no client is asked. */
  readonly #roots: Json | undefined
  readonly #lines: Tunnels
  #met = false
  /** Hears nothing of other replicas any more. */
  readonly #unsubscribe: (() => void) | undefined
  /** The question whether a modern server keeps sessions as well, while it is asked. */
  #asking: Promise<boolean> | undefined
  /** Tells what has become of a session. */
  readonly #told: (what: 'opened' | 'ended' | 'lost') => void
  /** Signals of calls that have been answered in the other way once already. */
  readonly #moved = new WeakSet<AbortSignal>()

  constructor(options: ServerOptions) {
    this.#options = options
    const { name, transport, era, clientInfo, maxSessions, timeouts, log, observe } = options
    const { roots, isolation, share, several = false, startsPerMinute, memory } = options
    this.#lists = memory.borrow(EVERYBODY, SMALL)
    this.#lift = rememberingLists(lift, this.#lists)
    this.#declared = memoize((capabilities) => own(this.#withRoots(carriedCapabilities(capabilities))))
    this.#roots =
      typeof roots === 'string' ? undefined : `{"roots":[${roots.map((uri) => JSON.stringify({ uri })).join(',')}]}`
    const settle = (verdict: Verdict, sender: Sender = NOBODY) => this.#settle(verdict, sender)
    const { fallback, replicas, accounts } = options
    const shared = replicas && new SharedVerdicts({ records: replicas.records, server: name, transport, fallback })
    this.#told = (what) => observe?.({ kind: 'session', server: name, side: 'server', what })
    const timeout = timeouts.probe
    this.#detection = new Detection({
      name,
      transport,
      era,
      clientInfo,
      timeout,
      resolveTransport: settle,
      log,
      observe,
      shared,
      accounts,
    })
    const what = this.isProgram ? 'processes of the server' : 'sessions with the server'
    this.#occupancy = new Occupancy(new Bound({ max: maxSessions, ...(share !== undefined && { share }) }), what)
    const { idle } = timeouts
    if (idle !== undefined)
      this.#sweeper = setInterval(() => this.#occupancy.endIdle(), Math.min(idle, SWEEP_EVERY)).unref()
    // With a session for each call, the operator wants a process for each call.
    if (this.isProgram && startsPerMinute !== undefined && isolation !== 'per-request')
      this.#starts = new Starts({ burst: maxSessions, perMinute: startsPerMinute })
    const usedBy = { occupancy: this.#occupancy, idleLimit: (principal: string) => this.#idleLimit(principal) }
    this.#pool = new SessionPool(usedBy)
    this.#lines = new Tunnels({
      detection: this.#detection,
      accounts,
      occupancy: this.#occupancy,
      mayStart: (principal) => this.#mayStart(principal),
      timeout: timeouts.initialize,
      onEnd: (error) => this.#ended(error, true),
      told: this.#told,
      log,
    })
    const replica = replicas?.id
    this.#parked = new ParkedCalls({ server: name, observe, replica, share, memory, ...options.parked })
    const { keys } = options.parked
    this.#tasks = new LegacyTasks({
      server: name,
      ttl: TASK_TTL,
      max: MAX_TASKS,
      share,
      memory,
      keys,
      replica,
    })
    this.#legacy = legacyHandler({
      acquire: (call) => this.#acquireFor(call),
      isProgram: transport.kind === 'stdio',
      otherEra: (call) => this.#answerInOtherEra(call, 'legacy'),
      parked: this.#parked,
      tasks: this.#tasks,
      taskMode: options.tasks,
      retry: options.retry,
    })
    const onEnd = (error: ChannelError, served: boolean) => this.#ended(error, served)
    this.#modern = new ModernServer({
      connect: (principal) => this.#connectModern(principal),
      processes: this.isProgram ? { ...usedBy, several, separate: several && isolation !== 'shared' } : undefined,
      clientInfo,
      otherEra: (call, { instead }) => this.#answerInOtherEra(call, 'modern', instead),
      changed:
        replicas && transport.kind === 'stdio'
          ? ({ principal: who }, method, params) => replicas.tell({ server: name, who, method, params })
          : undefined,
      retry: options.retry,
      accounts,
      log,
      memory: options.memory,
      onEnd,
    })
    this.#unsubscribe = replicas?.hear(name, {
      changed: (notice) => this.#heardElsewhere(notice),
      missed: () => {
        if (transport.kind === 'stdio') for (const session of this.#pool.sessions) session.changeFeed.missed()
      },
    })
  }

  /** What is known of the server, once it has been asked anything. */
  get verdict(): Verdict | undefined {
    return this.#detection.current
  }

  /** The server has answered once, if only that it wants a credential: what is known of it may be too old by now. */
  get met(): boolean {
    return this.#met || this.#detection.current !== undefined
  }

  /** Why the server cannot be had, if it cannot. */
  get down(): Fault | undefined {
    return this.#detection.down
  }

  /** Calls that wait for their clients' answers. */
  get parked(): number {
    return this.#parked.size
  }

  /** The server is a process of ours. */
  get isProgram(): boolean {
    return this.#options.transport.kind === 'stdio'
  }

  /** Milliseconds for which it is waited for when nothing is known of it yet: for each answer, one after the other. */
  get patience(): { probe: number; initialize: number } {
    const { timeouts, transport } = this.#options
    const { probe, initialize } = timeouts
    return { probe, initialize: transport.kind === 'http' ? Math.min(probe, initialize) : initialize }
  }

  /** Where the server is, for people. */
  get target(): string {
    return this.#options.transport.target
  }

  readonly handle: Handler = (call) => {
    this.#checkOwner(call)
    return this.#answer(call)
  }

  readonly #answer = handedOver((call) => {
    const verdict = this.#detection.current
    return verdict ? this.#half(verdict)(call) : this.#answerOnceKnown(call)
  })

  /** Throws Elsewhere where what a call is about lives in another replica, whatever this one knows of the server. */
  #checkOwner(call: Call): void {
    if (!this.#options.replicas) return
    this.#parked.checkOwner(call)
    if (call.method.startsWith('tasks/')) this.#tasks.checkOwner([value(call.params, 'taskId')], call)
    if (call.method !== 'subscriptions/listen') return
    const filter = objectIn(call.params, 'notifications')
    const taskIds = filter && value(filter, 'taskIds')
    if (Array.isArray(taskIds)) this.#tasks.checkOwner(taskIds, call)
  }

  /** How far its bounds are reached. */
  get gauges(): Gauge[] {
    const { name: server, transport, maxSessions, parked } = this.#options
    const sessions = transport.kind === 'stdio' ? 'processes' : 'sessions'
    return [
      { bound: sessions, server, used: this.#occupancy.used, limit: maxSessions },
      { bound: 'parked', server, used: this.#parked.size, limit: parked.max },
      { bound: 'tasks', server, used: this.#tasks.size, limit: MAX_TASKS },
    ]
  }

  /** Reaches for the server before anybody calls. Rejects with a Fault where it cannot be had. */
  async warmUp(): Promise<Verdict | undefined> {
    if (this.#detection.down) {
      this.#detection.throwIfDown()
      // What has failed since it was asked has to show that it can be had again.
      this.#detection.forget()
    }
    const { passthrough, accounts } = this.#options
    const verdict = await this.#detection.known().catch((error: unknown) => {
      // Where callers bring credentials of their own, or have to sign in, nothing can be found out before they do.
      if (passthrough && error instanceof Fault && error.refused) return undefined
      if (accounts && needsSignIn(error)) return undefined
      throw error
    })
    this.#met = true
    if (!verdict) return undefined
    // A program that did not say what it speaks has to show that it takes `initialize`, and HTTP+SSE that it is there.
    const said = this.#detection.hasSpare && !verdict.weak
    if (verdict.era === 'legacy' && !said && verdict.transport.kind !== 'http') await this.#prove(verdict)
    return verdict
  }

  /** Opens a session with a legacy server, unless somebody else does, and ends it. Rejects with a Fault. */
  async #prove(verdict: Verdict): Promise<void> {
    const { weak } = verdict
    // Whoever waits for the server has the first use of its process.
    await new Promise((resolve) => setImmediate(resolve))
    if (!this.#detection.hasSpare) await this.#detection.started()
    const said = weak && !verdict.weak
    if (verdict.era === 'modern' || verdict.revision !== undefined || said) return
    try {
      const lease = await this.#acquire(NOBODY)
      // No client can use it.
      lease.discard()
      lease.release()
    } catch (error) {
      // It has turned out to be modern, or nobody has signed in to it.
      if (!(error instanceof Contradiction) && !needsSignIn(error)) throw error
    }
  }

  notify(notice: Notice): void {
    this.#detection
      .known(notice)
      .then((verdict) => (verdict.era === 'modern' ? this.#modern.notify(notice) : this.#notifySession(notice)))
      .catch((error: unknown) =>
        this.#options.log.debug({ event: 'notification_failed', err: error }, 'notification not delivered'),
      )
  }

  async legacyRoute(sender: Sender): Promise<LegacyRoute> {
    const verdict = await this.#withSessions(sender)
    if (!verdict) return 'translate'
    const connect: Connect = (opening, from, reopens) => {
      if (!reopens) return this.#lines.connect(verdict, opening, from)
      let known: Verdict | undefined = verdict
      const open: OpenLine = async (write) => {
        const now = known ?? (await this.#withSessions(from))
        known = undefined
        return now && this.#lines.connect(now, opening, from, write)
      }
      return ReopeningTunnel.open(open, this.#options.log)
    }
    return { transport: verdict.transport.kind, connect }
  }

  /** What is known of the server; undefined where it has no sessions for clients. Rejects with a Fault. */
  async #withSessions(sender: Sender): Promise<Verdict | undefined> {
    const verdict = await this.#detection.known(sender)
    const { transport } = verdict
    if (verdict.era === 'legacy') return verdict
    if (this.#options.era === 'modern') return undefined
    if (transport.kind === 'http' && verdict.alsoLegacy === undefined)
      this.#detection.amend(verdict, { alsoLegacy: await this.#askedForSessions(verdict, sender) })
    return verdict.alsoLegacy === false ? undefined : verdict
  }

  /** What it takes to pass messages on as they are; undefined where the server is not reached over Streamable HTTP. */
  get relayed(): Relayed | undefined {
    const { transport } = this.#options
    if (!(transport instanceof HttpTransport)) return undefined
    return {
      ...transport.address,
      speaks: () => {
        const verdict = this.#detection.current
        return verdict?.transport === transport ? verdict.era : undefined
      },
      turned: async (era, sender) => {
        if (this.#detection.current?.era === era) this.#detection.forget()
        const verdict = await this.#detection.known(sender).catch(() => undefined)
        return verdict !== undefined && verdict.era !== era
      },
      failed: (error) => callFault(channelError(error)),
      refused: (refusal) => {
        const { status } = refusal
        const answered = status >= 400 && status !== 401 && status !== 403 && errorIn(refusal) !== undefined
        return answered ? undefined : refusedCall(refusal)
      },
      contradicts,
    }
  }

  connected(principal: string): () => void {
    this.#clients.set(principal, (this.#clients.get(principal) ?? 0) + 1)
    return () => {
      const left = (this.#clients.get(principal) ?? 1) - 1
      if (left > 0) this.#clients.set(principal, left)
      else this.#clients.delete(principal)
    }
  }

  async close(hurry = false): Promise<void> {
    clearInterval(this.#sweeper)
    this.#unsubscribe?.()
    this.#parked.close()
    this.#tasks.close()
    this.#lists.end()
    const all = [this.#detection, this.#pool, this.#modern, this.#lines]
    // What nobody has yet, as a program that is still asked what it speaks, ends with the transport.
    await Promise.all([...all.map((one) => one.close(hurry)), this.#options.transport.endAll?.(hurry)])
  }

  #half({ era }: Verdict): Handler {
    return era === 'modern' ? this.#modern.handle : this.#legacy
  }

  async *#answerOnceKnown(call: Call) {
    const known = this.#detection.known(call)
    const verdict = this.isProgram && call.progress ? yield* starting(call, known) : await known
    yield* this.#half(verdict)(call)
  }

  /**
   * The server may not be what it was when the call was given to one half: asked again, it says what it is now. Where it is
   * what it was, `instead` is what the caller gets.
   */
  async *#answerInOtherEra(call: Call, from: Era, instead?: Reply | Fault): AsyncGenerator<Reply> {
    if (this.#moved.has(call.signal))
      throw new Fault('upstreamIncompatible', 'The server keeps changing its protocol era')
    if (this.#options.era !== 'auto')
      throw new Fault(
        'upstreamIncompatible',
        `The server does not speak as a ${from} one, which it is configured to be`,
      )
    this.#moved.add(call.signal)
    // Somebody else may have found out already.
    if (this.#detection.current?.era === from) this.#detection.forget()
    const verdict = await this.#detection.known(call)
    if (verdict.era !== from || !instead) yield* this.#half(verdict)(call)
    else if (instead instanceof Fault) throw instead
    else yield instead
  }

  /** A channel has come to its end by itself. */
  #ended(error: ChannelError, served: boolean): void {
    const fields = { why: error.message, stderr: error.stderr }
    this.#options.log.warn({ event: 'server_gone', ...fields }, 'server exited or closed the connection')
    if (served) this.#detection.worked(true)
    else this.#detection.failed(error)
  }

  /** Milliseconds after which an idle session of a principal ends. A program stays while a client is connected. */
  #idleLimit(principal: string): number | undefined {
    return this.isProgram && this.#clients.has(principal) ? undefined : this.#options.timeouts.idle
  }

  /** Waits until a principal may start a process, where that takes one. Rejects with a Fault. */
  async #mayStart(principal: string): Promise<void> {
    if (!this.#detection.hasSpare) await this.#starts?.turn(principal)
  }

  async #connectModern(principal: string): Promise<Peer> {
    const { transport, timeouts, clientInfo, era, log } = this.#options
    this.#detection.throwIfDown()
    await this.#mayStart(principal)
    try {
      if (transport.kind === 'http' || era === 'modern' || this.#detection.hasSpare)
        return await this.#detection.channel(transport, { stateless: true })
      // A child that is started again has to show that it is still what it was. It may be slow to start.
      const timeout = Math.max(timeouts.probe, timeouts.initialize)
      const finding = await probe({ transport, clientInfo, timeout, log })
      if (finding.era === 'modern') return finding.peer
      await finding.peer?.channel.close()
      if (finding.unanswered)
        throw new ChannelError(`No answer to server/discover in ${timeout} ms`, { delivered: 'no' })
    } catch (error) {
      throw this.#detection.failed(error)
    }
    throw new Contradiction('The server speaks 2026-07-28 no longer')
  }

  /** Asked once, however many want to know. */
  #askedForSessions(verdict: Verdict, sender: Sender): Promise<boolean> {
    this.#asking ??= this.#keepsSessions(verdict, sender).finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  /**
   * Whether a modern server over HTTP keeps sessions too. One that answers `initialize` without a session does not, and
   * where nothing speaks for sessions it is not sent: to a server of 2026-07-28 alone it is a malformed request.
   */
  async #keepsSessions({ transport, listsLegacy }: Verdict, sender: Sender): Promise<boolean> {
    const { clientInfo, capabilities } = this.#identity(sender)
    const credential = credentialOf(sender)
    const account = this.#options.accounts?.for(sender.principal)
    const peer = new Peer(await transport.open(), this.#options.log)
    peer.account = account
    const params = initializeParams(NEWEST_LEGACY, clientInfo, capabilities)
    try {
      if (!listsLegacy && !(await peer.channel.wantsSession?.(credential, account))) return false
      const answer = await peer.call('initialize', params, this.#options.timeouts.initialize, credential)
      return negotiated(answer) !== undefined && peer.channel.hasSession === true
    } catch (error) {
      // That nobody has signed in says nothing of sessions.
      if (isOfSignIn(error)) throw error
      return false
    } finally {
      await peer.channel.close()
    }
  }

  // Sessions of the bridge with a legacy server.

  #notifySession(notice: Notice): Promise<void> {
    const meta = writeMeta(notice.meta)
    const params = write(meta === undefined ? notice.params : edit(notice.params, { _meta: meta }))
    return this.#acquire(notice).then(({ session, release }) =>
      session.notify(notice.method, params === '{}' ? undefined : params).finally(release),
    )
  }

  /** Anonymous callers may be different people: nobody may see a question that was meant for somebody else. */
  #acquireFor(call: Call): Promise<Lease> {
    const alone = call.principal === ANONYMOUS && methodTraits(call.method).asks && canBeAsked(call.caller.capabilities)
    return this.#acquire(call, alone)
  }

  async #acquire(sender: Sender, alone = false): Promise<Lease> {
    const identity = this.#identity(sender)
    const { principal } = sender
    const owner = { key: this.#key(sender, identity), principal }
    const open = () => this.#open(identity, sender)
    const lease = await (alone ? this.#pool.acquireUnused(owner, open) : this.#pool.acquire(owner, open))
    if (this.#options.isolation === 'per-request') lease.discard()
    return lease
  }

  #identity({ caller, credential, principal }: Sender): Identity {
    const capabilities = this.#declared(caller.capabilities)
    const { isolation, several = false, clientInfo, accounts } = this.#options
    const who = isolation === 'shared' && !canBeAsked(caller.capabilities) ? EVERYBODY : principal
    const ofSeveral = principal === ANONYMOUS || (several && who === EVERYBODY)
    return {
      who,
      several: ofSeveral,
      clientInfo: caller.clientInfo ?? clientInfo,
      capabilities,
      credential,
      account: accounts?.for(principal),
    }
  }

  /** What another replica has heard, for those of the same here. A process tells only who is connected to it. */
  #heardElsewhere(notice: ChangeNotice): void {
    const { who, method, params } = notice
    const same = this.#options.transport.kind !== 'stdio'
    for (const session of this.#pool.sessions) {
      if (session.who === who) session.changeFeed.heardElsewhere(method, params, same)
    }
    if (!same) this.#modern.heardElsewhere(notice)
  }

  /** The same capabilities, with roots as the configuration has them. */
  #withRoots(capabilities: Json): Json {
    const { roots } = this.#options
    if (roots === 'ask') return capabilities
    return write(edit(parseObject(capabilities), { roots: roots === 'off' ? undefined : '{}' }))
  }

  /** Who may share a session: the same client of the same principal with the same capabilities, or everybody. */
  #key({ principal, caller }: Sender, { clientInfo, capabilities }: Identity): string {
    const { isolation } = this.#options
    if (isolation === 'per-request') return `${principal} ${Math.random()}`
    // What a server asks in the middle of somebody's call is nobody else's business.
    if (isolation === 'shared' && !canBeAsked(caller.capabilities)) return capabilities
    return `${principal} ${capabilities} ${clientName(clientInfo)}`
  }

  /** Opens a session. Rejects with a Fault, or with a Contradiction where the server is found to have none any more. */
  async #open(identity: Identity, sender: Sender): Promise<LegacySession> {
    this.#detection.throwIfDown()
    const { transport, since } = await this.#detection.known(sender)
    if (transport.kind === 'http' && performance.now() - since > ASK_AGAIN) this.#detection.forget()
    const verdict = await this.#legacyVerdict(sender)
    await this.#mayStart(sender.principal)
    try {
      const session = await this.#shakeHands(verdict, identity)
      this.#detection.worked(false)
      return session
    } catch (error) {
      if (error instanceof Contradiction) throw error
      const refused = error instanceof ChannelError && error.delivered === 'maybe'
      if (!refused || transport.kind !== 'http' || this.#options.era !== 'auto') throw this.#detection.failed(error)
      this.#detection.forget()
      await this.#legacyVerdict(sender)
      throw this.#detection.failed(error)
    }
  }

  async #legacyVerdict(sender: Sender): Promise<Verdict> {
    const verdict = await this.#detection.known(sender)
    if (verdict.era === 'modern') throw new Contradiction('The server has no sessions')
    return verdict
  }

  async #shakeHands(
    verdict: Verdict,
    identity: Identity,
    timeout = this.#options.timeouts.initialize,
  ): Promise<LegacySession> {
    const { log, name, replicas } = this.#options
    const { who } = identity
    const reused = this.#detection.hasSpare
    const peer = await this.#detection.channel(verdict.transport, identity)
    const onEnd = (error: ChannelError, served: boolean) => {
      this.#pool.forgetDead()
      this.#ended(error, served)
    }
    try {
      const session = await LegacySession.open(peer, {
        identity,
        log,
        timeout,
        memory: this.#options.memory,
        lift: this.#lift,
        onEnd,
        roots: this.#roots,
        askers: this.#askers,
        told: this.#told,
        changed: replicas && ((method, params) => replicas.tell({ server: name, who, method, params })),
      })
      this.#detection.amend(verdict, { revision: session.handshake.revision })
      this.#detection.opened(peer)
      return session
    } catch (error) {
      if (await this.#detection.isModernAfterAll(verdict, peer, error).catch(() => false))
        throw new Contradiction('The server has no sessions')
      await peer.channel.close()
      // A child that was asked something else before `initialize` may be in no state to answer it. One that has not said
      // anything yet is slow to start: another would be as slow.
      const slow = verdict.weak && error instanceof ChannelError && error.late
      if (reused && !slow) return this.#shakeHands(verdict, identity, timeout)
      throw error
    }
  }

  /** Nothing that the server said shows by which transport it wants to be reached: the first one that works is it. */
  async #settle(verdict: Verdict, sender: Sender): Promise<void> {
    const { fallback } = this.#options
    const identity = this.#identity(sender)
    // An address that was silent when it was probed is not waited for much longer.
    const patience = verdict.weak ? this.patience.initialize : undefined
    const tryTo = async () => {
      const session = await this.#shakeHands(verdict, identity, patience)
      const owner = { key: this.#key(sender, identity), principal: sender.principal }
      const lease = await this.#pool.acquire(owner, () => Promise.resolve(session))
      lease.release()
    }
    try {
      return await tryTo()
    } catch (error) {
      if (!fallback || !mayBeAtFallback(error)) throw error
    }
    this.#detection.amend(verdict, { transport: fallback })
    try {
      await tryTo()
    } catch (cause) {
      throw new ChannelError('it answers neither like Streamable HTTP nor like HTTP+SSE', { cause, delivered: 'no' })
    }
  }
}

/** Whether `initialize` was refused in a way that an older server would refuse it. */
function mayBeAtFallback(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  return status >= 400 && status < 500 && !ABOUT_SOMETHING_ELSE.has(status)
}
