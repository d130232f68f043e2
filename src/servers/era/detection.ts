/**
 * Detects the era of a server, once for concurrent callers, and remembers the verdict while it is valid. After a failure,
 * it waits before it contacts the server again.
 */

import { withoutCredentials } from '../../base/credentials/credentials.js'
import { Fault, isAboutOthers, needsSignIn } from '../../base/fault/fault.js'
import type { Json } from '../../base/rpc/splice.js'
import { backoff } from '../../base/time/pause.js'
import type { Observe } from '../../mcp/ports/events.js'
import type { ServerRecorder } from '../../mcp/ports/recorder.js'
import { type Account, type AccountsByPrincipal, LOCAL } from '../../mcp/protocol/account.js'
import type { Sender } from '../../mcp/protocol/call.js'
import { type Era, NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { adviceOn, whyInLine } from '../advice.js'
import type { Exchange } from '../exchange.js'
import { Contradiction, callFault, credentialOf, openingFault } from '../failure.js'
import { Peer, type PeerLog } from '../peer.js'
import { ChannelError, type Transport } from '../transport/channel.js'
import { type ProbeResult, probe, readAnswer } from './probe.js'
import type { SharedVerdicts } from './shared-verdicts.js'
import type { Verdict } from './verdict.js'

export interface DetectionOptions {
  /** The server's name, for people. */
  name: string
  transport: Transport
  era: 'auto' | Era
  /** The era that a document claims, which spares the probe until the server contradicts; undefined if none does. */
  claimed?: (() => Era | undefined) | undefined
  /** The bridge's own Implementation. */
  clientInfo: Json
  /** Milliseconds for the answer to the probe. */
  timeout: number
  /** Milliseconds after which a program that was only probed ends; undefined for never. */
  idle: number | undefined
  /** Determines the transport of a legacy server by opening a session, and notes it in the verdict. */
  resolveTransport(verdict: Verdict, sender: Sender | undefined): Promise<void>
  /** Verdicts of other replicas, if there are any. */
  shared?: SharedVerdicts | undefined
  /** The accounts that the bridge uses, if it signs in to the server. */
  accounts?: AccountsByPrincipal | undefined
  /** Whether it is one of several addresses of the server. */
  isOneOfSeveral?: boolean | undefined
  log: PeerLog
  observe?: Observe | undefined
  /** Records all messages, for the inspector. */
  recorder?: ServerRecorder | undefined
}

/** A failure of a server: when, in milliseconds since 1970, and why, in one line. */
export interface ServerFailure {
  at: number
  why: string
}

/** Milliseconds for which a verdict is valid. Those on programs and on modern servers do not expire. */
const LIFETIME = { sure: 3_600_000, weak: 300_000, always: Number.POSITIVE_INFINITY }
/** Milliseconds after a failure during which calls fail at once. They double with each further failure. */
const BACKOFF = { http: { first: 1_000, most: 5_000 }, stdio: { first: 1_000, most: 30_000 } }

export class Detection {
  readonly #options: DetectionOptions
  #verdict: Verdict | undefined
  /** Running detections by account, so that a sign-in of one account does not delay the others. */
  readonly #detecting = new Map<Account | undefined, Promise<Verdict>>()
  /** A channel that has been used only for the probe, so that the next session or call can use it. */
  #spare: Peer | undefined
  #spareTimer: NodeJS.Timeout | undefined
  /** Channels that have not been probed. */
  readonly #unprobed = new WeakSet<Peer>()
  /** A program that has not answered the probe yet, perhaps because it is slow to start. */
  #starting: Starting | undefined
  /** The verdict of other replicas is ignored, because it has been revoked. */
  #ignoresShared = false
  /** The server has contradicted the claim about its era. */
  #ignoresClaim = false
  #failures = 0
  #down: { until: number; fault: Fault } | undefined
  #lastFailure: ServerFailure | undefined
  isClosed = false

  constructor(options: DetectionOptions) {
    this.#options = options
  }

  /** The valid verdict; undefined if there is none. */
  get currentVerdict(): Verdict | undefined {
    const verdict = this.#verdict
    return verdict && performance.now() - verdict.since < verdict.lifetime ? verdict : undefined
  }

  /** Why the server is unavailable; undefined once it has worked again. */
  get down(): Fault | undefined {
    return this.#down?.fault
  }

  /** The last failure of the server, also if it has worked since; undefined if there was none. */
  get lastFailure(): ServerFailure | undefined {
    return this.#lastFailure
  }

  /** How many failures in a row there were, and the milliseconds for which calls fail at once; undefined if they do not. */
  get pause(): { failures: number; ms: number } | undefined {
    const ms = (this.#down?.until ?? 0) - performance.now()
    return ms > 0 ? { failures: this.#failures, ms } : undefined
  }

  /** Whether the probe has left a usable channel. */
  get hasSpare(): boolean {
    return this.#spare?.channel.alive === true && this.#spare.end === undefined
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
    this.#options.shared?.forget()
  }

  /**
   * Whether a program that refused `initialize` is modern after all: it answered the probe late, or was not probed
   * because its predecessor was legacy. Probes it if it has not answered yet, unless `error` shows that it did not
   * answer `initialize` either. Rejects if the probe fails.
   */
  async isModernAfterAll(verdict: Verdict, peer: Peer, error?: unknown): Promise<boolean> {
    const { transport, era, timeout, clientInfo, log } = this.#options
    if (verdict.era === 'modern') return true
    const isSure = era !== 'auto' || (!verdict.weak && !this.#unprobed.has(peer))
    const isSilent = error instanceof ChannelError && error.late
    if (isSure || isSilent || transport.kind !== 'stdio' || peer.end) return false
    try {
      const finding = await probe({ transport, clientInfo, timeout, peer, log })
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
    if (this.#starting?.peer === peer) this.#starting.probe.drop()
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
      unanswered.drop()
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
    if (finding === 'headers refused' || finding instanceof Fault || (pending.length === 0 && this.#spare !== peer))
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
    this.#keep(peer)
    this.#report('modern', why, { revision: NEWEST_MODERN })
  }

  /** Keeps a channel for the next session or call. If none comes, the program ends like one with an idle session. */
  #keep(peer: Peer): void {
    this.#spare = peer
    const { idle } = this.#options
    if (idle === undefined) return
    clearTimeout(this.#spareTimer)
    this.#spareTimer = setTimeout(() => {
      // A program that is slow to start is not idle.
      if (this.#starting) return this.#keep(peer)
      this.#spare = undefined
      peer.channel.close().catch(() => {})
    }, idle).unref()
  }

  /** The account of a sender. Without a sender, that of the local user. */
  #accountOf(sender: Sender | undefined): Account | undefined {
    return this.#options.accounts?.for(sender ?? LOCAL)
  }

  /** Reports a verdict, for metrics and logs. */
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
    const spare = this.hasSpare && transport === this.#options.transport ? this.#spare : undefined
    if (spare) {
      this.#spare = undefined
      clearTimeout(this.#spareTimer)
      return spare
    }
    const { log, recorder } = this.#options
    const peer = new Peer(await transport.open(options), log, recorder)
    this.#unprobed.add(peer)
    return peer
  }

  /** Takes back an unused channel: keeps it as the spare, or closes it. */
  release(peer: Peer): void {
    if (peer === this.#spare) return
    if (!this.hasSpare && peer.channel.transport === 'stdio' && !this.isClosed) this.#keep(peer)
    else peer.channel.close().catch(() => {})
  }

  /** Throws a Fault during the backoff after a failure, so that not every call tries again. */
  throwIfDown(): void {
    if (this.isClosed) throw new Fault('draining', 'The bridge is shutting down')
    if (this.#down && this.#down.until > performance.now()) throw this.#down.fault
  }

  /** Notes a failure and begins the backoff. Returns the Fault for the caller. */
  failed(error: unknown): Fault {
    const { transport, name } = this.#options
    const fault = openingFault(error, name)
    if (fault === this.#down?.fault) return fault
    // Refused credentials and missing sign-ins concern one caller only, and an unreachable Redis no server.
    if (fault.refused || isAboutOthers(fault)) return fault
    const usual = backoff(this.#failures++, BACKOFF[transport.kind === 'stdio' ? 'stdio' : 'http'])
    // Of several addresses, one that fails rests only while another one works.
    const wait = this.#options.isOneOfSeveral ? 0 : usual
    this.#down = { until: performance.now() + wait, fault }
    this.#lastFailure = { at: Date.now(), why: whyInLine(fault) }
    return fault
  }

  /** Notes that a channel has ended by itself. `served`: it has answered a request, so no backoff begins. */
  ended(error: ChannelError, served: boolean): void {
    const fault = callFault(error)
    const { next } = adviceOn(fault)
    const why = withoutCredentials(error.message)
    const fields = { why, stderr: error.stderr.map(withoutCredentials), ...(next !== undefined && { next }) }
    this.#options.log.warn({ event: 'server_gone', ...fields }, 'server exited or closed the connection')
    if (served) {
      this.markAvailable(true)
      this.#lastFailure = { at: Date.now(), why: whyInLine(fault) }
    } else this.failed(error)
  }

  /** Notes that the server is available. `served`: it has answered a request, so the count of failures starts again. */
  markAvailable(served: boolean): void {
    this.#down = undefined
    if (served) this.#failures = 0
  }

  async close(hurry: boolean): Promise<void> {
    this.isClosed = true
    clearTimeout(this.#spareTimer)
    await this.#spare?.channel.close(hurry)
  }

  async #detect(sender: Sender | undefined): Promise<Verdict> {
    const { transport, era, timeout, clientInfo, log } = this.#options
    const asks = era === 'auto' && transport.kind !== 'sse'
    const shared = asks && transport.kind === 'http' ? this.#options.shared : undefined
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
      ? await probe({
          transport,
          clientInfo,
          timeout,
          headers: credentialOf(sender),
          account: this.#accountOf(sender),
          log,
          recorder: this.#options.recorder,
        })
      : configured(era)
    return this.#settle(finding, sender, shared)
  }

  /** Makes the verdict of a finding, and determines the transport of a legacy server. */
  async #settle(finding: Finding, sender: Sender | undefined, shared: SharedVerdicts | undefined): Promise<Verdict> {
    const { transport } = this.#options
    const { peer } = finding
    if (transport.kind === 'stdio' && peer?.channel.alive && !this.isClosed && !this.hasSpare) this.#keep(peer)
    else await peer?.channel.close()
    const verdict = judge(finding, transport)
    if (finding.era === 'legacy' && peer && finding.unanswered) this.#awaitStart(verdict, peer, finding.unanswered)
    if (finding.era === 'legacy' && transport.kind === 'http' && !finding.spoke)
      await this.#options.resolveTransport(verdict, sender)
    this.#ignoresShared = false
    shared?.remember(verdict)
    return this.#accept(verdict)
  }

  #accept(verdict: Verdict): Verdict {
    const { era, why } = verdict
    this.#verdict = verdict
    this.markAvailable(false)
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
