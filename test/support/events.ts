/** Streams of events as they come in, to the letter: a test can look at what is there so far, and leave at any time. */
import { type ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { until } from './eventually.js'

type Json = Record<string, unknown>

/** One block of a stream: what its lines say, without any opinion. */
export interface Event {
  id?: string
  event?: string
  retry?: string
  data?: string
  comment?: string
}

export class EventStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The server has ended the stream, or the connection is gone. */
  over = false
  readonly #request: ClientRequest
  readonly #response: IncomingMessage
  #text = ''

  constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request
    this.#response = response
    this.status = response.statusCode ?? 0
    this.headers = response.headers
    response.setEncoding('utf8').on('data', (chunk: string) => {
      this.#text += chunk
    })
    response.on('close', () => {
      this.over = true
    })
    response.on('error', () => {})
  }

  get text(): string {
    return this.#text
  }

  /** Whole events, comments included. */
  get events(): Event[] {
    return eventsIn(this.#text)
  }

  get messages(): Json[] {
    return this.events.flatMap(({ data }) => (data === undefined || data === '' ? [] : [JSON.parse(data) as Json]))
  }

  /** Ids of the events, in the order in which they came. */
  get ids(): string[] {
    return this.events.flatMap(({ id }) => id ?? [])
  }

  /** The message that answers a request. */
  answer(id: unknown): Json | undefined {
    return this.messages.find((message) => message['id'] === id && !('method' in message))
  }

  /** Resolves when so many messages have come. */
  async has(count: number): Promise<Json[]> {
    await until(() => this.messages.length >= count, `${count} messages on a stream (${this.#text})`)
    return this.messages
  }

  /** Resolves when the server has ended the stream. */
  async ended(): Promise<void> {
    await until(() => this.over, `the end of a stream (${this.#text})`)
  }

  /** Reads nothing any more, and stays connected. */
  pause(): void {
    this.#response.pause()
  }

  /** Goes away without a word. */
  leave(): void {
    this.#request.destroy()
  }
}

export function eventsIn(text: string): Event[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => Object.fromEntries(block.split('\n').map(fieldOf)) as Event)
}

function fieldOf(line: string): [string, string] {
  const colon = line.indexOf(':')
  const name = line.slice(0, colon)
  return [name === '' ? 'comment' : name, line.slice(colon + 1).replace(/^ /, '')]
}

/** Sends a request, and resolves when the head of its answer has come. */
export function openStream(
  method: string,
  url: string,
  headers: Record<string, string | undefined>,
  body?: string,
): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const sent = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined))
    const request = httpRequest(url, { method, headers: sent as Record<string, string>, agent: false }, (response) => {
      resolve(new EventStream(request, response))
    })
    request.on('error', reject)
    request.end(body)
  })
}
