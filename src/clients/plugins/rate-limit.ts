/**
 * Limits how many requests a principal sends in a minute, and how many wrong tokens an address. One that is over its limit is
 * refused with 429 until its minute ends.
 */

import type { FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { Fault } from '../../base/fault/fault.js'
import { ANONYMOUS } from '../../mcp/protocol/call.js'
import { addressOf } from './address.js'
import type { CountedWindows } from './counted-windows.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Counts a request, or throws a Fault if its principal is over its limit. Undefined without a limit. */
    countRequest: ((request: FastifyRequest) => Promise<void>) | undefined
    /** Counts a wrong token, or throws a Fault if its address is over its limit. Undefined without a limit. */
    countWrongToken: ((request: FastifyRequest) => Promise<void>) | undefined
  }
}

/** The limits, and where the counts are. */
export interface RateLimitOptions {
  /** Most requests of a principal in a minute. */
  requests: number | undefined
  /** Most wrong tokens of an address in a minute. */
  wrongTokens: number | undefined
  windows: CountedWindows
  /** Whether another replica has counted the request, and has forwarded it. */
  isForwarded(request: FastifyRequest): boolean
}

/** A Fastify plugin that decorates an application with the counters. It refuses nothing by itself. */
export const rateLimit = plugin<RateLimitOptions>(async function rateLimit(app, options) {
  const { requests, wrongTokens, windows, isForwarded } = options
  app.decorate('countRequest', undefined)
  app.decorate('countWrongToken', undefined)
  if (requests === undefined && wrongTokens === undefined) return
  const counting =
    (most: number, nameOf: (request: FastifyRequest) => string, what: string) => async (request: FastifyRequest) => {
      if (isForwarded(request)) return
      const { current, ttl } = await windows.count(nameOf(request))
      if (current > most)
        throw new Fault('rateLimited', `Too many ${what} (at most ${most} in a minute)`, {
          retryAfter: Math.max(1, Math.ceil(ttl / 1_000)),
        })
    }
  if (requests !== undefined) {
    // Callers without a name have only their address.
    const callerOf = (request: FastifyRequest) =>
      request.principal === ANONYMOUS ? `address:${addressOf(request)}` : `principal:${request.principal}`
    app.countRequest = counting(requests, callerOf, 'requests of this caller')
  }
  if (wrongTokens !== undefined) {
    const addressesOf = (request: FastifyRequest) => `wrong:${addressOf(request)}`
    app.countWrongToken = counting(wrongTokens, addressesOf, 'wrong tokens from this address')
  }
})
