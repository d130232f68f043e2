/** A server over HTTP that answers as a test says, to the byte, and keeps what has arrived as it came. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { listenUntilEnd } from './listen-until-end.js'

type Json = Record<string, unknown>

export interface Arrival {
  method: string
  path: string
  headers: IncomingHttpHeaders
  bytes: Buffer
  /** What the bytes say; undefined where they are no JSON. */
  message: Json | undefined
}

export class PlainHttp {
  readonly received: Arrival[] = []
  /** Requests whose connection was closed before they were answered whole. */
  readonly abandoned: Arrival[] = []
  readonly #server: Server

  private constructor(answer: (arrival: Arrival, response: ServerResponse) => void) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const { method = '', url: path = '', headers } = request
        const bytes = Buffer.concat(chunks)
        const arrival = { method, path, headers, bytes, message: parse(bytes) }
        this.received.push(arrival)
        response.on('close', () => {
          if (!response.writableFinished) this.abandoned.push(arrival)
        })
        answer(arrival, response)
      })
    })
  }

  static async start(t: Test, answer: (arrival: Arrival, response: ServerResponse) => void): Promise<PlainHttp> {
    const plain = new PlainHttp(answer)
    await listenUntilEnd(t, plain.#server)
    return plain
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get url(): string {
    return `${this.origin}/mcp`
  }

  of(method: string): Arrival[] {
    return this.received.filter(({ message }) => message?.['method'] === method)
  }
}

/** Answers with a JSON text, whole. */
export function sendText(
  response: ServerResponse,
  text: string,
  headers: Record<string, string> = {},
  status = 200,
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text)
}

function parse(bytes: Buffer): Json | undefined {
  try {
    return JSON.parse(bytes.toString()) as Json
  } catch {
    return undefined
  }
}
