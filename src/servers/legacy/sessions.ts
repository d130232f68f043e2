/**
 * The bridge's own sessions with a legacy server: decides which callers share a session (a process, if the server is a
 * program), and opens them.
 */

import { needsSignIn } from '../../base/fault/fault.js'
import { type Reservation, SMALL } from '../../base/limits/memory.js'
import { memoize } from '../../base/rpc/memoize.js'
import { detach } from '../../base/rpc/source.js'
import { edit, type Json, parseObject, write } from '../../base/rpc/splice.js'
import type { ChangeNotice } from '../../mcp/ports/replicas.js'
import { ANONYMOUS, type AskedClient, type Call, type Caller, type Sender } from '../../mcp/protocol/call.js'
import { canBeAsked, clientName, forwardedCapabilities, withRootChanges } from '../../mcp/protocol/capabilities.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { lift } from '../../mcp/protocol/lift.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import { starting } from '../era/starting.js'
import type { Verdict } from '../era/verdict.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import { type Lift, rememberingLists } from '../lists.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'
import { openLink, reportSession } from './link.js'
import { SessionPool } from './pool.js'
import type { PoolKey } from './pool-entry.js'
import { QuestionHistory } from './question-history.js'
import { LegacySession, type SessionIdentity } from './session.js'

/** The HTTP status of a server that has removed its HTTP+SSE endpoint. */
const GONE = 410
/** Milliseconds after which the era of an HTTP server is detected again before another session is opened. */
const DETECT_AGAIN = 300_000
/** HTTP statuses of 400 to 499 that do not show whether this address is the endpoint. */
const NOT_ABOUT_ENDPOINT: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** Stands for all principals together. No principal has this name. */
const EVERYBODY = ''
/** The sender of a session that the bridge opens for itself. */
const NOBODY: Sender = { caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' }

export class LegacySessions {
  readonly #options: ServerOptions
  readonly #access: Access
  /** The connected clients that the server may ask beside their calls, by the session in which it may. */
  readonly #clients = new Map<string, Set<AskedClient>>()
  readonly #pool: SessionPool<LegacySession>
  readonly #shaking = new Set<Peer>()
  /** Tools, prompts and resources whose calls have made the server send requests. */
  readonly #questionHistory = new QuestionHistory()
  /** Translates lists of tools into the middle form. They are long and rarely change, so the results are remembered. */
  readonly #liftList: Lift
  readonly #lists: Reservation
  /** The capabilities declared to the server for a client with these capabilities. */
  readonly #declared: (capabilities: Json) => Json
  /** The answer to `roots/list` if the configuration gives it; undefined if the client answers. */
  readonly #roots: Json | undefined
  /** The last key of each caller: a client states the same about itself in each request. */
  readonly #keys = new WeakMap<Caller, { principal: string; key: string }>()

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#access = access
    const { roots, memory } = options
    this.#pool = new SessionPool(access.capacity)
    this.#lists = memory.reserve(EVERYBODY, SMALL)
    this.#liftList = rememberingLists(lift, this.#lists)
    this.#declared = memoize((capabilities) => detach(this.#withRoots(forwardedCapabilities(capabilities))))
    this.#roots =
      typeof roots === 'string' ? undefined : `{"roots":[${roots.map((uri) => JSON.stringify({ uri })).join(',')}]}`
  }

  /**
   * The session for a sender, at once if it is open; opens it if needed. The caller must call `unuse` later. Throws or
   * rejects with a Fault, or with a Contradiction if the server is modern.
   */
  use(sender: Sender & Partial<Pick<Call, 'method' | 'params'>>): LegacySession | Promise<LegacySession> {
    const { principal, caller, method } = sender
    const owner: PoolKey = { key: this.#key(sender), principal }
    const open = () => this.#open(this.identityOf(sender), sender)
    // Anonymous callers may be different people. With a session of its own, each sees only the requests caused by its
    // call.
    const asks = method !== undefined && methodTraits(method).asks
    // A call that is known to cause questions gets a session that no other call uses, so a question in it is its own.
    const hasAsked = asks && this.#options.asksAlone === true && this.#questionHistory.has(sender)
    if (hasAsked) {
      owner.clients = owner.key
      owner.key += ' asks'
    }
    const alone = asks && (principal === ANONYMOUS || hasAsked) && this.#canBeAsked(caller)
    const session = alone ? this.#pool.acquireUnused(owner, open) : this.#pool.acquire(owner, open)
    return this.#options.isolation === 'per-request' ? this.#ofOneCall(session) : session
  }

  /**
   * Notes that a client is connected until the returned function is called: its sessions stay, unless they may sleep when they
   * are idle, and it may be asked.
   */
  connected(client: AskedClient, maySleep: boolean): () => void {
    const left = this.#pool.enter(this.#key(client), maySleep)
    const key = this.#clientKey(client)
    if (key === undefined) return left
    const clients = this.#clients.get(key) ?? new Set()
    this.#clients.set(key, clients.add(client))
    for (const { serverRequests } of this.#pool.sessions) serverRequests.askHeld()
    return () => {
      clients.delete(client)
      if (clients.size === 0 && this.#clients.get(key) === clients) this.#clients.delete(key)
      left()
    }
  }

  /** The open sessions of a client whose servers hear when its roots change. */
  hearing({ principal, caller }: Sender): LegacySession[] {
    if (!this.#tellsRoots(caller)) return []
    const key = this.#keyOf(principal, caller)
    return this.#pool.sessions.filter(({ options: { identity } }) => identity.key === key)
  }

  /** Waits for the session that is being opened for a call. Reports to the caller while a program is starting. */
  opened(call: Call, opening: LegacySession | Promise<LegacySession>): LegacySession | Promise<LegacySession> {
    const { transport, timeouts } = this.#options
    if (!(opening instanceof Promise) || transport.kind !== 'stdio') return opening
    return starting(call, opening, { ...timeouts, unused: (session) => session.unuse() })
  }

  async #ofOneCall(opening: LegacySession | Promise<LegacySession>): Promise<LegacySession> {
    const session = await opening
    session.discard()
    return session
  }

  /** The identity of the session for a sender: what is declared to the server, and whose credentials are used. */
  identityOf({ caller, credential, principal, grant }: Sender): SessionIdentity {
    const { several = false, single = false, clientInfo, accounts } = this.#options
    const who = this.#whoShares(principal, caller)
    const clientKey = this.#clientKey({ principal, caller })
    const ofSeveral = principal === ANONYMOUS || (several && who === EVERYBODY)
    return {
      who,
      key: this.#keyOf(principal, caller),
      several: ofSeveral,
      single,
      clientInfo: (single ? undefined : caller.clientInfo) ?? clientInfo,
      capabilities: this.#capabilitiesFor(caller),
      credential,
      account: accounts?.for({ principal, grant }),
      client: () => {
        const clients = clientKey === undefined ? undefined : this.#clients.get(clientKey)
        return clients && [...clients].findLast(({ isGone }) => !isGone)
      },
    }
  }

  /**
   * Checks that a legacy server accepts `initialize`: opens a session and ends it, unless a caller opens one at the same
   * time. Rejects with a Fault.
   */
  async prove(verdict: Verdict): Promise<void> {
    const { detection } = this.#access
    const { weak } = verdict
    // A second process would block the one for the first client, which shows the same.
    if (this.#options.single) return
    // Callers that already wait for the server get its process first.
    await new Promise((resolve) => setImmediate(resolve))
    if (!detection.hasSpare) await detection.whenStarted()
    const said = weak && !verdict.weak
    if (verdict.era === 'modern' || verdict.revision !== undefined || said) return
    try {
      const session = await this.use(NOBODY)
      // No client can use a session with this identity.
      session.discard()
      session.unuse()
    } catch (error) {
      // The server is modern, or needs a sign-in first. Both show that it is reachable.
      if (!(error instanceof Contradiction) && !needsSignIn(error)) throw error
    }
  }

  /**
   * Determines whether the server is reached by its transport or by the fallback: the first one with which a session
   * opens. Rejects with a ChannelError or a Fault.
   */
  async resolveTransport(verdict: Verdict, sender: Sender = NOBODY): Promise<void> {
    const { fallback, timeouts } = this.#options
    const identity = this.identityOf(sender)
    // An address that did not answer the probe gets no more time for `initialize` than it got for the probe.
    const patience = verdict.weak ? Math.min(timeouts.probe, timeouts.initialize) : undefined
    const openSession = async () => {
      const opened = await this.#shakeHands(verdict, identity, patience)
      const owner = { key: this.#key(sender), principal: sender.principal }
      const session = await this.#pool.acquire(owner, () => Promise.resolve(opened))
      session.unuse()
    }
    try {
      return await openSession()
    } catch (error) {
      if (!fallback || !suggestsFallback(error)) throw error
    }
    this.#access.detection.amend(verdict, { transport: fallback })
    try {
      await openSession()
    } catch (cause) {
      // The server says that it had HTTP+SSE here, and what to use instead.
      if (cause instanceof ChannelError && cause.refusal?.status === GONE) throw cause
      throw new ChannelError('its address is neither a Streamable HTTP nor an HTTP+SSE endpoint', {
        cause,
        delivered: 'no',
      })
    }
  }

  /**
   * Reports a change that another replica received to the sessions of the same `who`. Over HTTP, the server may also
   * report it to this replica; a process reports it only to its own replica.
   */
  onReplicaChange({ who, method, params }: ChangeNotice): void {
    const same = this.#options.transport.kind !== 'stdio'
    for (const session of this.#pool.sessions) {
      if (session.options.identity.who === who) session.changeFeed.onReplicaChange(method, params, same)
    }
  }

  /** To be called when changes from other replicas may have been lost: anything may have changed. */
  missed(): void {
    if (this.#options.transport.kind === 'stdio') for (const session of this.#pool.sessions) session.changeFeed.missed()
  }

  /** Does not wait for handshakes: a server may leave one open. */
  async close(hurry: boolean): Promise<void> {
    this.#lists.end()
    for (const { channel } of this.#shaking) channel.close(hurry).catch(() => {})
    await this.#pool.close(hurry)
  }

  /** The principal whose clients share a session, or EVERYBODY. */
  #whoShares(principal: string, caller: Caller): string {
    return this.#options.isolation === 'shared' && !this.#canBeAsked(caller) ? EVERYBODY : principal
  }

  /** Whether the server may ask this client. In the only session it may not, because it could mean any of the clients. */
  #canBeAsked({ capabilities }: Caller): boolean {
    return !this.#options.single && canBeAsked(capabilities)
  }

  /** The capabilities declared to the server for a client. */
  #capabilitiesFor(caller: Caller): Json {
    const declared = this.#declared(this.#options.single ? '{}' : caller.capabilities)
    return this.#tellsRoots(caller) ? withRootChanges(declared) : declared
  }

  /** Whether the server hears when the roots of this client change. */
  #tellsRoots({ reportsRoots = false }: Caller): boolean {
    return reportsRoots && this.#options.roots === 'ask' && !this.#options.single
  }

  /**
   * Calls with the same key share a session: those of one client of one principal with the same capabilities, all calls of
   * a principal, or all calls.
   */
  #key({ principal, caller }: Sender): string {
    const { isolation } = this.#options
    if (isolation === 'per-request') return `${principal} ${Math.random()}`
    const known = this.#keys.get(caller)
    if (known?.principal === principal) return known.key
    const key = this.#keyOf(principal, caller)
    this.#keys.set(caller, { principal, key })
    return key
  }

  /**
   * The key of the session in which a server may ask this client; undefined if it may not, or if the session may be another
   * caller's, as with anonymous ones.
   */
  #clientKey({ principal, caller }: Pick<Sender, 'principal' | 'caller'>): string | undefined {
    const isOwn = principal !== ANONYMOUS && this.#options.isolation !== 'per-request' && this.#canBeAsked(caller)
    return isOwn ? this.#keyOf(principal, caller) : undefined
  }

  #keyOf(principal: string, caller: Caller): string {
    const { single, clientInfo } = this.#options
    const who = this.#whoShares(principal, caller)
    if (single) return who
    const capabilities = this.#capabilitiesFor(caller)
    // Only clients that the server cannot ask share a session. Otherwise its requests could reach the wrong principal.
    if (who === EVERYBODY) return capabilities
    return `${principal} ${capabilities} ${clientName(caller.clientInfo ?? clientInfo)}`
  }

  /** The same capabilities, with `roots` as configured. */
  #withRoots(capabilities: Json): Json {
    const { roots } = this.#options
    if (roots === 'ask') return capabilities
    return write(edit(parseObject(capabilities), { roots: roots === 'off' ? undefined : '{}' }))
  }

  /** Opens a session. Rejects with a Fault, or with a Contradiction if the server is modern. */
  async #open(identity: SessionIdentity, sender: Sender): Promise<LegacySession> {
    const { detection, capacity } = this.#access
    detection.throwIfDown()
    const { transport, since } = await detection.known(sender)
    if (transport.kind === 'http' && performance.now() - since > DETECT_AGAIN) detection.forget()
    const verdict = await this.#legacyVerdict(sender)
    await capacity.mayStart(sender.principal)
    try {
      return await this.#shakeHands(verdict, identity)
    } catch (error) {
      if (error instanceof Contradiction) throw error
      const refused = error instanceof ChannelError && error.delivered === 'maybe'
      if (!refused || transport.kind !== 'http' || this.#options.era !== 'auto') throw detection.failed(error)
      detection.forget()
      await this.#legacyVerdict(sender)
      throw detection.failed(error)
    }
  }

  async #legacyVerdict(sender: Sender): Promise<Verdict> {
    const verdict = await this.#access.detection.known(sender)
    if (verdict.era === 'modern') throw new Contradiction('legacy', 'The server has no sessions')
    return verdict
  }

  async #shakeHands(
    verdict: Verdict,
    identity: SessionIdentity,
    timeout = this.#options.timeouts.initialize,
  ): Promise<LegacySession> {
    const { name, replicas, recorder, accounts } = this.#options
    const { detection } = this.#access
    const { who } = identity
    const reported = { session: recorder && crypto.randomUUID(), principal: who }
    const onEnd = (error: ChannelError, served: boolean) => {
      this.#pool.forgetDead()
      detection.ended(error, served)
    }
    const begin = async (peer: Peer) => {
      const session = await LegacySession.open(peer, {
        server: this.#options,
        identity,
        accounts: accounts?.onBehalf ? accounts : undefined,
        timeout,
        liftList: this.#liftList,
        onEnd,
        roots: this.#roots,
        questionHistory: this.#questionHistory,
        onState: (what) => reportSession(what, this.#options, reported, peer),
        onChange: replicas && ((method, params) => replicas.tell({ server: name, who, method, params })),
      })
      // Before anybody who waits for the program hears that it has started.
      detection.amend(verdict, { revision: session.revision })
      return session
    }
    const session = await openLink({
      options: this.#options,
      detection,
      verdict,
      identity,
      peers: this.#shaking,
      begin,
    })
    this.#shaking.delete(session.link.peer)
    return session
  }
}

/** Whether an HTTP+SSE server of 2024-11-05 may have refused `initialize`, which was sent by POST to its address. */
function suggestsFallback(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  return status >= 400 && status < 500 && !NOT_ABOUT_ENDPOINT.has(status)
}
