/**
 * Listens at the internal address of a replica: others send requests there for what this replica owns, and those
 * without a valid proof are refused.
 */
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import type { Sealer } from '../crypto/seal.js'
import { pause } from '../time/pause.js'
import { within } from '../time/time.js'
import { listeningOptions } from './encryption.js'
import { answerTo, PROOF, type ProofRefusal, Proofs } from './proof.js'

/** The header that says why a request was refused. */
export const REFUSED = 'mcp-bridge-refused'

export interface InternalOptions {
  /** The id of this replica. */
  id: string
  /** Where it listens: `http:`, or `https:` for encryption. */
  address: URL
  sealer(): Sealer
  refused(why: ProofRefusal, from: string | undefined): void
}

const STATUS: Readonly<Record<ProofRefusal, number>> = {
  forged: 401,
  late: 401,
  replayed: 401,
  misdirected: 421,
  busy: 503,
}
/** Milliseconds for what is in progress when this replica ends. */
const LAST_ANSWERS = 2_000
/** Milliseconds in which requests are refused before connections are closed. */
const REFUSING = 250
const MAX_REPLICA_CONNECTIONS = 20_000
const OPTIONS = {
  maxHeaderSize: 32 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  // Longer than the other side keeps a connection, so that none ends under a request.
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

  /** Listens. Resolves to the address at which others reach this replica. */
  async listen(): Promise<string> {
    const { protocol, hostname, port } = this.#options.address
    const host = hostname.replace(/^\[|\]$/g, '')
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port: Number(port) }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    const { port: actual } = this.#server.address() as AddressInfo
    return `${protocol}//${ANY.test(hostname) ? ownHost() : hostname}:${actual}`
  }

  /** From now on each answer ends its connection, so that no request comes on one that is about to be closed. */
  leave(): void {
    this.#isLeaving = true
  }

  /**
   * Resolves when what is in progress is answered, or was not answered in time. A request that is on its way while its connection
   * is closed would be lost, so for a moment requests are refused first.
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
      // The rest of the request is not read.
      response.writeHead(STATUS[checked], { connection: 'close', [REFUSED]: checked }).end()
      return
    }
    if (request.method === 'HEAD') {
      response.writeHead(204, { [PROOF]: this.#options.sealer().sign(answerTo(checked.proof)) }).end()
      return
    }
    if (this.#isClosing) {
      // Its sender finds out who serves instead.
      request.resume()
      response.writeHead(STATUS.misdirected, { connection: 'close', [REFUSED]: 'misdirected' }).end()
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
