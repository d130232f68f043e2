/** The bridge's own sessions with a server: whose each of them is, and how it is opened. */
import type { ChangeNotice } from '../../ports/replicas.js'
import { ANONYMOUS, type Sender } from '../../protocol/call.js'
import { canBeAsked, carriedCapabilities, clientName } from '../../protocol/capabilities.js'
import { NEWEST_MODERN } from '../../protocol/eras.js'
import { needsSignIn } from '../../protocol/fault.js'
import { lift } from '../../protocol/lift.js'
import { type Loan, SMALL } from '../../protocol/memory.js'
import { methodTraits } from '../../protocol/methods.js'
import { memoize } from '../../rpc/memoize.js'
import { own } from '../../rpc/own.js'
import { edit, type Json, parseObject, write } from '../../rpc/splice.js'
import type { Verdict } from '../era/verdict.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import { type Lift, rememberingLists } from '../lists.js'
import type { ServerOptions } from '../options.js'
import { ChannelError } from '../transport/channel.js'
import { Askers } from './askers.js'
import { type Lease, SessionPool } from './pool.js'
import { type Identity, LegacySession } from './session.js'

/** Milliseconds after which a server is asked again what it speaks before another session is opened. */
const ASK_AGAIN = 300_000
/** HTTP statuses of `initialize` that say nothing about where the endpoint is. */
const ABOUT_SOMETHING_ELSE: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
/** No principal's name. */
const EVERYBODY = ''
const NOBODY: Sender = { caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' }

export class LegacySessions {
  readonly #options: ServerOptions
  readonly #access: Access
  readonly #pool: SessionPool
  /** What has been seen to ask its client something. */
  readonly #askers = new Askers()
  /** Takes results into the middle. Of lists of tools, which are long and stay the same, it is done once. */
  readonly #lift: Lift
  readonly #lists: Loan
  /** What is declared to the server for clients with these capabilities. */
  readonly #declared: (capabilities: Json) => Json
  /** The answer to a server that asks for roots, where no client is asked. */
  readonly #roots: Json | undefined

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#access = access
    const { roots, memory } = options
    this.#pool = new SessionPool(access.capacity)
    this.#lists = memory.borrow(EVERYBODY, SMALL)
    this.#lift = rememberingLists(lift, this.#lists)
    this.#declared = memoize((capabilities) => own(this.#withRoots(carriedCapabilities(capabilities))))
    this.#roots =
      typeof roots === 'string' ? undefined : `{"roots":[${roots.map((uri) => JSON.stringify({ uri })).join(',')}]}`
  }

  /**
   * Lends the session of a sender, opened if need be. Rejects with a Fault, or with a Contradiction where the server has no
   * sessions any more.
   */
  async lend(sender: Sender & { method?: string }): Promise<Lease> {
    const { principal, caller, method } = sender
    const identity = this.identityOf(sender)
    const owner = { key: this.#key(sender, identity), principal }
    const open = () => this.#open(identity, sender)
    // Anonymous callers may be different people: nobody may see a question that was meant for somebody else.
    const asks = method !== undefined && methodTraits(method).asks
    const alone = principal === ANONYMOUS && asks && canBeAsked(caller.capabilities)
    const lease = await (alone ? this.#pool.acquireUnused(owner, open) : this.#pool.acquire(owner, open))
    if (this.#options.isolation === 'per-request') lease.discard()
    return lease
  }

  /** In whose name a session for a sender is opened. */
  identityOf({ caller, credential, principal }: Sender): Identity {
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

  /** Opens a session with a legacy server, unless somebody else does, and ends it. Rejects with a Fault. */
  async prove(verdict: Verdict): Promise<void> {
    const { detection } = this.#access
    const { weak } = verdict
    // Whoever waits for the server has the first use of its process.
    await new Promise((resolve) => setImmediate(resolve))
    if (!detection.hasSpare) await detection.started()
    const said = weak && !verdict.weak
    if (verdict.era === 'modern' || verdict.revision !== undefined || said) return
    try {
      const lease = await this.lend(NOBODY)
      // No client can use it.
      lease.discard()
      lease.release()
    } catch (error) {
      // It has turned out to be modern, or nobody has signed in to it.
      if (!(error instanceof Contradiction) && !needsSignIn(error)) throw error
    }
  }

  /**
   * Opens a session where only that shows by which transport the server wants to be reached: the first one that works is it.
   * Rejects with a ChannelError or a Fault.
   */
  async resolveTransport(verdict: Verdict, sender: Sender = NOBODY): Promise<void> {
    const { fallback, timeouts } = this.#options
    const identity = this.identityOf(sender)
    // An address that was silent when it was probed is not waited for much longer.
    const patience = verdict.weak ? Math.min(timeouts.probe, timeouts.initialize) : undefined
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
    this.#access.detection.amend(verdict, { transport: fallback })
    try {
      await tryTo()
    } catch (cause) {
      throw new ChannelError('it answers neither like Streamable HTTP nor like HTTP+SSE', { cause, delivered: 'no' })
    }
  }

  /** What another replica has heard, for those of the same here. A process tells only who is connected to it. */
  heardElsewhere({ who, method, params }: ChangeNotice): void {
    const same = this.#options.transport.kind !== 'stdio'
    for (const session of this.#pool.sessions) {
      if (session.who === who) session.changeFeed.heardElsewhere(method, params, same)
    }
  }

  /** What the processes of other replicas have told their sessions was not heard here: anything may have changed. */
  missed(): void {
    if (this.#options.transport.kind === 'stdio') for (const session of this.#pool.sessions) session.changeFeed.missed()
  }

  async close(hurry: boolean): Promise<void> {
    this.#lists.end()
    await this.#pool.close(hurry)
  }

  /** Who may share a session: the same client of the same principal with the same capabilities, or everybody. */
  #key({ principal, caller }: Sender, { clientInfo, capabilities }: Identity): string {
    const { isolation } = this.#options
    if (isolation === 'per-request') return `${principal} ${Math.random()}`
    // What a server asks in the middle of somebody's call is nobody else's business.
    if (isolation === 'shared' && !canBeAsked(caller.capabilities)) return capabilities
    return `${principal} ${capabilities} ${clientName(clientInfo)}`
  }

  /** The same capabilities, with roots as the configuration has them. */
  #withRoots(capabilities: Json): Json {
    const { roots } = this.#options
    if (roots === 'ask') return capabilities
    return write(edit(parseObject(capabilities), { roots: roots === 'off' ? undefined : '{}' }))
  }

  /** Opens a session. Rejects with a Fault, or with a Contradiction where the server is found to have none any more. */
  async #open(identity: Identity, sender: Sender): Promise<LegacySession> {
    const { detection, capacity } = this.#access
    detection.throwIfDown()
    const { transport, since } = await detection.known(sender)
    if (transport.kind === 'http' && performance.now() - since > ASK_AGAIN) detection.forget()
    const verdict = await this.#legacyVerdict(sender)
    await capacity.mayStart(sender.principal)
    try {
      const session = await this.#shakeHands(verdict, identity)
      detection.worked(false)
      return session
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
    identity: Identity,
    timeout = this.#options.timeouts.initialize,
  ): Promise<LegacySession> {
    const { log, name, replicas, memory, observe } = this.#options
    const { detection } = this.#access
    const { who } = identity
    const reused = detection.hasSpare
    const peer = await detection.channel(verdict.transport, identity)
    const onEnd = (error: ChannelError, served: boolean) => {
      this.#pool.forgetDead()
      detection.ended(error, served)
    }
    try {
      const session = await LegacySession.open(peer, {
        identity,
        log,
        timeout,
        memory,
        lift: this.#lift,
        onEnd,
        roots: this.#roots,
        askers: this.#askers,
        told: (what) => observe?.({ kind: 'session', server: name, side: 'server', what }),
        changed: replicas && ((method, params) => replicas.tell({ server: name, who, method, params })),
      })
      detection.amend(verdict, { revision: session.handshake.revision })
      detection.opened(peer)
      return session
    } catch (error) {
      if (await detection.isModernAfterAll(verdict, peer, error).catch(() => false))
        throw new Contradiction('legacy', 'The server has no sessions')
      await peer.channel.close()
      // A child that was asked something else before `initialize` may be in no state to answer it. One that has not said
      // anything yet is slow to start: another would be as slow.
      const slow = verdict.weak && error instanceof ChannelError && error.late
      if (reused && !slow) return this.#shakeHands(verdict, identity, timeout)
      throw error
    }
  }
}

/** Whether `initialize` was refused in a way that an older server would refuse it. */
function mayBeAtFallback(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  return status >= 400 && status < 500 && !ABOUT_SOMETHING_ELSE.has(status)
}
