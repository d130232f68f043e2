/** One upstream server: picks the legacy or the modern half for its detected era. */
import type { Gauge } from '../ports/events.js'
import type { Call, Handler, LegacyRoute, Notice, Relayed, Reply, Sender, Upstream } from '../protocol/call.js'
import { Fault, needsSignIn } from '../protocol/fault.js'
import { Capacity } from './capacity.js'
import { Detection } from './era/detection.js'
import { SharedVerdicts } from './era/shared-verdicts.js'
import { starting } from './era/starting.js'
import type { Verdict } from './era/verdict.js'
import type { Contradiction } from './failure.js'
import { handedOver, inEitherEra } from './handover.js'
import { LegacyHalf } from './legacy/half.js'
import { LISTEN } from './modern/channels.js'
import { ModernHalf } from './modern/handler.js'
import { keepListening } from './modern/keep-listening.js'
import type { ServerOptions } from './options.js'
import { relayedBy } from './relayed.js'
import { HttpTransport } from './transport/http.js'

export class Server implements Upstream {
  readonly #options: ServerOptions
  readonly #detection: Detection
  readonly #capacity: Capacity
  readonly #legacy: LegacyHalf
  readonly #modern: ModernHalf
  #met = false
  /** Hears nothing of other replicas any more. */
  readonly #unsubscribe: (() => void) | undefined
  /** Signals of calls that have been answered in the other way once already. */
  readonly #moved = new WeakSet<AbortSignal>()

  constructor(options: ServerOptions) {
    this.#options = options
    const { name, transport, fallback, timeouts, replicas } = options
    this.#detection = new Detection({
      ...options,
      timeout: timeouts.probe,
      // Only a session shows by which transport some servers want to be reached: the one thing that detection asks of a half.
      resolveTransport: (verdict, sender) => this.#legacy.resolveTransport(verdict, sender),
      shared: replicas && new SharedVerdicts({ records: replicas.records, server: name, transport, fallback }),
    })
    this.#capacity = new Capacity(options, this.#detection)
    const access = { detection: this.#detection, capacity: this.#capacity }
    this.#legacy = new LegacyHalf(options, access)
    this.#modern = new ModernHalf(options, access)
    this.#unsubscribe = replicas?.hear(name, {
      changed: (notice) => {
        this.#legacy.heardElsewhere(notice)
        this.#modern.heardElsewhere(notice)
      },
      missed: () => this.#legacy.missed(),
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
    return this.#legacy.parked
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

  /** How far its bounds are reached. */
  get gauges(): Gauge[] {
    return [this.#capacity.gauge, ...this.#legacy.gauges]
  }

  /** What it takes to pass messages on as they are; undefined where the server is not reached over Streamable HTTP. */
  get relayed(): Relayed | undefined {
    const { transport } = this.#options
    return transport instanceof HttpTransport ? relayedBy(transport, this.#detection) : undefined
  }

  readonly handle: Handler = (call) => {
    if (this.#options.replicas) this.#legacy.checkOwner(call)
    return this.#answer(call)
  }

  notify(notice: Notice): void {
    this.#detection
      .known(notice)
      .then(({ era }) => (era === 'modern' ? this.#modern : this.#legacy).notify(notice))
      .catch((error: unknown) =>
        this.#options.log.debug({ event: 'notification_failed', err: error }, 'notification not delivered'),
      )
  }

  legacyRoute(sender: Sender): Promise<LegacyRoute> {
    return this.#legacy.routeOf(sender)
  }

  connected(principal: string): () => void {
    return this.#capacity.connected(principal)
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
    if (verdict.era === 'legacy' && !said && verdict.transport.kind !== 'http') await this.#legacy.prove(verdict)
    return verdict
  }

  async close(hurry = false): Promise<void> {
    this.#capacity.close()
    this.#unsubscribe?.()
    const all = [this.#detection, this.#legacy, this.#modern]
    // What nobody has yet, as a program that is still asked what it speaks, ends with the transport.
    await Promise.all([...all.map((one) => one.close(hurry)), this.#options.transport.endAll?.(hurry)])
  }

  readonly #otherEra = (call: Call, why: Contradiction): AsyncIterable<Reply> => this.#answerInOtherEra(call, why)

  readonly #answer = handedOver((call) => {
    const verdict = this.#detection.current
    return verdict ? this.#half(verdict, call) : this.#answerOnceKnown(call)
  }, this.#otherEra)

  /** The replies of the half for this era. */
  #half({ era }: Verdict, call: Call): AsyncIterable<Reply> {
    if (era === 'legacy') return this.#legacy.handle(call)
    // Over HTTP the client sees that its subscription broke, and opens another. With a program it goes on, in either era.
    if (call.method === LISTEN && this.isProgram)
      return keepListening(call, () => inEitherEra(call, this.#modern.handle(call), this.#otherEra))
    return this.#modern.handle(call)
  }

  async *#answerOnceKnown(call: Call) {
    const known = this.#detection.known(call)
    const verdict = this.isProgram && call.progress ? yield* starting(call, known) : await known
    yield* this.#half(verdict, call)
  }

  /**
   * The server may not be what it was when the call was given to one half: asked again, it says what it is now. Where it is
   * what it was, `instead` is what the caller gets.
   */
  async *#answerInOtherEra(call: Call, { era: from, instead }: Contradiction): AsyncGenerator<Reply> {
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
    // A retry answers what the legacy half has asked: to the modern one it is a new call.
    const again = from === 'legacy' && call.answers ? { ...call, answers: undefined } : call
    if (verdict.era !== from || !instead) yield* this.#half(verdict, again)
    else if (instead instanceof Fault) throw instead
    else yield instead
  }
}
