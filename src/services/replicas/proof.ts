/**
 * Proves that a request to the internal address comes from another replica: an HMAC over the request, the time and a nonce,
 * with a key that only replicas have.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { digest } from '../../base/crypto/digest.js'
import type { Sealer } from '../../base/crypto/seal.js'
import { detach } from '../../base/rpc/source.js'

/** The header with the proof. */
export const PROOF = 'mcp-bridge-proof'

/** The reasons for refusing a request, and their HTTP statuses. */
export const PROOF_REFUSALS = {
  /** Not signed with one of the keys, or changed. */
  forged: 401,
  /** Signed too long ago, or the clocks differ. */
  late: 401,
  /** Received before. */
  replayed: 401,
  /** Sent to a replica that had this address before. */
  misdirected: 421,
  /** Too many requests arrive to recognise repeated ones. */
  busy: 503,
} as const

export type ProofRefusal = keyof typeof PROOF_REFUSALS

export function isProofRefusal(text: string): text is ProofRefusal {
  return Object.hasOwn(PROOF_REFUSALS, text)
}

/** The signed parts of a request. */
export interface Signed {
  method: string | undefined
  path: string | undefined
  /** Names and values in turn. */
  headers: readonly string[]
  /** The digest of the body. */
  body: string
}

/** Most milliseconds between the clocks of two replicas, including the time of transfer. */
export const SKEW = 15_000
/** Most nonces in one period. */
const MAX_NONCES = 250_000
/** A nonce consists of a text of this process and a number. */
const NONCES = randomBytes(12).toString('base64url')
let nonces = 0
/** Headers that concern a single connection. */
const OF_CONNECTION: ReadonlySet<string> = new Set([
  PROOF,
  'connection',
  'keep-alive',
  'transfer-encoding',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'date',
])

/** Whether a header, by its lower-cased name, concerns a single connection. */
export function isOfConnection(name: string): boolean {
  return OF_CONNECTION.has(name)
}

/** The digest of a body. */
export function digestOf(body: Uint8Array | undefined): string {
  return body && body.length > 0 ? digest(body) : ''
}

/** Headers, as names and values in turn, without those of a single connection, and without one more. */
export function carriedHeaders(headers: readonly string[], without?: string): string[] {
  const carried: string[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    if (!OF_CONNECTION.has(name) && name !== without) carried.push(headers[at] as string, headers[at + 1] as string)
  }
  return carried
}

/** The value of the header PROOF for a request to the replica `to`. */
export function prove(sealer: Sealer, to: string, signed: Signed): string {
  const head = `${to}:${Date.now()}:${NONCES}${(nonces++).toString(36)}:${signed.body}`
  return `${head}:${sealer.sign(textOf(head, signed))}`
}

/** The id of the key that a proof was signed with. */
export function keyIn(proof: string): string {
  return /:([^:.]*)\.[^:]*$/.exec(proof)?.[1] ?? ''
}

/** The signed text in an answer to `HEAD`, or to who opens a connection for frames. It proves that a replica with the key has answered this very request. */
export function answerTo(proof: string): string {
  return `answer\n${proof}`
}

/** Checks the proofs of received requests. */
export class Proofs {
  readonly #id: string
  readonly #sealer: () => Sealer
  /** The nonces of the current and the previous period. A period is as long as a request can be on time. */
  #nonces = new Set<string>()
  #before = new Set<string>()
  #since = performance.now()

  constructor(id: string, sealer: () => Sealer) {
    this.#id = id
    this.#sealer = sealer
  }

  /** Checks a request and removes its proof. Returns the proof and the digest of the body, or the reason to refuse. */
  check(request: IncomingMessage): { body: string; proof: string } | ProofRefusal {
    const { method, url: path, rawHeaders } = request
    const proof = request.headers[PROOF]
    if (typeof proof !== 'string') return 'forged'
    const [to = '', time, nonce = '', body = '', ...signature] = proof.split(':')
    const headers = carriedHeaders(rawHeaders)
    const head = [to, time, nonce, body].join(':')
    if (!this.#sealer().isSigned(signature.join(':'), textOf(head, { method, path, headers, body }))) return 'forged'
    if (!(Math.abs(Date.now() - Number(time)) <= SKEW)) return 'late'
    if (to !== this.#id) return 'misdirected'
    const used = this.#use(nonce)
    if (used) return used
    request.rawHeaders = headers
    delete request.headers[PROOF]
    return { body, proof }
  }

  #use(nonce: string): ProofRefusal | undefined {
    const now = performance.now()
    // A time may be late by one skew and early by another.
    if (now - this.#since > 2 * SKEW) {
      this.#before = now - this.#since > 4 * SKEW ? new Set() : this.#nonces
      this.#nonces = new Set()
      this.#since = now
    }
    if (this.#nonces.has(nonce) || this.#before.has(nonce)) return 'replayed'
    if (this.#nonces.size >= MAX_NONCES) return 'busy'
    this.#nonces.add(detach(nonce))
    return undefined
  }
}

/** The signed text. `Host` comes first, where HTTP clients put it. They set `Content-Length`, so it is not signed. */
function textOf(head: string, { method, path, headers }: Signed): string {
  const lines: string[] = []
  let host = ''
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    if (name === 'host') host = headers[at + 1] as string
    else if (name !== 'content-length') lines.push(`${name}:${headers[at + 1]}`)
  }
  return [head, method, path, host, ...lines].join('\n')
}
