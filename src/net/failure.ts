/** What can go wrong on the way to an address, by phase. Each reason says whether another try may end differently. */

/** For each phase its reasons, and whether what failed for one is worth another try. */
export type Reasons = Readonly<Record<string, Readonly<Record<string, boolean>>>>

export const NETWORK_REASONS = {
  url: { malformed: false, scheme: false, credentials: false, fragment: false, port: false },
  resolve: { 'unknown-host': false, resolver: true, timeout: true },
  guard: { 'internal-name': false, 'internal-address': false, 'plain-http': false },
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
 * Where it went wrong: in the address itself; looking up its host; what the host is; connecting; the handshake of TLS; the
 * head of the answer; its body.
 */
export type NetworkPhase = keyof typeof NETWORK_REASONS
export type NetworkReason<P extends NetworkPhase = NetworkPhase> = P extends NetworkPhase
  ? keyof (typeof NETWORK_REASONS)[P] & string
  : never

/**
 * Why something was not reached, fetched or read. The message names hosts and files, never the query of an address, and
 * nothing of what a server sent.
 */
export class Failure extends Error {
  override name = 'Failure'
  readonly phase: string
  readonly reason: string
  /** Another try may end differently. */
  readonly transient: boolean

  constructor(phase: string, reason: string, transient: boolean, message: string, options?: ErrorOptions) {
    super(message, options)
    this.phase = phase
    this.reason = reason
    this.transient = transient
  }
}

/** Makes failures of the phases of a table, each for one of the reasons that its phase has. */
export function failuresOf<T extends Reasons>(reasons: T) {
  return <P extends keyof T & string>(
    phase: P,
    reason: keyof T[P] & string,
    message: string,
    options?: ErrorOptions,
  ): Failure => new Failure(phase, reason, reasons[phase]?.[reason] === true, message, options)
}

export const failure = failuresOf(NETWORK_REASONS)
