/** The JSON-RPC peer of a server: mints ids and progress tokens, and brings what comes in to whom it belongs. */
import type { Log } from '../logging.js'
import type { Account } from '../protocol/account.js'
import type { Fault } from '../protocol/fault.js'
import { type Loan, SMALL } from '../protocol/memory.js'
import { SUBSCRIPTION_ID } from '../protocol/meta.js'
import { brokenAnswerTo } from '../rpc/broken.js'
import {
  type Batch,
  error as errorMessage,
  type Id,
  MAX_BATCH,
  type Message,
  type Notification,
  notification,
  numberOf,
  type Params,
  parseMessage,
  type Request,
  type Response,
  type RpcError,
  request,
  result as resultMessage,
} from '../rpc/message.js'
import { cut, type Source, sourceOf } from '../rpc/source.js'
import { type Json, objectIn, raw } from '../rpc/splice.js'
import { type Arrival, Exchange, type Line } from './exchange.js'
import { Rubbish } from './rubbish.js'
import { Silence } from './silence.js'
import { type Channel, ChannelError, type ChannelErrorOptions, type Receiver } from './transport/channel.js'

/** What a peer cannot settle by itself. */
export interface PeerEvents {
  /** The server asks something, on the stream of an exchange or on none. Has to be answered with `respond`. */
  asked(request: Request, exchange: Exchange | undefined): void
  /** A notification that belongs to no exchange, as far as the wire can tell. */
  notified(method: string, params: Params): void
  /** Whether a notification belongs to no exchange though it has come on the stream of one. */
  ofSession?(method: string): boolean
  /** A message has come in for an exchange, and waits for its reader. */
  arrived?(exchange: Exchange): void
  /** The channel has come to its end. */
  ended(error: ChannelError): void
  /** Nothing that belongs to no exchange will come in any more. */
  deaf?(): void
  /** Of what belongs to no exchange, something may not have come in. */
  missed?(): void
  /** The server has answered a request that was given up. */
  answeredLate?(id: number): void
  /** A request that every program answers: sent to one that seems to hang. Without it, a program is never replaced. */
  readonly ping?: { method: string; params: Json | undefined }
}

export type PeerLog = Pick<Log, 'debug' | 'warn'>

type Headers = Readonly<Record<string, string>>

const SILENT: PeerLog = { debug: () => {}, warn: () => {} }
/** Milliseconds for the answer of a program that seems to hang. */
const ANSWERS_WITHIN = 10_000
/** Requests of the server that may be open at once. How many of them may wait for clients is bounded elsewhere, and lower. */
const MAX_ASKED = 4_096

export class Peer implements Receiver, Line {
  readonly channel: Channel
  /** Headers of every message that has none of its own, where the transport has headers. */
  headers: Headers = {}
  /** In whose name messages are sent that have no account of their own. */
  account: Account | undefined
  events: PeerEvents = { asked: () => {}, notified: () => {}, ended: () => {} }
  readonly #log: PeerLog
  readonly #rubbish: Rubbish
  readonly #exchanges = new Map<number, Exchange>()
  #lastId = 0
  #asked = 0
  readonly #silence = new Silence()
  #checking = false
  #repaired = false
  #end: ChannelError | undefined

  constructor(channel: Channel, log: PeerLog = SILENT) {
    this.channel = channel
    this.#log = log
    this.#rubbish = new Rubbish(log)
    channel.attach(this)
  }

  /** Why nothing can be sent any more, if that is so. */
  get end(): ChannelError | undefined {
    return this.#end
  }

  /** Requests that have not been answered. */
  get open(): IterableIterator<Exchange> {
    return this.#exchanges.values()
  }

  /** Begins an exchange for a principal: mints its id. Nothing is sent yet. */
  begin(principal?: string): Exchange {
    // Ids begin at 1: deployed servers ignore the cancellation of a request whose id is 0.
    const exchange = new Exchange(this, ++this.#lastId, principal)
    this.#exchanges.set(exchange.id, exchange)
    if (this.#end) exchange.fail(this.#end)
    return exchange
  }

  /** Sends a request and waits for its answer, within `timeout` milliseconds. Rejects with a ChannelError. */
  async call(
    method: string,
    params: Json | undefined,
    timeout: number,
    headers?: Headers,
    account?: Account,
  ): Promise<Response> {
    const exchange = this.begin()
    exchange.account = account
    const late = () => exchange.fail(new ChannelError(`No answer to ${method} in ${timeout} ms`, { late: true }))
    const timer = setTimeout(late, timeout)
    try {
      exchange.send(method, params, headers)
      return await exchange.answer()
    } finally {
      clearTimeout(timer)
      exchange.release()
    }
  }

  borrow(principal: string): Loan {
    return this.channel.memory.borrow(principal, SMALL)
  }

  notify(
    method: string,
    params: Json | undefined,
    headers: Headers = this.headers,
    account: Account | undefined = this.account,
  ): Promise<void> {
    return this.channel.send({ text: notification(method, params), headers, account })
  }

  respond(id: Id, answer: Json | RpcError): void {
    this.answer(typeof answer === 'string' ? resultMessage(id, answer) : errorMessage(id, answer))
  }

  /** Sends what somebody else has made of an answer to a question of the server. */
  answer(text: string): void {
    this.settled()
    const { headers, account } = this
    this.channel.send({ text, headers, account }).catch(() => this.#drop('a question that cannot be answered'))
  }

  /** A question of the server is open no longer. */
  settled(): void {
    this.#asked--
  }

  send(exchange: Exchange, method: string, params: Json | undefined, headers?: Headers): void {
    if (this.#end) return
    this.#silence.sent(exchange)
    const text = request(exchange.id, method, params)
    this.channel
      .send({
        text,
        exchange: exchange.id,
        principal: exchange.principal,
        headers: headers ?? this.headers,
        account: exchange.account ?? this.account,
      })
      .catch((error: ChannelError | Fault) => exchange.fail(error))
  }

  cancel(exchange: Exchange, reason: string): void {
    if (this.channel.stateless) return this.channel.abandon(exchange.id)
    const params = `{"requestId":${exchange.id},"reason":${JSON.stringify(reason)}}`
    this.notify('notifications/cancelled', params)
      .catch(() => this.#drop('a cancellation that cannot be delivered'))
      .finally(() => this.channel.abandon(exchange.id))
      .catch(() => {})
    const worthAsking = this.#silence.givenUp(exchange, reason, this.#exchanges.size === 0)
    if (worthAsking && this.channel.transport === 'stdio') this.#check().catch(() => {})
  }

  forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange.id)
  }

  waiting(exchange: number): boolean {
    return this.#exchanges.get(exchange)?.answered === false
  }

  message(source: Source, stream: number | undefined): void {
    if (this.#end) return
    const message = parse(source)
    if (message?.kind === 'batch') this.#takeAll(message, stream)
    else this.#take(source, message, stream)
  }

  deaf(): void {
    this.events.deaf?.()
  }

  missed(): void {
    this.events.missed?.()
  }

  repaired(what: string): void {
    if (!this.#repaired)
      this.#log.warn({ event: 'message_repaired', what }, 'server sent a malformed message; repaired')
    this.#repaired = true
  }

  ended(error: ChannelError): void {
    if (this.#end) return
    this.#end = error
    for (const exchange of this.#exchanges.values()) exchange.fail(error)
    this.events.ended(error)
  }

  /** Reads each element once, and no array inside an array, so that the work is linear in what a server sends. */
  #takeAll({ source, elements }: Batch, stream: number | undefined): void {
    if (elements.length === 0 || elements.length > MAX_BATCH)
      return this.#skip('an empty array, or one of over 100 messages', source)
    for (const { start, end } of elements) {
      if (this.#end) return
      const element = sourceOf(cut(source, start, end))
      this.#take(element, parse(element), stream)
    }
  }

  #take(source: Source, message: Message | undefined, stream: number | undefined): void {
    if (message && message.kind !== 'invalid' && message.kind !== 'batch') {
      this.#rubbish.clear()
      this.#silence.end()
      return this.#route(message, stream)
    }
    const id = brokenAnswerTo(source)
    const exchange = id === undefined ? undefined : this.#exchanges.get(numberOf(id) ?? 0)
    const what = message ? 'no JSON-RPC message' : 'no JSON, or nested deeper than 256 levels'
    if (exchange && !exchange.answered)
      exchange.fail(new ChannelError(`The server sent an answer that is ${what}`, { protocol: true }))
    this.#skip(what, source)
  }

  #skip(what: string, { text }: Source): void {
    if (this.#rubbish.add(what, text.length, this.#exchanges.size > 0))
      this.#giveUp('The server sent too much that is no JSON-RPC message', { protocol: true })
  }

  #drop(what: string): void {
    this.#log.debug({ event: 'message_dropped', what }, 'message from the server dropped')
  }

  /** Ends the channel, and at once the program behind it if there is one: it must not begin anything more. */
  #giveUp(why: string, options?: ChannelErrorOptions): void {
    this.ended(new ChannelError(why, options))
    this.channel.close(true).catch(() => {})
  }

  /** Asks whether the program still answers, and ends it if no message comes in at all. */
  async #check(): Promise<void> {
    const { ping } = this.events
    if (!ping || this.#checking) return
    this.#checking = true
    const { received, inARow } = this.#silence
    await this.call(ping.method, ping.params, ANSWERS_WITHIN).catch(() => {})
    this.#checking = false
    if (received === this.#silence.received && !this.#end)
      this.#giveUp(`The server hangs: it answered neither ${inARow} calls in a row nor ${ping.method}`)
  }

  #route(message: Request | Notification | Response, stream: number | undefined): void {
    switch (message.kind) {
      case 'response': {
        const id = message.id === undefined ? undefined : numberOf(message.id)
        const exchange = this.#exchanges.get(id ?? 0) ?? this.#first(message)
        if (exchange && !exchange.answered) this.#give(exchange, message)
        else {
          if (id !== undefined) this.events.answeredLate?.(id)
          this.#drop('an answer that nobody waits for')
        }
        return
      }
      case 'notification': {
        const { method, params } = message
        const by = stream === undefined || this.events.ofSession?.(method) ? undefined : stream
        const owner = method === 'notifications/progress' ? progressOwner(params) : (by ?? listener(params))
        if (owner === undefined) return this.events.notified(message.method, message.params)
        const exchange = this.#exchanges.get(owner)
        if (exchange && !exchange.answered) this.#give(exchange, message)
        else this.#drop('a notification for a call that is over')
        return
      }
      case 'request':
        if (++this.#asked > MAX_ASKED) {
          return this.respond(message.id, { code: -32603, message: 'Too many requests of the server are open at once' })
        }
        return this.events.asked(message, stream === undefined ? undefined : this.#exchanges.get(stream))
    }
  }

  #give(exchange: Exchange, message: Arrival): void {
    if (exchange.push(message)) this.events.arrived?.(exchange)
  }

  /**
   * The request that an error under a strange id answers: the first one, as long as there has been no other. Effect's
   * server (@effect/ai) answers an unknown method with the id -32603, others with null.
   */
  #first({ outcome: { kind } }: Response): Exchange | undefined {
    return kind === 'error' && this.#lastId === 1 ? this.#exchanges.get(1) : undefined
  }
}

function parse(source: Source): Message | undefined {
  try {
    return parseMessage(source)
  } catch {
    return undefined
  }
}

/** Progress names its request: the token is the id. Another token is not ours, and -1 is nobody's id. */
function progressOwner(params: Params): number {
  const token = typeof params === 'string' ? undefined : raw(params, 'progressToken')
  return (token === undefined ? undefined : numberOf(token)) ?? -1
}

/** On a pipe, what belongs to a subscription names the request that opened it (MCP 2026-07-28, subscriptions). */
function listener(params: Params): number | undefined {
  const meta = typeof params === 'string' ? undefined : objectIn(params, '_meta')
  const id = meta && raw(meta, SUBSCRIPTION_ID)
  return id === undefined ? undefined : numberOf(id)
}
