/** A scripted legacy server over HTTP+SSE, inside the test: one stream out for each session, and an address to post to. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { answer, result } from '../fixtures/legacy.mjs'
// @ts-expect-error: plain JavaScript, because servers on stdio run it without any loader
import { welcome } from '../fixtures/legacy-asking.mjs'
import type { Plan as HttpPlan, Received } from './legacy-http.js'
import { listenUntilEnd } from './listen-until-end.js'

type Json = Record<string, unknown>

export type SsePlan = Pick<
  HttpPlan,
  | 'revision'
  | 'capabilities'
  | 'pages'
  | 'asks'
  | 'greet'
  | 'slowList'
  | 'crashOnTask'
  | 'executions'
  | 'spell'
  | 'override'
> & {
  /** Requests are answered in the response to their POST alone, in this form. */
  inPost?: 'json' | 'events' | 'batch'
}

/** Where the stream is, and where messages are posted. */
export const PATHS = { stream: '/sse', messages: '/message' }

interface Session {
  stream: ServerResponse
  /** Questions that wait for their answer, and requests that wait to be cancelled. */
  waiting: Map<unknown, (answer: Json) => void>
  lingering: Map<unknown, () => void>
  isCutOff?: boolean
}

export class LegacySse {
  readonly received: Received[] = []
  readonly #plan: SsePlan
  readonly #sessions = new Map<string, Session>()
  readonly #server: Server
  #opened = 0

  private constructor(plan: SsePlan) {
    this.#plan = plan
    this.#server = createServer((request, response) => this.#take(request, response))
  }

  static async start(t: Test, plan: SsePlan = {}): Promise<LegacySse> {
    const legacy = new LegacySse(plan)
    await listenUntilEnd(t, legacy.#server)
    return legacy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${PATHS.stream}`
  }

  /** Streams that are open. */
  get streams(): number {
    return this.#sessions.size
  }

  /** The open streams carry nothing any more, and nobody is told, as after a sleep of the machine. Posts are accepted. */
  cutOff(): void {
    for (const session of this.#sessions.values()) session.isCutOff = true
  }

  /** Answers a request on every open stream, as if it had come there. */
  answer(message: Json): void {
    const way = { emit: () => {} }
    this.push(JSON.parse(result(message['id'], answer(message, '', way, this.#plan)) as string) as Json)
  }

  /** Sends a message on every open stream. */
  push(message: object): void {
    for (const { stream } of this.#sessions.values()) say(stream, JSON.stringify(message))
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
      const { pathname, searchParams } = new URL(received.path, 'http://localhost')
      if (pathname === PATHS.stream && method === 'GET') this.#open(response)
      else if (pathname === PATHS.messages && method === 'POST')
        this.#post(received, this.#sessions.get(searchParams.get('session') ?? ''), response)
      else response.writeHead(pathname === PATHS.stream ? 405 : 404).end()
    })
  }

  #open(stream: ServerResponse): void {
    const id = `stream-${++this.#opened}`
    this.#sessions.set(id, { stream, waiting: new Map(), lingering: new Map() })
    stream.on('close', () => this.#sessions.delete(id))
    stream.writeHead(200, { 'content-type': 'text/event-stream' })
    stream.write(`event: endpoint\ndata: ${PATHS.messages}?session=${id}\n\n`)
  }

  #post({ message, body }: Received, session: Session | undefined, response: ServerResponse): void {
    if (!session) {
      response.writeHead(404).end()
      return
    }
    if (session.isCutOff) {
      response.writeHead(202).end('Accepted')
      return
    }
    const { stream, waiting, lingering } = session
    const { id, method } = message
    const { inPost } = this.#plan
    if (inPost && id !== undefined && method !== undefined) {
      const emit = (sent: Json | string) =>
        respond(response, typeof sent === 'string' ? sent : JSON.stringify(sent), inPost)
      const answered = answer(message, body, { emit }, this.#plan) as Json | string | undefined
      if (answered !== undefined) emit(result(id, answered) as string)
      return
    }
    const way = {
      emit: (sent: Json | string) => {
        const text = typeof sent === 'string' ? sent : JSON.stringify(sent)
        say(stream, this.#plan.spell?.(text) ?? text)
      },
      crash: () => stream.destroy(),
      expect: (question: unknown, ready: (answer: Json) => void) => waiting.set(question, ready),
      cancelled: (asked: unknown, ready: () => void) => lingering.set(asked, ready),
    }
    const greets = method === 'notifications/initialized' && this.#plan.greet !== undefined
    if (greets) (welcome as (way: object, plan: SsePlan) => void)(way, this.#plan)
    // What a server asks right away may be there before it is said that the message has come.
    if (greets) setTimeout(() => response.writeHead(202).end('Accepted'), 50)
    else response.writeHead(202).end('Accepted')
    if (method === 'notifications/cancelled') lingering.get((message['params'] as Json)['requestId'])?.()
    if (method === undefined) waiting.get(id)?.(message)
    if (method === undefined || id === undefined) return
    const answered = answer(message, body, way, this.#plan) as Json | string | undefined
    if (answered !== undefined) way.emit(result(id, answered) as string)
  }
}

function say(stream: ServerResponse, text: string): void {
  // Line breaks between tokens would end the event.
  if (!stream.destroyed) stream.write(`event: message\ndata: ${text.replace(/[\r\n]/g, ' ')}\n\n`)
}

/** Says a message in the response to a POST, which ends with the answer. */
function respond(response: ServerResponse, text: string, form: 'json' | 'events' | 'batch'): void {
  const isAnswer = (JSON.parse(text) as Json)['method'] === undefined
  if (form === 'events') {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
    say(response, text)
    if (isAnswer) response.end()
  } else if (isAnswer) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(form === 'batch' ? `[${text}]` : text)
  }
}
