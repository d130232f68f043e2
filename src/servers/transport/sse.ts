/**
 * The HTTP+SSE transport of 2024-11-05 to servers: one stream for all received messages, whose first event names the
 * endpoint for POSTs.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Memory } from '../../base/limits/memory.js'
import { numberOf, parseMessage } from '../../base/rpc/message.js'
import { forgivingText, sourceOfBytes } from '../../base/rpc/source.js'
import type { SseEvent } from '../../base/rpc/sse.js'
import { mediaType } from '../../base/texts/headers.js'
import { Deadline } from '../../base/time/time.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { CallersHeaders } from '../../mcp/protocol/call.js'
import type { Lanes } from '../lanes.js'
import { OneWayMemory } from '../one-way.js'
import { type BodyKind, lengthError, type OriginAnswer, type ResponseHeaders, refused } from './answers.js'
import { type Channel, ChannelError, type OutgoingMessage, type Receiver, type Transport } from './channel.js'
import { Cookies } from './cookies.js'
import { type HttpRequest, type Origin, OriginTransport, type Reader } from './origin.js'
import { onSameOrigin } from './redirects.js'

/** Maximum characters of the endpoint. */
const MAX_ENDPOINT = 8 * 1024
/** Milliseconds within which the stream has to name the endpoint. */
const ENDPOINT_WITHIN = 5_000

export class SseTransport extends OriginTransport implements Transport {
  readonly kind = 'sse'

  open({ account, credential }: Parameters<Transport['open']>[0] = {}): Promise<Channel> {
    return SseChannel.open(this.origin, account, credential)
  }
}

class SseChannel implements Channel {
  readonly transport = 'sse'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  readonly lanes: Lanes | undefined
  readonly #origin: Origin
  readonly #oneWay: OneWayMemory
  readonly #cookies: Cookies
  #endpoint = ''
  #receiver: Receiver | undefined
  #abort = () => {}
  readonly #closing = new AbortController()
  #end: ChannelError | undefined

  constructor(origin: Origin) {
    this.#origin = origin
    this.memory = origin.memory
    this.lanes = origin.lanes
    this.#cookies = new Cookies(origin.url)
    this.#oneWay = new OneWayMemory(origin.memory)
  }

  static open(origin: Origin, account?: Account, credential?: CallersHeaders): Promise<Channel> {
    const channel = new SseChannel(origin)
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        const isKnown = error instanceof ChannelError || error instanceof Fault
        reject(isKnown ? error : new ChannelError('The stream failed', { cause: error }))
        channel.#abort()
      }
      const late = new ChannelError('The server opened no HTTP+SSE stream in time', { delivered: 'no' })
      let timer: Deadline | undefined
      const sent = () => {
        timer?.clear()
        timer = new Deadline(ENDPOINT_WITHIN, () => fail(late))
      }
      channel
        .#read({ account, credential }, sent, (endpoint) => {
          timer?.clear()
          channel.#endpoint = endpoint
          resolve(channel)
        })
        .catch((error) => {
          timer?.clear()
          fail(error)
        })
    })
  }

  get alive(): boolean {
    return this.#end === undefined
  }

  attach(receiver: Receiver): void {
    this.#receiver = receiver
    if (this.#end) receiver.ended(this.#end)
  }

  async sendMessage(message: OutgoingMessage): Promise<void> {
    const { text, exchange, principal, headers, account } = message
    if (this.#end) throw new ChannelError(this.#end.message, { delivered: 'no' })
    const request = {
      method: 'POST' as const,
      path: this.#endpoint,
      headers: { ...this.#origin.headers, 'content-type': 'application/json', ...headers },
      body: text,
      principal,
    }
    const reader = {
      path: this.#endpoint,
      onHead: (status: number, head: ResponseHeaders) => kindOf(status, head, exchange !== undefined),
      onEvent: ({ data }: SseEvent) => this.#answeredByPost(data, exchange),
    }
    const sent = exchange === undefined ? this.#oneWay.hold(message) : undefined
    const answer = await this.#follow(request, reader, account).finally(sent)
    if (reader.path !== request.path) this.#endpoint = reader.path
    if (answer.status >= 300) throw refused(answer)
    this.#answeredByPost(answer.body, exchange)
  }

  /** Sends a request with the cookies of the session, and follows redirects, to `reader.path` at last. */
  #follow(request: HttpRequest, reader: Reader, account?: Account): Promise<OriginAnswer> {
    const asked: HttpRequest = { ...request, cookies: this.#cookies, follows: 'once' }
    return this.#origin.askOrigin(asked, reader, account, this.#closing.signal)
  }

  /** Takes the answer to a request from the response to its POST: some servers send it there, not on the stream. */
  #answeredByPost(body: readonly Uint8Array[], exchange: number | undefined): void {
    if (exchange === undefined || !this.#receiver?.isWaiting(exchange)) return
    if (answersIn(body, exchange)) this.#receiver.receive(body, undefined)
  }

  abandon(): void {}

  close(): Promise<void> {
    // No `delivered: 'no'`, because the server may have acted on sent messages.
    this.#finish(new ChannelError('The channel is closed'))
    this.#closing.abort(this.#end)
    this.#abort()
    return Promise.resolve()
  }

  /**
   * Reads the stream until its end, and then ends the channel, because this transport cannot resume a stream. Calls
   * `onSent` for each request for the stream, and `onEndpoint` with the endpoint.
   */
  async #read(
    { account, credential }: { account: Account | undefined; credential: CallersHeaders | undefined },
    onSent: () => void,
    onEndpoint: (endpoint: string) => void,
  ): Promise<void> {
    const { url, headers } = this.#origin
    const path = url.pathname + url.search
    const start = (abort: () => void) => {
      this.#abort = abort
      onSent()
    }
    const event = (read: SseEvent) => {
      const { event, data, dropped } = read
      if (event === 'endpoint') {
        if (this.#endpoint === '') onEndpoint(this.#resolve(forgivingText(data), new URL(url.origin + reader.path)))
      } else if (event === 'message') {
        if (dropped) this.#receiver?.dropped(dropped, undefined, lengthError(read))
        else if (data.length > 0) this.#receiver?.receive(data, undefined)
      }
    }
    const request = {
      method: 'GET' as const,
      path,
      headers: { ...headers, accept: 'text/event-stream', ...credential },
    }
    const reader = { path, onHead: eventsOnly, onEvent: event, onStart: start, isShared: true }
    try {
      onSent()
      const answer = await this.#follow(request, reader, account)
      if (answer.status >= 300) throw refused(answer)
      this.#finish(new ChannelError('The server closed the stream'))
    } catch (error) {
      // Without an endpoint, nothing has been sent.
      if (error instanceof Fault && this.#endpoint === '') throw error
      this.#finish(error instanceof ChannelError ? error : new ChannelError('The stream failed', { cause: error }))
    }
    // Only for `open`, while it waits for the endpoint. An open channel reports the end to its receiver.
    if (this.#end) throw this.#end
  }

  /** The path of the endpoint. It has to be on the origin of the stream, so that no credentials reach another one. */
  #resolve(data: string, stream: URL): string {
    const endpoint = data.length > MAX_ENDPOINT ? undefined : onSameOrigin(data, stream)
    if (!endpoint)
      throw new ChannelError('The endpoint that the server named is on another origin, or too long', {
        delivered: 'no',
        protocol: true,
      })
    return endpoint.pathname + endpoint.search
  }

  #finish(error: ChannelError): void {
    if (this.#end) return
    this.#end = error
    this.#receiver?.ended(error)
  }
}

/** How to read the response to a POST. Most only confirm that the message has arrived. */
function kindOf(status: number, headers: ResponseHeaders, isRequest: boolean): BodyKind {
  if (status >= 300) return 'whole'
  if (!isRequest) return 'nothing'
  const type = mediaType(headers)
  if (type === 'text/event-stream') return 'events'
  return type === 'application/json' ? 'whole' : 'nothing'
}

/** Whether a body is the response to a request, or an array with it. */
function answersIn(body: readonly Uint8Array[], id: number): boolean {
  if (body.length === 0) return false
  try {
    const message = parseMessage(sourceOfBytes(body))
    if (message.kind === 'response') return message.id === undefined || numberOf(message.id) === id
    return message.kind === 'batch'
  } catch {
    return false
  }
}

function eventsOnly(status: number, headers: ResponseHeaders): BodyKind {
  if (status >= 300) return 'whole'
  if (mediaType(headers) !== 'text/event-stream')
    throw new ChannelError('The server did not answer a GET with an event stream', { protocol: true })
  return 'events'
}
