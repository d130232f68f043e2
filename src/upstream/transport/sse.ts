/**
 * The HTTP+SSE transport of 2024-11-05 to servers: one stream for all received messages, which names the address for
 * POSTs.
 */
import type { Account } from '../../protocol/account.js'
import { Fault } from '../../protocol/fault.js'
import type { Memory } from '../../protocol/memory.js'
import { forgivingText } from '../../rpc/source.js'
import type { SseEvent } from '../../rpc/sse.js'
import { OneWaySender } from '../one-way.js'
import { type Channel, ChannelError, type Outgoing, type Receiver, type Transport } from './channel.js'
import {
  type AnswerHeaders,
  askAs,
  type BodyKind,
  mediaType,
  Origin,
  type OriginOptions,
  onSameOrigin,
  refuse,
  withCredential,
} from './origin.js'

/** Maximum characters of the endpoint. */
const MAX_ENDPOINT = 8 * 1024
/** Milliseconds within which the stream has to name the endpoint. */
const ENDPOINT_WITHIN = 5_000

export class SseTransport implements Transport {
  readonly kind = 'sse'
  readonly target: string
  readonly #origin: Origin
  readonly #endpointWithin: number

  constructor(options: OriginOptions & { endpointWithin?: number }) {
    this.#origin = new Origin(options)
    this.#endpointWithin = options.endpointWithin ?? ENDPOINT_WITHIN
    this.target = options.target ?? options.url.origin + options.url.pathname
  }

  open({ account }: { account?: Account | undefined } = {}): Promise<Channel> {
    return SseChannel.open(this.#origin, this.#endpointWithin, account)
  }

  close(): Promise<void> {
    return this.#origin.close()
  }
}

class SseChannel implements Channel {
  readonly transport = 'sse'
  readonly shared = true
  readonly stateless = false
  readonly memory: Memory
  readonly #origin: Origin
  readonly #oneWay: OneWaySender
  #endpoint = ''
  #receiver: Receiver | undefined
  #abort = () => {}
  readonly #closing = new AbortController()
  #end: ChannelError | undefined

  constructor(origin: Origin) {
    this.#origin = origin
    this.memory = origin.memory
    this.#oneWay = new OneWaySender(origin.memory)
  }

  /** Opens the stream and waits for its first event. */
  static open(origin: Origin, within: number, account?: Account): Promise<Channel> {
    const channel = new SseChannel(origin)
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        const isKnown = error instanceof ChannelError || error instanceof Fault
        reject(isKnown ? error : new ChannelError('The stream failed', { cause: error }))
        channel.#abort()
      }
      const late = new ChannelError('The server opened no HTTP+SSE stream in time', { delivered: 'no' })
      let timer: NodeJS.Timeout | undefined
      const sent = () => {
        clearTimeout(timer)
        timer = setTimeout(() => fail(late), within)
      }
      channel
        .#read(account, sent, (endpoint) => {
          clearTimeout(timer)
          channel.#endpoint = endpoint
          resolve(channel)
        })
        .catch((error) => {
          clearTimeout(timer)
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

  send(message: Outgoing): Promise<void> {
    return message.exchange === undefined ? this.#oneWay.send(message, () => this.#send(message)) : this.#send(message)
  }

  async #send({ text, headers, account }: Outgoing): Promise<void> {
    if (this.#end) throw new ChannelError(this.#end.message, { delivered: 'no' })
    const request = {
      method: 'POST' as const,
      path: this.#endpoint,
      headers: { ...this.#origin.headers, 'content-type': 'application/json', ...headers },
      body: text,
    }
    const reader = { head: (status: number) => (status < 300 ? 'nothing' : 'whole') } as const
    refuse(
      await askAs(account, this.#closing.signal, (credential) =>
        this.#origin.ask(credential === undefined ? request : withCredential(request, credential), reader),
      ),
    )
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
   * Reads the stream until it ends. Then the channel ends, because this transport cannot resume a stream. `onSent` is
   * called for each request for the stream, `onEndpoint` with the endpoint.
   */
  async #read(account: Account | undefined, onSent: () => void, onEndpoint: (endpoint: string) => void): Promise<void> {
    const event = ({ event, data }: SseEvent) => {
      if (event === 'endpoint') {
        if (this.#endpoint === '') onEndpoint(this.#resolve(forgivingText(data)))
      } else if (event === 'message' && data.length > 0) {
        this.#receiver?.message(data, undefined)
      }
    }
    const request = { method: 'GET' as const, headers: { ...this.#origin.headers, accept: 'text/event-stream' } }
    try {
      const start = (abort: () => void) => {
        this.#abort = abort
      }
      refuse(
        await askAs(account, this.#closing.signal, (credential) => {
          onSent()
          const asked = credential === undefined ? request : withCredential(request, credential)
          return this.#origin.ask(asked, { head: eventsOnly, event, start })
        }),
      )
      this.#finish(new ChannelError('The server closed the stream'))
    } catch (error) {
      // Without an endpoint, nothing has been sent.
      if (error instanceof Fault && this.#endpoint === '') throw error
      this.#finish(error instanceof ChannelError ? error : new ChannelError('The stream failed', { cause: error }))
    }
    // This matters only to `open`, while it waits for the endpoint. An open channel reports the end to its receiver.
    if (this.#end) throw this.#end
  }

  /** The path of the endpoint. It has to be on the origin of the stream, so that no credentials reach another one. */
  #resolve(data: string): string {
    const endpoint = data.length > MAX_ENDPOINT ? undefined : onSameOrigin(data, this.#origin.url)
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

function eventsOnly(status: number, headers: AnswerHeaders): BodyKind {
  if (status >= 300) return 'whole'
  if (mediaType(headers) !== 'text/event-stream')
    throw new ChannelError('The server did not answer a GET with an event stream', { protocol: true })
  return 'events'
}
