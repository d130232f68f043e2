/**
 * Everything that can go wrong, as one table: the JSON-RPC code, the HTTP status, whose fault it is, what happened and what to do
 * next. Texts are Markdown, with links relative to docs/troubleshooting.md.
 */

/** Who must change something. Decides the log level and whether a circuit breaker counts the fault. */
export type Blame = 'caller' | 'upstream' | 'bridge'

export interface FaultRow {
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
  /** What happened, and what to do next. */
  what: string
  next: string
}

const IN_MESSAGE = 'The message says what to correct.'
const CONNECT_AGAIN = 'Connect again. Clients do it by themselves.'
/** Of calls that were not executed. */
const AGAIN = 'Send the request again, after `retryAfterMs` if the error has it.'
const CHECK_FIRST = 'Check whether the call was executed, before you send it again.'
export const REPORT = 'Report it to the author of the server.'
const SIGN_IN = 'See [auth.md](auth.md#errors).'

/** The table of faults. */
export const faults = {
  notJson: { code: -32700, status: 400, blame: 'caller', what: 'The body is not JSON.', next: IN_MESSAGE },
  invalidRequest: {
    code: -32600,
    status: 400,
    blame: 'caller',
    what: 'The body is not a JSON-RPC request, or not at this time.',
    next: IN_MESSAGE,
  },
  invalidEnvelope: {
    code: -32602,
    status: 400,
    blame: 'caller',
    what: '`_meta` of a modern request lacks a required key, or has a wrong one.',
    next: IN_MESSAGE,
  },
  invalidParams: {
    code: -32602,
    status: 200,
    blame: 'caller',
    what: 'A parameter is missing or wrong.',
    next: IN_MESSAGE,
  },
  invalidState: {
    code: -32602,
    status: 200,
    blame: 'caller',
    reason: 'invalid_request_state',
    what: '`requestState` has expired, was used, or belongs to another caller.',
    next: 'Call again without it.',
  },
  // SEP-3415, error codes.
  noSuchEvent: {
    code: -32023,
    status: 200,
    blame: 'caller',
    what: 'The type of events, or the subscription to it, does not exist for this caller.',
    next: 'Look at `events/list`.',
  },
  callbackRefused: {
    code: -32024,
    status: 200,
    blame: 'caller',
    reason: 'callback_refused',
    what: 'Events must not be sent to the address that the client gave.',
    next: 'Add it to `events.callbacks` of the server, if it is a public address that you trust.',
  },
  methodNotFound: {
    code: -32601,
    status: 404,
    blame: 'caller',
    what: 'The method does not exist, or the server does not offer it.',
    next: 'Look at what `mcp-bridge probe <server>` prints.',
  },
  headerMismatch: {
    code: -32020,
    status: 400,
    blame: 'caller',
    what: 'A header of the request contradicts its body.',
    next: 'Correct the client, or a proxy that changes headers.',
  },
  missingCapability: {
    code: -32021,
    status: 400,
    blame: 'caller',
    what: 'The server needs something that the client did not declare.',
    next: 'Use a client that supports what the message names.',
  },
  unsupportedRevision: {
    code: -32022,
    status: 400,
    blame: 'caller',
    what: 'The client asks for a revision that does not exist.',
    next: 'Use one of those in the message.',
  },

  unauthorized: {
    code: -32600,
    status: 401,
    blame: 'caller',
    what: 'The token is missing or wrong.',
    next: 'Send `Authorization: Bearer <token>` with a token of `auth.tokens`, or sign in at one of `auth.issuers`. See [access.md](access.md).',
  },
  insufficientScope: {
    code: -32600,
    status: 403,
    blame: 'caller',
    reason: 'insufficient_scope',
    what: 'The token lacks a scope that `auth.scopes` or the tool requires.',
    next: 'Clients that sign in request it by themselves. If the identity provider does not give it, its administrator has to.',
  },
  groupsUnknown: {
    code: -32600,
    status: 403,
    blame: 'caller',
    reason: 'groups_unknown',
    what: 'The token leaves out the groups of its person, because there are too many.',
    next: 'Have the identity provider send only the groups of the application. See [access.md](identity-providers.md#recipes).',
  },
  foreignHost: {
    code: -32600,
    status: 403,
    blame: 'caller',
    what: 'The request names a host that the bridge is not known by.',
    next: 'Add the name to `allowedHosts`.',
  },
  foreignOrigin: {
    code: -32600,
    status: 403,
    blame: 'caller',
    what: 'A web page of another origin sent the request.',
    next: 'Add the origin to `allowedOrigins`, if you trust it.',
  },
  sessionNotFound: {
    code: -32600,
    status: 404,
    blame: 'caller',
    what: 'The session has ended: by the client, by `timeouts.clientIdle`, or with the bridge.',
    next: CONNECT_AGAIN,
  },
  // Answered as `sessionNotFound`.
  foreignSession: {
    code: -32600,
    status: 404,
    blame: 'caller',
    what: 'The session belongs to another principal. Its client learns only that there is none.',
    next: CONNECT_AGAIN,
  },
  noSuchPath: {
    code: -32600,
    status: 404,
    blame: 'caller',
    what: 'No server is served at this path.',
    next: 'Use a path that the bridge prints at the start: `/mcp`, or `/<name>/mcp` with several servers.',
  },
  methodNotAllowed: {
    code: -32600,
    status: 405,
    blame: 'caller',
    what: 'The path does not take this HTTP method.',
    next: IN_MESSAGE,
  },
  notAcceptable: {
    code: -32600,
    status: 406,
    blame: 'caller',
    what: 'The client does not accept the type of the answer.',
    next: 'Send `Accept: application/json, text/event-stream`.',
  },
  requestTimeout: {
    code: -32600,
    status: 408,
    blame: 'caller',
    what: 'The request arrived too slowly, or its client went away.',
    next: AGAIN,
  },
  bodyTooLarge: {
    code: -32600,
    status: 413,
    blame: 'caller',
    what: 'The request is larger than `limits.bodyBytes` or `limits.lineBytes`.',
    next: 'Raise the limit, if the client needs it.',
  },
  unsupportedMediaType: {
    code: -32600,
    status: 415,
    blame: 'caller',
    what: 'The body is compressed, or not declared as JSON.',
    next: 'Send `Content-Type: application/json`.',
  },
  expectationFailed: {
    code: -32600,
    status: 417,
    blame: 'caller',
    what: 'The header `Expect` is not supported.',
    next: 'Leave it out.',
  },
  tooManyHeaders: {
    code: -32600,
    status: 431,
    blame: 'caller',
    what: 'The request has too many headers, or too large ones.',
    next: 'Send fewer; large cookies are a usual cause.',
  },

  // Not 401: clients would send the call again.
  tokenEnded: {
    code: -32603,
    status: 200,
    blame: 'caller',
    reason: 'token_ended',
    outcome: 'unknown',
    what: 'The token of the call has expired during the call, or is no longer accepted. The bridge has cancelled the call.',
    next: CHECK_FIRST,
  },

  rateLimited: {
    code: -32603,
    status: 429,
    blame: 'caller',
    reason: 'rate_limited',
    what: 'The caller uses its share of a bound, or is over a [rate limit](limits.md#rate-limits).',
    next: AGAIN,
  },
  overloaded: {
    code: -32603,
    status: 503,
    blame: 'bridge',
    reason: 'overloaded',
    what: 'A bound of the bridge is reached.',
    next: 'See the message for the bound, and [limits](limits.md#limits).',
  },
  answerLost: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'overloaded',
    outcome: 'unknown',
    what: 'The server has answered, and the bridge had no memory for the answer.',
    next: CHECK_FIRST,
  },
  draining: {
    code: -32603,
    status: 503,
    blame: 'bridge',
    reason: 'draining',
    what: 'The bridge is shutting down.',
    next: AGAIN,
  },
  interrupted: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'draining',
    outcome: 'unknown',
    what: 'The bridge was shut down during the call.',
    next: CHECK_FIRST,
  },
  internal: {
    code: -32603,
    status: 500,
    blame: 'bridge',
    reason: 'internal_error',
    what: 'An error in the bridge.',
    next: 'Report it with the log line of the call.',
  },
  internalUnknown: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'internal_error',
    outcome: 'unknown',
    what: 'An error in the bridge, after the call was sent.',
    next: `${CHECK_FIRST} Report it with the log line of the call.`,
  },
  storeUnavailable: {
    code: -32603,
    status: 503,
    blame: 'bridge',
    reason: 'store_unavailable',
    what: 'Redis is unreachable.',
    next: 'See [failures of Redis](redis.md#failures-of-redis-and-replicas).',
  },
  authUnavailable: {
    code: -32603,
    status: 503,
    blame: 'bridge',
    reason: 'auth_unavailable',
    what: 'The identity provider is unreachable, and the bridge knows no keys to check the token with.',
    next: 'Try again later. The log line has the cause.',
  },
  auditUnavailable: {
    code: -32603,
    status: 503,
    blame: 'bridge',
    reason: 'audit_unavailable',
    what: 'The audit log cannot be written, and `audit.required` is on.',
    next: 'Look at the disk and the permissions of `audit.file`, or at the collector; `audit_failed` in the log has the reason.',
  },
  auditLost: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'audit_unavailable',
    outcome: 'unknown',
    what: 'The server has answered, and the audit log could not be written.',
    next: CHECK_FIRST,
  },
  suspendedCallLost: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'suspended_call_lost',
    outcome: 'unknown',
    what: 'The bridge that held a call with an open question has ended.',
    next: CHECK_FIRST,
  },
  replicaLost: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'replica_lost',
    outcome: 'unknown',
    what: 'The replica that executed the call has ended.',
    next: CHECK_FIRST,
  },

  upstreamUnavailable: {
    code: -32603,
    status: 502,
    blame: 'upstream',
    reason: 'upstream_unavailable',
    what: 'The server is unreachable. Nothing was executed.',
    next: 'See [A server cannot be used](#a-server-cannot-be-used).',
  },
  upstreamBusy: {
    code: -32603,
    status: 503,
    blame: 'upstream',
    reason: 'upstream_unavailable',
    what: 'The server is restarting or busy.',
    next: AGAIN,
  },
  upstreamGatewayTimeout: {
    code: -32603,
    status: 504,
    blame: 'upstream',
    reason: 'upstream_unavailable',
    what: 'A gateway before the server timed out.',
    next: AGAIN,
  },
  upstreamIncompatible: {
    code: -32603,
    status: 502,
    blame: 'upstream',
    reason: 'upstream_incompatible',
    what: 'The server does not speak the era that it is configured or known for.',
    next: 'Remove `era` from its entry. `mcp-bridge probe <server>` shows what it speaks.',
  },
  upstreamAuthRequired: {
    code: -32603,
    status: 502,
    blame: 'upstream',
    reason: 'upstream_auth_required',
    what: 'The server does not accept the credential.',
    next: 'Check `headers` of the server; for sign-in see [auth.md](auth.md#errors).',
  },
  upstreamRefused: {
    code: -32603,
    status: 502,
    blame: 'upstream',
    reason: 'upstream_refused',
    what: 'The server refused the request before it executed anything.',
    next: 'See the HTTP status in the message, and [what to do about it](#a-server-cannot-be-used).',
  },
  upstreamClosed: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'upstream_closed',
    outcome: 'unknown',
    what: 'The connection ended, or the program exited, during the call.',
    next: CHECK_FIRST,
  },
  upstreamTimeout: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'upstream_timeout',
    outcome: 'unknown',
    what: 'The server did not answer in time.',
    next: `${CHECK_FIRST} \`timeouts.call\` sets the time.`,
  },
  upstreamProtocol: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'upstream_protocol_error',
    outcome: 'unknown',
    what: 'The server answered with something that its revision does not allow.',
    next: REPORT,
  },

  // Signing in to a server. HTTP 200: a 401 would send a client to sign in at the bridge, and load balancers act on
  // 5xx.
  signInRequired: {
    code: -32603,
    status: 200,
    blame: 'caller',
    reason: 'sign_in_required',
    what: 'A person must sign in to the server first, and cannot be prompted in this call.',
    next: SIGN_IN,
  },
  // MCP 2025-11-25, client/elicitation.
  signInByUrl: {
    code: -32042,
    status: 200,
    blame: 'caller',
    reason: 'sign_in_required',
    what: 'A person must sign in to the server first, at the address in `data.elicitations`.',
    next: SIGN_IN,
  },
  signInPending: {
    code: -32603,
    status: 200,
    blame: 'caller',
    reason: 'sign_in_pending',
    what: 'A person has been asked to sign in to the server, and has not yet done so.',
    next: SIGN_IN,
  },
  signInRefused: {
    code: -32603,
    status: 200,
    blame: 'caller',
    reason: 'sign_in_refused',
    what: 'A person was asked to sign in to the server, and declined.',
    next: SIGN_IN,
  },
  clientNeeded: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'client_needed',
    what: 'The authorization server does not register clients, and no client id is configured for it.',
    next: SIGN_IN,
  },
  authUnsafe: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'auth_unsafe',
    what: 'A statement of the server or its authorization server breaks a rule that protects credentials.',
    next: SIGN_IN,
  },
  authFailed: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'auth_failed',
    what: 'The authorization server refuses for a reason that neither waiting nor signing in can change.',
    next: SIGN_IN,
  },
  scopeRefused: {
    code: -32603,
    status: 200,
    blame: 'upstream',
    reason: 'scope_refused',
    what: 'The server requires a scope that was requested and not granted.',
    next: SIGN_IN,
  },
  storeRefused: {
    code: -32603,
    status: 200,
    blame: 'bridge',
    reason: 'store_refused',
    what: 'The token file is damaged, or other users can access it.',
    next: SIGN_IN,
  },
} as const satisfies Record<string, FaultRow>

/** The name of a row of the table. */
export type FaultName = keyof typeof faults

/** How calls fail that the server answered, by their outcome in the log and the inspector. */
export const ANSWERED: Readonly<Record<'tool_error' | 'error', readonly [what: string, next: string]>> = {
  tool_error: [
    'The tool ran, and reports an error in its result.',
    'Read the text of the result; the arguments may be wrong.',
  ],
  error: ['The server answered with a JSON-RPC error.', 'Read the message of the error: it is that of the server.'],
}
