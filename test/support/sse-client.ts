/** A client of HTTP+SSE, of few words: one stream in, and messages posted to where it says. */
import { type EventStream, openStream } from './events.js'
import { until } from './eventually.js'
import { initialize, type OpenOptions } from './legacy-client.js'
import { type Answer, post } from './modern.js'

type Json = Record<string, unknown>

export class SseClient {
  readonly stream: EventStream
  /** Where messages are posted. */
  readonly messagesUrl: string
  readonly #headers: Record<string, string>
  #lastId = 0

  private constructor(stream: EventStream, messagesUrl: string, headers: Record<string, string>) {
    this.stream = stream
    this.messagesUrl = messagesUrl
    this.#headers = { 'content-type': 'application/json', ...headers }
  }

  /** Opens the stream beside a bridge's endpoint, and waits to be told where to post. */
  static async connect(url: string, headers: Record<string, string> = {}): Promise<SseClient> {
    const streamUrl = new URL('sse', url).href
    const stream = await openStream('GET', streamUrl, { accept: 'text/event-stream', ...headers })
    if (stream.status !== 200) throw Object.assign(new Error(`no stream: ${stream.status}`), { stream })
    await until(() => stream.events.length > 0, 'the first event')
    const { data = '' } = stream.events[0] ?? {}
    return new SseClient(stream, new URL(data, streamUrl).href, headers)
  }

  /** The same, with its session open. */
  static async open(
    url: string,
    revision: string,
    options: OpenOptions = {},
    headers: Record<string, string> = {},
  ): Promise<SseClient> {
    const client = await SseClient.connect(url, headers)
    await client.post(initialize(revision, options))
    await client.answer('hello')
    await client.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
    return client
  }

  /** Messages that have come. */
  get messages(): Json[] {
    return this.stream.events.flatMap(({ event, data }) =>
      event === 'message' ? [JSON.parse(String(data)) as Json] : [],
    )
  }

  post(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return post(this.messagesUrl, text, { ...this.#headers, ...headers })
  }

  /** Sends a request, and resolves to the message that answers it. */
  async request(method: string, params?: Json, id: unknown = ++this.#lastId): Promise<Json> {
    await this.post({ jsonrpc: '2.0', id, method, ...(params && { params }) })
    return this.answer(id)
  }

  async answer(id: unknown): Promise<Json> {
    const found = () => this.messages.find((message) => message['id'] === id && !('method' in message))
    await until(() => found() !== undefined, `an answer to ${JSON.stringify(id)} (${this.stream.text})`)
    return found() as Json
  }
}
