/** How often a server may come back with something to ask or to wait for before it answers. */
import { Fault } from '../protocol/fault.js'
import { has, type Payload } from '../rpc/splice.js'

/** Rounds of one call; the official clients stop at ten. */
const MAX_ROUNDS = 16
/** Milliseconds that a server which only wants to be called again is given before that counts. */
const PATIENCE = 30_000
const WAIT = { first: 250, most: 5_000 }

export class Rounds {
  readonly #started = Date.now()
  #rounds = 0
  #wait = WAIT.first

  /**
   * Counts a round, and waits before the next one where the server asks nothing but to be called again. Throws a Fault when
   * it is enough.
   */
  async next(input: Payload, signal: AbortSignal): Promise<void> {
    const asks = has(input, 'inputRequests')
    if (asks || Date.now() - this.#started >= PATIENCE) this.#rounds++
    if (this.#rounds > MAX_ROUNDS)
      throw new Fault('upstreamProtocol', `The server has not answered after ${MAX_ROUNDS} rounds of questions`)
    if (asks) return
    await pause(this.#wait, signal)
    this.#wait = Math.min(2 * this.#wait, WAIT.most)
  }
}

/** Waits so many milliseconds. Rejects when the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', over)
      resolve()
    }, milliseconds)
    signal.addEventListener('abort', over, { once: true })
  })
}
