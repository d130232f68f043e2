/**
 * One other replica: sends it requests, passes its answers on as they arrive, and notices that it is lost. Requests go as frames on
 * one connection. Until that is open, and to a replica of an earlier version, they go over HTTP with a proof each.
 */
import { Readable } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import type { Sealer } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import type { FaultName } from '../../base/fault/faults.js'
import type { Signal } from '../../base/time/hang-up.js'
import { within } from '../../base/time/time.js'
import type { ForwardedAnswer, ForwardedRequest, Owned } from '../../mcp/ports/replicas.js'
import { connectingOptions, tagsOf } from './encryption.js'
import { type Dispatching, type Exchanged, exchange, type PeerAnswer } from './exchange.js'
import { FramedRequests } from './framed-requests.js'
import { FRAMES } from './frames.js'
import { REFUSED, SOCKET } from './internal.js'
import { answerTo, carriedHeaders, digestOf, isProofRefusal, PROOF, prove, type Signed } from './proof.js'

/** Why a request is not answered: the other replica is gone or silent, or it refuses the request. */
type Trouble = 'lost' | 'refused'

export interface PeerOptions {
  sealer(): Sealer
  /** Called when this replica has refused a request. */
  refused(replica: string, why: string): void
  /** Called when this replica is lost. */
  lost(): void
}

/** Milliseconds to connect, and of silence after which a replica is lost. */
const CONNECT = 2_000
const SILENCE = 5_000
/** Milliseconds after an answer before a replica is checked again. */
const SURE = 1_000
/** Milliseconds for which an unused connection is kept. */
const KEEP_ALIVE = 30_000

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
export function faultOf(trouble: Trouble, what: Owned, sent: boolean, cause?: unknown): Fault {
  const lost = what === 'call' ? 'suspendedCallLost' : sent ? 'replicaLost' : 'sessionNotFound'
  const name = trouble === 'refused' ? 'overloaded' : lost
  return new Fault(name, MESSAGES[name], { cause })
}

/** The replica. */
export class OtherReplica implements Dispatching {
  readonly #id: string
  readonly #place: { origin: string; socketPath?: string }
  readonly #options: PeerOptions
  #pool: Pool
  /** The connection for frames, if there is one that takes requests. */
  #framed: FramedRequests | undefined
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
    let answer: PeerAnswer
    try {
      answer = await this.#send({ method, path, headers, body: body ?? null }, signal)
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

  dispatch(request: Exchanged, handler: Dispatcher.DispatchHandler): void {
    if (this.#framed) return this.#framed.dispatch(request, handler)
    const { method, path, headers, body } = request
    const proof = this.#proof({ method, path, headers, body: digestOf(body ?? undefined) })
    this.#pool.dispatch({ method, path, headers: [...headers, PROOF, proof], body }, handler)
  }

  async #send(request: Exchanged, signal: Signal): Promise<PeerAnswer> {
    this.#begin()
    let isStream = false
    try {
      const answer = await exchange(this, request, signal)
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
    this.#framed?.destroy()
    this.#pool.destroy().catch(() => {})
  }

  connectAnew(): void {
    this.#framed?.leave()
    this.#heard = Number.NEGATIVE_INFINITY
  }

  #proof(signed: Signed): string {
    return prove(this.#options.sealer(), this.#id, signed)
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
    const headers = this.#hostHeader()
    const proof = this.#proof({ method: 'HEAD', path: '/', headers, body: '' })
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
      const { [REFUSED]: why, [PROOF]: signed = '', [FRAMES]: frames } = answer.headers
      if (why !== undefined) {
        const trouble = this.#refusal(String(why))
        if (trouble === 'lost') this.#lose()
        return trouble
      }
      if (!this.#options.sealer().isSigned(String(signed), answerTo(proof))) throw new Error('no proof')
      if (frames !== undefined && !this.#framed) this.#openFrames().catch(() => {})
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

  /** Opens a connection for frames. Until there is one, and if there cannot be one, requests go over HTTP. */
  async #openFrames(): Promise<void> {
    const headers = this.#hostHeader()
    const proof = this.#proof({ method: 'GET', path: '/', headers, body: '' })
    const pool = this.#pool
    const opened = await pool.upgrade({ path: '/', protocol: FRAMES, headers: [...headers, PROOF, proof] })
    const sealer = this.#options.sealer()
    const isReplica = sealer.isSigned(String(opened.headers[PROOF]), answerTo(proof))
    const tags = tagsOf(sealer, proof)
    if (!isReplica || !tags || this.#framed || pool !== this.#pool) return void opened.socket.destroy()
    const isPlain = this.#place.origin.startsWith('http:') && this.#place.socketPath === undefined
    const framed = new FramedRequests(opened.socket, isPlain ? tags : undefined, () => {
      if (this.#framed !== framed) return
      this.#framed = undefined
      // The next request looks whether the replica is there, and connects again.
      this.#heard = Number.NEGATIVE_INFINITY
    })
    this.#framed = framed
  }

  #hostHeader(): string[] {
    return ['host', new URL(this.#place.origin).host]
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
    this.#framed?.destroy()
    const pool = this.#pool
    this.#pool = this.#connect()
    pool.destroy().catch(() => {})
  }
}
