/**
 * Forwards HTTP requests to other replicas, each at the internal address that it has told the others, and notices that a
 * replica is lost. An answer is passed on as it arrives. It breaks off if the other replica is lost.
 */
import { Readable } from 'node:stream'
import { Pool } from 'undici'
import type { Sealer } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import type { FaultName } from '../../base/fault/faults.js'
import type { Signal } from '../../base/time/hang-up.js'
import { within } from '../../base/time/time.js'
import type { ForwardedAnswer, ForwardedRequest, Owned, OwnedByReplica } from '../../mcp/ports/replicas.js'
import { connectingOptions } from './encryption.js'
import { type Exchanged, exchange, type PeerAnswer } from './exchange.js'
import { REFUSED, SOCKET } from './internal.js'
import { answerTo, carriedHeaders, digestOf, isProofRefusal, PROOF, prove } from './proof.js'
import type { SealedStore } from './store.js'

/** Why a request is not answered: the other replica is gone or silent, or it refuses the request. */
type Trouble = 'lost' | 'refused'

export interface PeersOptions {
  records: Pick<SealedStore, 'waitFor'>
  sealer(): Sealer
  /** Called when a replica has refused a request. */
  refused(replica: string, why: string): void
}

/** The record of a replica: its internal address, or '' if it has shut down. */
export const ADDRESS = 'address'
/** Milliseconds between two writes of this record. */
export const RENEW = 2_000
/** Milliseconds to wait for a record. If Redis lost its data, a record is missing until it is renewed. */
const MISSING = RENEW + 500
/** Milliseconds before the address of a lost replica is looked up again. */
const REMEMBERED = 60_000
/** Milliseconds to connect, and of silence after which a replica is lost. */
const CONNECT = 2_000
const SILENCE = 5_000
/** Milliseconds after an answer before a replica is checked again. */
const SURE = 1_000
/** Milliseconds for which an unused connection is kept. */
const KEEP_ALIVE = 30_000
/** Most requests that are forwarded at the same time. */
const MAX_FORWARDED = 20_000

/** Codes of errors of this machine: it cannot open another connection. */
const OWN_LIMITS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE', 'EADDRNOTAVAIL', 'ENOBUFS'])
/** Codes of errors without a connection: nothing was sent. */
const UNSENT: ReadonlySet<string> = new Set([
  ...OWN_LIMITS,
  'ECONNREFUSED',
  'ENOENT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
])

const MESSAGES = {
  suspendedCallLost: 'The replica that held this call is gone, and the call is lost',
  overloaded: 'The replica that owns this has refused the request',
  sessionNotFound: 'Session not found: the replica that held it is gone; call initialize to open another',
  replicaLost: 'The replica that owns this session was lost during the request',
} satisfies Partial<Record<FaultName, string>>

/** Where an internal address is. The host of a socket is only a name. */
function placeOf(address: string): { origin: string; socketPath?: string } {
  return address.startsWith(SOCKET)
    ? { origin: 'http://replica', socketPath: decodeURIComponent(address.slice(SOCKET.length)) }
    : { origin: address }
}

/** The fault for a request that is not answered. `sent`: the other replica may have received it. */
function faultOf(trouble: Trouble, what: Owned, sent: boolean, cause?: unknown): Fault {
  const lost = what === 'call' ? 'suspendedCallLost' : sent ? 'replicaLost' : 'sessionNotFound'
  const name = trouble === 'refused' ? 'overloaded' : lost
  return new Fault(name, MESSAGES[name], { cause })
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

  /** Forwards a request to its owner, and resolves to the answer. Rejects with a Fault. */
  async forward({ owner, what }: OwnedByReplica, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer> {
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

  /** Forgets a lost replica after a while: then the next request looks up its address again. */
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
  /** Called when this replica is lost. */
  lost(): void
}

/** One other replica. */
class Peer {
  readonly #id: string
  readonly #place: { origin: string; socketPath?: string }
  readonly #options: PeerOptions
  #pool: Pool
  /** The time of its last answer. */
  #heard = Number.NEGATIVE_INFINITY
  /** It was lost, and has not answered since. */
  #lost = false
  #checking: Promise<Trouble | undefined> | undefined
  /** Number of incomplete answers. Above zero, the replica is checked periodically. */
  #open = 0
  #timer: NodeJS.Timeout | undefined

  constructor(id: string, address: string, options: PeerOptions) {
    this.#id = id
    this.#place = placeOf(address)
    this.#options = options
    this.#pool = this.#connect()
  }

  /**
   * The reason not to use this replica now. It must prove its identity before it gets a request: another program may have
   * its address by now. A lost replica is checked in the background, because only its connection may have been lost.
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
    let answer: PeerAnswer
    try {
      answer = await this.#send({ method, path, headers: [...headers, PROOF, proof], body: body ?? null }, signal)
    } catch (error) {
      if (signal.aborted) throw new Fault('requestTimeout', 'The client has disconnected', { cause: error })
      this.#heard = Number.NEGATIVE_INFINITY
      const { code = '' } = error as NodeJS.ErrnoException
      throw faultOf(OWN_LIMITS.has(code) ? 'refused' : 'lost', what, !UNSENT.has(code), error)
    }
    this.#heard = performance.now()
    const why = answer.headers[REFUSED]
    if (why === undefined) return { ...answer, lost: () => faultOf('lost', what, true) }
    if (answer.body instanceof Readable) answer.body.destroy()
    this.#heard = Number.NEGATIVE_INFINITY
    throw faultOf(this.#refusal(String(why)), what, false)
  }

  async #send(request: Exchanged, signal: Signal): Promise<PeerAnswer> {
    this.#begin()
    let isStream = false
    try {
      const answer = await exchange(this.#pool, request, signal)
      if (answer.body instanceof Readable) {
        isStream = true
        answer.body.once('close', () => this.#end())
      }
      return answer
    } finally {
      if (!isStream) this.#end()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#pool.destroy().catch(() => {})
  }

  #connect(): Pool {
    const { origin, socketPath } = this.#place
    return new Pool(origin, {
      connect: {
        timeout: CONNECT,
        ...(socketPath !== undefined && { socketPath }),
        ...(origin.startsWith('https:') && connectingOptions(this.#options.sealer)),
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

  /** Requests a proof that this replica answers. */
  #check(): Promise<Trouble | undefined> {
    this.#checking ??= this.#prove().finally(() => {
      this.#checking = undefined
    })
    return this.#checking
  }

  async #prove(): Promise<Trouble | undefined> {
    const headers = ['host', new URL(this.#place.origin).host]
    const proof = prove(this.#options.sealer(), this.#id, { method: 'HEAD', path: '/', headers, body: '' })
    const controller = new AbortController()
    const asked = this.#pool.request({
      method: 'HEAD',
      path: '/',
      headers: [...headers, PROOF, proof],
      signal: controller.signal,
    })
    try {
      const answer = await within(asked, SILENCE, () => {
        throw new Error('no answer')
      })
      await answer.body.dump()
      const { [REFUSED]: why, [PROOF]: signed = '' } = answer.headers
      if (why !== undefined) {
        const trouble = this.#refusal(String(why))
        if (trouble === 'lost') this.#lose()
        return trouble
      }
      if (!this.#options.sealer().isSigned(String(signed), answerTo(proof))) throw new Error('no proof')
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
    // Another program may have the address by now, and its text is neither logged nor remembered.
    this.#options.refused(this.#id, isProofRefusal(why) ? why : 'unknown')
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
