/** What can go wrong on the way to a token, as faults: what happened, whose it is to mend, and how. */
import { Failure } from '../net/failure.js'
import { printable } from '../printable.js'
import { Fault, type FaultOptions } from '../protocol/fault.js'

/** Something that others have written, as it may stand in a message. */
export function quoted(text: string): string {
  return `"${printable(text, 200)}"`
}

/** An address as it may stand in a message: its query may be a secret. */
export function quotedAddress(address: string): string {
  return quoted(address.replace(/[?#].*$/s, ''))
}

/** A rule that protects credentials is broken. */
export function unsafe(message: string, cause?: unknown): Fault {
  return new Fault('authUnsafe', message, cause === undefined ? {} : { cause })
}

/** The authorization server refuses, or is not set up in a way that can be used. */
export function failed(message: string, cause?: unknown): Fault {
  return new Fault('authFailed', message, cause === undefined ? {} : { cause })
}

/** The authorization server, or what leads to it, cannot be reached now. Nothing that is stored is lost by that. */
export function unavailable(message: string, options: Pick<FaultOptions, 'cause' | 'retryAfter'> = {}): Fault {
  return new Fault('upstreamUnavailable', message, { retryAfter: 5, ...options })
}

/** What a failure of the network means for signing in. `what` is what was being reached. */
export function networkFault(error: unknown, what: string): unknown {
  if (!(error instanceof Failure)) return error
  const { phase, message } = error
  if (phase === 'url' || phase === 'guard')
    return unsafe(
      `${what} is not asked: ${message}. Issuers that are not public have to be listed in "oauth.allow"`,
      error,
    )
  return unavailable(`${what} is not available: ${message}`, { cause: error })
}
