/** Failures on the way to an address, by phase. Each reason is marked as transient or not. */

/** The reasons of each phase, and whether a retry may succeed. */
export type Reasons = Readonly<Record<string, Readonly<Record<string, boolean>>>>

/** The phases and reasons of the network. */
export const NETWORK_REASONS = {
  url: { malformed: false, scheme: false, credentials: false, fragment: false, port: false },
  resolve: { 'unknown-host': false, resolver: true, timeout: true },
  guard: { 'internal-name': false, 'internal-address': false, 'plain-http': false },
  proxy: { invalid: false, unreachable: true, credentials: false, refused: false, unavailable: true, timeout: true },
  connect: { refused: true, unreachable: true, closed: true, timeout: true, elsewhere: false },
  tls: { certificate: false, pin: false, handshake: false, closed: true, timeout: true },
  http: {
    absent: false,
    redirect: false,
    status: false,
    unavailable: true,
    encoding: false,
    malformed: false,
    headers: false,
    closed: true,
    timeout: true,
  },
  body: { 'too-large': false, truncated: true, malformed: false, timeout: true },
} as const satisfies Reasons

/**
 * Where it failed: in the address itself; resolving the host; the guard's check of the host; at the proxy; connecting;
 * the TLS handshake; the head of the answer; its body.
 */
export type NetworkPhase = keyof typeof NETWORK_REASONS
export type NetworkReason<P extends NetworkPhase = NetworkPhase> = P extends NetworkPhase
  ? keyof (typeof NETWORK_REASONS)[P] & string
  : never

/**
 * Why something could not be contacted, fetched or read. The message names hosts and files, but never the query of an
 * address or content from a server.
 */
export class Failure extends Error {
  override name = 'Failure'
  readonly phase: string
  readonly reason: string
  /** A retry may succeed. */
  readonly transient: boolean

  constructor(phase: string, reason: string, transient: boolean, message: string, options?: ErrorOptions) {
    super(message, options)
    this.phase = phase
    this.reason = reason
    this.transient = transient
  }
}

/** Returns a function that makes failures of the phases in a table. */
export function failuresOf<T extends Reasons>(reasons: T) {
  return <P extends keyof T & string>(
    phase: P,
    reason: keyof T[P] & string,
    message: string,
    options?: ErrorOptions,
  ): Failure => new Failure(phase, reason, reasons[phase]?.[reason] === true, message, options)
}

/** The code of a system error, such as ENOENT; empty for other errors. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Makes a failure of the network. */
export const failure = failuresOf(NETWORK_REASONS)
