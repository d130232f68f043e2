/**
 * The server's side of a direct session: a legacy client's own session with a legacy server. Only ids and progress tokens of
 * messages are changed.
 */

import { Fault } from '../../base/fault/fault.js'
import {
  type Id,
  idKey,
  type Notification,
  notification,
  type Params,
  parseMessage,
  type Request,
  type Response,
  response as responseMessage,
  result as resultMessage,
  type Sent,
} from '../../base/rpc/message.js'
import { detach, join, lengthOf, sourceOf, type Wire, wireOf } from '../../base/rpc/source.js'
import { EMPTY, edit, type Json, objectIn, type Payload, raw, write } from '../../base/rpc/splice.js'
import { edited, type PassedEvent, type PassedStream } from '../../base/rpc/sse.js'
import type { Signal } from '../../base/time/hang-up.js'
import { within } from '../../base/time/time.js'
import { isShorter } from '../../mcp/protocol/absent.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { ReceivedOneWay, SentBatch } from '../../mcp/protocol/call.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import { type LegacyRevision, NEWEST_LEGACY } from '../../mcp/protocol/eras.js'
import { negotiated, offers } from '../../mcp/protocol/legacy-server.js'
import { CALL_TOOL, methodTraits } from '../../mcp/protocol/methods.js'
import { declaredBy } from '../../mcp/protocol/offered.js'
import { concernsTasks } from '../../mcp/protocol/owned-tasks.js'
import { revisedResponse } from '../../mcp/protocol/revise.js'
import { offersTasks } from '../../mcp/protocol/tasks.js'
import type {
  AboutAsked,
  AboutMessage,
  AnsweredInitialize,
  DeliveryKind,
  DirectSession,
  LeftDirectSession,
  ReceivedBatch,
  SessionListener,
  StreamOpening,
  TakeSessionMessage,
} from '../../mcp/protocol/upstream.js'
import type { Arrival, Exchange } from '../exchange.js'
import { answerOf, callFault, credentialOf, hasAnswer, worthRepeating } from '../failure.js'
import type { Access } from '../half.js'
import { nameIn } from '../lane.js'
import { LOG } from '../log-reader.js'
import type { ServerOptions } from '../options.js'
import type { NoticeOptions } from '../outgoing.js'
import type { Owner } from '../owner.js'
import type { Peer } from '../peer.js'
import type { Loss } from '../session-loss.js'
import { ChannelError } from '../transport/channel.js'
import { Unread } from '../unread.js'
import { OutgoingBatch } from './batch.js'
import { ClientTraces } from './client-traces.js'
import { answeredWith, resultIn, sendOpening } from './handshake.js'
import { ServerLink } from './link.js'
import { plain } from './open-server-requests.js'
import { OrderedDelivery } from './ordered-delivery.js'

export interface DirectSessionOptions {
  server: Pick<ServerOptions, 'timeouts' | 'log' | 'reached' | 'accounts'>
  /** Whose tasks are whose, and which answers are revised. */
  access: Pick<Access, 'tasks' | 'revision'>
  principal: string
  /** The number, for the inspector, of the call that `initialize` belongs to. */
  call?: number | undefined
  /** Called when the session has ended. `lost`: neither the client nor the bridge ended it. */
  onEnd: (error: ChannelError | undefined, lost: boolean) => void
  onClosed: () => void
  /** Keeps the session of a client that has gone for another one. Returns false if it has to be closed. */
  keep: (left: LeftSession) => boolean
  /**
   * The client speaks Streamable HTTP: it opens another session when it gets 404 for a lost one. Before a server over HTTP, requests
   * and progress tokens keep its ids, because each answer has a stream of its own.
   */
  fromHttp?: boolean | undefined
  /** Headers of the client's `initialize` that go on with it over HTTP. */
  forwarded?: Readonly<Record<string, string>> | undefined
  /** Encodes the server's own requests and notifications for the client; unchanged by default. */
  write?: ((message: Request | Notification) => Wire) | undefined
}

/** A session of a client that has gone: its channel, the answer to its `initialize`, and what the client has set. */
export interface LeftSession {
  peer: Peer
  answer: Response
  traces: ClientTraces
}

/** Milliseconds to wait for the stream of the server's own messages to open. */
const LISTEN_WAIT = 1_000
/** Milliseconds for the answer to a request of the bridge itself. */
const OWN_WITHIN = 5_000
/** An id for the answer to `initialize` that another replica has got. */
const GONE_ON = '0' as Id
/** The maximum number of messages of the server that wait for a listener. */
const MAX_WAITING_MESSAGES = 100

export class DirectServerSession implements DirectSession, Owner {
  readonly ping = { method: 'ping', params: undefined }
  readonly revision: LegacyRevision | undefined
  readonly #peer: Peer
  readonly #options: DirectSessionOptions
  readonly answer: Response
  /** Messages for the listener that is not there yet. */
  readonly #waiting: Unread<{ kind: 'notification'; text: Wire; about: AboutMessage }>
  /** Keeps the order of the server's messages, if all of them arrive on one stream. */
  readonly #delivery: OrderedDelivery<Exchange> | undefined
  #listener: SessionListener | undefined
  readonly link: ServerLink
  readonly #traces = new ClientTraces()
  /** Another client has begun the session: the server has got `notifications/initialized`. */
  readonly #hasBegun: boolean
  /** Any call may create a task, which nobody undoes. */
  readonly #makesTasks: boolean
  /** The client has sent `notifications/initialized`. Before that, a server may refuse requests. */
  #isInitialized = false
  /** Settles when `notifications/initialized` has been delivered; undefined before it is sent and after its delivery. */
  begun: Promise<void> | undefined
  /** The session has ended. Answers to open requests may still arrive until the channel is closed. */
  over = false
  #closed = false
  closed: Promise<number | undefined> | undefined

  private constructor(peer: Peer, options: DirectSessionOptions, answer: Response, hasBegun = false) {
    this.#peer = peer
    this.#options = options
    this.#hasBegun = hasBegun
    this.#waiting = new Unread(
      ({ text }) => lengthOf(text),
      () => peer.reserve(options.principal),
    )
    this.answer = answer
    this.revision = negotiated(answer)
    if (peer.channel.shared) this.#delivery = new OrderedDelivery<Exchange>(peer.reserve(options.principal))
    const capabilities = declaredBy(resultIn(answer) ?? EMPTY)
    const { revision = NEWEST_LEGACY } = this
    this.#makesTasks = offersTasks(capabilities)
    this.link = new ServerLink(peer, this.revision, (method) => offers({ capabilities, revision }, method))
    peer.owner = this
  }

  /** Sends the client's `initialize` to the server. Rejects with a ChannelError; the caller then closes the channel. */
  static async open(peer: Peer, opening: Request, options: DirectSessionOptions): Promise<DirectServerSession> {
    const params = typeof opening.params === 'string' ? undefined : opening.params
    const { call, server } = options
    const { initialize, start } = server.timeouts
    peer.ofClient = options.fromHttp === true && peer.channel.transport === 'http'
    const { id } = opening
    const forwarded = peer.ofClient ? options.forwarded : undefined
    const text = peer.ofClient ? unchangedIn(opening) : undefined
    const opened = sendOpening(params, (sent) => {
      const unchanged = sent === params ? text : undefined
      return peer.call('initialize', sent, initialize, { call, start, id, unchanged, forwarded })
    })
    // A client over HTTP gets the server's own refusal.
    const answer = await (peer.ofClient ? opened.catch((error: unknown) => answerOf(error)) : opened)
    return new DirectServerSession(peer, options, answer)
  }

  /** Goes on with a session over HTTP that another replica has left. */
  static resume(
    peer: Peer,
    { revision, offered, ready }: LeftDirectSession,
    options: DirectSessionOptions,
  ): DirectServerSession {
    peer.ofClient = true
    const result = `{"protocolVersion":"${revision}","capabilities":${offered}}`
    const answer = parseMessage(sourceOf(resultMessage(GONE_ON, result))) as Response
    const direct = new DirectServerSession(peer, options, answer)
    direct.#isInitialized = ready
    direct.link.hasWorkedBefore = true
    if (ready) direct.#beginAfter(Promise.resolve())
    return direct
  }

  /** Gives the session of a client that has gone to the next one. */
  static takeOver({ peer, answer }: LeftSession, options: DirectSessionOptions): DirectServerSession {
    return new DirectServerSession(peer, options, answer, true)
  }

  get keepsIds(): boolean {
    return this.#peer.ofClient
  }

  get left(): LeftDirectSession | undefined {
    const { revision, keepsIds } = this
    const { session } = this.#peer.channel
    if (!session || !keepsIds || revision === undefined || this.over) return undefined
    const { payload } = this.answer.outcome
    const capabilities = (payload && objectIn(payload, 'capabilities')) ?? EMPTY
    return { ...session, revision, offered: detach(write(capabilities)), ready: this.#isInitialized }
  }

  leave(): void {
    this.#peer.channel.leave?.()
  }

  opened(id: Id): AnsweredInitialize {
    const { answer, keepsIds } = this
    const { http, outcome } = answer
    const answered = { ...answeredWith(answer, id), http }
    return keepsIds && isOf(answer, id) ? { ...answered, text: wireOf(outcome.source) } : answered
  }

  /**
   * When a request of the client last began or ended, by `performance.now()`. Undefined while one is open, or while a
   * client is connected.
   */
  get idleSince(): number | undefined {
    const idle = this.#peer.size === 0 && this.#listener?.isIdle() === true
    return idle ? this.#peer.lastUsed : undefined
  }

  /** Ends the session, as if the server had. `error`: how its channel has ended. */
  end(error?: ChannelError): void {
    this.#lose(error, error !== undefined)
    this.#close()
  }

  async ask(request: Request, signal: Signal, say: TakeSessionMessage, about: AboutAsked = {}): Promise<void> {
    const { principal, access, server } = this.#options
    const { tasks, revision } = access
    const { method, params } = request
    if (this.over) throw this.#goneWith(undefined)
    if (typeof params !== 'string' && tasks.tellsApart(principal) && concernsTasks(request))
      await tasks.asked(principal, method, params)
    if (method !== CALL_TOOL || this.#makesTasks) this.#traces.requested(request)
    const revise = revision.of(principal, request)
    this.#peer.lastUsed = performance.now()
    const exchange = this.#peer.beginExchange(principal)
    exchange.account = this.#accountOf(about)
    exchange.number = about.call
    exchange.name = nameIn(request.params)
    exchange.client = this
    if (typeof request.params === 'string') exchange.origin = request.source
    this.#delivery?.enter(exchange)
    const { ofClient } = this.#peer
    if (ofClient) {
      exchange.wireId = about.ofBridge ? exchange.idOfBridge : request.id
      exchange.unchanged = unchangedIn(request)
      exchange.forwarded = about.forwarded
      if (about.batch instanceof OutgoingBatch) exchange.within = about.batch
      exchange.passesUnread = revise === undefined
      exchange.passesEvents = about.leaves !== undefined
    }
    const token = ofClient ? undefined : tokenOf(request.params)
    const hangUp = () => {
      this.#peer.release(exchange, typeof signal.reason === 'string' ? signal.reason : undefined)
    }
    signal.addEventListener('abort', hangUp, { once: true })
    const { leaves } = about
    let mayBeResumed = false
    const leave = () => {
      if (mayBeResumed) return this.#peer.channel.abandon(exchange.id)
      exchange.cancellation ??= Promise.resolve()
      this.#peer.release(exchange)
    }
    leaves?.addEventListener('abort', leave, { once: true })
    let isFirst = true
    try {
      if (this.begun) await this.begun
      signal.throwIfAborted()
      leaves?.throwIfAborted()
      this.#peer.send(
        exchange,
        request.method,
        withToken(request.params, token === undefined ? undefined : String(exchange.id)),
        exchange.forwarded && credentialOf(about),
      )
      about.batch?.decided(request.id)
      for (;;) {
        const arrival = await this.#unlessLost(exchange.nextArrival(), isFirst ? request.method : undefined)
        if (arrival.kind === 'event') {
          const { event } = arrival
          mayBeResumed ||= typeof event === 'number' || event.id !== undefined
          const held = say({ text: '', event })
          if (held) await held
          continue
        }
        isFirst = false
        const turn = this.#delivery?.wait(exchange)
        if (turn) await turn
        if (arrival.kind === 'question') continue
        if (arrival.kind === 'response') {
          const { dropped } = exchange
          server.reached?.(undefined)
          if ('unread' in arrival)
            return await say({ text: arrival.unread.pieces, answer: arrival, dropped, origin: 'rebuilt' })
          const answer = revise ? await revisedResponse(arrival, revise) : arrival
          const { source, payload } = answer.outcome
          const isSame = ofClient && answer === arrival && isOf(answer, request.id)
          const text = isSame ? wireOf(source) : responseMessage(request.id, answer)
          if (answer.http && !isSame) answer.http = { ...answer.http, event: edited(answer.http.event) }
          // Awaited here, because messages that arrived after the answer are sent when this function ends.
          return await say({ text, answer, dropped, origin: payload?.edits ? payload : source })
        }
        const progress = arrival.method === 'notifications/progress' && token !== undefined
        const received = typeof arrival.params === 'string' ? undefined : arrival.params
        const params = progress && received ? edit(received, { progressToken: token }) : received
        const { method, source, event } = arrival
        mayBeResumed ||= event?.id !== undefined
        const text = ofClient && source ? wireOf(source) : notification(method, params)
        const told = arrival.isRequest ? undefined : { method, params: params ?? EMPTY }
        const held = say({ text, origin: params ?? source, event, ...(told && { notification: told }) })
        if (held) await held
        this.#delivery?.done(exchange)
      }
    } catch (error) {
      // The server may have closed a kept-alive connection.
      const mayRepeat = ofClient && isFirst && !this.over && !signal.aborted && !about.again && !about.batch
      if (!mayRepeat || worthRepeating(error, methodTraits(method).idempotent === true) !== 0) {
        const fault = callFault(error)
        // Another address of the server is of more use.
        if (server.reached?.(fault) === false) this.end()
        throw fault
      }
      this.#peer.release(exchange)
      return await this.ask(request, signal, say, { ...about, again: true })
    } finally {
      signal.removeEventListener('abort', hangUp)
      leaves?.removeEventListener('abort', leave)
      this.#peer.release(exchange)
      if (this.over) this.#closeUnused()
    }
  }

  /** Sends a request of the bridge itself. Rejects with a ChannelError or a Fault if no answer comes in time. */
  request(method: string, params: Json | undefined): Promise<Response> {
    return this.#unlessLost(this.#peer.call(method, params, OWN_WITHIN), method)
  }

  /** The account for a message of the client. If its token is exchanged, each has one of its own; the newest one is also for the session's own messages. */
  #accountOf(about: Pick<AboutAsked, 'grant'> | undefined): Account | undefined {
    const { principal, server } = this.#options
    const { accounts } = server
    if (accounts?.onBehalf && about) this.#peer.account = accounts.for({ principal, grant: about.grant })
    return this.#peer.account
  }

  callOf({ kind, method }: Request | Notification): number | undefined {
    return kind === 'request' || method === LOG ? this.#onlyCall : undefined
  }

  async listen(stream: PassedStream, { lastEventId, signal, ...about }: StreamOpening): Promise<void> {
    if (this.begun) await this.begun
    const { channel } = this.#peer
    const { principal } = this.#options
    const account = this.#accountOf(about)
    const { forwarded } = about
    const headers = forwarded ? credentialOf(about) : this.#peer.headers
    try {
      await channel.pass?.(stream, { headers, forwarded, account, principal, lastEventId, signal })
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      const { refusal, protocol } = error
      if (this.over) throw this.#goneWith(error)
      if (protocol || refusal?.status === 405)
        throw new Fault('methodNotAllowed', 'The server has no stream for its own messages', { cause: error })
      throw callFault(error, true)
    }
  }

  asked(request: Request, exchange: Exchange | undefined, event?: PassedEvent): void {
    const { write = plain } = this.#options
    this.#traces.asked(request)
    const isOfCall = this.#peer.ofClient && exchange?.client === this && !exchange.answered
    if (isOfCall && request.source) {
      const { method, params, source } = request
      if (exchange.arrive({ kind: 'notification', method, params, source, isRequest: true, event })) return
      exchange.dropped--
    }
    const call = exchange?.number ?? this.#onlyCall
    this.#deliver(write(request), { call, origin: originOf(request), kind: 'question', key: idKey(request.id), event })
  }

  notified(method: string, params: Params, event?: PassedEvent): void {
    const { write = plain } = this.#options
    const call = method === LOG ? this.#onlyCall : undefined
    const about = { call, origin: originOf({ params }), event, ...withdrawal(method, params) }
    if (about.key !== undefined) this.#traces.settled(about.key)
    this.#deliver(write({ kind: 'notification', method, params }), about)
  }

  passed(event: PassedEvent, message?: Response | 'invalid'): void {
    const isUnknown = message !== undefined
    const { principal, access } = this.#options
    const revise = access.revision.of(principal, undefined)
    if (typeof message !== 'object' || !revise) return this.#deliver('', { event, isUnknown })
    revisedResponse(message, revise)
      .then((revised) => {
        const { id = 'null' as Id } = revised
        if (revised === message) this.#deliver('', { event, isUnknown })
        else this.#deliver(responseMessage(id, revised), { event: edited(event), isUnknown })
      })
      .catch(() => {})
  }

  arrived(exchange: Exchange): void {
    this.#delivery?.add(exchange)
  }

  released(exchange: Exchange): void {
    this.#delivery?.leave(exchange)
  }

  streamLost(): void {
    this.link.checkLoss(() => this.#forget()).catch(() => {})
  }

  ended(error: ChannelError): void {
    this.end(error)
  }

  notify(method: string, params: Sent, received?: ReceivedOneWay): Promise<void> | undefined {
    this.#traces.notified(method)
    this.#accountOf(received)
    const begins = method === 'notifications/initialized'
    if (begins) this.#isInitialized = true
    if (begins && this.#hasBegun) return undefined
    const heard = this.#peer.ofClient ? received : undefined
    const sent = this.#peer.notify(method, heard?.bytes ?? params, heard && passedWith(heard))
    const delivered = this.#heard(sent, method, heard)
    const cancelled = heard && method === 'notifications/cancelled' && typeof params === 'object' && cancelledId(params)
    if (cancelled) this.#peer.cancelledBy(cancelled, delivered)
    const settled = delivered.catch((error: unknown) => {
      this.#options.server.log.debug({ event: 'notification_failed', err: error }, 'notification not delivered')
    })
    // Over HTTP, later messages use other connections and could overtake this one, so they wait for it.
    if (begins) {
      this.#beginAfter(within(settled, OWN_WITHIN))
      // In a batch it goes with them.
      if (heard?.batch) this.begun = undefined
    }
    return heard && delivered
  }

  /** Later messages wait for the stream for the server's own messages: a call may make the server ask on it. */
  #beginAfter(settled: Promise<unknown>): void {
    this.begun = settled
      .then(() => this.#listen())
      .catch(() => {})
      .finally(() => {
        this.begun = undefined
      })
  }

  /** Gives the client what the server says to a message that gets no answer. Rejects with a Fault if the server has not accepted it. */
  async #heard(sent: Promise<void>, method: string, heard: ReceivedOneWay | undefined): Promise<void> {
    try {
      await sent
    } catch (error) {
      const loss = error instanceof ChannelError ? await this.#isLost(error, method) : undefined
      if (error instanceof ChannelError && loss && !this.#saysSo(error)) throw this.#goneWith(error)
      if (!heard || !(error instanceof ChannelError) || !hasAnswer(error)) throw callFault(error, true)
      const { outcome, http } = answerOf(error)
      heard.hear(wireOf(outcome.source), http)
    }
  }

  /** Opens the stream for the server's own messages. Without it, a server has no way to send them. */
  async #listen(): Promise<void> {
    const { channel, headers, account } = this.#peer
    if (this.over || !channel.listen) return
    const tried = new Promise<void>((resolve) => {
      channel.listen?.(headers, account, resolve).then(() => resolve(), resolve)
    })
    await within(tried, LISTEN_WAIT)
  }

  respond(response: Response, received?: ReceivedOneWay): Promise<void> | undefined {
    const { id, outcome } = response
    if (id !== undefined) this.#traces.settled(idKey(id))
    this.#accountOf(received)
    const { kind, source: origin } = outcome
    if (received?.bytes && this.#peer.ofClient) {
      const sent = this.#peer.answer(kind, id, received.bytes, { origin, ...passedWith(received) })
      return this.#heard(sent, kind, received)
    }
    if (id !== undefined) this.#peer.answer(kind, id, join(responseMessage(id, response)), { origin }).catch(() => {})
    return undefined
  }

  batchOf(received: ReceivedBatch): SentBatch | undefined {
    return this.keepsIds ? new OutgoingBatch(this.#peer, received) : undefined
  }

  attach(listener: SessionListener): void {
    this.#listener = listener
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) listener.message(next.text, next.about)
    this.#waiting.clear()
    if (this.over) listener.ended()
  }

  close(): void {
    this.#waiting.clear()
    if (!this.over) {
      this.over = true
      this.#delivery?.end()
      if (this.#isKept()) return
      this.#options.onEnd(undefined, false)
    }
    this.#close()
  }

  /** Leaves the session to another client, if that can have it. Returns whether it is kept. */
  #isKept(): boolean {
    const left = { peer: this.#peer, answer: this.answer, traces: this.#traces }
    const isWhole = this.#isInitialized && left.traces.canUndo && left.peer.channel.alive
    this.#closed = isWhole && this.#options.keep(left)
    return this.#closed
  }

  /**
   * A message for a request; with the method, the first one. Rejects with a Fault if that shows that the server has lost the session
   * and the request may be repeated. If it may not, the server's refusal is the answer.
   */
  async #unlessLost<T extends Arrival>(arriving: Promise<T>, method: string | undefined): Promise<T | Response> {
    let arrival: T | Response
    try {
      arrival = await arriving
      if (arrival.kind !== 'response' || method === undefined) return arrival
    } catch (error) {
      if (error instanceof ChannelError && method !== undefined) await this.#throwIfLost(error, method)
      return answerOf(error)
    }
    const isError = !('unread' in arrival) && arrival.outcome.kind === 'error'
    if (isError && this.#isInitialized) await this.#throwIfLost(arrival, method)
    this.#peer.hasServed = true
    return arrival
  }

  async #throwIfLost(failure: ChannelError | Response, method: string): Promise<void> {
    const loss = await this.#isLost(failure, method)
    const mayRepeat = loss === 'unacted' || methodTraits(method).idempotent === true
    const cause = failure instanceof ChannelError ? failure : undefined
    if (loss && mayRepeat && !this.#saysSo(cause)) throw this.#goneWith(cause)
  }

  /** The client learns from the server's own answer that the session is lost. */
  #saysSo(failure: ChannelError | undefined): boolean {
    return this.#peer.ofClient && failure?.refusal?.status === 404 && hasAnswer(failure)
  }

  #goneWith(cause: ChannelError | undefined): Fault {
    const fault = this.#options.fromHttp ? 'sessionNotFound' : 'upstreamUnavailable'
    return new Fault(fault, 'The server has ended the session: connect again', { cause })
  }

  async #isLost(failure: ChannelError | Response, method: string): Promise<Loss | undefined> {
    const loss = await this.link.lossBehind(failure, method)
    if (loss) this.#forget()
    return loss
  }

  /**
   * Notes that the server no longer knows the session. Open calls may still be answered, or fail by themselves.
   */
  #forget(): void {
    this.#lose(undefined, true)
    this.#closeUnused()
  }

  /** The number, for the inspector, of the only open call; undefined if there are several. */
  get #onlyCall(): number | undefined {
    const { open } = this.#peer
    const call = open.next().value?.number
    return open.next().done ? call : undefined
  }

  #deliver(text: Wire, about: AboutMessage): void {
    if (this.#delivery) this.#delivery.pass(() => this.#send(text, about), lengthOf(text))
    else this.#send(text, about)
  }

  #send(text: Wire, about: AboutMessage): void {
    if (this.#listener) this.#listener.message(text, about)
    else if (this.#waiting.length < MAX_WAITING_MESSAGES) this.#waiting.push({ kind: 'notification', text, about })
  }

  #lose(error: ChannelError | undefined, lost: boolean): void {
    if (this.over) return
    this.over = true
    this.#waiting.clear()
    this.#options.onEnd(error, lost)
    this.#delivery?.end()
    this.#listener?.ended()
  }

  /**
   * Closes the channel if no answers can arrive on it: no request is open, or all answers share a stream that is lost.
   */
  #closeUnused(): void {
    const { channel, size } = this.#peer
    if (channel.shared || size === 0) this.#close()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.closed = this.#peer.channel.close().then((status) => {
      this.#options.onClosed()
      return typeof status === 'number' ? status : undefined
    })
  }
}

/** Whether an answer over HTTP passes as it is: it has the client's own id, or refuses by its status. */
function isOf({ id, http }: Response, asked: Id): boolean {
  return id === asked || (http !== undefined && http.status >= 300)
}

/** With what a client's own message is sent that gets no answer. */
function passedWith(received: ReceivedOneWay): NoticeOptions {
  const { forwarded, batch } = received
  const within = batch instanceof OutgoingBatch ? batch : undefined
  return { heard: received, forwarded, within, ...(forwarded && { headers: credentialOf(received) }) }
}

/** Which question of the server a notification withdraws. */
function withdrawal(method: string, params: Params): DeliveryKind {
  const id = method === 'notifications/cancelled' ? cancelledId(params) : undefined
  return id === undefined ? {} : { kind: 'withdrawal', key: idKey(id) }
}

/** The text of a client's request as it came; undefined if it has been edited, or if servers may read it in another way. */
function unchangedIn(request: Request): string | undefined {
  const { source, hasLookalikes } = request
  return !source || hasLookalikes || isShorter(request) ? undefined : join(wireOf(source))
}

/** The origin of a message that is forwarded without edits, for the inspector. */
function originOf({ params, source }: Pick<Request, 'params' | 'source'>): MessageOrigin | undefined {
  return typeof params === 'string' ? (source ?? EMPTY) : params
}

function tokenOf(params: Params): Json | undefined {
  const meta = typeof params === 'string' ? undefined : objectIn(params, '_meta')
  return meta && raw(meta, 'progressToken')
}

function withToken(params: Params, progressToken: Json | undefined): Payload | undefined {
  if (typeof params === 'string') return undefined
  const meta = progressToken === undefined ? undefined : objectIn(params, '_meta')
  return meta ? edit(params, { _meta: edit(meta, { progressToken }) }) : params
}
