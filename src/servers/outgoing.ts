/** What a peer sends that gets no answer: notifications, and answers to requests of the server. */

import { isUtf8 } from 'node:buffer'
import { heldMessage } from '../base/rpc/held-message.js'
import {
  error as errorMessage,
  type Id,
  notification,
  type Request,
  type RpcError,
  result as resultMessage,
  type Sent,
} from '../base/rpc/message.js'
import { repairedSourceOf, textOfWire, wireOf } from '../base/rpc/source.js'
import type { Json, Payload } from '../base/rpc/splice.js'
import { ECHOED, printable } from '../base/texts/printable.js'
import type { ChannelRecorder, ServerRecorder } from '../mcp/ports/recorder.js'
import type { Account } from '../mcp/protocol/account.js'
import type { ReceivedNotice } from '../mcp/protocol/call.js'
import type { MessageOrigin } from '../mcp/protocol/encoded.js'
import { errorIn } from './failure.js'
import type { ServerLog } from './options.js'
import { type Channel, ChannelError, type Heard } from './transport/channel.js'

/** Options of a notification. The channel's own headers and account are the defaults. */
export interface NoticeOptions {
  headers?: Readonly<Record<string, string>> | undefined
  account?: Account | undefined
  /** The number, for the inspector, of the call that it belongs to. */
  call?: number | undefined
  forwarded?: Readonly<Record<string, string>> | undefined
  /** The received message that is forwarded without edits. */
  origin?: MessageOrigin | undefined
  /** Sends it in an array, in place of the channel. */
  within?: Pick<Channel, 'sendMessage'> | undefined
  /** Who takes the messages in the answer of the server; only over HTTP. By default, they are the server's own. */
  heard?: Pick<ReceivedNotice, 'hear' | 'signal'> | undefined
}

const SILENT: ServerLog = { debug: () => {}, warn: () => {} }
/** Maximum open requests of the server. `ParkedCalls` bounds those that wait for clients further. */
const MAX_SERVER_REQUESTS = 4_096

export class Outgoing {
  readonly channel: Channel
  /** Default headers of messages, if the transport has headers. */
  headers: Readonly<Record<string, string>> = {}
  account: Account | undefined
  protected readonly log: ServerLog
  protected readonly recorder: ChannelRecorder | undefined
  #asked = 0

  constructor(channel: Channel, log: ServerLog = SILENT, recorder?: ServerRecorder) {
    this.channel = channel
    this.log = log
    this.recorder = recorder?.channel(channel.transport !== 'stdio')
  }

  notify(method: string, params: Sent | Uint8Array, options: NoticeOptions = {}): Promise<void> {
    const message = params instanceof Uint8Array ? params : notification(method, params)
    const { call, origin } = options
    this.recorder?.sent({ form: 'notification', method }, textIn(message), call, {
      origin: originOf(params) ?? origin,
      headers: headersIn(options, this.headers),
    })
    return this.#send(message, options)
  }

  /** Counts a request of the server, which `respond` or `settled` ends. Refuses it if too many are open. Returns whether it may be. */
  admits({ id }: Request): boolean {
    if (++this.#asked <= MAX_SERVER_REQUESTS) return true
    this.respond(id, { code: -32603, message: `Too many open requests (at most ${MAX_SERVER_REQUESTS})` })
    return false
  }

  respond(id: Id, answer: Json | RpcError, origin?: MessageOrigin): void {
    const [form, text] =
      typeof answer === 'string'
        ? (['result', resultMessage(id, answer)] as const)
        : (['error', errorMessage(id, answer)] as const)
    this.answer(form, id, text, { origin }).catch(() => {})
  }

  /** Answers a request that no client may answer: `ping` with a result, all others with an error. */
  refuse({ id, method }: Request): void {
    this.respond(
      id,
      method === 'ping' ? '{}' : { code: -32601, message: `Method not found: ${printable(method, ECHOED)}` },
    )
  }

  /** A request of the server that was not read gets an error, because the server waits for an answer. */
  refuseUnread(id: Id, message: string): void {
    this.#asked++
    this.respond(id, { code: -32603, message })
  }

  /** Sends an answer to a request of the server: an encoded one, or as its client has sent it. Rejects as `notify`. */
  answer(
    form: 'result' | 'error',
    id: Id | undefined,
    message: string | Uint8Array,
    options: NoticeOptions,
  ): Promise<void> {
    const { origin } = options
    let { call } = options
    if (id !== undefined) {
      this.settled()
      call = this.recorder?.answered(form, id, textIn(message), { origin, headers: headersIn(options, this.headers) })
    }
    const sent = this.#send(message, { ...options, call })
    if (!options.heard) sent.catch(() => this.drop('a question that cannot be answered'))
    return sent
  }

  /** Notes that a request of the server is no longer open. */
  settled(): void {
    this.#asked--
  }

  protected drop(what: string): void {
    this.log.debug({ event: 'message_dropped', what }, 'message from the server dropped')
  }

  /** `heard` takes what the server says to the message all the same. */
  #send(message: string | Uint8Array, options: NoticeOptions): Promise<void> {
    const { headers = this.headers, forwarded, account = this.account, call, heard, within } = options
    const text = typeof message === 'string' ? message : ''
    const bytes = typeof message === 'string' ? undefined : message
    const hearing = heard && this.#hearing(heard, call)
    const sent = (within ?? this.channel).sendMessage({ text, bytes, headers, forwarded, account, heard: hearing })
    if (this.recorder) sent.catch((error: unknown) => this.recordRefusal(error, call))
    return sent
  }

  /** Records the refusal of a message by HTTP. */
  protected recordRefusal(error: unknown, call: number | undefined): void {
    const refusal = error instanceof ChannelError ? error.refusal : undefined
    const said = refusal && errorIn(refusal)
    if (said) this.recorder?.received(said, call, { status: refusal.status, headers: {} })
    else if (refusal) this.recorder?.refused(refusal, call)
  }

  /** Gives the messages in the answer to a notification to its client, and nothing else. */
  #hearing({ hear, signal }: NonNullable<NoticeOptions['heard']>, call: number | undefined): Heard {
    return {
      signal,
      hear: (bytes, http) => {
        const { source } = repairedSourceOf(bytes, isUtf8)
        const message = heldMessage(source)
        if (!message) return
        if (message.kind !== 'batch' && message.kind !== 'invalid') this.recorder?.received(message, call, http)
        hear(wireOf(source), http)
      },
    }
  }
}

/** The origin of params, if it is known. */
export function originOf(params: Sent | Uint8Array): Payload | undefined {
  return typeof params === 'object' && !(params instanceof Uint8Array) ? params : undefined
}

function textIn(message: string | Uint8Array): string {
  return typeof message === 'string' ? message : textOfWire([message])
}

function headersIn({ headers, forwarded }: NoticeOptions, usual: Readonly<Record<string, string>>) {
  return { ...forwarded, ...(headers ?? usual) }
}
