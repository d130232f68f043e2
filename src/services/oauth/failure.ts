/** Faults on the way to a token: what happened, whose fault it is, and what to do. */

import { Fault, type FaultOptions } from '../../base/fault/fault.js'
import { Failure } from '../../base/net/failure.js'
import { quoted } from './quoted.js'

/** An address for a message, without its query: that may be a secret. */
export function quotedAddress(address: string): string {
  return quoted(address.replace(/[?#].*$/s, ''))
}

/** A rule that protects credentials is broken. */
export function unsafe(message: string, cause?: unknown): Fault {
  return new Fault('authUnsafe', message, cause === undefined ? {} : { cause })
}

/** The authorization server refuses, or its setup cannot be used. */
export function failed(message: string, cause?: unknown): Fault {
  return new Fault('authFailed', message, cause === undefined ? {} : { cause })
}

/** The authorization server is unreachable for now. No stored token is dropped. */
export function unavailable(message: string, options: Pick<FaultOptions, 'cause' | 'retryAfter'> = {}): Fault {
  return new Fault('upstreamUnavailable', message, { retryAfter: 5, ...options })
}

/** A network failure as a fault of signing in. `what` names the destination. */
export function networkFault(error: unknown, what: string): unknown {
  if (!(error instanceof Failure)) return error
  const { phase, message } = error
  if (phase === 'url' || phase === 'guard')
    return unsafe(
      `${what} was not contacted: ${message}. Issuers that are not public must be listed in "oauth.allow"`,
      error,
    )
  return unavailable(`${what} is unavailable: ${message}`, { cause: error })
}
