/** A failure of the bridge, or one that it reports: a row of the table of faults, a message, and details. */
import type { RpcError } from '../rpc/message.js'
import { JsonBoundError, MAX_SCANNED } from '../rpc/scan.js'
import { type Blame, type FaultName, type FaultRow, faults } from './faults.js'

/** A response in which a server refused a credential, or asked for one. */
export interface AccountRefusal {
  status: 401 | 403
  /** All values of `WWW-Authenticate`. */
  challenges: readonly string[]
  /** The `Authorization` that was refused; undefined if none was sent. */
  sent: string | undefined
  /** The nonce that the next proof has to have (RFC 9449, 9); undefined if the answer names none. */
  nonce?: string | undefined
}

const TOO_MANY = `The server answered with an array or object of more than ${MAX_SCANNED} elements or members`

const DRAFT_CODES: Readonly<Record<number, number>> = { [-32020]: -32001, [-32021]: -32003, [-32022]: -32004 }

/** Details of a fault. */
export interface FaultOptions {
  cause?: unknown
  /**
   * Members of `error.data`, in addition to the reason and the outcome. They are values, not JSON texts, so that the data of
   * every fault is valid JSON. Undefined ones are left out.
   */
  data?: Readonly<Record<string, unknown>>
  /** Seconds after which a retry makes sense. */
  retryAfter?: number
  /** The HTTP status to use instead of the one in the table. */
  status?: number
  /** The status and challenge with which the server refused the credential. */
  refused?: CredentialRefusal
  /** The refusal that makes a sign-in necessary. */
  signInFor?: AccountRefusal | undefined
  /** Where a person signs in. Only this person may see it, so it is not in the message. */
  signInUrl?: string | undefined
  /** What they have to enter there. It is as secret. */
  signInCode?: string | undefined
  /**
   * More for the operator, in one line: the server's own text with its refusal, or what is wrong with a token. The message has
   * the part that callers may see.
   */
  said?: string | undefined
}

/** How a server refused a credential. */
export interface CredentialRefusal {
  status: 401 | 403
  challenge: string | undefined
}

/** Longest message, in characters. A message may contain text from others. */
const MAX_MESSAGE = 1_000

/**
 * A failure of the bridge, or one that it reports on behalf of the server. An error that the server answered is a
 * reply, not a fault.
 */
export class Fault extends Error {
  override name = 'Fault'
  readonly fault: FaultName
  readonly data: Readonly<Record<string, unknown>>
  readonly retryAfter: number | undefined
  readonly refused: CredentialRefusal | undefined
  readonly signInFor: AccountRefusal | undefined
  readonly signInUrl: string | undefined
  readonly signInCode: string | undefined
  readonly said: string | undefined
  readonly #status: number | undefined

  constructor(fault: FaultName, message: string, options: FaultOptions = {}) {
    const { cause, data = {}, retryAfter, status, refused, signInFor, signInUrl, signInCode, said } = options
    const bounded = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
    super(bounded, cause === undefined ? undefined : { cause })
    this.fault = fault
    this.data = data
    this.retryAfter = retryAfter
    this.refused = refused
    this.signInFor = signInFor
    this.signInUrl = signInUrl
    this.signInCode = signInCode
    this.said = said
    this.#status = status
  }

  /**
   * Turns anything thrown into a Fault. Anything unexpected becomes a bug of the bridge, whose message reveals nothing
   * internal. `handedOver`: the server may have seen the call.
   */
  static from(error: unknown, handedOver = false): Fault {
    if (error instanceof Fault) return error
    // Messages of clients are read within smaller bounds, before they are calls.
    if (error instanceof JsonBoundError) return new Fault('upstreamProtocol', TOO_MANY, { cause: error })
    if (!handedOver) return new Fault('internal', 'Internal error of the bridge', { cause: error })
    const message = 'Internal error of the bridge; the server may have executed the call'
    return new Fault('internalUnknown', message, { cause: error })
  }

  get row(): FaultRow {
    return faults[this.fault]
  }

  get blame(): Blame {
    return this.row.blame
  }

  get status(): number {
    return this.#status ?? this.row.status
  }

  /** The JSON-RPC error for the client. With `draftErrorCodes`, three codes are those of the drafts of 2026-07-28. */
  toRpcError(draftErrorCodes = false): RpcError {
    const { reason, outcome } = this.row
    const code = (draftErrorCodes && DRAFT_CODES[this.row.code]) || this.row.code
    const data = JSON.stringify({
      ...(reason !== undefined && { reason, outcome: outcome ?? 'not_executed' }),
      ...this.data,
      ...(this.retryAfter !== undefined && { retryAfterMs: Math.round(this.retryAfter * 1000) }),
    })
    return { code, message: this.message, data: data === '{}' ? undefined : data }
  }
}

const NEEDS_A_PERSON: ReadonlySet<FaultName> = new Set(['signInRequired', 'signInPending', 'signInRefused'])

const OF_SIGN_IN: ReadonlySet<FaultName> = new Set([
  ...NEEDS_A_PERSON,
  'clientNeeded',
  'authUnsafe',
  'authFailed',
  'scopeRefused',
  'storeRefused',
])

/** Whether an error is about signing in with one account. It says nothing about the server. */
export function isOfSignIn(error: unknown): boolean {
  return error instanceof Fault && OF_SIGN_IN.has(error.fault)
}

/** Whether an error says nothing about the server: it is about an account, or about the Redis of the replicas. */
export function isAboutOthers(error: unknown): boolean {
  return isOfSignIn(error) || isOfStore(error)
}

/** Whether what replicas share cannot be read or written now. */
export function isOfStore(error: unknown): boolean {
  return error instanceof Fault && error.fault === 'storeUnavailable'
}

/**
 * Whether a person must sign in before the server can be used. This is neither a failure nor a statement about the
 * server.
 */
export function needsSignIn(error: unknown): error is Fault {
  return error instanceof Fault && NEEDS_A_PERSON.has(error.fault)
}
