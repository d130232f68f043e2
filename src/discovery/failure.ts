/** What can go wrong on the way to a server, by phase. Each reason says whether another try may end differently. */

const REASONS = {
  file: { unreadable: false, 'too-large': false, malformed: false },
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
  document: { malformed: false, incomplete: false, unsupported: false },
  handshake: {
    unreachable: true,
    closed: true,
    timeout: true,
    refused: false,
    program: false,
    protocol: false,
    'no-common-revision': false,
  },
  cooling: { down: false },
} as const

/**
 * Where it went wrong: reading a file; in the address itself; looking up its host; what the host is; connecting; the
 * handshake of TLS; the head of the answer; its body; what the document says; what the server says when it is spoken to.
 * *Cooling*, nothing was tried at all.
 */
export type Phase = keyof typeof REASONS
export type Reason<P extends Phase = Phase> = P extends Phase ? keyof (typeof REASONS)[P] & string : never

/**
 * Why something was not found or not fetched. The message names hosts and files, never the query of an address, and
 * nothing of what a server sent.
 */
export class DiscoveryFailure extends Error {
  override name = 'DiscoveryFailure'
  readonly phase: Phase
  readonly reason: Reason
  /** Another try may end differently. */
  readonly transient: boolean

  constructor(phase: Phase, reason: Reason, transient: boolean, message: string, options?: ErrorOptions) {
    super(message, options)
    this.phase = phase
    this.reason = reason
    this.transient = transient
  }
}

/** A failure of a phase, for one of the reasons that the phase has. */
export function failure<P extends Phase>(
  phase: P,
  reason: Reason<P>,
  message: string,
  options?: ErrorOptions,
): DiscoveryFailure {
  const transient = (REASONS[phase] as Record<string, boolean>)[reason] === true
  return new DiscoveryFailure(phase, reason, transient, message, options)
}
