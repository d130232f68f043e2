/**
 * Limits how many requests a principal sends in a minute, and how many wrong tokens an address (@fastify/rate-limit).
 * One that is over its limit is refused with 429 until its minute ends.
 */

import type { FastifyRequest } from 'fastify'
import plugin from 'fastify-plugin'
import { Fault } from '../../base/fault/fault.js'
import type { Counted } from '../../base/limits/windows.js'
import { ANONYMOUS } from '../../mcp/protocol/call.js'
import { addressOf } from './address.js'
import { type CountedWindows, WINDOW } from './counted-windows.js'

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
  const { default: plain } = await import('@fastify/rate-limit')
  await app.register(plain, { global: false, timeWindow: WINDOW, store: storeIn(windows) })
  const counting = (
    max: number,
    keyGenerator: (request: FastifyRequest) => string,
    tooMany: (retryAfter: number) => Fault,
  ) => {
    const count = app.createRateLimit({ max, keyGenerator })
    return async (request: FastifyRequest) => {
      if (isForwarded(request)) return
      const counted = await count(request)
      if (!counted.isAllowed && counted.isExceeded) throw tooMany(Math.max(1, counted.ttlInSeconds))
    }
  }
  if (requests !== undefined) {
    // Callers without a name have only their address.
    const callerOf = (request: FastifyRequest) =>
      request.principal === ANONYMOUS ? `address:${addressOf(request)}` : `principal:${request.principal}`
    app.countRequest = counting(
      requests,
      callerOf,
      (retryAfter) =>
        new Fault('rateLimited', `Too many requests of this caller (at most ${requests} in a minute)`, { retryAfter }),
    )
  }
  if (wrongTokens !== undefined) {
    app.countWrongToken = counting(
      wrongTokens,
      (request) => `wrong:${addressOf(request)}`,
      (retryAfter) =>
        new Fault('rateLimited', `Too many wrong tokens from this address (at most ${wrongTokens} in a minute)`, {
          retryAfter,
        }),
    )
  }
})

/** The store that @fastify/rate-limit counts in. */
function storeIn(windows: CountedWindows) {
  return class Store {
    incr(name: string, done: (error: Error | null, counted?: Counted) => void): void {
      windows.count(name).then(
        (counted) => done(null, counted),
        (error: Error) => done(error),
      )
    }

    child(): Store {
      return this
    }
  }
}
