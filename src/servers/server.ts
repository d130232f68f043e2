/** One upstream server: picks the legacy or the modern half for its detected era. */

import { Fault, needsSignIn } from '../base/fault/fault.js'
import type { Signal } from '../base/time/hang-up.js'
import { keepOpen } from '../mcp/listening/keep-open.js'
import type { Gauge } from '../mcp/ports/events.js'
import { OwnedByReplica } from '../mcp/ports/replicas.js'
import type { AskedClient, Call, Final, Handler, Notice, Sender } from '../mcp/protocol/call.js'
import { LISTEN, ROOTS_CHANGED } from '../mcp/protocol/methods.js'
import { type ReceivedTrace, type TraceContext, withReceived, withTrace } from '../mcp/protocol/trace.js'
import type { LegacyRoute, OverHttp, Upstream } from '../mcp/protocol/upstream.js'
import { Capacity } from './capacity.js'
import type { ServerFailure } from './era/availability.js'
import { Detection } from './era/detection.js'
import { starting } from './era/starting.js'
import type { Verdict } from './era/verdict.js'
import { Contradiction, callFault } from './failure.js'
import type { ClientRoutes } from './legacy/client-routes.js'
import { LegacyHalf } from './legacy/half.js'
import { ModernHalf } from './modern/half.js'
import type { ServerBounds, ServerOptions } from './options.js'
import { Revision } from './revision.js'
import { TaskOwners } from './task-owners.js'
import { channelError } from './transport/answers.js'
import { HttpTransport } from './transport/http.js'

/** What a server is to the rest of the bridge, at one address or at several. */
export interface UpstreamServer
  extends Omit<Server, 'openSession' | 'programs' | 'pause' | 'isProgram'>,
    Partial<Pick<Server, 'programs' | 'pause' | 'isProgram'>> {
  /** Its addresses, if it has several. */
  readonly addresses?: readonly AddressHealth[]
}

/** The state of one of several addresses. */
export interface AddressHealth {
  address: string
  state: 'ready' | 'unknown' | 'down'
  era?: string | undefined
  revision?: string | undefined
  why?: string | undefined
  /** Calls that it is answering, and sessions with it. */
  calls: number
  sessions: number
  /** It has left the name of the server. */
  leaves?: boolean
}

export class Server implements Upstream {
  readonly #options: ServerOptions
  readonly #detection: Detection
  readonly #capacity: Capacity
  readonly #tasks: TaskOwners
  readonly #revision: Revision
  readonly #legacy: LegacyHalf
  readonly #modern: ModernHalf
  #everAnswered = false
  /** Ends the reports of other replicas. */
  readonly #unsubscribe: (() => void) | undefined
  /** Signals of calls that have been moved to the other half once. */
  readonly #moved = new WeakSet<Signal>()

  /** `tasks`: whose tasks are whose, if other addresses of the server have them too. */
  constructor(given: ServerOptions, tasks?: TaskOwners) {
    const options = { ...given }
    this.#options = options
    const { name, replicas } = options
    // Only opening a session shows the transport of some servers. Detection needs nothing else of a half.
    this.#detection = new Detection(options, (verdict, sender) =>
      this.#legacy.sessions.resolveTransport(verdict, sender),
    )
    this.#capacity = new Capacity(options, this.#detection)
    this.#tasks = tasks ?? new TaskOwners(options)
    this.#revision = new Revision(this.#tasks, options)
    const access = {
      detection: this.#detection,
      capacity: this.#capacity,
      tasks: this.#tasks,
      revision: this.#revision,
    }
    this.#legacy = new LegacyHalf(options, access)
    this.#modern = new ModernHalf(options, access)
    this.#unsubscribe = replicas?.hear(name, {
      changed: (notice) => {
        this.#legacy.sessions.onReplicaChange(notice)
        this.#modern.onReplicaChange(notice)
      },
      missed: () => this.#legacy.sessions.missed(),
    })
  }

  /** The verdict on the server's era; undefined while there is none. */
  get verdict(): Verdict | undefined {
    return this.#detection.currentVerdict
  }

  /** The server has answered at least once, even if only to require a credential. Its verdict may have expired. */
  get everAnswered(): boolean {
    return this.#everAnswered || this.#detection.currentVerdict !== undefined
  }

  /** Why the server is unavailable; undefined if it is available. */
  get down(): Fault | undefined {
    return this.#detection.down
  }

  /** The last failure of the server, also if it has worked since; undefined if there was none. */
  get lastFailure(): ServerFailure | undefined {
    return this.#detection.lastFailure
  }

  /** The number of sessions with it, or of its processes. */
  get sessions(): number {
    return this.#capacity.occupancy.used
  }

  /** The process ids of its running programs. */
  get programs(): readonly number[] {
    return this.#options.transport.programs ?? []
  }

  /** The backoff after failures: their number, and the milliseconds that remain. */
  get pause(): { failures: number; ms: number } | undefined {
    return this.#detection.pause
  }

  /** The number of calls that wait for their clients' answers. */
  get parked(): number {
    return this.#legacy.parked.size
  }

  /** The server is a program that the bridge starts. */
  get isProgram(): boolean {
    return this.#options.transport.kind === 'stdio'
  }

  /**
   * Milliseconds to wait for a server without a verdict: for the answer to the probe, then for the answer to `initialize`;
   * and, for a program that writes, from its start.
   */
  get patience(): { probe: number; initialize: number; start: number | undefined } {
    const { timeouts, transport } = this.#options
    const { probe, initialize, start } = timeouts
    return {
      probe,
      initialize: transport.kind === 'http' ? Math.min(probe, initialize) : initialize,
      start: this.isProgram ? start : undefined,
    }
  }

  /** The address or command of the server, for people. */
  get target(): string {
    return this.#options.transport.target
  }

  get gauges(): Gauge[] {
    return [this.#capacity.gauge, ...this.#legacy.gauges]
  }

  /** Undefined if the server is not reached over Streamable HTTP. */
  get overHttp(): OverHttp | undefined {
    const { transport } = this.#options
    if (!(transport instanceof HttpTransport)) return undefined
    const { url, dispatcher } = transport.origin
    const speaks = () => (this.verdict?.transport === transport ? this.verdict.era : undefined)
    return { url, dispatcher, speaks, failed: (error) => callFault(channelError(error)) }
  }

  /** Applies other bounds and time limits. Sessions, processes and calls go on. */
  change(bounds: ServerBounds): void {
    const { transport, fallback, lengths } = Object.assign(this.#options, bounds)
    this.#capacity.change()
    this.#legacy.change()
    this.#tasks.change(this.#options.share)
    if (!lengths) return
    transport.limit?.(lengths)
    fallback?.limit?.(lengths)
  }

  readonly handle: Handler = async (call) => {
    const { link } = call
    if (this.#options.replicas && !link) this.#legacy.checkOwner(call)
    const span = call.log.handedOver?.()
    const traced = span?.trace ? tracedCall(call, span.trace) : call
    const verdict = this.#detection.currentVerdict
    let last: Final
    try {
      try {
        if (link) last = await link.ask(traced)
        else last = await (verdict ? this.#half(verdict, traced) : this.#answerOnceKnown(traced))
      } catch (error) {
        if (!(error instanceof Contradiction)) throw error
        last = await this.#answerInOtherEra(traced, error)
      }
    } catch (error) {
      span?.over(endOf(traced, error))
      throw error
    }
    span?.over(last)
    return last
  }

  /** Whether the client gets the server's answer to a notification: that of a modern server over HTTP. */
  answers({ received }: Notice): boolean {
    const verdict = received && this.#detection.currentVerdict
    return verdict?.era === 'modern' && verdict.transport.kind === 'http'
  }

  notify(notice: Notice): Promise<void> | undefined {
    if (this.answers(notice)) return this.#pass(notice)
    if (notice.received?.onlyUnchanged) return undefined
    // Only open sessions hear this, so no server is looked for.
    const sent =
      notice.method === ROOTS_CHANGED
        ? this.#legacy.notify(notice)
        : this.#detection
            .known(notice)
            .then(({ era }) => (era === 'modern' ? this.#modern : this.#legacy).notify(notice))
    sent.catch((error: unknown) => this.#undelivered(error))
    return undefined
  }

  /** Passes a notification to a modern server, and its answer to the client. Rejects with a Fault. */
  async #pass(notice: Notice): Promise<void> {
    try {
      await this.#modern.notify(notice)
    } catch (error) {
      if (error instanceof Contradiction) {
        // Another notification may have started the detection already.
        if (this.#detection.currentVerdict?.era === 'modern') this.#detection.forget()
        const { era } = await this.#detection.known(notice)
        if (era === 'legacy') return void this.notify(notice)
        if (error.instead instanceof Fault) throw error.instead
      } else if (!needsSignIn(error)) throw callFault(error, true)
      // Nobody waits for the answer to a notification.
      this.#undelivered(error)
    }
  }

  #undelivered(error: unknown): void {
    this.#options.log.debug({ event: 'notification_failed', err: error }, 'notification not delivered')
  }

  legacyRoute(sender: Sender, _address?: string): Promise<LegacyRoute> {
    return this.#legacy.routes.routeOf(sender)
  }

  /** Opens a session of a client that is given the next one when it is lost. Undefined if it has no sessions. Rejects with a Fault. */
  openSession(...opening: Parameters<ClientRoutes['open']>): ReturnType<ClientRoutes['open']> {
    return this.#legacy.routes.open(...opening)
  }

  connected(principal: string, client?: AskedClient, maySleep = false): () => void {
    const left = maySleep ? undefined : this.#capacity.connected(principal, client === undefined)
    const forget = client && this.#legacy.sessions.connected(client, maySleep)
    return () => {
      left?.()
      forget?.()
    }
  }

  /**
   * Detects the server's era before the first call. Resolves to undefined if that needs the credentials of a caller.
   * Rejects with a Fault if the server is unavailable.
   */
  async warmUp(): Promise<Verdict | undefined> {
    if (this.#detection.down) {
      this.#detection.throwIfDown()
      // The server has failed since it was detected: detect it again, to see whether it is available.
      this.#detection.forget()
    }
    const { passthrough, forwards = false, accounts } = this.#options
    const verdict = await this.#detection.known().catch((error: unknown) => {
      // The era stays unknown until the first request with credentials.
      if ((passthrough || forwards) && error instanceof Fault && error.refused) return undefined
      if (accounts && needsSignIn(error)) return undefined
      throw error
    })
    this.#everAnswered = true
    if (!verdict) return undefined
    // The probe does not show that HTTP+SSE is reachable, or that a program without a clear answer accepts
    // `initialize`.
    const isSure = this.#detection.hasSpare && !verdict.weak
    if (verdict.era === 'legacy' && !isSure && verdict.transport.kind !== 'http')
      await this.#legacy.sessions.prove(verdict)
    return verdict
  }

  async close(hurry = false): Promise<void> {
    this.#capacity.close()
    this.#revision.close()
    this.#unsubscribe?.()
    this.#detection.isClosed = true
    // Channels without an owner, such as that of a probe in progress, end with the transport.
    const { transport, fallback } = this.#options
    await Promise.all([this.#legacy.close(hurry), this.#modern.close(hurry), transport.endAll?.(hurry)])
    // Nobody waits for what does not go through channels, such as requests of further paths.
    for (const one of [transport, fallback]) one?.close?.(hurry).catch(() => {})
  }

  #half({ era }: Verdict, given: Call): Promise<Final> {
    const { forwarded } = given
    // Modern servers over HTTP read the headers.
    const call = forwarded && (era === 'legacy' || this.isProgram) ? withTraceInMeta(given, forwarded) : given
    if (era === 'legacy') return this.#legacy.handle(call)
    // Over HTTP, a client opens a broken subscription again by itself. With a program, the bridge does it.
    if (call.method === LISTEN && this.isProgram)
      return keepOpen(call, {
        listen: (one) => this.#modern.handle(one).catch((error: unknown) => this.#answerInOtherEra(one, error)),
      })
    return this.#modern.handle(call)
  }

  async #answerOnceKnown(call: Call): Promise<Final> {
    const known = this.#detection.known(call)
    return this.#half(await (this.isProgram ? starting(call, known, this.#options.timeouts) : known), call)
  }

  /**
   * Answers a call that has failed with a Contradiction: detects the era again, and gives the call to the half for that era.
   * If detection confirms the era, the caller gets `instead`. A call is moved only once. Rethrows other errors.
   */
  async #answerInOtherEra(call: Call, error: unknown): Promise<Final> {
    if (!(error instanceof Contradiction)) throw error
    const { era: from, instead } = error
    if (this.#moved.has(call.signal))
      throw new Fault('upstreamIncompatible', 'The server keeps changing its protocol era')
    if (this.#options.era !== 'auto')
      throw new Fault(
        'upstreamIncompatible',
        `The server does not answer as a ${from} server, but its configuration sets "era": "${from}"`,
      )
    this.#moved.add(call.signal)
    // Another call may have started the detection already.
    if (this.#detection.currentVerdict?.era === from) this.#detection.forget()
    const verdict = await this.#detection.known(call)
    // The answers of a retry are for the legacy half; for the modern half it is a new call.
    const again = from === 'legacy' && call.answers ? { ...call, answers: undefined } : call
    if (verdict.era !== from || !instead)
      return this.#half(verdict, again).catch((next: unknown) => this.#answerInOtherEra(again, next))
    if (instead instanceof Fault) throw instead
    return instead
  }
}

/** The call with the trace context of its span, in `_meta` and in the headers. */
function tracedCall(call: Call, { traceparent, tracestate }: TraceContext): Call {
  const forwarded: Record<string, string> = { ...call.forwarded, traceparent }
  if (tracestate === undefined) delete forwarded['tracestate']
  else forwarded['tracestate'] = tracestate
  return { ...call, meta: withTrace(call.meta, { traceparent, tracestate }), forwarded }
}

/** The call with what its headers say about the trace in `_meta`, for servers that read no headers, or not these. */
function withTraceInMeta(call: Call, carried: ReceivedTrace): Call {
  const meta = withReceived(call.meta, carried)
  return meta === call.meta ? call : { ...call, meta }
}

/** The Fault of a failed call for its trace; undefined if the client no longer waits, or if another replica answers. */
function endOf({ signal: { aborted, reason } }: Call, error: unknown): Fault | undefined {
  const why: unknown = aborted ? reason : error
  const failed = why instanceof Fault || (!aborted && !(error instanceof OwnedByReplica))
  return failed ? Fault.from(why) : undefined
}
