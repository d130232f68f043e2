/** A scripted legacy server over Streamable HTTP, inside the test: what arrived can be looked at, and anything answered. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { answer, result } from '../fixtures/legacy.mjs'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { welcome } from '../fixtures/legacy-asking.mjs'
import { listenUntilEnd, stopListening } from './listen-until-end.js'

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
  /** It has the tools that ask: see test/fixtures/legacy-asking.mjs. */
  asks?: boolean
  /** What it asks as soon as a session is open and can be asked. */
  greet?: readonly Question[]
  /** Steps that it goes before it answers `tools/list`. */
  slowList?: object
  /** It breaks down when it is asked for a task. */
  crashOnTask?: boolean
  /** A file that gets a line for each call that names a `key`. */
  executions?: string
  override?: Override
  /** Changes the text of each message that it sends. */
  spell?: (text: string) => string
}

interface Question {
  method: string
  params?: object
  id?: unknown
}

export class LegacyHttp {
  readonly received: Received[] = []
  readonly #plan: Plan
  /** Questions that wait for their answer, and requests that wait to be cancelled, by session and id. */
  readonly #waiting = new Map<string, (answer: Json) => void>()
  readonly #lingering = new Map<string, () => void>()
  readonly #streams = new Map<ServerResponse, unknown>()
  /** Streams of calls that were left, by the event that they can be taken up after. */
  readonly #left = new Map<string, CallStream>()
  readonly #welcomed = new Set<unknown>()
  readonly #server: Server
  #sessions = 0
  #asked = 0

  private constructor(plan: Plan) {
    this.#plan = plan
    this.#server = createServer((request, response) => this.#take(request, response))
  }

  static async start(t: Test, plan: Plan = {}): Promise<LegacyHttp> {
    const legacy = new LegacyHttp(plan)
    await listenUntilEnd(t, legacy.#server)
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
    for (const stream of this.#streams.keys()) stream.write(`data: ${this.#spelled(message)}\n\n`)
  }

  get streams(): number {
    return this.#streams.size
  }

  /** Ends every open GET stream. */
  endStreams(): void {
    for (const stream of this.#streams.keys()) stream.end()
  }

  /** Cuts every connection, as a server that is killed does. */
  cut(): void {
    this.#server.closeAllConnections()
  }

  /** Listens no more. Gives what has it listen again, at the same port. */
  stop(): Promise<() => Promise<void>> {
    return stopListening(this.#server)
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
      if (method === 'GET') this.#openStream(headers, response)
      else if (method === 'DELETE') response.writeHead(200).end()
      else this.#post(received, response)
    })
  }

  #openStream(headers: IncomingMessage['headers'], response: ServerResponse): void {
    const left = this.#left.get(String(headers['last-event-id']))
    if (left) return left.takeUp(response)
    if (this.#plan.get !== undefined) {
      response.writeHead(this.#plan.get).end()
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    const session = headers['mcp-session-id']
    this.#streams.set(response, session)
    response.on('close', () => this.#streams.delete(response))
    if (this.#welcomed.has(session)) return
    this.#welcomed.add(session)
    ;(welcome as (way: object, plan: Plan) => void)(this.#wayOf(session), this.#plan)
  }

  /** What is the same for all that happens in a session. */
  #wayOf(session: unknown) {
    const key = (id: unknown) => `${session} ${JSON.stringify(id)}`
    return {
      session,
      number: () => this.#asked++,
      emit: (sent: Json | string) => {
        const text = this.#spelled(sent)
        for (const [stream, of] of this.#streams) if (of === session) stream.write(`data: ${text}\n\n`)
      },
      crash: () => this.cut(),
      expect: (question: unknown, ready: (answer: Json) => void) => this.#waiting.set(key(question), ready),
      cancelled: (id: unknown, ready: () => void) => this.#lingering.set(key(id), ready),
    }
  }

  #post({ message, body, headers: asked }: Received, response: ServerResponse): void {
    if (message['method'] === 'server/discover') return this.#discovered(message, response)
    if (Array.isArray(message)) return this.#postAll(message as Json[], asked['mcp-session-id'], response)
    const session = asked['mcp-session-id']
    const key = (id: unknown) => `${session} ${JSON.stringify(id)}`
    if (message['method'] === 'notifications/cancelled')
      this.#lingering.get(key((message['params'] as Json)['requestId']))?.()
    if (message['method'] === undefined || message['id'] === undefined) {
      if (message['method'] === undefined) this.#waiting.get(key(message['id']))?.(message)
      response.writeHead(202).end()
      return
    }
    const given = this.#plan.sessions !== false && message['method'] === 'initialize'
    const headers = given ? { 'mcp-session-id': `session-${++this.#sessions}` } : {}
    this.#answer(message, body, session, new CallStream(response, headers, this.#plan))
  }

  /** Answers an array, as servers of 2025-03-26 do, by one array or by events. */
  #postAll(messages: readonly Json[], session: unknown, response: ServerResponse): void {
    const requests = messages.filter(({ id, method }) => id !== undefined && method !== undefined)
    if (requests.length === 0) return void response.writeHead(202).end()
    const stream = new CallStream(response, {}, this.#plan, requests.length)
    for (const request of requests) this.#answer(request, JSON.stringify(request), session, stream)
  }

  #answer(message: Json, body: string, session: unknown, stream: CallStream): void {
    const own = this.#wayOf(session)
    const emit = (sent: Json | string, standalone?: boolean) => {
      if (standalone) own.emit(sent)
      else stream.emit(typeof sent === 'string' ? sent : JSON.stringify(sent))
    }
    const leave = (milliseconds: number) => this.#left.set(stream.leave(milliseconds), stream)
    const answered = answer(message, body, { ...own, emit, leave }, this.#plan) as Json | string | undefined
    if (answered !== undefined) emit(result(message['id'], answered) as string)
  }

  #spelled(sent: object | string): string {
    const text = typeof sent === 'string' ? sent : JSON.stringify(sent)
    return this.#plan.spell?.(text) ?? text
  }

  #discovered(message: Json, response: ServerResponse): void {
    const { status, body, headers } = this.#plan.discover ?? {
      status: 404,
      body: { jsonrpc: '2.0', id: message['id'], error: { code: -32601, message: 'Method not found' } },
    }
    const text = body === undefined ? '' : typeof body === 'string' ? body : this.#spelled(body as object)
    const type = typeof body === 'string' ? 'text/html' : 'application/json'
    response.writeHead(status, { ...(body !== undefined && { 'content-type': type }), ...headers }).end(text)
  }
}

/** What is said in answer to one request: JSON, or events where something comes first. */
class CallStream {
  /** Where events go; undefined while the client has to come back for them. */
  #out: ServerResponse | undefined
  readonly #headers: Record<string, string>
  readonly #plan: Plan
  #open = false
  readonly #unsaid: string[] = []

  /** The answers that are to come, to a single request or to those of an array. */
  #left: number
  readonly #array: string[] | undefined

  constructor(response: ServerResponse, headers: Record<string, string>, plan: Plan, ofArray?: number) {
    this.#out = response
    this.#left = ofArray ?? 1
    this.#array = ofArray === undefined ? undefined : []
    this.#headers = headers
    this.#plan = plan
  }

  emit(text: string): void {
    const isAnswer = (JSON.parse(text) as Json)['method'] === undefined
    const last = isAnswer && --this.#left === 0
    if (!this.#out) {
      if (isAnswer) this.#left++
      this.#unsaid.push(text)
    } else if (isAnswer && !this.#open && !this.#plan.streams) {
      this.#array?.push(this.#spelled(text))
      const whole = this.#array ? `[${this.#array.join(',')}]` : this.#spelled(text)
      if (last) this.#out.writeHead(200, { 'content-type': 'application/json', ...this.#headers }).end(whole)
    } else {
      for (const held of this.#array?.splice(0) ?? []) this.#events(this.#out).write(`data: ${held}\n\n`)
      this.#events(this.#out).write(`event: message\ndata: ${this.#spelled(text)}\n\n`)
      if (last) this.#out.end()
    }
  }

  /** Closes the stream, to be taken up after so many milliseconds. Gives the id of its last event. */
  leave(milliseconds: number): string {
    const id = `event-${Math.random()}`
    if (this.#out) this.#events(this.#out).end(`id: ${id}\nretry: ${milliseconds}\ndata: \n\n`)
    this.#out = undefined
    return id
  }

  takeUp(response: ServerResponse): void {
    this.#out = response
    this.#open = false
    this.#events(response)
    for (const text of this.#unsaid.splice(0)) this.emit(text)
  }

  #spelled(text: string): string {
    return this.#plan.spell?.(text) ?? text
  }

  #events(response: ServerResponse): ServerResponse {
    if (!this.#open) {
      response.writeHead(200, { 'content-type': 'text/event-stream', ...this.#headers })
      response.flushHeaders()
    }
    this.#open = true
    return response
  }
}
