/** The failures of discovery: those of the network, and its own. */
import { failuresOf, NETWORK_REASONS } from '../../base/net/failure.js'

const REASONS = {
  ...NETWORK_REASONS,
  file: { unreadable: false, 'too-large': false, malformed: false },
  document: { malformed: false, incomplete: false, unsupported: false },
  handshake: {
    unreachable: true,
    closed: true,
    timeout: true,
    refused: false,
    'sign-in': false,
    program: false,
    protocol: false,
    'no-common-revision': false,
  },
} as const

/** Where it failed: the phases of the network; reading a file; the content of a document; connecting to a server. */
type DiscoveryPhase = keyof typeof REASONS
export type Reason<P extends DiscoveryPhase = DiscoveryPhase> = P extends DiscoveryPhase
  ? keyof (typeof REASONS)[P] & string
  : never

/** Makes a failure of a phase, with one of its reasons. */
export const failure = failuresOf(REASONS)
