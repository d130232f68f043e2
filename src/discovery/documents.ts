/** Documents from the network: fetched through the guard and cached, with retries. */

import { Failure } from '../net/failure.js'
import { type Fetched, type FetchOptions, guardedFetch } from '../net/fetch.js'
import { Cycles, type CyclesOptions, freshness } from './cycle.js'

/** Fetches a document; undefined if it does not exist. Rejects with a Failure. */
export type FetchDocument = (url: string, accept?: string) => Promise<Fetched | undefined>

/** Fetches and caches documents. */
export interface Documents {
  fetch: FetchDocument
  /** Fetch a document again the next time, even if it is fresh. */
  forget(url: string): void
}

/** Documents with a cache of their own. */
export function documents(options: Omit<FetchOptions, 'accept'> & CyclesOptions): Documents {
  const cycles = new Cycles<Fetched | undefined>({
    ...options,
    // The query may be secret, so it is not reported.
    onFailed: (failed) => options.onFailed({ ...failed, endpoint: failed.endpoint.replace(/[?#].*$/s, '') }),
  })
  return {
    fetch: (url, accept) =>
      cycles.run(url, async (signal) => {
        try {
          const value = await guardedFetch(url, { ...options, accept, signal })
          return { value, freshFor: freshness(value.headers) }
        } catch (error) {
          if (error instanceof Failure && error.reason === 'absent') return { value: undefined, freshFor: 0 }
          throw error
        }
      }),
    forget: (url) => cycles.forget(url),
  }
}
