/**
 * HTTP without a network: a request of the Fetch API goes through a connection in memory to what answers requests of Node's HTTP
 * server. So it is read, bounded, streamed and given up as any other.
 */

import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { type Duplex, duplexPair, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Fault } from '../base/fault/fault.js'
import { error as errorMessage } from '../base/rpc/message.js'
import { ofConnection } from '../base/texts/headers.js'
import { JSON_TYPE } from '../clients/http/replies.js'
import type { Front } from './listener.js'
import { refuseUnparsed } from './unparsed.js'

/** The same bounds as of network connections. */
const BOUNDS = { maxHeaderSize: 16 * 1024, maxHeadersCount: 200 }
/** Statuses of answers without a body. A Response with such a status must not have one. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

/** Answers a request of a caller: what the application says who it is, and undefined if nobody asked for it. */
export type InMemoryHandler = (request: Request, caller: unknown) => Promise<Response>

/** What answers requests by way of `routing`. The caller is put into `callers`, by the connection of the request. */
export function fetcher(routing: Front['routing'], callers: WeakMap<object, unknown>): InMemoryHandler {
  const server = createServer({ maxHeaderSize: BOUNDS.maxHeaderSize }, routing)
  server.maxHeadersCount = BOUNDS.maxHeadersCount
  // A connection in memory has what is used of a socket.
  server.on('clientError', (error, connection) => refuseUnparsed(error, connection as Socket, () => {}))
  return async (request, caller) => {
    if (request.bodyUsed || request.body?.locked)
      throw new TypeError('The body of the request has been read before: make a Request with another body')
    const [near, far] = connectionPair()
    if (caller !== undefined) callers.set(far, caller)
    server.emit('connection', far)
    return exchange(request, near)
  }
}

/** Both ends of a connection. When one is destroyed, so is the other. */
function connectionPair(): [Duplex, Duplex] {
  const [near, far] = duplexPair()
  near.once('close', () => far.destroy())
  far.once('close', () => near.destroy())
  return [near, far]
}

async function exchange(request: Request, connection: Duplex): Promise<Response> {
  const { method, headers, signal } = request
  const url = new URL(request.url)
  const isOfConnection = ofConnection(headers.get('connection') ?? undefined)
  // They are those of another connection: the application may have read its body, and have written another one.
  const kept = [...headers].filter(([name]) => !isOfConnection(name) && name !== 'content-length')
  const sent = httpRequest({
    method,
    path: url.pathname + url.search,
    headers: { host: url.host, ...Object.fromEntries(kept) },
    createConnection: () => connection,
  })
  const giveUp = () => connection.destroy()
  if (signal.aborted) giveUp()
  signal.addEventListener('abort', giveUp, { once: true })
  connection.once('close', () => signal.removeEventListener('abort', giveUp))
  const answered = new Promise<Response>((resolve, reject) => {
    // At once: an answer whose connection ends cannot become a Response any more.
    sent.once('response', (answer) => resolve(responseOf(answer)))
    const failed = (error: unknown) => reject(signal.aborted ? signal.reason : error)
    sent.on('error', failed)
    if (request.body === null) {
      sent.end()
      return
    }
    // A body whose first byte never comes has a time limit, too.
    sent.flushHeaders()
    const body = Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0])
    body.once('error', failed)
    // A request that is refused may be answered before its body has been read.
    pipeline(body, sent).catch(() => {})
  })
  return answered
}

/** The answer of a bridge that is closed. The request is not read. */
export function closedResponse(): Response {
  const fault = new Fault('draining', 'The bridge is closed')
  const headers = { 'content-type': JSON_TYPE, 'mcp-bridge-error': String(fault.row.reason) }
  return new Response(errorMessage(undefined, fault.toRpcError()), { status: fault.status, headers })
}

/** An answer of a server of Node's HTTP, as one of the Fetch API, without what belongs to its connection. */
export function responseOf(answer: IncomingMessage): Response {
  const { statusCode: status = 500, rawHeaders } = answer
  const isOfConnection = ofConnection(answer.headers.connection)
  const headers = new Headers()
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string
    if (!isOfConnection(name.toLowerCase())) headers.append(name, rawHeaders[at + 1] as string)
  }
  if (!WITHOUT_BODY.has(status)) return new Response(Readable.toWeb(answer) as ReadableStream, { status, headers })
  answer.resume()
  return new Response(null, { status, headers })
}
