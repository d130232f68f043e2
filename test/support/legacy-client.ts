/** A legacy client of few words over Streamable HTTP: it sends what a test says, and gives back what came. */
import { type EventStream, openStream } from './events.js'
import { type Answer, post, send } from './modern.js'
import type { Violation } from './modern-plan.js'

type Json = Record<string, unknown>
type Headers = Record<string, string | undefined>

export interface OpenOptions {
  revision?: string
  capabilities?: Json
  clientInfo?: Json
  /** Sent with everything. */
  headers?: Headers
  /** Whether `notifications/initialized` follows; it does unless a test says otherwise. */
  ready?: boolean
}

export interface RequestOptions {
  id?: unknown
  meta?: Json
  headers?: Headers
}

export const BOTH = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

export class LegacyClient {
  readonly url: string
  /** What `initialize` was answered with. */
  readonly opened: Answer
  /** Sent with everything that follows `initialize`. */
  readonly headers: Headers
  #lastId = 0

  private constructor(url: string, opened: Answer, headers: Headers) {
    this.url = url
    this.opened = opened
    this.headers = headers
  }

  static async open(url: string, options: OpenOptions = {}): Promise<LegacyClient> {
    const { revision = '2025-11-25', headers = {}, ready = true } = options
    const opened = await post(url, initialize(revision, options), { ...BOTH, ...headers })
    const negotiated = opened.message.result?.['protocolVersion'] as string | undefined
    // Clients of the first two revisions know no such header.
    const version = negotiated !== undefined && negotiated >= '2025-06-18' ? negotiated : undefined
    const session = opened.headers['mcp-session-id'] as string | undefined
    const own = { ...BOTH, ...headers, 'mcp-session-id': session, 'mcp-protocol-version': version }
    const client = new LegacyClient(url, opened, own)
    if (ready && session !== undefined) await client.notify('notifications/initialized')
    return client
  }

  get session(): string {
    return String(this.headers['mcp-session-id'])
  }

  /** Sends a request, and resolves when its answer is whole. */
  request(method: string, params?: Json, options: RequestOptions = {}): Promise<Answer> {
    return post(this.url, this.text(method, params, options), { ...this.headers, ...options.headers })
  }

  call(name: string, args: Json = {}, options: RequestOptions = {}): Promise<Answer> {
    return this.request('tools/call', { name, arguments: args }, options)
  }

  /** Sends a request, and resolves when the head of its answer has come. */
  stream(method: string, params?: Json, options: RequestOptions = {}): Promise<EventStream> {
    const headers = { ...this.headers, ...options.headers }
    return openStream('POST', this.url, headers, this.text(method, params, options))
  }

  notify(method: string, params?: Json): Promise<Answer> {
    return this.post({ jsonrpc: '2.0', method, ...(params && { params }) })
  }

  /** Posts anything. */
  post(body: unknown, headers: Headers = {}): Promise<Answer> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return post(this.url, text, { ...this.headers, ...headers })
  }

  /** Opens the stream for the server's own messages, or takes one up again. */
  listen(lastEventId?: string, headers: Headers = {}): Promise<EventStream> {
    const own = { ...this.headers, accept: 'text/event-stream', 'content-type': undefined }
    return openStream('GET', this.url, { ...own, 'last-event-id': lastEventId, ...headers })
  }

  end(): Promise<Answer> {
    return send('DELETE', this.url, undefined, { ...this.headers, 'content-type': undefined })
  }

  /** The text of a request, under the next id where a test names none. */
  text(method: string, params: Json | undefined, { id = ++this.#lastId, meta }: RequestOptions): string {
    const all = meta ? { ...params, _meta: meta } : params
    return JSON.stringify({ jsonrpc: '2.0', id, method, ...(all && { params: all }) })
  }
}

export function initialize(
  revision: string,
  { capabilities = {}, clientInfo = { name: 'old', version: '1' } }: OpenOptions = {},
  id: unknown = 'hello',
): string {
  const params = { protocolVersion: revision, capabilities, clientInfo }
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params })
}

/**
 * What was wrong with what reached a modern server, but for the one question whether it keeps sessions as well, which
 * no client of its own era would ask.
 */
export function besideTheQuestion(violations: readonly Violation[]): Violation[] {
  const asked = violations.find(({ rule, says }) => rule === 'handshake' || says === 'GET is not POST')
  return violations.filter((violation) => violation !== asked)
}
