/** Documents from the network: fetched through the guard and cached, with retries. */

import { Failure } from '../../base/net/failure.js'
import { type Fetched, type FetchOptions, guardedFetch } from '../../base/net/fetch.js'
import { Cycles, type CyclesOptions, freshness } from './cycle.js'

/** How a document is fetched. */
export interface FetchHow {
  /** The requested media type. */
  accept?: string | undefined
  /** Nobody has named this address. Whatever answers there without a document is as good as nothing. */
  isGuess?: boolean | undefined
}

/** Fetches a document; undefined if it does not exist. Rejects with a Failure. */
export type FetchDocument = (url: string, how?: FetchHow) => Promise<Fetched | undefined>

/** Fetches and caches documents. */
export interface Documents {
  fetch: FetchDocument
  /** Fetch a document again the next time, even if it is fresh. */
  forget(url: string): void
}

/** Results of a request that mean that there is no document: always, and at an address that nobody has named. */
const ABSENT: ReadonlySet<string> = new Set(['absent'])
const ABSENT_GUESS: ReadonlySet<string> = new Set(['absent', 'status', 'redirect', 'encoding', 'too-large'])

/** Documents with a cache of their own. */
export function documents(options: Omit<FetchOptions, 'accept'> & CyclesOptions): Documents {
  const cycles = new Cycles<Fetched | undefined>({
    ...options,
    // The query may be secret, so it is not reported.
    onFailed: (failed) => options.onFailed({ ...failed, endpoint: failed.endpoint.replace(/[?#].*$/s, '') }),
  })
  return {
    fetch: (url, { accept, isGuess = false } = {}) =>
      cycles.run(url, async (signal, known) => {
        try {
          const value = await guardedFetch(url, { ...options, accept, signal, known })
          return { value, freshFor: freshness(value.headers) }
        } catch (error) {
          if (error instanceof Failure && (isGuess ? ABSENT_GUESS : ABSENT).has(error.reason))
            return { value: undefined, freshFor: 0 }
          throw error
        }
      }),
    forget: (url) => cycles.forget(url),
  }
}
