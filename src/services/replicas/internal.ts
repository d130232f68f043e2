/**
 * Listens at the internal address of a replica, to which others forward requests for its sessions and calls. Requests without a
 * valid proof are refused.
 */

import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { networkInterfaces } from 'node:os'
import type { Sealer } from '../../base/crypto/seal.js'
import { listenAt } from '../../base/net/listen.js'
import { withoutBrackets } from '../../base/texts/parse-url.js'
import { pause } from '../../base/time/pause.js'
import { within } from '../../base/time/time.js'
import { listeningOptions } from './encryption.js'
import { answerTo, PROOF, PROOF_REFUSALS, type ProofRefusal, Proofs } from './proof.js'

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
  /** The digests that the bodies of requests must have. */
  readonly #digests = new WeakMap<IncomingMessage, string>()
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
  }

  /**
   * Waits for requests in progress, up to LAST_ANSWERS, and closes all connections. Before that it refuses requests for a
   * moment: a request that arrives while its connection is being closed would be lost.
   */
  async close(): Promise<void> {
    this.#isClosing = true
    await pause(REFUSING)
    const closed = new Promise((resolve) => this.#server.close(resolve))
    await within(closed, LAST_ANSWERS, () => {})
    this.#server.closeAllConnections()
  }

  /** The digest that the body of a request must have, if another replica has forwarded it. */
  digestFor(request: IncomingMessage): string | undefined {
    return this.#digests.get(request)
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
      response.writeHead(204, { [PROOF]: this.#options.sealer().sign(answerTo(checked.proof)) }).end()
      return
    }
    if (this.#isClosing) {
      // The sender looks up another replica.
      request.resume()
      response.writeHead(PROOF_REFUSALS.misdirected, { connection: 'close', [REFUSED]: 'misdirected' }).end()
      return
    }
    this.#digests.set(request, checked.body)
    this.#answer(request, response)
  }
}

/** The address of this machine or container in its network. */
export function ownHost(): string {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  const outside = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  const found = outside.find(({ family }) => family === 'IPv4') ?? outside[0]
  if (!found) return '127.0.0.1'
  return found.family === 'IPv6' ? `[${found.address}]` : found.address
}
