/** A scripted legacy server over Streamable HTTP, inside the test: what arrived can be looked at, and anything answered. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { answer, result } from '../fixtures/legacy.mjs'

type Json = Record<string, unknown>

export interface Received {
  method: string
  headers: IncomingMessage['headers']
  path: string
  body: string
  message: Json
}

/** Takes a request in place of the script. Returns true when it has been taken care of. */
export type Override = (received: Received, response: ServerResponse) => boolean

export interface Plan {
  /** A session id is given and asked for. */
  sessions?: boolean
  /** What GET is answered with: the stream, or a status. */
  get?: number
  revision?: string
  capabilities?: object
  /** What the probe is answered with. */
  discover?: { status: number; body?: unknown; headers?: Record<string, string> }
  /** Every answer is a stream of events, as the official SDK has it; otherwise only where something comes first. */
  streams?: boolean
  /** Two pages of each list. */
  pages?: 2
  override?: Override
}

export class LegacyHttp {
  readonly received: Received[] = []
  readonly #plan: Plan
  readonly #waiting = new Map<unknown, (answer: Json) => void>()
  /** Requests that wait to be cancelled, by session and id. */
  readonly #lingering = new Map<string, () => void>()
  readonly #streams = new Set<ServerResponse>()
  readonly #server: Server
  #sessions = 0

  private constructor(plan: Plan) {
    this.#plan = plan
    this.#server = createServer((request, response) => this.#take(request, response))
  }

  static async start(t: Test, plan: Plan = {}): Promise<LegacyHttp> {
    const legacy = new LegacyHttp(plan)
    await new Promise<void>((resolve) => legacy.#server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      legacy.#server.closeAllConnections()
      legacy.#server.close()
    })
    return legacy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`
  }

  /** Names of the JSON-RPC methods that arrived, in order. */
  get methods(): unknown[] {
    return this.received.filter(({ method }) => method === 'POST').map(({ message }) => message['method'])
  }

  of(method: string): Received[] {
    return this.received.filter(({ message }) => message['method'] === method)
  }

  /** Sends a message on every open GET stream. */
  push(message: object): void {
    for (const stream of this.#streams) stream.write(`data: ${JSON.stringify(message)}\n\n`)
  }

  get streams(): number {
    return this.#streams.size
  }

  /** Cuts every connection, as a server that is killed does. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const { method = '', headers, url = '' } = request
      const received = { method, headers, path: url, body, message: (body === '' ? {} : JSON.parse(body)) as Json }
      this.received.push(received)
      if (this.#plan.override?.(received, response)) return
      if (method === 'GET') this.#openStream(response)
      else if (method === 'DELETE') response.writeHead(200).end()
      else this.#post(received, response)
    })
  }

  #openStream(response: ServerResponse): void {
    if (this.#plan.get !== undefined) {
      response.writeHead(this.#plan.get).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    this.#streams.add(response)
    response.on('close', () => this.#streams.delete(response))
  }

  #post({ message, body, headers: asked }: Received, response: ServerResponse): void {
    if (message['method'] === 'server/discover') return this.#discovered(message, response)
    const key = (id: unknown) => `${asked['mcp-session-id']} ${JSON.stringify(id)}`
    if (message['method'] === 'notifications/cancelled')
      this.#lingering.get(key((message['params'] as Json)['requestId']))?.()
    if (message['method'] === undefined || message['id'] === undefined) {
      this.#waiting.get(message['id'])?.(message)
      response.writeHead(202).end()
      return
    }
    const given = this.#plan.sessions !== false && message['method'] === 'initialize'
    const headers = given ? { 'mcp-session-id': `session-${++this.#sessions}` } : {}
    const id = message['id']
    let streaming = false
    const emit = (sent: Json | string, standalone?: boolean) => {
      if (standalone) return this.push(typeof sent === 'string' ? (JSON.parse(sent) as Json) : sent)
      const text = typeof sent === 'string' ? sent : JSON.stringify(sent)
      const last = (JSON.parse(text) as Json)['method'] === undefined
      if (last && !streaming && !this.#plan.streams) {
        response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(text)
        return
      }
      if (!streaming) response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
      streaming = true
      response.write(`event: message\ndata: ${text}\n\n`)
      if (last) response.end()
    }
    const way = {
      emit,
      crash: () => this.cut(),
      expect: (question: unknown, ready: (answer: Json) => void) => this.#waiting.set(question, ready),
      cancelled: (id: unknown, ready: () => void) => this.#lingering.set(key(id), ready),
    }
    const answered = answer(message, body, way, this.#plan) as Json | string | undefined
    if (answered !== undefined) emit(result(id, answered) as string)
  }

  #discovered(message: Json, response: ServerResponse): void {
    const { status, body, headers } = this.#plan.discover ?? {
      status: 404,
      body: { jsonrpc: '2.0', id: message['id'], error: { code: -32601, message: 'Method not found' } },
    }
    const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
    const type = typeof body === 'string' ? 'text/html' : 'application/json'
    response.writeHead(status, { ...(body !== undefined && { 'content-type': type }), ...headers }).end(text)
  }
}
