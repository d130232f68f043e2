/** What can go wrong in discovery: on the network, and beyond it. */
import { failuresOf, NETWORK_REASONS } from '../net/failure.js'

const REASONS = {
  ...NETWORK_REASONS,
  file: { unreadable: false, 'too-large': false, malformed: false },
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
} as const

/**
 * Where it went wrong, beside the phases of the network: reading a file; what a document says; what a server says when it is
 * spoken to.
 */
export type Phase = keyof typeof REASONS
export type Reason<P extends Phase = Phase> = P extends Phase ? keyof (typeof REASONS)[P] & string : never

/** A failure of a phase, for one of the reasons that the phase has. */
export const failure = failuresOf(REASONS)
