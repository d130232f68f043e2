/** The JSON-RPC peer of a server: mints ids and progress tokens, and brings what comes in to whom it belongs. */
import { type Loan, SMALL } from '../protocol/memory.js'
import { SUBSCRIPTION_ID } from '../protocol/meta.js'
import {
  error as errorMessage,
  type Id,
  type Message,
  notification,
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
import { type Channel, ChannelError, type Receiver } from './channel.js'
import { Exchange, type Line } from './exchange.js'

/** What a peer cannot settle by itself. */
export interface PeerEvents {
  /** The server asks something, on the stream of an exchange or on none. Has to be answered with `respond`. */
  asked(request: Request, exchange: Exchange | undefined): void
  /** A notification that belongs to no exchange, as far as the wire can tell. */
  notified(method: string, params: Params): void
  /** Whether a notification belongs to no exchange though it has come on the stream of one. */
  ofSession?(method: string): boolean
  /** The channel has come to its end. */
  ended(error: ChannelError): void
  /** Nothing that belongs to no exchange will come in any more. */
  deaf?(): void
  /** Of what belongs to no exchange, something may not have come in. */
  missed?(): void
  /** Something came in that is no message, or that nobody waits for. */
  stray(what: string): void
}

type Headers = Readonly<Record<string, string>>

/** Messages in a row that are none, after which a server is given up. */
const MAX_RUBBISH = 100
/** Requests of the server that may be open at once. How many of them may wait for clients is bounded elsewhere, and lower. */
const MAX_ASKED = 4_096

export class Peer implements Receiver, Line {
  readonly channel: Channel
  /** Headers of every message that has none of its own, where the transport has headers. */
  headers: Headers = {}
  events: PeerEvents = { asked: () => {}, notified: () => {}, ended: () => {}, stray: () => {} }
  readonly #exchanges = new Map<number, Exchange>()
  #lastId = 0
  #rubbish = 0
  #asked = 0
  #end: ChannelError | undefined

  constructor(channel: Channel) {
    this.channel = channel
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
  async call(method: string, params: Json | undefined, timeout: number, headers?: Headers): Promise<Response> {
    const exchange = this.begin()
    const timer = setTimeout(() => exchange.fail(new ChannelError(`No answer to ${method} in ${timeout} ms`)), timeout)
    try {
      exchange.send(method, params, headers)
      for (;;) {
        const arrival = await exchange.next()
        if (arrival.kind === 'response') return arrival
      }
    } finally {
      clearTimeout(timer)
      exchange.release()
    }
  }

  borrow(principal: string): Loan {
    return this.channel.memory.borrow(principal, SMALL)
  }

  notify(method: string, params: Json | undefined, headers: Headers = this.headers): Promise<void> {
    return this.channel.send({ text: notification(method, params), headers })
  }

  respond(id: Id, answer: Json | RpcError): void {
    this.answer(typeof answer === 'string' ? resultMessage(id, answer) : errorMessage(id, answer))
  }

  /** Sends what somebody else has made of an answer to a question of the server. */
  answer(text: string): void {
    this.settled()
    this.channel
      .send({ text, headers: this.headers })
      .catch(() => this.events.stray('a question that cannot be answered'))
  }

  /** A question of the server is open no longer. */
  settled(): void {
    this.#asked--
  }

  send(exchange: Exchange, method: string, params: Json | undefined, headers?: Headers): void {
    if (this.#end) return
    const text = request(exchange.id, method, params)
    this.channel
      .send({ text, exchange: exchange.id, principal: exchange.principal, headers: headers ?? this.headers })
      .catch((error: ChannelError) => exchange.fail(error))
  }

  cancel(exchange: Exchange, reason: string): void {
    if (this.channel.stateless) return this.channel.abandon(exchange.id)
    const params = `{"requestId":${exchange.id},"reason":${JSON.stringify(reason)}}`
    this.notify('notifications/cancelled', params)
      .catch(() => this.events.stray('a cancellation that cannot be delivered'))
      .finally(() => this.channel.abandon(exchange.id))
      .catch(() => {})
  }

  forget(exchange: Exchange): void {
    this.#exchanges.delete(exchange.id)
  }

  waiting(exchange: number): boolean {
    return this.#exchanges.get(exchange)?.answered === false
  }

  message(source: Source, stream: number | undefined): void {
    const message = parse(source)
    if (message === undefined) return this.rubbish('a text that is no JSON')
    if (message.kind === 'invalid') return this.rubbish('JSON that is no message')
    this.#rubbish = 0
    this.#route(message, stream)
  }

  deaf(): void {
    this.events.deaf?.()
  }

  missed(): void {
    this.events.missed?.()
  }

  rubbish(what: string): void {
    this.events.stray(what)
    if (++this.#rubbish <= MAX_RUBBISH) return
    this.ended(new ChannelError('The server sends what is no JSON-RPC', { protocol: true }))
    this.channel.close().catch(() => {})
  }

  ended(error: ChannelError): void {
    if (this.#end) return
    this.#end = error
    for (const exchange of this.#exchanges.values()) exchange.fail(error)
    this.events.ended(error)
  }

  #route(message: Exclude<Message, { kind: 'invalid' }>, stream: number | undefined): void {
    switch (message.kind) {
      case 'response': {
        const exchange = this.#exchanges.get(Number(message.id))
        if (exchange && !exchange.answered) exchange.push(message)
        else this.events.stray('an answer that nobody waits for')
        return
      }
      case 'notification': {
        const { method, params } = message
        const by = stream === undefined || this.events.ofSession?.(method) ? undefined : stream
        const owner = method === 'notifications/progress' ? progressOwner(params) : (by ?? listener(params))
        if (owner === undefined) return this.events.notified(message.method, message.params)
        const exchange = this.#exchanges.get(owner)
        if (exchange && !exchange.answered) exchange.push(message)
        else this.events.stray('a notification for a call that is over')
        return
      }
      case 'request':
        if (++this.#asked > MAX_ASKED) {
          return this.respond(message.id, { code: -32603, message: 'Too many requests of the server are open at once' })
        }
        return this.events.asked(message, stream === undefined ? undefined : this.#exchanges.get(stream))
      case 'batch':
        for (const { start, end } of message.elements) this.message(sourceOf(cut(message.source, start, end)), stream)
        return
    }
  }
}

function parse(source: Source): Message | undefined {
  try {
    return parseMessage(source)
  } catch {
    return undefined
  }
}

const ID = /^[1-9][0-9]{0,15}$/

/** Progress names its request: the token is the id. Another token is not ours, and -1 is nobody's id. */
function progressOwner(params: Params): number {
  const token = typeof params === 'string' ? undefined : raw(params, 'progressToken')
  return token !== undefined && ID.test(token) ? Number(token) : -1
}

/** On a pipe, what belongs to a subscription names the request that opened it (MCP 2026-07-28, subscriptions). */
function listener(params: Params): number | undefined {
  const meta = typeof params === 'string' ? undefined : objectIn(params, '_meta')
  const id = meta && raw(meta, SUBSCRIPTION_ID)
  return id !== undefined && ID.test(id) ? Number(id) : undefined
}
