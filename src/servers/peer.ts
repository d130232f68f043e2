/**
 * The JSON-RPC peer of a server: assigns ids and progress tokens, routes received messages to their exchanges, answers
 * `ping`, and sends cancellations.
 */
import { isUtf8 } from 'node:buffer'
import type { Fault } from '../base/fault/fault.js'
import { NOBODY, type Reservation, SMALL } from '../base/limits/memory.js'
import { brokenAnswerTo } from '../base/rpc/broken.js'
import { headIn } from '../base/rpc/head.js'
import {
  type Batch,
  type Id,
  idValue,
  MAX_BATCH,
  type Message,
  messageOrNone,
  numberOf,
  type Response,
  request,
  type Sent,
} from '../base/rpc/message.js'
import type { Outline } from '../base/rpc/outline.js'
import { cut, type JsonSource, repairedSourceOf, sourceOf, textOfWire } from '../base/rpc/source.js'
import { EMPTY, objectIn, type Payload, raw, value } from '../base/rpc/splice.js'
import { edited, type PassedEvent } from '../base/rpc/sse.js'
import { unreadResponse } from '../base/rpc/unread-response.js'
import type { ServerRecorder } from '../mcp/ports/recorder.js'
import type { Call } from '../mcp/protocol/call.js'
import { OF_BRIDGE } from '../mcp/protocol/meta.js'
import { methodTraits } from '../mcp/protocol/methods.js'
import { withTraceHeaders } from '../mcp/protocol/trace.js'
import type { ActiveCallers } from './active-callers.js'
import { afterBanner } from './after-banner.js'
import { AnswersWithoutId, lacksId } from './answers-without-id.js'
import { Exchange } from './exchange.js'
import { HangDetector } from './hang-detector.js'
import { InvalidMessages } from './invalid-messages.js'
import { learnArriving } from './lane.js'
import { ASK_WITHIN } from './lanes.js'
import { listener, OpenExchanges, progressOwner } from './open-exchanges.js'
import type { ServerLog } from './options.js'
import { type NoticeOptions, Outgoing, originOf } from './outgoing.js'
import type { Owner } from './owner.js'
import { leftToStart, notStarted } from './start.js'
import {
  type Channel,
  ChannelError,
  type ChannelErrorOptions,
  type HttpHead,
  type Receiver,
} from './transport/channel.js'

/** Options of what the bridge itself sends. The peer has defaults for headers and account. */
export interface CallOptions extends Pick<NoticeOptions, 'headers' | 'account' | 'call' | 'forwarded'> {
  /** Milliseconds that a program may take to start, as long as it writes to stdout or stderr. */
  start?: number | undefined
  /** The id and the whole text of the request, if it is the client's own. */
  id?: Id | undefined
  unchanged?: string | undefined
}

const NONE = {}

export class Peer extends Outgoing implements Receiver {
  /** Why the channel has ended; undefined before. */
  end: ChannelError | undefined
  /** By default, requests of the server are refused, except `ping`: the server may wait for its answer. */
  owner: Owner = { asked: (request) => this.refuse(request), notified: () => {}, ended: () => {} }
  /** When its last request ended, by `performance.now()`. */
  lastUsed = performance.now()
  /** The server has answered a call. */
  hasServed = false
  /** The callers whose calls may be running in the server, if several callers share the channel. */
  activeCallers: ActiveCallers | undefined
  /** Over HTTP: the requests are those of one client, with its ids. Requests of the bridge itself have ids of another kind. */
  ofClient = false
  /** Created when the first one arrives. */
  #invalidMessages: InvalidMessages | undefined
  readonly #exchanges = new OpenExchanges()
  #lastId = 0
  /** The number of messages received so far. */
  #received = 0
  readonly #hangs: HangDetector
  readonly #withoutId = new AnswersWithoutId()
  /** Kinds of repairs that have been logged. */
  readonly #repaired = new Set<string>()

  constructor(channel: Channel, log?: ServerLog, recorder?: ServerRecorder) {
    super(channel, log, recorder)
    this.#hangs = new HangDetector(channel.transport)
    channel.attach(this)
  }

  /** Exchanges that have not been released, oldest first. */
  get open(): IterableIterator<Exchange> {
    return this.#exchanges.values()
  }

  get size(): number {
    return this.#exchanges.size
  }

  /** Begins an exchange for a principal, or for a call. Nothing is sent yet. */
  beginExchange(principal?: string, call?: Call): Exchange {
    // Ids begin at 1: @modelcontextprotocol/sdk 1.x (seen in 1.32.2) ignores the cancellation of a request with the id
    // 0.
    const exchange = new Exchange(this.channel.memory, ++this.#lastId, principal, call)
    this.#exchanges.set(exchange.id, exchange)
    if (call) this.activeCallers?.begin(exchange.id, call.principal)
    if (this.end) exchange.fail(this.end)
    return exchange
  }

  /**
   * Sends a request and waits for its answer for `timeout` milliseconds, or longer for a program that is starting, with
   * `start`. Rejects with a ChannelError.
   */
  async call(
    method: string,
    params: Sent,
    timeout: number,
    { headers, account, call, start, id, unchanged, forwarded }: CallOptions = {},
  ): Promise<Response> {
    const exchange = this.beginExchange()
    Object.assign(exchange, { unchanged, forwarded })
    exchange.account = account
    exchange.number = call
    if (this.ofClient) exchange.wireId = id ?? exchange.idOfBridge
    try {
      this.send(exchange, method, params, headers)
      const answer = await this.answerIn(exchange, timeout, start)
      if (answer) return answer
      const { channel } = this
      const late =
        start === undefined || !channel.startingUntil
          ? new ChannelError(`No answer to ${method} in ${timeout} ms`, { late: true })
          : notStarted(channel, method, { silence: timeout, start })
      exchange.fail(late)
      throw late
    } finally {
      this.release(exchange)
    }
  }

  /** The answer in an exchange; undefined if none comes in `timeout` milliseconds, or longer for a program that is starting, with `start`. */
  async answerIn(exchange: Exchange, timeout: number, start?: number): Promise<Response | undefined> {
    for (let left = timeout; ; ) {
      const answer = await exchange.answer(left)
      left = start === undefined ? 0 : leftToStart(this.channel, { silence: timeout, start })
      if (answer || left === 0) return answer
    }
  }

  reserve(principal: string): Reservation {
    return this.channel.memory.reserve(principal, SMALL)
  }

  override notify(method: string, params: Sent | Uint8Array, options?: NoticeOptions): Promise<void> {
    this.#withoutId.notifiedAt = this.#received
    return super.notify(method, params, options)
  }

  /** Sends the request of an exchange; as these bytes, if it passes unchanged. */
  send(
    exchange: Exchange,
    method: string,
    params: Sent | Uint8Array,
    headers?: Readonly<Record<string, string>>,
  ): void {
    if (this.end || exchange.ended !== undefined) return
    exchange.method = method
    const { lanes } = this.channel
    // Requests of the bridge itself are nobody's. A direct session has a program of its own. An array takes a turn as a whole.
    const takesTurn =
      exchange.principal !== NOBODY && !exchange.within && (exchange.call || this.channel.transport !== 'stdio')
    if (lanes && takesTurn && !exchange.inLanes && !methodTraits(method).endless) {
      exchange.inLanes = true
      const go = () => this.send(exchange, method, params, headers)
      if (lanes.calls++ === 0) {
        // Most calls are alone at the server, and of the same lane as the last one.
        lanes.lone = exchange
        const { principal, call } = exchange
        const { last } = lanes
        const name = call ? value(call.params, 'name') : exchange.name
        if (name !== last.name || method !== last.method || principal !== last.principal)
          lanes.isAlone({ principal, method, name: typeof name === 'string' ? name : undefined })
      } else if (!lanes.enter(exchange, go, () => this.#ask(exchange, headers))) return
    }
    const { held } = this.#hangs
    if (held) {
      held.push(() => this.send(exchange, method, params, headers))
      return
    }
    exchange.sentAt = performance.now()
    exchange.receivedBefore = this.#received
    const bytes = params instanceof Uint8Array ? params : undefined
    const text = bytes ? '' : (exchange.unchanged ?? request(exchange.wireId ?? exchange.id, method, params as Sent))
    const usual = headers ?? this.headers
    const meta = exchange.call ? exchange.call.meta : metaIn(params)
    const hasTrace =
      meta !== EMPTY &&
      this.channel.transport !== 'stdio' &&
      (raw(meta, 'traceparent') !== undefined || raw(meta, 'baggage') !== undefined)
    const { forwarded } = exchange
    const all = hasTrace && !forwarded ? withTraceHeaders(usual, meta) : usual
    const own = hasTrace && forwarded ? withTraceHeaders(forwarded, meta) : forwarded
    if (this.recorder)
      this.recorder.sent(
        { form: 'request', method, id: exchange.wireId === undefined ? exchange.id : idValue(exchange.wireId) },
        bytes ? textOfWire([bytes]) : text,
        exchange.number,
        { origin: exchange.origin ?? originOf(params), headers: own ? { ...own, ...all } : all },
        exchange.sentAt,
      )
    const sender = exchange.within ?? this.channel
    sender
      .sendMessage({
        text,
        bytes,
        exchange: exchange.id,
        principal: exchange.principal,
        headers: all,
        forwarded: own,
        account: exchange.account ?? this.account,
        passesEvents: exchange.passesEvents,
      })
      .catch((error: ChannelError | Fault) => {
        if (this.recorder) this.recordRefusal(error, exchange.number)
        exchange.fail(error)
      })
  }

  /** Asks the server something, as its client in an exchange would. Rejects if it does not answer, too. */
  async #ask({ account }: Exchange, { authorization }: Readonly<Record<string, string>> = NONE): Promise<void> {
    const { ping } = this.owner
    if (!ping) throw new Error('The server cannot be asked')
    const { method, params, headers = this.headers } = ping
    await this.call(method, params, ASK_WITHIN, {
      headers: authorization === undefined ? headers : { ...headers, authorization },
      account,
    })
  }

  /** Cancels the request of an exchange at the server. */
  #cancel(exchange: Exchange, reason: string): void {
    if (this.channel.stateless || exchange.members) return this.channel.abandon(exchange.id)
    const params = `{"requestId":${exchange.wireId ?? exchange.id},"reason":${JSON.stringify(reason)}}`
    const told = exchange.cancellation ?? this.notify('notifications/cancelled', params, { call: exchange.number })
    told
      .catch(() => this.drop('a cancellation that cannot be delivered'))
      .finally(() => this.channel.abandon(exchange.id))
      .catch(() => {})
    const alone = this.#exchanges.size === 0
    const mayHang = this.#hangs.cancelled(exchange, reason, this.#received, alone)
    if (mayHang) this.#check().catch(() => {})
  }

  /** Ends an exchange whose answer is not needed, without a cancellation. */
  forgo(exchange: Exchange): void {
    exchange.fail(new ChannelError('The answer is not needed any more'))
    this.release(exchange)
  }

  /** Ends an exchange. Cancels its request with `reason` if it waits for its answer. Further calls do nothing. */
  release(exchange: Exchange, reason = 'The client has gone'): void {
    if (!this.#exchanges.delete(exchange.id)) return
    const { id, call, answered, dropped, batch } = exchange
    const mayRun = !answered && exchange.sentAt !== 0 && exchange.failure === undefined
    if (!answered) this.#withoutId.unanswered(exchange)
    const { lanes } = this.channel
    if (lanes && exchange.inLanes) {
      lanes.calls--
      if (exchange.turn) lanes.leave(exchange.turn, exchange.bytes)
      else lanes.lone = undefined
    }
    if (call) this.activeCallers?.end(id, call.principal, answered)
    if (call && dropped > 0) call.log.note({ dropped })
    if (call && answered) this.hasServed = true
    this.lastUsed = performance.now()
    this.owner.released?.(exchange)
    exchange.end(reason)
    if (mayRun) this.#cancel(exchange, reason)
    if (!answered && batch?.members?.every((member) => member.answered)) this.release(batch, reason)
  }

  arriving(exchange: number, bytes: number): void {
    const turn = this.#exchanges.get(exchange)?.turn
    if (turn) learnArriving(turn.lane, bytes)
  }

  isWaiting(exchange: number): boolean {
    return this.#exchanges.get(exchange)?.answered === false
  }

  receive(bytes: readonly Uint8Array[], stream: number | undefined, http?: HttpHead): void {
    if (this.end) return
    const on = stream === undefined ? undefined : this.#exchanges.get(stream)
    if (on?.passesUnread && this.#takeUnread(on, bytes, http)) return
    const { source, repaired } = repairedSourceOf(bytes, isUtf8)
    if (repaired) this.#warnOfRepair('bytes that are not UTF-8')
    const message = messageOrNone(source)
    // The bytes of the event are not those of one message.
    const as = http?.event && (repaired || message?.kind === 'batch') ? { ...http, event: edited(http.event) } : http
    if (message?.kind === 'batch') this.#takeAll(message, stream, as)
    else this.#route(source, message, stream, as)
  }

  passed(event: PassedEvent, stream: number | undefined): void {
    if (this.end) return
    this.#received++
    if (stream === undefined) this.owner.passed?.(event)
    else this.#passOn(event, stream)
  }

  left(exchange: number, status: number): void {
    this.#passOn(status, exchange)
  }

  #passOn(event: PassedEvent | number, on: number): void {
    const exchange = this.#exchanges.get(on)
    if (exchange && !exchange.answered && exchange.arrive({ kind: 'event', event })) this.owner.arrived?.(exchange)
  }

  /** Takes a large answer to the client's own request, which it gets unchanged. Returns whether it is one. */
  #takeUnread(exchange: Exchange, bytes: readonly Uint8Array[], http: HttpHead | undefined): boolean {
    if (exchange.wireId === undefined || exchange.answered || this.recorder) return false
    const response = unreadResponse(bytes, { id: exchange.wireId, prefix: OF_BRIDGE }, isUtf8)
    if (!response) return false
    this.#received++
    response.http = http
    if (exchange.arrive(response)) this.owner.arrived?.(exchange)
    return true
  }

  stalled(beginning: Uint8Array): void {
    const exchange = this.#exchanges.answeredUnread(headIn(beginning), this.ofClient)
    exchange?.fail(new ChannelError('The server stopped in the middle of its answer', { protocol: true }))
  }

  dropped(outline: Outline, stream: number | undefined, why?: ChannelError): void {
    if (this.end) return
    this.#received++
    const head = headIn(outline.beginning)
    if (head?.form === 'request' && head.id !== undefined)
      this.refuseUnread(
        JSON.stringify(head.id) as Id,
        why?.message ?? 'The bridge has no memory left for the request (limits.memory)',
      )
    else this.#exchanges.answeredUnread(head, this.ofClient, outline.idAtEnd, stream)?.lose(why)
    this.drop(why ? 'a message that is too long' : 'a message that there is no memory for')
  }

  streamLost(): void {
    this.owner.streamLost?.()
  }

  missed(): void {
    this.owner.missed?.()
  }

  ended(error: ChannelError): void {
    if (this.end) return
    this.end = error
    for (const exchange of this.#exchanges.values()) exchange.fail(exchange.sentAt === 0 ? notSent(error) : error)
    this.#hangs.held = undefined
    this.owner.ended(error)
  }

  /** Reads each element once, and no nested arrays, so that the work is linear in the received length. */
  #takeAll(batch: Batch, stream: number | undefined, http: HttpHead | undefined): void {
    const { source, elements } = batch
    if (elements.length === 0 || elements.length > MAX_BATCH)
      return this.#skip('an empty array, or one of over 100 messages', source)
    const head = http && { ...http, array: batch }
    for (const { start, end } of elements) {
      if (this.end) return
      const element = sourceOf(cut(source, start, end))
      this.#route(element, messageOrNone(element), stream, head)
    }
  }

  #takeInvalid(
    source: JsonSource,
    message: Message | undefined,
    stream: number | undefined,
    event?: PassedEvent,
  ): void {
    const what = message ? 'no JSON-RPC message' : 'no JSON, or nested deeper than 256 levels'
    const isLine = !message && this.channel.transport === 'stdio'
    const after = isLine ? afterBanner(source, (id) => this.isWaiting(id)) : undefined
    if (after) {
      this.#warnOfRepair('text without a line break before a message')
      this.#failAnswer(after.banner, what)
      return this.#route(source, after.message, undefined, undefined)
    }
    const isAnswer = this.#failAnswer(source, what, stream)
    if (!event?.on) this.#skip(what, source)
    else if (!isAnswer) this.owner.passed?.(event, 'invalid')
  }

  /** Fails the call that an invalid message answers. Returns whether there is one. */
  #failAnswer(source: JsonSource, what: string, stream?: number): boolean {
    const id = brokenAnswerTo(source)
    if (id === undefined) return false
    const exchange = this.#exchanges.answeredBy(stream, id as Id, this.ofClient)
    if (!exchange || exchange.answered) return false
    exchange.fail(new ChannelError(`The server sent an invalid answer: it is ${what}`, { protocol: true }))
    return true
  }

  #skip(what: string, { text }: JsonSource): void {
    this.#invalidMessages ??= new InvalidMessages(this.log)
    if (this.#invalidMessages.add(what, text.length, this.#exchanges.size > 0))
      this.#giveUp('The server sent too much data that is not JSON-RPC', { protocol: true })
  }

  #warnOfRepair(what: string): void {
    if (this.#repaired.has(what)) return
    this.#repaired.add(what)
    this.log.warn({ event: 'message_repaired', what }, 'server sent a malformed message; repaired')
  }

  /** Ends the channel. Ends a program at once, so that it begins no further work. */
  #giveUp(why: string, options?: ChannelErrorOptions): void {
    this.ended(new ChannelError(why, options))
    this.channel.close(true).catch(() => {})
  }

  /** Tests whether the server still answers. Ends the channel if it does not. */
  async #check(): Promise<void> {
    const { ping } = this.owner
    if (!ping) return
    const ask = (within: number) => this.call(ping.method, ping.params, within)
    await this.#hangs.test(
      ask,
      () => this.#received,
      (calls) => {
        if (!this.end) this.#giveUp(`The server hangs: it answered neither ${calls} nor ${ping.method}`)
      },
    )
  }

  #route(
    source: JsonSource,
    message: Message | undefined,
    stream: number | undefined,
    http: HttpHead | undefined,
  ): void {
    try {
      if (message?.kind === 'invalid' && message.read && this.#exchanges.namedOn(stream, message.read.id))
        return this.#route(source, message.read, stream, http)
      const event = http?.event
      if (!message || message.kind === 'invalid' || message.kind === 'batch')
        return this.#takeInvalid(source, message, stream, event)
      this.#invalidMessages?.clear()
      this.#received++
      switch (message.kind) {
        case 'response': {
          const id = message.id === undefined ? undefined : numberOf(message.id)
          const on = stream === undefined ? undefined : this.#exchanges.get(stream)
          if (on?.members && message.id === undefined && this.#takeForMembers(on.members, message, http)) return
          // The usual answers need no search: to the number of an exchange, or on its stream with its id.
          let exchange = on?.wireId === undefined ? this.#exchanges.get(id ?? 0) : on
          const isSure = exchange?.wireId === undefined || (exchange === on && on.hasId(message.id))
          if (this.ofClient || !isSure) exchange = this.#exchanges.answeredBy(stream, message.id, this.ofClient)
          if (exchange) this.#withoutId.usesIds = true
          else exchange = this.#ownerOf(message, id, on)
          this.recorder?.received(message, exchange?.number, http)
          if (exchange && !exchange.answered) {
            message.http = http
            if (exchange.arrive(message)) this.owner.arrived?.(exchange)
          } else if (event?.on) this.owner.passed?.(event, message)
          else {
            if (id !== undefined) this.activeCallers?.answeredLate(id)
            this.drop('an answer that nobody waits for')
          }
          return
        }
        case 'notification': {
          const { method, params } = message
          const on = stream === undefined || this.owner.ofSession?.(method) ? undefined : stream
          const own = this.#exchanges.on(on)?.wireId !== undefined
          const hasToken = method === 'notifications/progress' && !own && !this.ofClient
          const by = hasToken ? progressOwner(params) : (on ?? listener(params))
          const exchange = this.#exchanges.on(by)
          if (this.recorder)
            this.recorder.received(message, by === undefined ? this.owner.callOf?.(message) : exchange?.number, http)
          if (by === undefined) return this.owner.notified(method, params, event)
          if (exchange && !exchange.answered) {
            if (exchange.arrive(event ? { ...message, event } : message)) this.owner.arrived?.(exchange)
          } else this.drop('a notification for a call that is over')
          return
        }
        case 'request': {
          const exchange = this.#exchanges.on(stream)
          if (this.recorder) this.recorder.received(message, exchange?.number ?? this.owner.callOf?.(message), http)
          if (this.admits(message)) this.owner.asked(message, exchange, event)
          return
        }
      }
    } catch (error) {
      // The scan does not check the strings of a large message, and reading one has shown that it is invalid.
      if (!(error instanceof SyntaxError)) throw error
      this.#takeInvalid(source, message, stream)
    }
  }

  /**
   * Takes an answer without an id on the stream of an array: to all requests in it, unless it is part of an array. Returns whether it
   * is for any.
   */
  #takeForMembers(members: readonly Exchange[], answer: Response, http: HttpHead | undefined): boolean {
    const meant = http?.array ? [] : members.filter(({ answered }) => !answered)
    if (meant.length === 0) return false
    this.recorder?.received(answer, meant[0]?.number, http)
    for (const member of meant) member.arrive({ ...answer, http })
    return true
  }

  /** The exchange for an answer whose id is that of no open request. */
  #ownerOf(message: Response, id: number | undefined, on: Exchange | undefined): Exchange | undefined {
    if (!lacksId(message)) {
      if (id !== undefined && id <= this.#lastId) this.#withoutId.late()
      const first = this.#first(message)
      // An id that no request can have, from a server that has used none.
      if (first || id !== undefined || this.#withoutId.usesIds) return first
    }
    // Over HTTP, a session is refused by an error without an id on the stream of the request.
    if (on) return on.members ? undefined : on
    if (this.channel.transport === 'http') return this.#first(message)
    const owner = this.#withoutId.owner(message, this.open, this.#received - 1)
    if (owner) this.#warnOfRepair('an answer without the id of its request')
    else if (this.#withoutId.isLost)
      this.#giveUp('The server answers without the ids of its requests', { protocol: true })
    return owner
  }

  /**
   * The exchange that an error with an unknown id answers: the first one, as long as there has been no other. For an
   * unknown method, the server of @effect/ai answers with the id -32603, others with null.
   */
  #first({ outcome: { kind } }: Response): Exchange | undefined {
    return kind === 'error' && this.#lastId === 1 ? this.#exchanges.get(1) : undefined
  }

  /** Notes that the client itself cancels its requests with this id. */
  cancelledBy(id: Id, cancellation: Promise<unknown>): void {
    for (const exchange of this.open) if (exchange.wireId === id) exchange.cancellation = cancellation
  }
}

/** The failure of a request that had not been sent when its channel ended. */
function notSent(end: ChannelError): ChannelError {
  return new ChannelError(end.message, { cause: end, delivered: 'no', stderr: end.allStderr })
}

function metaIn(params: Sent | Uint8Array): Payload {
  const payload = originOf(params)
  return (payload && objectIn(payload, '_meta')) ?? EMPTY
}
