/** Everything that can go wrong, as one table: the JSON-RPC code, the HTTP status, whose fault it is. */
import type { RpcError } from '../rpc/message.js'
import type { Json } from '../rpc/splice.js'
import type { AccountRefusal } from './account.js'

/** Who has to change something: decides the log level and whether a breaker counts it. */
export type Blame = 'caller' | 'upstream' | 'bridge'

interface FaultRow {
  /** JSON-RPC code (MCP 2026-07-28, basic/index, error codes). */
  code: number
  /** HTTP status while nothing of the answer has been sent. 5xx only where the call was certainly not processed. */
  status: number
  blame: Blame
  /** Stated to the client in `data.reason` and in the header `Mcp-Bridge-Error`; none for plain mistakes of the client. */
  reason?: string
  /** Whether the server may have acted on the call; absent where it certainly has not. */
  outcome?: 'unknown'
}

export const faults = {
  notJson: { code: -32700, status: 400, blame: 'caller' },
  invalidRequest: { code: -32600, status: 400, blame: 'caller' },
  /** The envelope of a request is malformed: a required key of `_meta` is missing or of the wrong type. */
  invalidEnvelope: { code: -32602, status: 400, blame: 'caller' },
  invalidParams: { code: -32602, status: 200, blame: 'caller' },
  /** The state of a retry is not ours, not the caller's, too old or used already. The server has seen nothing of it. */
  invalidState: { code: -32602, status: 200, blame: 'caller', reason: 'invalid_request_state' },
  methodNotFound: { code: -32601, status: 404, blame: 'caller' },
  headerMismatch: { code: -32020, status: 400, blame: 'caller' },
  missingCapability: { code: -32021, status: 400, blame: 'caller' },
  unsupportedRevision: { code: -32022, status: 400, blame: 'caller' },

  unauthorized: { code: -32600, status: 401, blame: 'caller' },
  foreignHost: { code: -32600, status: 403, blame: 'caller' },
  foreignOrigin: { code: -32600, status: 403, blame: 'caller' },
  sessionNotFound: { code: -32600, status: 404, blame: 'caller' },
  noSuchPath: { code: -32600, status: 404, blame: 'caller' },
  methodNotAllowed: { code: -32600, status: 405, blame: 'caller' },
  notAcceptable: { code: -32600, status: 406, blame: 'caller' },
  requestTimeout: { code: -32600, status: 408, blame: 'caller' },
  bodyTooLarge: { code: -32600, status: 413, blame: 'caller' },
  unsupportedMediaType: { code: -32600, status: 415, blame: 'caller' },
  expectationFailed: { code: -32600, status: 417, blame: 'caller' },
  tooManyHeaders: { code: -32600, status: 431, blame: 'caller' },

  rateLimited: { code: -32603, status: 429, blame: 'caller', reason: 'rate_limited' },
  overloaded: { code: -32603, status: 503, blame: 'bridge', reason: 'overloaded' },
  /** The server has answered, and there is no memory for the answer. */
  answerLost: { code: -32603, status: 200, blame: 'bridge', reason: 'overloaded', outcome: 'unknown' },
  draining: { code: -32603, status: 503, blame: 'bridge', reason: 'draining' },
  /** The bridge was stopped before the server had answered. */
  interrupted: { code: -32603, status: 200, blame: 'bridge', reason: 'draining', outcome: 'unknown' },
  /** A mistake of the bridge, before the server could have seen anything of the call. */
  internal: { code: -32603, status: 500, blame: 'bridge', reason: 'internal_error' },
  /** A mistake of the bridge, after the call was handed over to the server. */
  internalUnknown: { code: -32603, status: 200, blame: 'bridge', reason: 'internal_error', outcome: 'unknown' },
  /** What replicas share cannot be reached, so that nothing is known of what was asked for, and nothing done. */
  storeUnavailable: { code: -32603, status: 503, blame: 'bridge', reason: 'store_unavailable' },
  /** The replica that held a parked call is gone. */
  suspendedCallLost: { code: -32603, status: 200, blame: 'bridge', reason: 'suspended_call_lost', outcome: 'unknown' },
  /** The replica that was answering a request of a session is gone. */
  replicaLost: { code: -32603, status: 200, blame: 'bridge', reason: 'replica_lost', outcome: 'unknown' },

  /** Nothing could be reached, so nothing was sent. */
  upstreamUnavailable: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_unavailable' },
  /** The upstream is starting again, or says that it is busy. */
  upstreamBusy: { code: -32603, status: 503, blame: 'upstream', reason: 'upstream_unavailable' },
  /** A gateway before the upstream gave it up, when nothing of the call had been sent yet. */
  upstreamGatewayTimeout: { code: -32603, status: 504, blame: 'upstream', reason: 'upstream_unavailable' },
  upstreamIncompatible: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_incompatible' },
  upstreamAuthRequired: { code: -32603, status: 502, blame: 'upstream', reason: 'upstream_auth_required' },
  /** The upstream's HTTP layer refused the request, certainly without acting on it, and did not say why in JSON-RPC. */
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

  // Signing in to a server. HTTP 200, because 401 would send a client to sign in at the bridge, and balancers act on 5xx.
  /** A person has to sign in to the server first, and cannot be asked to from here. */
  signInRequired: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_required' },
  /** Somebody has been asked to sign in, and has not yet. */
  signInPending: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_pending' },
  /** Somebody was asked to sign in, and declined. */
  signInRefused: { code: -32603, status: 200, blame: 'caller', reason: 'sign_in_refused' },
  /** The authorization server registers nobody, and the configuration has no client id for it. */
  clientNeeded: { code: -32603, status: 200, blame: 'bridge', reason: 'client_needed' },
  /** What a server or its authorization server says breaks a rule that protects credentials. */
  authUnsafe: { code: -32603, status: 200, blame: 'upstream', reason: 'auth_unsafe' },
  /** The authorization server refuses, for a reason that waiting or signing in does not mend. */
  authFailed: { code: -32603, status: 200, blame: 'upstream', reason: 'auth_failed' },
  /** The server wants a scope that was asked for and not given. */
  scopeRefused: { code: -32603, status: 200, blame: 'upstream', reason: 'scope_refused' },
  /** The file with the tokens is damaged, or others can reach it. */
  storeRefused: { code: -32603, status: 200, blame: 'bridge', reason: 'store_refused' },
} as const satisfies Record<string, FaultRow>

const DRAFT_CODES: Readonly<Record<number, number>> = { [-32020]: -32001, [-32021]: -32003, [-32022]: -32004 }

export type FaultName = keyof typeof faults

export interface FaultOptions {
  cause?: unknown
  /** Members of `error.data`, as JSON texts, beside the reason and the outcome. */
  data?: Record<string, Json>
  /** Seconds after which it is worth trying again. */
  retryAfter?: number
  /** A status that somebody else chose and that is to be passed on. */
  status?: number
  /** The server has refused the credentials with this status, and with this challenge if it gave one. */
  refused?: CredentialRefusal
  /** What a server has refused, where a person has to sign in before it takes it. */
  signInFor?: AccountRefusal | undefined
  /** Where a person signs in. Only the person may see it: it is no part of the message. */
  signInUrl?: string | undefined
  /** What the server said with its refusal, for the operator: one line. The message has what callers may know of it. */
  said?: string | undefined
}

export interface CredentialRefusal {
  status: 401 | 403
  challenge: string | undefined
}

/** Characters of a message: what others have said may be part of it. */
const MAX_MESSAGE = 1_000

/** A failure of ours, or one that we have to answer for. What a server answered is a reply, not a fault. */
export class Fault extends Error {
  override name = 'Fault'
  readonly fault: FaultName
  readonly data: Record<string, Json>
  readonly retryAfter: number | undefined
  readonly refused: CredentialRefusal | undefined
  readonly signInFor: AccountRefusal | undefined
  readonly signInUrl: string | undefined
  readonly said: string | undefined
  readonly #status: number | undefined

  constructor(fault: FaultName, message: string, options: FaultOptions = {}) {
    const { cause, data = {}, retryAfter, status, refused, signInFor, signInUrl, said } = options
    const bounded = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
    super(bounded, cause === undefined ? undefined : { cause })
    this.fault = fault
    this.data = data
    this.retryAfter = retryAfter
    this.refused = refused
    this.signInFor = signInFor
    this.signInUrl = signInUrl
    this.said = said
    this.#status = status
  }

  /**
   * Anything thrown, as a Fault. What nobody foresaw is the bridge's and says nothing about its inside. `handedOver` says
   * that the server may have seen the call by then.
   */
  static from(error: unknown, handedOver = false): Fault {
    if (error instanceof Fault) return error
    if (!handedOver) return new Fault('internal', 'Internal error of the bridge', { cause: error })
    const message = 'Internal error of the bridge; whether the server acted on the call is unknown'
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

  /** What the client is told. Clients built on the drafts of 2026-07-28 know three codes by other numbers. */
  toRpcError(draftErrorCodes = false): RpcError {
    const { reason, outcome } = this.row
    const code = (draftErrorCodes && DRAFT_CODES[this.row.code]) || this.row.code
    const members = Object.entries(this.data).map(([key, json]) => `${JSON.stringify(key)}:${json}`)
    if (reason !== undefined) {
      members.unshift(`"reason":${JSON.stringify(reason)}`, `"outcome":"${outcome ?? 'not_executed'}"`)
    }
    if (this.retryAfter !== undefined) members.push(`"retryAfterMs":${Math.round(this.retryAfter * 1000)}`)
    return { code, message: this.message, data: members.length === 0 ? undefined : `{${members.join(',')}}` }
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

/** Whether something is wrong with signing in, for one account. Of the server it says nothing. */
export function isOfSignIn(error: unknown): boolean {
  return error instanceof Fault && OF_SIGN_IN.has(error.fault)
}

/** Whether a person has to sign in before the server can be used. That is neither a failure nor a verdict on the server. */
export function needsSignIn(error: unknown): error is Fault {
  return error instanceof Fault && NEEDS_A_PERSON.has(error.fault)
}
