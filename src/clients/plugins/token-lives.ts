/** Ends what is open with a token when the token does: one of the configuration ends when a reload has removed it. */
import type { FastifyReply } from 'fastify'
import { digest } from '../../base/crypto/digest.js'
import { Fault } from '../../base/fault/fault.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'

/** Milliseconds between the end of a token and that of the connections that were opened with it. */
const FAREWELL = 1_000

export class TokenLives {
  readonly #lives = new Map<string, HangUp>()

  /** Ends what is open with any other token than these: secrets by the names of their principals. */
  keepOnly(tokens: readonly (readonly [principal: string, secret: string])[]): void {
    const kept = new Set(tokens.map(([principal, secret]) => keyOf(principal, secret)))
    for (const [key, life] of [...this.#lives]) {
      if (kept.has(key)) continue
      this.#lives.delete(key)
      life.abort(
        new Fault('tokenEnded', 'The token of this call is no longer accepted; the server may have executed the call'),
      )
    }
    for (const key of kept) if (!this.#lives.has(key)) this.#lives.set(key, new HangUp())
  }

  /** Aborts when the token is removed; undefined if it is none of the kept ones. */
  of(principal: string, secret: string): Signal | undefined {
    return this.#lives.get(keyOf(principal, secret))
  }
}

function keyOf(principal: string, secret: string): string {
  return digest(JSON.stringify([principal, secret]))
}

/** Closes what is still open after the token has ended: calls have had the time to say so. */
export function closeAtEnd(ends: Signal, response: FastifyReply['raw']): void {
  let closing: NodeJS.Timeout | undefined
  const end = () => {
    closing = setTimeout(() => response.destroy(), FAREWELL)
  }
  ends.addEventListener('abort', end)
  response.once('close', () => {
    clearTimeout(closing)
    ends.removeEventListener('abort', end)
  })
}
