/**
 * Listens at the internal address of a replica, to which others forward requests for its sessions and calls: as frames on a
 * connection that begins with a proof, or as requests of HTTP with one proof each. Without a valid proof, both are refused.
 */

import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Sealer } from '../../base/crypto/seal.js'
import { listenAt } from '../../base/net/listen.js'
import { withoutBrackets } from '../../base/texts/parse-url.js'
import { pause } from '../../base/time/pause.js'
import { within } from '../../base/time/time.js'
import { listeningOptions, tagsOf } from './encryption.js'
import { FramedAnswers } from './framed-answers.js'
import { FRAMES } from './frames.js'
import { answerTo, keyIn, PROOF, PROOF_REFUSALS, type ProofRefusal, Proofs } from './proof.js'

/** The protocol of an address that is a socket. */
export const SOCKET = 'unix:'
/** The header with the reason of a refusal. */
export const REFUSED = 'mcp-bridge-refused'

export interface InternalOptions {
  /** The id of this replica. */
  id: string
  /** Where it listens: `http:`, `https:` for encryption, or `unix:` with the path of a socket. */
  address: URL
  sealer(): Sealer
  refused(why: ProofRefusal, from: string | undefined): void
}

/** Milliseconds for requests in progress when this replica ends. */
const LAST_ANSWERS = 2_000
/** Milliseconds for which requests are refused before connections are closed. */
const REFUSING = 250
const MAX_REPLICA_CONNECTIONS = 20_000
const OPTIONS = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  // Longer than the other side keeps a connection, so that no connection is closed during a request.
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
}
const ANY = /^(?:0\.0\.0\.0|\[::\])$/

/** Answers what other replicas forward. */
export class Internal {
  readonly #options: InternalOptions
  readonly #proofs: Proofs
  readonly #server: Server
  #isLeaving = false
  #isClosing = false
  /** Forwarded requests, with the digest that the body must have; undefined for one in frames. */
  readonly #forwarded = new WeakMap<IncomingMessage, string | undefined>()
  readonly #framed = new Set<FramedAnswers>()
  #answer: RequestListener = (_request, response) => response.writeHead(503).end()

  constructor(options: InternalOptions) {
    this.#options = options
    this.#proofs = new Proofs(options.id, options.sealer)
    const take: RequestListener = (request, response) => this.#take(request, response)
    this.#server =
      options.address.protocol === 'https:'
        ? createTlsServer({ ...OPTIONS, ...listeningOptions(options.sealer) }, take)
        : createServer(OPTIONS, take)
    this.#server.maxConnections = MAX_REPLICA_CONNECTIONS
    this.#server.maxHeadersCount = 220
    this.#server.on('upgrade', (request, socket: Socket) => this.#takeFrames(request, socket))
  }

  /** Sets the handler of requests. */
  use(answer: RequestListener): void {
    this.#answer = answer
  }

  /** Listens. Resolves to the address for other replicas. */
  async listen(): Promise<string> {
    const { protocol, hostname, port, pathname, href } = this.#options.address
    if (protocol === SOCKET) {
      await once(this.#server.listen({ path: decodeURIComponent(pathname) }), 'listening')
      return href
    }
    const { port: actual } = await listenAt(this.#server, withoutBrackets(hostname), Number(port))
    return `${protocol}//${ANY.test(hostname) ? ownHost() : hostname}:${actual}`
  }

  /** From now on each answer ends its connection, so that no request arrives on a connection that is about to be closed. */
  leave(): void {
    this.#isLeaving = true
    for (const framed of this.#framed) framed.leave()
  }

  /**
   * Waits for requests in progress, up to LAST_ANSWERS, and closes all connections. Before that it refuses requests for a
   * moment: a request that arrives while its connection is being closed would be lost.
   */
  async close(): Promise<void> {
    this.#isClosing = true
    await pause(REFUSING)
    for (const framed of this.#framed) framed.leave()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    await within(closed, LAST_ANSWERS, () => {})
    this.#server.closeAllConnections()
    for (const framed of this.#framed) framed.destroy()
  }

  /** Whether another replica has forwarded a request. */
  isForwarded(request: IncomingMessage): boolean {
    return this.#forwarded.has(request)
  }

  /** The digest that the body of a request must have; undefined if any may come. */
  digestFor(request: IncomingMessage): string | undefined {
    return this.#forwarded.get(request)
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isLeaving) response.setHeader('connection', 'close')
    const checked = this.#proofs.check(request)
    if (typeof checked === 'string') {
      this.#options.refused(checked, request.socket.remoteAddress)
      // The connection ends, because the rest of the request is not read.
      response.writeHead(PROOF_REFUSALS[checked], { connection: 'close', [REFUSED]: checked }).end()
      return
    }
    if (request.method === 'HEAD') {
      const more = this.#isLeaving ? {} : { [FRAMES]: '1' }
      response.writeHead(204, { [PROOF]: this.#options.sealer().sign(answerTo(checked.proof)), ...more }).end()
      return
    }
    this.#forward(request, response, checked.body)
  }

  #forward(request: IncomingMessage, response: ServerResponse, digest: string | undefined): void {
    // The sender looks up another replica.
    if (this.#isClosing) return refuse(request, response, 'misdirected')
    this.#forwarded.set(request, digest)
    this.#answer(request, response)
  }

  /** Takes requests in frames on this connection, if it begins with a proof. */
  #takeFrames(begin: IncomingMessage, socket: Socket): void {
    const { sealer, refused, address } = this.#options
    socket.on('error', () => {})
    const checked = this.#proofs.check(begin)
    const why = this.#isLeaving ? 'misdirected' : typeof checked === 'string' ? checked : undefined
    if (why !== undefined || typeof checked === 'string' || begin.headers.upgrade !== FRAMES) {
      if (typeof checked === 'string') refused(checked, socket.remoteAddress)
      const status = why === undefined ? 400 : PROOF_REFUSALS[why]
      socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
      return
    }
    const { proof } = checked
    let known = sealer()
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${FRAMES}\r\n${PROOF}: ${known.sign(answerTo(proof))}\r\n\r\n`,
    )
    const framed = new FramedAnswers(socket, {
      received: address.protocol === 'http:' ? tagsOf(known, proof) : undefined,
      answer: (request, response) => {
        const now = sealer()
        if (now !== known && now.secret(keyIn(proof)) === undefined) return refuse(request, response, 'forged')
        known = now
        this.#forward(request, response, undefined)
      },
      closed: () => this.#framed.delete(framed),
    })
    this.#framed.add(framed)
  }
}

/** Refuses a request, whose body is not needed. */
function refuse(request: IncomingMessage, response: ServerResponse, why: ProofRefusal): void {
  request.resume()
  response.writeHead(PROOF_REFUSALS[why], { connection: 'close', [REFUSED]: why }).end()
}

/** The address of this machine or container in its network. */
export function ownHost(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const found = outside.find(({ family }) => family === 'IPv4') ?? outside[0]
  if (!found) return '127.0.0.1'
  return found.family === 'IPv6' ? `[${found.address}]` : found.address
}
