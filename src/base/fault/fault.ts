/** Everything that can go wrong, as one table: the JSON-RPC code, the HTTP status, whose fault it is. */
import type { RpcError } from '../rpc/message.js'
import { JsonBoundError, MAX_SCANNED } from '../rpc/scan.js'

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

/** Who must change something. Decides the log level and whether a circuit breaker counts the fault. */
export type Blame = 'caller' | 'upstream' | 'bridge'

interface FaultRow {
  /** JSON-RPC code (MCP 2026-07-28, basic/index, error codes). */
  code: number
  /** HTTP status while nothing of the answer has been sent. 5xx only if the call was certainly not processed. */
  status: number
  blame: Blame
  /**
   * Sent to the client in `data.reason` and in the header `Mcp-Bridge-Error`. Absent for plain mistakes of the client.
   */
  reason?: string
  /** Whether the server may have acted on the call. Absent if it certainly has not. */
  outcome?: 'unknown'
}

/** The table of faults. */
export const faults = {
  notJson: { code: -32700, status: 400, blame: 'caller' },
  invalidRequest: { code: -32600, status: 400, blame: 'caller' },
  /** The envelope of a request is invalid: a required key of `_meta` is missing or has the wrong type. */
  invalidEnvelope: { code: -32602, status: 400, blame: 'caller' },
  invalidParams: { code: -32602, status: 200, blame: 'caller' },
  /**
   * The state of a retry is invalid: not issued by this bridge, issued to another caller, expired or already used.
   * Nothing was sent to the server.
   */
  invalidState: { code: -32602, status: 200, blame: 'caller', reason: 'invalid_request_state' },
  /** No such type of events, or no such subscription to one, for this caller (SEP-3415, error codes). */
  noSuchEvent: { code: -32023, status: 200, blame: 'caller' },
  /** Events must not be sent to the address that the client gave. Nothing was sent to the server. */
  callbackRefused: { code: -32024, status: 200, blame: 'caller', reason: 'callback_refused' },
  methodNotFound: { code: -32601, status: 404, blame: 'caller' },
  headerMismatch: { code: -32020, status: 400, blame: 'caller' },
  missingCapability: { code: -32021, status: 400, blame: 'caller' },
  unsupportedRevision: { code: -32022, status: 400, blame: 'caller' },

  unauthorized: { code: -32600, status: 401, blame: 'caller' },
  /** The token of the caller lacks a scope. `data.scope` has those it has and those it needs. */
  insufficientScope: { code: -32600, status: 403, blame: 'caller', reason: 'insufficient_scope' },
  /** The token does not say which groups its person has. Another one would not either. */
  groupsUnknown: { code: -32600, status: 403, blame: 'caller', reason: 'groups_unknown' },
  foreignHost: { code: -32600, status: 403, blame: 'caller' },
  foreignOrigin: { code: -32600, status: 403, blame: 'caller' },
  sessionNotFound: { code: -32600, status: 404, blame: 'caller' },
  /** Answered as `sessionNotFound`: nobody learns that there is such a session. */
  foreignSession: { code: -32600, status: 404, blame: 'caller' },
  noSuchPath: { code: -32600, status: 404, blame: 'caller' },
  methodNotAllowed: { code: -32600, status: 405, blame: 'caller' },
  notAcceptable: { code: -32600, status: 406, blame: 'caller' },
  requestTimeout: { code: -32600, status: 408, blame: 'caller' },
  bodyTooLarge: { code: -32600, status: 413, blame: 'caller' },
  unsupportedMediaType: { code: -32600, status: 415, blame: 'caller' },
  expectationFailed: { code: -32600, status: 417, blame: 'caller' },
  tooManyHeaders: { code: -32600, status: 431, blame: 'caller' },

  /** The token of a call has ended after the call was sent to the server. Not 401: clients would send the call again. */
  tokenEnded: { code: -32603, status: 200, blame: 'caller', reason: 'token_ended', outcome: 'unknown' },

  rateLimited: { code: -32603, status: 429, blame: 'caller', reason: 'rate_limited' },
  overloaded: { code: -32603, status: 503, blame: 'bridge', reason: 'overloaded' },
  /** The server has answered, but no memory is left for the answer. */
  answerLost: { code: -32603, status: 200, blame: 'bridge', reason: 'overloaded', outcome: 'unknown' },
  draining: { code: -32603, status: 503, blame: 'bridge', reason: 'draining' },
  /** The bridge was shut down before the server had answered. */
  interrupted: { code: -32603, status: 200, blame: 'bridge', reason: 'draining', outcome: 'unknown' },
  /** A bug of the bridge, before the server could have seen the call. */
  internal: { code: -32603, status: 500, blame: 'bridge', reason: 'internal_error' },
  /** A bug of the bridge, after the call was sent to the server. */
  internalUnknown: { code: -32603, status: 200, blame: 'bridge', reason: 'internal_error', outcome: 'unknown' },
  /** The store that replicas share is unreachable. Nothing was done. */
  storeUnavailable: { code: -32603, status: 503, blame: 'bridge', reason: 'store_unavailable' },
  /** The issuer of the caller's token is unreachable, and nothing is kept to check the token with. Nothing was done. */
  authUnavailable: { code: -32603, status: 503, blame: 'bridge', reason: 'auth_unavailable' },
  /** The audit log cannot be written, and the operator requires it. Nothing was done. */
  auditUnavailable: { code: -32603, status: 503, blame: 'bridge', reason: 'audit_unavailable' },
  /** The same, but the server has answered. */
  auditLost: { code: -32603, status: 200, blame: 'bridge', reason: 'audit_unavailable', outcome: 'unknown' },
  /** The replica that held a parked call is gone. */
  suspendedCallLost: { code: -32603, status: 200, blame: 'bridge', reason: 'suspended_call_lost', outcome: 'unknown' },
  /** The replica that was answering a request of a session is gone. */
  replicaLost: { code: -32603, status: 200, blame: 'bridge', reason: 'replica_lost', outcome: 'unknown' },

  /** The server is unreachable. Nothing was sent. */
  upstreamUnavailable: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_unavailable' },
  /** The server is restarting, or says that it is busy. */
  upstreamBusy: { code: -32603, status: 503, blame: 'upstream', reason: 'upstream_unavailable' },
  /** A gateway in front of the server timed out before anything of the call was sent. */
  upstreamGatewayTimeout: { code: -32603, status: 504, blame: 'upstream', reason: 'upstream_unavailable' },
  upstreamIncompatible: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_incompatible' },
  upstreamAuthRequired: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_auth_required' },
  /** The server's HTTP layer refused the request, certainly without acting on it, and gave no JSON-RPC error. */
  upstreamRefused: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_refused' },
  upstreamClosed: { code: -32603, status: 200, blame: 'upstream', reason: 'upstream_closed', outcome: 'unknown' },
  upstreamTimeout: { code: -32603, status: 200, blame: 'upstream', reason: 'upstream_timeout', outcome: 'unknown' },
  upstreamProtocol: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'upstream_protocol_error',
    outcome: 'unknown',
  },

  // Signing in to a server. HTTP 200: a 401 would send a client to sign in at the bridge, and load balancers act on
  // 5xx.
  /** A person must sign in to the server first, and cannot be prompted in this call. */
  signInRequired: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_required' },
  /** The same, for a legacy client that opens addresses (MCP 2025-11-25, client/elicitation): `data.elicitations` has one. */
  signInByUrl: { code: -32042, status: 200, blame: 'caller', reason: 'sign_in_required' },
  /** A person has been asked to sign in and has not yet done so. */
  signInPending: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_pending' },
  /** A person was asked to sign in and declined. */
  signInRefused: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_refused' },
  /** The authorization server does not register clients, and no client id is configured for it. */
  clientNeeded: { code: -32603, status: 200, blame: 'bridge', reason: 'client_needed' },
  /** A statement of the server or its authorization server breaks a rule that protects credentials. */
  authUnsafe: { code: -32603, status: 200, blame: 'upstream', reason: 'auth_unsafe' },
  /** The authorization server refuses for a reason that neither waiting nor signing in can change. */
  authFailed: { code: -32603, status: 200, blame: 'upstream', reason: 'auth_failed' },
  /** The server requires a scope that was requested and not granted. */
  scopeRefused: { code: -32603, status: 200, blame: 'upstream', reason: 'scope_refused' },
  /** The token file is damaged, or other users can access it. */
  storeRefused: { code: -32603, status: 200, blame: 'bridge', reason: 'store_refused' },
} as const satisfies Record<string, FaultRow>

const DRAFT_CODES: Readonly<Record<number, number>> = { [-32020]: -32001, [-32021]: -32003, [-32022]: -32004 }

/** The name of a row of the table. */
export type FaultName = keyof typeof faults

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
