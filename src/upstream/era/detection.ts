/** What a server speaks: found out once, however many want to know, and remembered for as long as it is likely to hold. */

import type { Observe } from '../../ports/events.js'
import type { Account, AccountsByPrincipal } from '../../protocol/account.js'
import type { Sender } from '../../protocol/call.js'
import { type Era, NEWEST_MODERN } from '../../protocol/eras.js'
import { Fault, isOfSignIn } from '../../protocol/fault.js'
import type { Json } from '../../rpc/splice.js'
import { backoff } from '../../time.js'
import type { Exchange } from '../exchange.js'
import { Contradiction, credentialOf, openingFault } from '../failure.js'
import { Peer, type PeerLog } from '../peer.js'
import { ChannelError, type Transport } from '../transport/channel.js'
import { type Finding, probe, readAnswer } from './probe.js'
import type { SharedVerdicts } from './shared-verdicts.js'
import type { Verdict } from './verdict.js'

export interface DetectionOptions {
  /** The server's name, for people. */
  name: string
  transport: Transport
  era: 'auto' | Era
  /** The bridge's own Implementation. */
  clientInfo: Json
  /** Milliseconds for the answer to the probe. */
  timeout: number
  /** Opens a session for whoever asked, where nothing shows by which transport that goes, and notes what worked. */
  resolveTransport(verdict: Verdict, sender: Sender | undefined): Promise<void>
  /** What other replicas have found out of it. */
  shared?: SharedVerdicts | undefined
  /** In whose name the server is asked, where the bridge signs in to it. */
  accounts?: AccountsByPrincipal | undefined
  log: PeerLog
  observe?: Observe | undefined
}

/** Milliseconds for which what was found out holds; a child that is restarted is known already. */
const LIFETIME = { sure: 3_600_000, weak: 300_000, always: Number.POSITIVE_INFINITY }
/** Milliseconds after a failure in which nothing is tried, doubling with each further one. */
const BACKOFF = { http: { first: 1_000, most: 5_000 }, stdio: { first: 1_000, most: 30_000 } }

export class Detection {
  readonly #options: DetectionOptions
  #verdict: Verdict | undefined
  /** By account: who has to sign in first holds up nobody who has. */
  readonly #detecting = new Map<Account | undefined, Promise<Verdict>>()
  /** A channel through which nothing but the probe has gone. */
  #spare: Peer | undefined
  /** Channels to processes that have not been asked what they speak. */
  readonly #unasked = new WeakSet<Peer>()
  /** A program that has not answered the probe and still may, because it may be slow to start. */
  #starting: Starting | undefined
  /** What other replicas know is not to be relied on. */
  #asksItself = false
  #failures = 0
  #down: { until: number; fault: Fault } | undefined
  #closed = false

  constructor(options: DetectionOptions) {
    this.#options = options
  }

  /** What is known now, without asking; undefined where that is nothing, or too old. */
  get current(): Verdict | undefined {
    const verdict = this.#verdict
    return verdict && performance.now() - verdict.since < verdict.lifetime ? verdict : undefined
  }

  /** Why the server cannot be had, as long as nothing has shown that it can again. */
  get down(): Fault | undefined {
    return this.#down?.fault
  }

  /** Whether the probe has left a channel behind that is fit for the first session. */
  get hasSpare(): boolean {
    return this.#spare?.channel.alive === true && this.#spare.end === undefined
  }

  /** What the server speaks. Rejects with a Fault where that cannot be found out. */
  async known(sender?: Sender): Promise<Verdict> {
    if (this.current) return this.current
    this.throwIfDown()
    const account = this.#accountOf(sender)
    const underway = this.#detecting.get(account)
    if (underway) return underway
    const detecting = this.#detect(sender)
      .catch((error: unknown) => {
        const fault = this.failed(error)
        if (!isOfSignIn(fault)) this.#tell('unknown', fault.fault)
        throw fault
      })
      .finally(() => this.#detecting.delete(account))
    this.#detecting.set(account, detecting)
    return detecting
  }

  /** Adds to a verdict what has become known of the server since. Nothing else changes a verdict. */
  amend(verdict: Verdict, more: Partial<Omit<Verdict, 'since' | 'lifetime'>>): void {
    Object.assign(verdict, more)
  }

  /** What was known is no longer so. */
  forget(): void {
    this.#verdict = undefined
    this.#asksItself = true
    this.#options.shared?.forget()
  }

  /**
   * Whether a program that does not take `initialize` is a modern one, which was slow to answer the probe, or has not been
   * asked because one before it was of the other era. If it has not answered meanwhile, it is probed, unless `error` says
   * that it has not answered `initialize` either.
   */
  async isModernAfterAll(verdict: Verdict, peer: Peer, error?: unknown): Promise<boolean> {
    const { transport, era, timeout, clientInfo, log } = this.#options
    if (verdict.era === 'modern') return true
    const said = era !== 'auto' || (!verdict.weak && !this.#unasked.has(peer))
    const silent = error instanceof ChannelError && error.late
    if (said || silent || transport.kind !== 'stdio' || peer.end) return false
    try {
      const finding = await probe({ transport, clientInfo, timeout, peer, log })
      if (finding.era === 'modern')
        this.#turnedModern(verdict, peer, 'it answered server/discover when it was asked again')
    } catch (failure) {
      // The first probe may have been answered meanwhile, and has ended the second.
      if (!this.#turned(verdict)) throw failure
    } finally {
      this.opened(peer)
    }
    return this.#turned(verdict)
  }

  #turned({ era }: Verdict): boolean {
    return era === 'modern'
  }

  /** Notes that a session is open on a channel: a late answer to the probe is ignored from now on. */
  opened(peer: Peer): void {
    if (this.#starting?.peer === peer) this.#starting.probe.drop()
  }

  /** Resolves when a program that has not answered the probe in time has answered it or `initialize`, or has ended. */
  started(): Promise<void> {
    return this.#starting?.over ?? Promise.resolve()
  }

  /** Waits for the answer to a probe that was not answered in time, while somebody asks for a session. */
  #awaitStart(verdict: Verdict, peer: Peer, unanswered: Exchange): void {
    let resolve = () => {}
    const over = new Promise<void>((done) => {
      resolve = done
    })
    const starting = { verdict, peer, probe: unanswered, over }
    this.#starting = starting
    unanswered.onAnswer((answer) => {
      unanswered.drop()
      if (this.#starting === starting) this.#starting = undefined
      if (answer) this.#startedWith(readAnswer(answer, peer), verdict, peer)
      resolve()
    })
  }

  /** A program that was slow to start has answered the probe after all. */
  #startedWith(finding: Finding | 'headers refused', verdict: Verdict, peer: Peer): void {
    const asking = [...peer.open].filter((exchange) => !exchange.succeeded)
    // A session that has been opened meanwhile stays. A program may refuse `initialize` before it answers the probe.
    if (finding === 'headers refused' || (asking.length === 0 && this.#spare !== peer)) return
    const why = `${finding.why} after it had started`
    if (finding.era === 'modern') {
      this.#turnedModern(verdict, peer, why)
      const reason = new ChannelError('The server has answered that it speaks 2026-07-28', { delivered: 'no' })
      for (const exchange of asking) exchange.fail(reason)
    } else {
      this.amend(verdict, { weak: false, why })
    }
  }

  #turnedModern(verdict: Verdict, peer: Peer, why: string): void {
    this.amend(verdict, { era: 'modern', revision: NEWEST_MODERN, why, alsoLegacy: false })
    this.#spare = peer
    this.#tell('modern', why)
  }

  /** Who works at this machine asks for what nobody in particular wants to know. */
  #accountOf(sender: Sender | undefined): Account | undefined {
    return this.#options.accounts?.for(sender?.principal ?? 'local')
  }

  #tell(era: Era | 'unknown', why: string): void {
    const { name, observe } = this.#options
    observe?.({ kind: 'verdict', server: name, era, why })
  }

  /**
   * The channel that the probe has left, if it is still there; else another. While somebody else waits for the first answer
   * on that channel, this waits too: another process would take as long to start. Rejects with a ChannelError, or with a
   * Contradiction where the program turns out to be modern meanwhile.
   */
  async channel(
    transport: Transport,
    { stateless = false, account }: { stateless?: boolean; account?: Account | undefined } = {},
  ): Promise<Peer> {
    while (!this.hasSpare && this.#starting) {
      const { verdict, over } = this.#starting
      await over
      if (this.#turned(verdict)) throw new Contradiction('legacy', 'The server has no sessions')
    }
    const spare = this.hasSpare && transport === this.#options.transport ? this.#spare : undefined
    if (spare) {
      this.#spare = undefined
      return spare
    }
    const peer = new Peer(await transport.open({ stateless, account }), this.#options.log)
    this.#unasked.add(peer)
    return peer
  }

  /** Puts a channel back that has come to no use. */
  giveBack(peer: Peer): void {
    if (peer === this.#spare) return
    if (!this.hasSpare && peer.channel.transport === 'stdio' && !this.#closed) this.#spare = peer
    else peer.channel.close().catch(() => {})
  }

  /** Throws while the server is known to be down, so that not all calls try the same again. */
  throwIfDown(): void {
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    if (this.#down && this.#down.until > performance.now()) throw this.#down.fault
  }

  /** Notes a failure. Gives the Fault that says so. */
  failed(error: unknown): Fault {
    const { transport, name } = this.#options
    const fault = openingFault(error, name)
    // What one caller may not know, another may.
    if (fault.refused || isOfSignIn(fault)) return fault
    const wait = backoff(this.#failures++, BACKOFF[transport.kind === 'stdio' ? 'stdio' : 'http'])
    this.#down = { until: performance.now() + wait, fault }
    return fault
  }

  /** Notes that a channel has come to its end by itself; `served` says whether it has answered a call at all. */
  ended(error: ChannelError, served: boolean): void {
    const fields = { why: error.message, stderr: error.stderr }
    this.#options.log.warn({ event: 'server_gone', ...fields }, 'server exited or closed the connection')
    if (served) this.worked(true)
    else this.failed(error)
  }

  /** Notes that the server works: it could be reached, or has answered a call. */
  worked(served: boolean): void {
    this.#down = undefined
    if (served) this.#failures = 0
  }

  async close(hurry: boolean): Promise<void> {
    this.#closed = true
    await this.#spare?.channel.close(hurry)
  }

  async #detect(sender: Sender | undefined): Promise<Verdict> {
    const { transport, era, timeout, clientInfo, log } = this.#options
    const asks = era === 'auto' && transport.kind !== 'sse'
    const shared = asks && transport.kind === 'http' ? this.#options.shared : undefined
    const known = this.#asksItself ? undefined : await shared?.recall()
    if (known) return this.#found(known)
    const finding = asks
      ? await probe({
          transport,
          clientInfo,
          timeout,
          headers: credentialOf(sender),
          account: this.#accountOf(sender),
          log,
        })
      : configured(era)
    const { peer } = finding
    if (transport.kind === 'stdio' && peer?.channel.alive && !this.#closed && !this.hasSpare) this.#spare = peer
    else await peer?.channel.close()
    const verdict = judge(finding, transport)
    if (finding.era === 'legacy' && peer && finding.unanswered) this.#awaitStart(verdict, peer, finding.unanswered)
    if (finding.era === 'legacy' && transport.kind === 'http' && !finding.spoke)
      await this.#options.resolveTransport(verdict, sender)
    this.#asksItself = false
    shared?.remember(verdict)
    return this.#found(verdict)
  }

  #found(verdict: Verdict): Verdict {
    const { era, why } = verdict
    this.#verdict = verdict
    this.worked(false)
    this.#options.log.debug({ event: 'era_detected', era, why }, 'protocol era detected')
    this.#tell(era, why)
    return verdict
  }
}

function judge(finding: Finding | Configured, transport: Transport): Verdict {
  const { era, why } = finding
  const weak = finding.era === 'legacy' && finding.weak
  const always = transport.kind === 'stdio' || era === 'modern'
  return {
    era,
    revision: era === 'modern' ? NEWEST_MODERN : undefined,
    why,
    transport,
    since: performance.now(),
    lifetime: always ? LIFETIME.always : weak ? LIFETIME.weak : LIFETIME.sure,
    weak,
    listsLegacy: finding.era === 'modern' && finding.alsoLegacy,
    ...(finding.era === 'modern' && finding.modernOnly && { alsoLegacy: false }),
  }
}

interface Starting {
  verdict: Verdict
  peer: Peer
  probe: Exchange
  /** Resolves when the probe has been answered, or its answer does not count any more. */
  over: Promise<void>
}

type Configured =
  | { era: 'modern'; why: string; peer: undefined; alsoLegacy: boolean; modernOnly: boolean }
  | { era: 'legacy'; why: string; peer: undefined; spoke: boolean; weak: boolean; unanswered?: undefined }

/** Nobody needs to be asked: HTTP+SSE is of the legacy era, and the configuration may say what it knows. */
function configured(era: 'auto' | Era): Configured {
  const why = era === 'auto' ? 'HTTP+SSE is a transport of that era' : 'the configuration says so'
  if (era === 'modern') return { era, why, peer: undefined, alsoLegacy: false, modernOnly: false }
  return { era: 'legacy', why, peer: undefined, spoke: false, weak: false }
}
