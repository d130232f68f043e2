/**
 * Callers that a proxy in front of the bridge has signed in: it names them in a header, with a secret, or in an assertion that
 * it has signed.
 */
import type { FastifyRequest } from 'fastify'
import { sha256 } from '../../base/crypto/digest.js'
import { addressOf } from './address.js'
import type { AuthenticatedCaller, Verify, WrongToken } from './callers.js'
import { type ForwardedUsers, forwardedUser, valuesOf, withoutForwarded } from './forwarded.js'

/** What proxies send. */
export interface ProxyOptions {
  forwarded?: ForwardedUsers | undefined
  /** Headers with assertions, in lower case. */
  assertions?: readonly string[] | undefined
  verify?: Verify | undefined
}

/** The caller of a request, by what a proxy says. */
export interface ByProxy {
  /** Undefined if no proxy says anything. */
  of(
    request: FastifyRequest,
    addresses: ReadonlySet<string>,
  ): AuthenticatedCaller | WrongToken | 'wrong' | undefined | Promise<AuthenticatedCaller | WrongToken>
  /** Removes the headers, so that nothing behind the bridge gets them. */
  strip(request: FastifyRequest): void
}

/** Undefined if there is no such proxy. */
export function byProxy({ forwarded, assertions = [], verify }: ProxyOptions): ByProxy | undefined {
  if (!forwarded && assertions.length === 0) return undefined
  const proxy = forwarded && { ...forwarded, digest: sha256(forwarded.secret) }
  return {
    of: (request, addresses) => {
      const user = proxy && forwardedUser(request, proxy)
      if (user !== undefined || !verify) return user
      for (const header of assertions) {
        const [assertion, ...more] = valuesOf(header, request.raw.rawHeaders)
        // Of two, one may come from the client.
        if (more.length > 0) return 'wrong'
        if (assertion) return verify(assertion, addresses, addressOf(request), header)
      }
      return undefined
    },
    strip: (request) => {
      if (forwarded) withoutForwarded(request, forwarded)
      for (const header of assertions) delete request.raw.headers[header]
    },
  }
}
