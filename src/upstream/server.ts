/** One server behind the bridge: its calls are answered in the way that takes what it speaks. */
import type { Call, Handler, LegacyLeg, Notice, Relayed, Sender, Upstream } from '../protocol/call.js'
import { canBeAsked, carriedCapabilities } from '../protocol/capabilities.js'
import { type Era, NEWEST_LEGACY, NEWEST_MODERN } from '../protocol/eras.js'
import type { Gauge, Observe } from '../protocol/event.js'
import { Fault } from '../protocol/fault.js'
import { initializeParams } from '../protocol/legacy-server.js'
import { lift } from '../protocol/lift.js'
import { type Loan, type Memory, SMALL } from '../protocol/memory.js'
import { writeMeta } from '../protocol/meta.js'
import { methodTraits } from '../protocol/methods.js'
import type { ChangeNotice, Replicas } from '../protocol/replicas.js'
import { own } from '../rpc/own.js'
import { remembering } from '../rpc/remembering.js'
import { edit, type Json, objectIn, parseObject, value, write } from '../rpc/splice.js'
import { ChannelError, type Transport } from './channel.js'
import { Detection, type Verdict } from './detection.js'
import { Contradiction, credentialOf } from './failure.js'
import { handedOver } from './handover.js'
import { HttpTransport } from './http.js'
import { legacyHandler, type TaskMode } from './legacy.js'
import { negotiated } from './line.js'
import { Lines } from './lines.js'
import { type Lift, rememberingLists } from './lists.js'
import { ModernServer } from './modern.js'
import { ParkedCalls, type ParkedOptions } from './parked.js'
import { Peer } from './peer.js'
import { type Lease, SessionPool } from './pool.js'
import { probe } from './probe.js'
import { type Identity, LegacySession, type SessionLog } from './session.js'
import { LegacyTasks } from './tasks.js'
import { SharedVerdicts } from './verdicts.js'

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
  /** Callers bring credentials of their own, which are sent on. */
  passthrough: boolean
  /** What the server may know of folders: what its clients say, nothing, or these. */
  roots: 'ask' | 'off' | readonly string[]
  /** The bridge's own Implementation, where no client gives one. */
  clientInfo: Json
  log: SessionLog
  /** Who counts what happens, if anybody does. */
  observe?: Observe | undefined
  /** Milliseconds. */
  timeouts: { probe: number; initialize: number; idle: number }
  maxSessions: number
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
/** Milliseconds for which a task is asked to be kept, and tasks that may be known at once. */
const TASK_TTL = 3_600_000
const MAX_TASKS = 1_000
/** No principal's name. */
const EVERYBODY = ''
const NOBODY: Sender = { caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' }

export class Server implements Upstream {
  readonly #options: ServerOptions
  readonly #detection: Detection
  readonly #pool: SessionPool
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
  readonly #lines: Lines
  #met = false
  /** Hears nothing of other replicas any more. */
  readonly #deafen: (() => void) | undefined
  /** The question whether a modern server keeps sessions as well, while it is asked. */
  #asking: Promise<boolean> | undefined
  /** Tells what has become of a session. */
  readonly #told: (what: 'opened' | 'ended' | 'lost') => void
  /** Signals of calls that have been answered in the other way once already. */
  readonly #moved = new WeakSet<AbortSignal>()

  constructor(options: ServerOptions) {
    this.#options = options
    const { name, transport, era, clientInfo, maxSessions, timeouts, log, observe } = options
    const { roots } = options
    this.#lists = options.memory.borrow(EVERYBODY, SMALL)
    this.#lift = rememberingLists(lift, this.#lists)
    this.#declared = remembering((capabilities) => own(this.#withRoots(carriedCapabilities(capabilities))))
    this.#roots =
      typeof roots === 'string' ? undefined : `{"roots":[${roots.map((uri) => JSON.stringify({ uri })).join(',')}]}`
    const settle = (verdict: Verdict, sender: Sender = NOBODY) => this.#settle(verdict, sender)
    const { fallback, replicas } = options
    const shared = replicas && new SharedVerdicts({ records: replicas.records, server: name, transport, fallback })
    this.#told = (what) => observe?.({ kind: 'session', server: name, side: 'server', what })
    const timeout = timeouts.probe
    this.#detection = new Detection({ name, transport, era, clientInfo, timeout, settle, log, observe, shared })
    this.#pool = new SessionPool({ max: maxSessions, idle: timeouts.idle, others: () => this.#lines.size })
    this.#lines = new Lines({
      detection: this.#detection,
      max: maxSessions,
      pool: this.#pool,
      timeout: timeouts.initialize,
      onEnd: (error) => this.#ended(error, true),
      told: this.#told,
      log,
    })
    const elsewhere =
      (era: Era): Handler =>
      (call) =>
        this.#answerElsewhere(call, era)
    const replica = replicas?.id
    this.#parked = new ParkedCalls({ server: name, observe, replica, memory: options.memory, ...options.parked })
    const { keys } = options.parked
    this.#tasks = new LegacyTasks({
      server: name,
      ttl: TASK_TTL,
      max: MAX_TASKS,
      memory: options.memory,
      keys,
      replica,
    })
    this.#legacy = legacyHandler({
      acquire: (call) => this.#acquireFor(call),
      elsewhere: elsewhere('legacy'),
      parked: this.#parked,
      tasks: this.#tasks,
      taskMode: options.tasks,
    })
    const onEnd = (error: ChannelError, served: boolean) => this.#ended(error, served)
    this.#modern = new ModernServer({
      connect: () => this.#connectModern(),
      elsewhere: elsewhere('modern'),
      changed:
        replicas && transport.kind === 'stdio'
          ? ({ principal: who }, method, params) => replicas.tell({ server: name, who, method, params })
          : undefined,
      log,
      memory: options.memory,
      onEnd,
    })
    this.#deafen = replicas?.hear(name, {
      changed: (notice) => this.#heardElsewhere(notice),
      missed: () => {
        if (transport.kind === 'stdio') for (const session of this.#pool.sessions) session.watching.missed()
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
      { bound: sessions, server, used: this.#pool.size + this.#lines.size, limit: maxSessions },
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
    const verdict = await this.#detection.known().catch((error: unknown) => {
      // Where callers bring credentials of their own, nothing can be found out without one.
      if (this.#options.passthrough && error instanceof Fault && error.refused) return undefined
      throw error
    })
    this.#met = true
    if (!verdict) return undefined
    // A child that did not stand being asked has to show that it takes `initialize`, and HTTP+SSE that it is there.
    const proven = verdict.era === 'modern' || this.#detection.hasSpare || verdict.transport.kind === 'http'
    if (!proven) (await this.#acquire(NOBODY)).release()
    return verdict
  }

  notify(notice: Notice): void {
    this.#detection
      .known()
      .then((verdict) => (verdict.era === 'modern' ? this.#modern.notify(notice) : this.#notifySession(notice)))
      .catch((error: unknown) => this.#options.log.debug({ err: error }, 'notification not delivered'))
  }

  async legacyLeg(sender: Sender): Promise<LegacyLeg> {
    const verdict = await this.#detection.known(sender)
    const { transport } = verdict
    if (verdict.era === 'modern') {
      if (this.#options.era === 'modern') return 'translate'
      if (transport.kind === 'http') verdict.alsoLegacy ??= await this.#askedForSessions(verdict, sender)
      if (verdict.alsoLegacy === false) return 'translate'
    }
    return { transport: transport.kind, connect: (opening, from) => this.#lines.connect(verdict, opening, from) }
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
      doubt: () => this.#detection.forget(),
    }
  }

  async close(hurry = false): Promise<void> {
    this.#deafen?.()
    this.#parked.close()
    this.#tasks.close()
    this.#lists.end()
    const all = [this.#detection, this.#pool, this.#modern, this.#lines]
    await Promise.all(all.map((one) => one.close(hurry)))
  }

  #half({ era }: Verdict): Handler {
    return era === 'modern' ? this.#modern.handle : this.#legacy
  }

  async *#answerOnceKnown(call: Call) {
    yield* this.#half(await this.#detection.known(call))(call)
  }

  /** The server is not what it was when the call was given to one half: asked again, it may say what it is now. */
  async *#answerElsewhere(call: Call, from: Era) {
    if (this.#moved.has(call.signal))
      throw new Fault('upstreamIncompatible', 'The server does not stay with what it says that it speaks')
    if (this.#options.era !== 'auto')
      throw new Fault(
        'upstreamIncompatible',
        `The server does not speak as a ${from} one, which it is configured to be`,
      )
    this.#moved.add(call.signal)
    // Somebody else may have found out already.
    if (this.#detection.current?.era === from) this.#detection.forget()
    yield* this.#answerOnceKnown(call)
  }

  /** A channel has come to its end by itself. */
  #ended(error: ChannelError, served: boolean): void {
    this.#options.log.warn({ why: error.message, stderr: error.stderr }, 'the server has gone')
    if (served) this.#detection.worked(true)
    else this.#detection.failed(error)
  }

  async #connectModern(): Promise<Peer> {
    const { transport, timeouts, clientInfo, era } = this.#options
    this.#detection.throwIfDown()
    try {
      if (transport.kind === 'http' || era === 'modern' || this.#detection.hasSpare)
        return await this.#detection.channel(transport, true)
      // A child that is started again has to show that it is still what it was.
      const finding = await probe({ transport, clientInfo, timeout: timeouts.probe })
      if (finding.era === 'modern') return finding.peer
      await finding.peer?.channel.close()
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
    const peer = new Peer(await transport.open())
    const params = initializeParams(NEWEST_LEGACY, clientInfo, capabilities)
    try {
      if (!listsLegacy && !(await peer.channel.wantsSession?.(credential))) return false
      const answer = await peer.call('initialize', params, this.#options.timeouts.initialize, credential)
      return negotiated(answer) !== undefined && peer.channel.hasSession === true
    } catch {
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

  /**
   * A call that may be asked something gets a session to itself, where questions would come without an address. A process is
   * costly, so that calls of one principal share it; of those that nobody knows, each may be of another.
   */
  #acquireFor(call: Call): Promise<Lease> {
    const { asks } = methodTraits(call.method)
    const shares = !asks || (this.#options.transport.kind === 'stdio' && call.principal !== 'anon')
    return this.#acquire(call, !shares && canBeAsked(call.caller.capabilities))
  }

  async #acquire(sender: Sender, alone = false): Promise<Lease> {
    const identity = this.#identity(sender)
    const key = this.#key(sender, identity)
    const open = () => this.#open(identity)
    const lease = await (alone ? this.#pool.acquireAlone(key, open) : this.#pool.acquire(key, open))
    if (this.#options.isolation === 'per-request') lease.discard()
    return lease
  }

  #identity({ caller, credential, principal }: Sender): Identity {
    const capabilities = this.#declared(caller.capabilities)
    const who = this.#options.isolation === 'shared' && !canBeAsked(caller.capabilities) ? EVERYBODY : principal
    return { who, clientInfo: caller.clientInfo ?? this.#options.clientInfo, capabilities, credential }
  }

  /** What another replica has heard, for those of the same here. A process tells only who is connected to it. */
  #heardElsewhere(notice: ChangeNotice): void {
    const { who, method, params } = notice
    const same = this.#options.transport.kind !== 'stdio'
    for (const session of this.#pool.sessions) {
      if (session.who === who) session.watching.heardElsewhere(method, params, same)
    }
    if (!same) this.#modern.heardElsewhere(notice)
  }

  /** The same capabilities, with roots as the configuration has them. */
  #withRoots(capabilities: Json): Json {
    const { roots } = this.#options
    if (roots === 'ask') return capabilities
    return write(edit(parseObject(capabilities), { roots: roots === 'off' ? undefined : '{}' }))
  }

  /** Who may share a session: the same principal with the same capabilities, and over HTTP the same client as well. */
  #key({ principal, caller }: Sender, { clientInfo, capabilities }: Identity): string {
    switch (this.#options.isolation) {
      case 'per-request':
        return `${principal} ${Math.random()}`
      case 'shared':
        // What a server asks in the middle of somebody's call is nobody else's business.
        return canBeAsked(caller.capabilities) ? `${principal} ${capabilities}` : capabilities
      case 'per-principal':
        // A process is costly: clients that differ in nothing but their name share it.
        return this.#options.transport.kind === 'stdio'
          ? `${principal} ${capabilities}`
          : `${principal} ${capabilities} ${clientInfo}`
    }
  }

  /** Opens a session. Rejects with a Fault, or with a Contradiction where the server is found to have none any more. */
  async #open(identity: Identity): Promise<LegacySession> {
    this.#detection.throwIfDown()
    const { transport, since } = await this.#detection.known()
    if (transport.kind === 'http' && Date.now() - since > ASK_AGAIN) this.#detection.forget()
    const verdict = await this.#legacyVerdict()
    try {
      const session = await this.#shakeHands(verdict, identity)
      this.#detection.worked(false)
      return session
    } catch (error) {
      if (error instanceof Contradiction) throw error
      const refused = error instanceof ChannelError && error.delivered === 'maybe'
      if (!refused || transport.kind !== 'http' || this.#options.era !== 'auto') throw this.#detection.failed(error)
      this.#detection.forget()
      await this.#legacyVerdict()
      throw this.#detection.failed(error)
    }
  }

  async #legacyVerdict(): Promise<Verdict> {
    const verdict = await this.#detection.known()
    if (verdict.era === 'modern') throw new Contradiction('The server has no sessions')
    return verdict
  }

  async #shakeHands(verdict: Verdict, identity: Identity): Promise<LegacySession> {
    const { log, timeouts, name, replicas } = this.#options
    const { who } = identity
    const reused = this.#detection.hasSpare
    const peer = await this.#detection.channel(verdict.transport)
    const onEnd = (error: ChannelError, served: boolean) => this.#ended(error, served)
    try {
      const session = await LegacySession.open(peer, {
        identity,
        log,
        timeout: timeouts.initialize,
        memory: this.#options.memory,
        lift: this.#lift,
        onEnd,
        roots: this.#roots,
        told: this.#told,
        changed: replicas && ((method, params) => replicas.tell({ server: name, who, method, params })),
      })
      verdict.revision = session.handshake.revision
      return session
    } catch (error) {
      if (peer.end === undefined && (await this.#detection.isModernAfterAll(verdict, peer).catch(() => false)))
        throw new Contradiction('The server has no sessions')
      await peer.channel.close()
      // A child that was asked something else before `initialize` may be in no state to answer it.
      if (reused) return this.#shakeHands(verdict, identity)
      throw error
    }
  }

  /** Nothing that the server said shows by which transport it wants to be reached: the first one that works is it. */
  async #settle(verdict: Verdict, sender: Sender): Promise<void> {
    const { fallback } = this.#options
    const identity = this.#identity(sender)
    const tryTo = async () => {
      const session = await this.#shakeHands(verdict, identity)
      const lease = await this.#pool.acquire(this.#key(sender, identity), () => Promise.resolve(session))
      lease.release()
    }
    try {
      return await tryTo()
    } catch (error) {
      if (!fallback || !elsewhere(error)) throw error
    }
    verdict.transport = fallback
    try {
      await tryTo()
    } catch (cause) {
      throw new ChannelError('it answers neither like Streamable HTTP nor like HTTP+SSE', { cause, delivered: 'no' })
    }
  }
}

/** Whether `initialize` was refused in a way that an older server would refuse it. */
function elsewhere(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  return status >= 400 && status < 500 && !ABOUT_SOMETHING_ELSE.has(status)
}
