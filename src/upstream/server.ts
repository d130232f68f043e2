/** One server behind the bridge: finds out once what it speaks, and answers calls the way that takes. */
import type { Call, Handler, Notice, Upstream } from '../protocol/call.js'
import { NEWEST_MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { declaredCapabilities } from '../protocol/legacy.js'
import { writeMeta } from '../protocol/meta.js'
import { edit, type Json, write } from '../rpc/splice.js'
import { ChannelError, type Transport } from './channel.js'
import { openingFault } from './failure.js'
import { legacyHandler } from './legacy.js'
import { Peer } from './peer.js'
import { type Lease, SessionPool } from './pool.js'
import { type Finding, probe } from './probe.js'
import { type Identity, LegacySession, type SessionLog } from './session.js'

/** To whom sessions belong (isolation of callers from each other). */
export type Isolation = 'per-principal' | 'shared' | 'per-request'

export interface ServerOptions {
  name: string
  transport: Transport
  /** Tried when an HTTP address does not take `initialize`: HTTP+SSE at the same place. */
  fallback?: Transport
  era: 'auto' | 'legacy' | 'modern'
  isolation: Isolation
  /** The bridge's own Implementation, where no client gives one. */
  clientInfo: Json
  log: SessionLog
  /** Milliseconds. */
  timeouts: { probe: number; initialize: number; idle: number }
  maxSessions: number
}

/** What is known of a server's era, and by what. */
export interface Verdict {
  era: 'modern' | 'legacy'
  revision: string
  why: string
  transport: Transport
  since: number
  /** Milliseconds for which it holds. */
  lifetime: number
}

/** Milliseconds for which what was found out holds; a child that is restarted is known already. */
const LIFETIME = { sure: 3_600_000, weak: 300_000, child: Number.POSITIVE_INFINITY }
/** Milliseconds after a failure in which nothing is tried, doubling with each further one. */
const BACKOFF = { http: { first: 1_000, most: 5_000 }, stdio: { first: 1_000, most: 30_000 } }
/** HTTP statuses of `initialize` that say nothing about where the endpoint is. */
const ABOUT_SOMETHING_ELSE: ReadonlySet<number> = new Set([401, 403, 407, 408, 429])
const CAPABILITY_MEMO = 1_000

export class Server implements Upstream {
  readonly handle: Handler
  readonly #options: ServerOptions
  readonly #pool: SessionPool
  readonly #declared = new Map<Json, Json>()
  #verdict: Verdict | undefined
  #detecting: Promise<LegacySession> | undefined
  #failures = 0
  #down: { until: number; fault: Fault } | undefined

  constructor(options: ServerOptions) {
    this.#options = options
    this.#pool = new SessionPool({ max: options.maxSessions, idle: options.timeouts.idle })
    this.handle = legacyHandler((call) => this.#acquire(call))
  }

  /** What is known of the server, once it has been asked anything. */
  get verdict(): Verdict | undefined {
    return this.#verdict
  }

  /** Where the server is, for people. */
  get target(): string {
    return this.#options.transport.target
  }

  /** Reaches for the server before anybody calls. Rejects with a Fault where it cannot be had. */
  async warmUp(): Promise<Verdict> {
    const lease = await this.#acquire({ caller: { revision: NEWEST_MODERN, capabilities: '{}' }, principal: 'local' })
    lease.release()
    return this.#verdict as Verdict
  }

  notify(notice: Notice): void {
    const meta = writeMeta(notice.meta)
    const params = write(meta === undefined ? notice.params : edit(notice.params, { _meta: meta }))
    this.#acquire(notice)
      .then(({ session, release }) =>
        session.notify(notice.method, params === '{}' ? undefined : params).finally(release),
      )
      .catch((error: unknown) => this.#options.log.debug({ err: error }, 'notification not delivered'))
  }

  close(hurry = false): Promise<void> {
    return this.#pool.close(hurry)
  }

  #acquire(call: Pick<Call, 'caller' | 'principal'>): Promise<Lease> {
    const identity = this.#identity(call)
    return this.#acquireAs(this.#key(call, identity), identity)
  }

  async #acquireAs(key: string, identity: Identity): Promise<Lease> {
    const lease = await this.#pool.acquire(key, () => this.#open(identity))
    if (this.#options.isolation === 'per-request') lease.discard()
    return lease
  }

  #identity({ caller }: Pick<Call, 'caller'>): Identity {
    let capabilities = this.#declared.get(caller.capabilities)
    if (capabilities === undefined) {
      capabilities = declaredCapabilities(caller.capabilities)
      if (this.#declared.size >= CAPABILITY_MEMO) this.#declared.clear()
      this.#declared.set(caller.capabilities, capabilities)
    }
    return { clientInfo: caller.clientInfo ?? this.#options.clientInfo, capabilities }
  }

  /** Who may share a session: the same principal with the same capabilities, and over HTTP the same client as well. */
  #key({ principal }: Pick<Call, 'principal'>, { clientInfo, capabilities }: Identity): string {
    switch (this.#options.isolation) {
      case 'per-request':
        return `${principal} ${Math.random()}`
      case 'shared':
        return capabilities
      case 'per-principal':
        // A process is costly: clients that differ in nothing but their name share it.
        return this.#options.transport.kind === 'stdio'
          ? `${principal} ${capabilities}`
          : `${principal} ${capabilities} ${clientInfo}`
    }
  }

  async #open(identity: Identity): Promise<LegacySession> {
    if (this.#down && this.#down.until > Date.now()) throw this.#down.fault
    try {
      const session = await this.#openWith(identity)
      this.#down = undefined
      return session
    } catch (error) {
      throw this.#failed(error)
    }
  }

  async #openWith(identity: Identity): Promise<LegacySession> {
    const verdict = this.#verdict
    if (verdict && Date.now() - verdict.since < verdict.lifetime) {
      try {
        return await this.#shakeHands(verdict.transport, undefined, identity)
      } catch (error) {
        this.#verdict = undefined
        throw error
      }
    }
    // One finds out, and the others wait for what was found rather than for the session, which is not theirs.
    if (this.#detecting) {
      await this.#detecting
      return this.#openWith(identity)
    }
    this.#detecting = this.#detect(identity)
    try {
      return await this.#detecting
    } finally {
      this.#detecting = undefined
    }
  }

  async #detect(identity: Identity): Promise<LegacySession> {
    const { transport, fallback, era, timeouts, clientInfo, log } = this.#options
    const finding: Finding =
      era === 'legacy' || transport.kind === 'sse'
        ? { era: 'legacy', why: 'the configuration says so', peer: undefined, weak: false }
        : await probe({ transport, clientInfo, timeout: timeouts.probe })
    if (finding.era === 'modern') {
      await finding.peer.channel.close()
      throw new Fault(
        'upstreamIncompatible',
        `The server ${transport.target} speaks 2026-07-28, which is not supported yet`,
      )
    }
    const { session, via } = await this.#firstSession(finding, fallback, identity)
    const lifetime = transport.kind === 'stdio' ? LIFETIME.child : finding.weak ? LIFETIME.weak : LIFETIME.sure
    const { revision } = session.handshake
    this.#verdict = { era: 'legacy', revision, why: finding.why, transport: via, since: Date.now(), lifetime }
    log.debug({ era: 'legacy', revision, why: finding.why }, 'era found')
    return session
  }

  /** Opens a session where the probe left off, or afresh, or by the older transport: what works first. */
  async #firstSession(
    finding: Finding & { era: 'legacy' },
    fallback: Transport | undefined,
    identity: Identity,
  ): Promise<{ session: LegacySession; via: Transport }> {
    const { transport } = this.#options
    const peer = finding.peer?.end ? undefined : finding.peer
    try {
      return { session: await this.#shakeHands(transport, peer, identity), via: transport }
    } catch (error) {
      // A child that was asked something else before `initialize` may be in no state to answer it.
      if (transport.kind === 'stdio' && peer)
        return { session: await this.#shakeHands(transport, undefined, identity), via: transport }
      if (!fallback || !elsewhere(error)) throw error
    }
    try {
      return { session: await this.#shakeHands(fallback, undefined, identity), via: fallback }
    } catch (cause) {
      throw new ChannelError('it answers neither like Streamable HTTP nor like HTTP+SSE', { cause, delivered: 'no' })
    }
  }

  async #shakeHands(transport: Transport, open: Peer | undefined, identity: Identity): Promise<LegacySession> {
    const { log, timeouts } = this.#options
    const peer = open ?? new Peer(await transport.open())
    const onEnd = (error: ChannelError, served: boolean) => {
      if (served) this.#failures = 0
      else this.#failed(error)
    }
    try {
      return await LegacySession.open(peer, { identity, log, timeout: timeouts.initialize, onEnd })
    } catch (error) {
      await peer.channel.close()
      throw error
    }
  }

  /** Notes a failure, so that the next calls are told of it rather than all trying the same again. */
  #failed(error: unknown): Fault {
    const { transport, name } = this.#options
    const fault = openingFault(error, name)
    const { first, most } = BACKOFF[transport.kind === 'stdio' ? 'stdio' : 'http']
    const wait = Math.min(first * 2 ** this.#failures++, most)
    this.#down = { until: Date.now() + wait, fault }
    return fault
  }
}

/** Whether `initialize` was refused in a way that an older server would refuse it. */
function elsewhere(error: unknown): boolean {
  if (!(error instanceof ChannelError) || !error.refusal) return false
  const { status } = error.refusal
  return status >= 400 && status < 500 && !ABOUT_SOMETHING_ELSE.has(status)
}
