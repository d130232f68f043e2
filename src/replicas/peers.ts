/**
 * The other replicas, as this one reaches them at the internal address that each has written to Redis: forwards
 * requests, and notices that a replica is lost. A request goes there over HTTP; its answer comes back as it is
 * produced, and ends if the other replica is lost.
 */
import { type Dispatcher, Pool } from 'undici'
import type { Sealer } from '../crypto/seal.js'
import { Fault, type FaultName } from '../fault/fault.js'
import type { ForwardedAnswer, ForwardedRequest, Owned, OwnedByReplica } from '../ports/replicas.js'
import type { Signal } from '../time/hang-up.js'
import { within } from '../time/time.js'
import { connectingOptions } from './encryption.js'
import { REFUSED } from './internal.js'
import { answerTo, carriedHeaders, digestOf, PROOF, prove } from './proof.js'
import { discard, type Received, Receiving } from './received.js'
import type { RedisStore } from './store.js'

/** Why a request is not answered. */
type Trouble =
  /** The other replica is gone, or does not answer. */
  | 'lost'
  /** It refuses the request. */
  | 'refused'

export interface PeersOptions {
  records: Pick<RedisStore, 'waitFor'>
  sealer(): Sealer
  /** A replica has refused a request. */
  refused(replica: string, why: string): void
}

/** The record of a replica in Redis: its internal address, or '' if it has shut down. */
export const ADDRESS = 'address'
/** Milliseconds between two writes of this record. */
export const RENEW = 2_000
/** Milliseconds to wait for a record. If Redis lost its data, a record is missing until it is renewed. */
const MISSING = RENEW + 500
/** Milliseconds for which a replica that is gone is remembered. */
const REMEMBERED = 60_000
/** Milliseconds to connect, and of silence after which a replica is lost. */
const CONNECT = 2_000
const SILENCE = 5_000
/** Milliseconds after an answer in which a replica is not asked whether it is still there. */
const SURE = 1_000
/** Milliseconds for which an unused connection is kept. */
const KEEP_ALIVE = 30_000
/** Most requests that are forwarded at the same time. */
const MAX_FORWARDED = 20_000

/** Codes of errors by which no connection can be opened here. */
const OWN_LIMITS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS'])
/** Codes of errors by which no connection was opened, so that nothing was sent. */
const UNSENT: ReadonlySet<string> = new Set([
  ...OWN_LIMITS,
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The fault for a request that is not answered: before it was sent, and after. */
const FAULTS: Readonly<Record<Owned, Record<Trouble, [before: FaultName, after: FaultName]>>> = {
  call: {
    lost: ['suspendedCallLost', 'suspendedCallLost'],
    refused: ['overloaded', 'overloaded'],
  },
  session: {
    lost: ['sessionNotFound', 'replicaLost'],
    refused: ['overloaded', 'overloaded'],
  },
}
const MESSAGES: Readonly<Record<string, string>> = {
  suspendedCallLost: 'The replica that held this call is gone, and the call is lost',
  overloaded: 'The replica that owns this has refused the request',
  sessionNotFound: 'Session not found: the replica that held it is gone; call initialize to open another',
  replicaLost: 'The replica that owns this session was lost during the request',
}

function faultOf(trouble: Trouble, what: Owned, sent: boolean, cause?: unknown): Fault {
  const name = FAULTS[what][trouble][sent ? 1 : 0]
  return new Fault(name, MESSAGES[name] as string, { cause })
}

/** All other replicas. */
export class Peers {
  readonly #options: PeersOptions
  /** By id; resolves to undefined for one that is gone. */
  readonly #peers = new Map<string, Promise<Peer | undefined>>()
  #open = 0

  constructor(options: PeersOptions) {
    this.#options = options
  }

  /** Has the owner answer a request. Rejects with a Fault. */
  async carry({ owner, what }: OwnedByReplica, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer> {
    if (this.#open >= MAX_FORWARDED) throw new Fault('overloaded', 'Too many forwarded requests', { retryAfter: 1 })
    this.#open++
    try {
      const peer = await this.#find(owner)
      const trouble = peer ? await peer.trouble() : 'lost'
      if (!peer || trouble) throw faultOf(trouble ?? 'lost', what, false)
      return await peer.ask(what, request, signal)
    } finally {
      this.#open--
    }
  }

  close(): void {
    for (const found of this.#peers.values()) found.then((peer) => peer?.close()).catch(() => {})
  }

  #find(id: string): Promise<Peer | undefined> {
    const known = this.#peers.get(id)
    if (known) return known
    const found = this.#options.records.waitFor(ADDRESS, id, MISSING).then((address) => {
      if (address) return new Peer(id, address, { ...this.#options, lost: () => this.#forget(id) })
      this.#forget(id)
      return undefined
    })
    this.#peers.set(id, found)
    // Redis is unreachable: the next request tries again.
    found.catch(() => this.#peers.delete(id))
    return found
  }

  /** Forgets a lost replica after a while, so that the next request looks it up again. */
  #forget(id: string): void {
    const known = this.#peers.get(id)
    setTimeout(() => {
      if (this.#peers.get(id) !== known) return
      this.#peers.delete(id)
      known?.then((peer) => peer?.close()).catch(() => {})
    }, REMEMBERED).unref()
  }
}

interface PeerOptions extends Pick<PeersOptions, 'sealer' | 'refused'> {
  /** Called when it is lost. */
  lost(): void
}

/** One other replica. */
class Peer {
  readonly #id: string
  readonly #address: string
  readonly #options: PeerOptions
  #pool: Pool
  /** When it last answered. */
  #heard = Number.NEGATIVE_INFINITY
  /** Whether it has been lost, and has not answered since. */
  #lost = false
  #checking: Promise<Trouble | undefined> | undefined
  /** Number of incomplete answers. While there are any, the replica is checked periodically. */
  #open = 0
  #timer: NodeJS.Timeout | undefined

  constructor(id: string, address: string, options: PeerOptions) {
    this.#id = id
    this.#address = address
    this.#options = options
    this.#pool = this.#connect()
  }

  /**
   * Why it cannot be used now. It must prove its identity before it gets a request: another program may have its
   * address by now. A lost replica is checked again meanwhile, because it may only have been cut off.
   */
  async trouble(): Promise<Trouble | undefined> {
    if (performance.now() - this.#heard < SURE) return undefined
    const checked = this.#check()
    return this.#lost ? 'lost' : checked
  }

  async ask(what: Owned, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer> {
    const { method, path, body } = request
    const headers = carriedHeaders(request.headers, 'content-length')
    const proof = prove(this.#options.sealer(), this.#id, { method, path, headers, body: digestOf(body) })
    const dispatched = { method, path, headers: [...headers, PROOF, proof], body: body ?? null }
    let received: Received
    try {
      received = await this.#dispatch(dispatched as Dispatcher.DispatchOptions, signal)
    } catch (error) {
      if (signal.aborted) throw new Fault('requestTimeout', 'The client has disconnected', { cause: error })
      this.#heard = Number.NEGATIVE_INFINITY
      const { code = '' } = error as NodeJS.ErrnoException
      throw faultOf(OWN_LIMITS.has(code) ? 'refused' : 'lost', what, !UNSENT.has(code), error)
    }
    this.#heard = performance.now()
    const why = received.headers[REFUSED]
    if (why === undefined) return { ...received, lost: () => faultOf('lost', what, true) }
    discard(received)
    this.#heard = Number.NEGATIVE_INFINITY
    throw faultOf(this.#refusal(String(why)), what, false)
  }

  #dispatch(options: Dispatcher.DispatchOptions, signal: Signal): Promise<Received> {
    this.#begin()
    return new Promise((resolve, reject) => {
      this.#pool.dispatch(options, new Receiving(signal, { resolve, reject, over: () => this.#end() }))
    })
  }

  close(): void {
    clearInterval(this.#timer)
    this.#pool.destroy().catch(() => {})
  }

  #connect(): Pool {
    return new Pool(this.#address, {
      connect: {
        timeout: CONNECT,
        ...(this.#address.startsWith('https:') && connectingOptions(this.#options.sealer)),
      },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE,
      keepAliveMaxTimeout: KEEP_ALIVE,
      maxHeaderSize: 64 * 1024,
    })
  }

  #begin(): void {
    if (this.#open++ > 0) return
    const look = () => {
      if (performance.now() - this.#heard >= SURE) this.#check().catch(() => {})
    }
    this.#timer = setInterval(() => setImmediate(look), SURE).unref()
  }

  #end(): void {
    if (--this.#open === 0) clearInterval(this.#timer)
  }

  /** Requests a proof that this replica is there and answers. */
  #check(): Promise<Trouble | undefined> {
    this.#checking ??= this.#prove().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #prove(): Promise<Trouble | undefined> {
    const headers = ['host', new URL(this.#address).host]
    const proof = prove(this.#options.sealer(), this.#id, { method: 'HEAD', path: '/', headers, body: '' })
    const controller = new AbortController()
    const asked = this.#pool.request({
      method: 'HEAD',
      path: '/',
      headers: [...headers, PROOF, proof],
      signal: controller.signal,
      responseHeaders: 'raw',
    })
    try {
      const answer = await within(asked, SILENCE, () => {
        throw new Error('no answer')
      })
      await answer.body.dump()
      const answered = answer.headers as unknown as string[]
      const why = headerIn(answered, REFUSED)
      if (why !== undefined) {
        const trouble = this.#refusal(why)
        if (trouble === 'lost') this.#lose()
        return trouble
      }
      const signed = headerIn(answered, PROOF)
      if (signed === undefined || !this.#options.sealer().isSigned(signed, answerTo(proof))) throw new Error('no proof')
    } catch (error) {
      controller.abort()
      if (OWN_LIMITS.has((error as NodeJS.ErrnoException).code ?? '')) return 'refused'
      this.#lose()
      return 'lost'
    }
    this.#heard = performance.now()
    this.#lost = false
    return undefined
  }

  #refusal(why: string): Trouble {
    if (why === 'misdirected') return 'lost'
    this.#options.refused(this.#id, why)
    return 'refused'
  }

  /** Ends all its answers. */
  #lose(): void {
    this.#heard = Number.NEGATIVE_INFINITY
    if (!this.#lost) this.#options.lost()
    this.#lost = true
    const pool = this.#pool
    this.#pool = this.#connect()
    pool.destroy().catch(() => {})
  }
}

function headerIn(headers: readonly (string | Buffer)[], name: string): string | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2)
    if (String(headers[at]).toLowerCase() === name) return String(headers[at + 1])
  return undefined
}
