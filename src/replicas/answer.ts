/** Answers requests that other replicas forward, as if they had arrived on a connection of this replica. */
import { createServer, type IncomingMessage, type RequestListener, request } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import { BODY, CUT, carriedHeaders, END, HEAD, piecesOf, type Question, say } from './frames.js'
import type { Link } from './links.js'

/** Answers forwarded requests with an HTTP server of its own. */
export class Answering {
  /** It has no port: it gets in-process connections. */
  readonly #server = createServer({ maxHeaderSize: 32 * 1024 }, (...args) => this.#answer(...args))
  readonly #carried = new WeakSet<object>()
  #answer: RequestListener = (_request, response) => response.writeHead(503).end()

  /** Sets the handler of requests. */
  use(answer: RequestListener): void {
    this.#answer = answer
  }

  close(): void {
    this.#server.closeAllConnections()
  }

  /** Whether a connection carries a forwarded request, which must not be forwarded again. */
  isCarried(connection: object): boolean {
    return this.#carried.has(connection)
  }

  answer(link: Link): void {
    let question: Question | undefined
    const body: Buffer[] = []
    link.onPart = (part) => {
      if (part[0] === HEAD) question = JSON.parse(part.toString('utf8', 1)) as Question
      else if (part[0] === BODY) body.push(part.subarray(1))
      else if (question) this.#ask(link, question, Buffer.concat(body))
    }
  }

  #ask(link: Link, { method, path, headers }: Question, body: Buffer): void {
    const connection = this.#connect()
    const sent = [...headers, 'connection', 'close']
    if (body.length > 0 || method === 'POST') sent.push('content-length', String(body.length))
    const asking = request({ method, path, headers: sent, createConnection: () => connection })
    link.onBroken = () => asking.destroy()
    asking.on('response', (response) => {
      hand(link, response).catch(() => {
        connection.destroy()
        if (!link.over) cut(link)
      })
    })
    asking.on('error', () => {
      if (!link.over) cut(link)
    })
    asking.end(body)
  }

  /** An in-process connection to the server. If one side closes, so does the other. */
  #connect(): Duplex {
    const [near, far] = duplexPair()
    near.once('close', () => far.destroy())
    far.once('close', () => near.destroy())
    this.#carried.add(far)
    this.#server.emit('connection', far)
    return near
  }
}

/** Sends an answer over the link as it arrives. */
async function hand(link: Link, response: IncomingMessage): Promise<void> {
  const { statusCode = 500, rawHeaders } = response
  await say(link, HEAD, { status: statusCode, headers: carriedHeaders(rawHeaders) })
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (const piece of piecesOf(chunk)) await say(link, BODY, piece)
    if (link.over) return
  }
  say(link, END).catch(() => {})
  link.finish()
}

function cut(link: Link): void {
  say(link, CUT).catch(() => {})
  link.finish()
}
