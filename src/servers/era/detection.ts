/** Detects the era of a server, once for concurrent callers, and remembers the verdict while it is valid. */

import { Fault, isAboutOthers, needsSignIn } from '../../base/fault/fault.js'
import { type Account, LOCAL } from '../../mcp/protocol/account.js'
import type { Sender } from '../../mcp/protocol/call.js'
import { type Era, NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import type { Exchange } from '../exchange.js'
import { Contradiction, credentialOf } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { Peer } from '../peer.js'
import { ChannelError, type Transport } from '../transport/channel.js'
import { Availability } from './availability.js'
import { type ProbeResult, probe, readAnswer } from './probe.js'
import { SharedVerdicts } from './shared-verdicts.js'
import { Spare } from './spare.js'
import type { Verdict } from './verdict.js'

/** Milliseconds for which a verdict is valid. Those on programs and on modern servers do not expire. */
const LIFETIME = { sure: 3_600_000, weak: 300_000, always: Number.POSITIVE_INFINITY }

export class Detection extends Availability {
  readonly #options: ServerOptions
  readonly #resolveTransport: ResolveTransport
  /** Verdicts of other replicas, if there are any. */
  readonly #shared: SharedVerdicts | undefined
  #verdict: Verdict | undefined
  /** Running detections by account, so that a sign-in of one account does not delay the others. */
  readonly #detecting = new Map<Account | undefined, Promise<Verdict>>()
  readonly #spare: Spare
  /** Channels that have not been probed. */
  readonly #unprobed = new WeakSet<Peer>()
  /** A program that has not answered the probe yet, perhaps because it is slow to start. */
  #starting: Starting | undefined
  /** The verdict of other replicas is ignored, because it has been revoked. */
  #ignoresShared = false
  /** The server has contradicted the claim about its era. */
  #ignoresClaim = false

  constructor(options: ServerOptions, resolveTransport: ResolveTransport) {
    super(options)
    this.#options = options
    this.#resolveTransport = resolveTransport
    this.#shared = options.replicas && new SharedVerdicts(options.replicas.records, options)
    this.#spare = new Spare(options, () => this.#starting !== undefined)
  }

  /** The valid verdict; undefined if there is none. */
  get currentVerdict(): Verdict | undefined {
    const verdict = this.#verdict
    return verdict && performance.now() - verdict.since < verdict.lifetime ? verdict : undefined
  }

  /** Whether the probe has left a usable channel. */
  get hasSpare(): boolean {
    return this.#spare.isUsable
  }

  /** Returns the verdict; detects the era if needed. Rejects with a Fault if that fails. */
  async known(sender?: Sender): Promise<Verdict> {
    if (this.currentVerdict) return this.currentVerdict
    this.throwIfDown()
    const account = this.#accountOf(sender)
    const underway = this.#detecting.get(account)
    if (underway) return underway
    const began = performance.now()
    const detecting = this.#detect(sender)
      .then((verdict) => {
        this.#report(verdict.era, verdict.why, { revision: verdict.revision, ms: performance.now() - began })
        return verdict
      })
      .catch((error: unknown) => {
        const fault = this.failed(error)
        if (!isAboutOthers(fault)) this.#report('unknown', fault.fault, { ms: performance.now() - began })
        throw fault
      })
      .finally(() => this.#detecting.delete(account))
    this.#detecting.set(account, detecting)
    return detecting
  }

  /** Changes a verdict in place, because more is known about the server. This is the only place that changes verdicts. */
  amend(verdict: Verdict, more: Partial<Omit<Verdict, 'since' | 'lifetime'>>): void {
    Object.assign(verdict, more)
  }

  /** Revokes the verdict, here and for other replicas. */
  forget(): void {
    this.#verdict = undefined
    this.#ignoresShared = true
    this.#ignoresClaim = true
    this.#shared?.forget()
  }

  /**
   * Whether a program that refused `initialize` is modern after all: it answered the probe late, or was not probed
   * because its predecessor was legacy. Probes it if it has not answered yet, unless `error` shows that it did not
   * answer `initialize` either. Rejects if the probe fails.
   */
  async isModernAfterAll(verdict: Verdict, peer: Peer, error?: unknown): Promise<boolean> {
    const { transport, era } = this.#options
    if (verdict.era === 'modern') return true
    const isSure = era !== 'auto' || (!verdict.weak && !this.#unprobed.has(peer))
    const isSilent = error instanceof ChannelError && error.late
    if (isSure || isSilent || transport.kind !== 'stdio' || peer.end) return false
    try {
      const finding = await probe(this.#options, { peer })
      if (finding.era === 'modern')
        this.#turnedModern(verdict, peer, 'it answered server/discover when it was probed again')
    } catch (failure) {
      // The first probe may have been answered meanwhile, which ended the second.
      if (!this.#isModern(verdict)) throw failure
    } finally {
      this.opened(peer)
    }
    return this.#isModern(verdict)
  }

  /** Reads the era again: a verdict changes in place, which TypeScript does not expect. */
  #isModern({ era }: Verdict): boolean {
    return era === 'modern'
  }

  /** Notes that a session is open on a channel. A late answer to the probe is ignored from now on. */
  opened(peer: Peer): void {
    if (this.#starting?.peer === peer) peer.forgo(this.#starting.probe)
  }

  /** Notes that a program did not start in time, so that calls which wait for it fail too. */
  markFailed(peer: Peer, fault: Fault): void {
    if (this.#starting?.peer === peer) this.#starting.fault = fault
  }

  /** Resolves when no program is starting: the last one has answered the probe or `initialize`, or has ended. */
  whenStarted(): Promise<void> {
    return this.#starting?.over ?? Promise.resolve()
  }

  /** Waits for the late answer to a probe while `initialize` is tried. */
  #awaitStart(verdict: Verdict, peer: Peer, unanswered: Exchange): void {
    let resolve = () => {}
    const over = new Promise<void>((done) => {
      resolve = done
    })
    const starting: Starting = { verdict, peer, probe: unanswered, over }
    this.#starting = starting
    unanswered.onAnswer((answer) => {
      peer.forgo(unanswered)
      if (this.#starting === starting) this.#starting = undefined
      if (answer) this.#startedWith(readAnswer(answer, peer), verdict, peer)
      resolve()
    })
  }

  /** Takes the late answer to the probe of a program that was slow to start. */
  #startedWith(finding: ProbeResult | 'headers refused' | Fault, verdict: Verdict, peer: Peer): void {
    const pending = [...peer.open].filter((exchange) => !exchange.succeeded)
    // If a session has been opened meanwhile, it stays. A program may also refuse `initialize` before it answers the
    // probe.
    if (finding === 'headers refused' || finding instanceof Fault || (pending.length === 0 && !this.#spare.is(peer)))
      return
    const why = `${finding.why} after it had started`
    if (finding.era === 'modern') {
      this.#turnedModern(verdict, peer, why)
      const reason = new ChannelError('The server supports 2026-07-28, which has no initialize', { delivered: 'no' })
      for (const exchange of pending) exchange.fail(reason)
    } else {
      this.amend(verdict, { weak: false, why })
    }
  }

  #turnedModern(verdict: Verdict, peer: Peer, why: string): void {
    this.amend(verdict, { era: 'modern', revision: NEWEST_MODERN, why, alsoLegacy: false })
    this.#spare.keep(peer)
    this.#report('modern', why, { revision: NEWEST_MODERN })
  }

  /** The account of a sender. Without a sender, that of the local user. */
  #accountOf(sender: Sender | undefined): Account | undefined {
    return this.#options.accounts?.for(sender ?? LOCAL)
  }

  #report(era: Era | 'unknown', why: string, more: { revision?: string | undefined; ms?: number }): void {
    const { name, observe, transport } = this.#options
    observe?.({ kind: 'verdict', server: name, era, why, transport: transport.kind, ...more })
  }

  /**
   * Returns the channel that the probe has left, or opens another. While a program is starting, waits for its first
   * answer, because another process would take as long to start. Rejects with a ChannelError or a Fault, or with a
   * Contradiction if the program turns out to be modern meanwhile.
   */
  async channel(transport: Transport, options: NonNullable<Parameters<Transport['open']>[0]> = {}): Promise<Peer> {
    while (!this.hasSpare && this.#starting) {
      const awaited = this.#starting
      await awaited.over
      // Another process would take as long, and each call would start one.
      if (awaited.fault) throw awaited.fault
      if (this.#isModern(awaited.verdict)) throw new Contradiction('legacy', 'The server has no sessions')
    }
    const spare = transport === this.#options.transport ? this.#spare.take() : undefined
    if (spare) return spare
    const { log, recorder } = this.#options
    const peer = new Peer(await transport.open(options), log, recorder)
    this.#unprobed.add(peer)
    return peer
  }

  /** Takes back an unused channel: keeps it as the spare, or closes it. */
  release(peer: Peer): void {
    if (this.#spare.is(peer)) return
    if (!this.hasSpare && peer.channel.transport === 'stdio' && !this.isClosed) this.#spare.keep(peer)
    else peer.channel.close().catch(() => {})
  }

  async #detect(sender: Sender | undefined): Promise<Verdict> {
    const { transport, era } = this.#options
    const asks = era === 'auto' && transport.kind !== 'sse'
    const shared = asks && transport.kind === 'http' ? this.#shared : undefined
    const known = this.#ignoresShared ? undefined : await shared?.recall()
    if (known) return this.#accept(known)
    const claimed = asks && !this.#ignoresClaim ? this.#options.claimed?.() : undefined
    if (claimed) {
      try {
        return await this.#settle(configured(claimed, 'its server card says so'), sender, shared)
      } catch (error) {
        // The probe shows whether the claim is wrong, or the server is out of reach.
        if (needsSignIn(error)) throw error
        this.#ignoresClaim = true
      }
    }
    const finding = asks
      ? await probe(this.#options, { headers: credentialOf(sender), account: this.#accountOf(sender) })
      : configured(era)
    return this.#settle(finding, sender, shared)
  }

  /** Makes the verdict of a finding, and determines the transport of a legacy server. */
  async #settle(finding: Finding, sender: Sender | undefined, shared: SharedVerdicts | undefined): Promise<Verdict> {
    const { transport } = this.#options
    const { peer } = finding
    if (transport.kind === 'stdio' && peer?.channel.alive && !this.isClosed && !this.hasSpare) this.#spare.keep(peer)
    else await peer?.channel.close()
    const verdict = judge(finding, transport)
    if (finding.era === 'legacy' && peer && finding.unanswered) this.#awaitStart(verdict, peer, finding.unanswered)
    if (finding.era === 'legacy' && transport.kind === 'http' && !finding.spoke)
      await this.#resolveTransport(verdict, sender)
    this.#ignoresShared = false
    shared?.remember(verdict)
    return this.#accept(verdict)
  }

  #accept(verdict: Verdict): Verdict {
    const { era, why } = verdict
    this.#verdict = verdict
    this.markAvailable()
    this.#options.log.debug({ event: 'era_detected', era, why }, 'protocol era detected')
    return verdict
  }
}

function judge(finding: Finding, transport: Transport): Verdict {
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

/** Determines the transport of a legacy server by opening a session, and notes it in the verdict. */
type ResolveTransport = (verdict: Verdict, sender: Sender | undefined) => Promise<void>

/** What is known of the era: by a probe, or by the configuration. */
type Finding = ProbeResult | (Omit<ProbeResult & { era: 'modern' }, 'peer'> & { peer: undefined })

interface Starting {
  verdict: Verdict
  peer: Peer
  probe: Exchange
  /** Resolves when the probe has been answered or is no longer needed. */
  over: Promise<void>
  /** Why nobody waits for it any more. */
  fault?: Fault
}

/** The finding without a probe: HTTP+SSE is a legacy transport, and the configuration or a document may say the era. */
function configured(
  era: 'auto' | Era,
  why = era === 'auto' ? 'HTTP+SSE is a transport of that era' : 'the configuration says so',
): Finding {
  if (era === 'modern') return { era, why, peer: undefined, alsoLegacy: false, modernOnly: false }
  return { era: 'legacy', why, peer: undefined, spoke: false, weak: false }
}
