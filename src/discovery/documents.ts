/** Documents of the network: fetched through the guard, in cycles, and kept for as long as they hold. */

import { Failure } from '../net/failure.js'
import { type Fetched, type FetchOptions, guardedFetch } from '../net/fetch.js'
import { Cycles, type CyclesOptions, freshness } from './cycle.js'

/** Fetches a document; undefined where its host says that there is none. Rejects with a Failure. */
export type FetchDocument = (url: string, accept?: string) => Promise<Fetched | undefined>

export interface Documents {
  fetch: FetchDocument
  /** Has a document fetched again the next time, however fresh it is. */
  forget(url: string): void
}

export function documents(options: Omit<FetchOptions, 'accept'> & CyclesOptions): Documents {
  const cycles = new Cycles<Fetched | undefined>({
    ...options,
    // What follows the question mark is nobody's business but the host's.
    told: (failed) => options.told({ ...failed, endpoint: failed.endpoint.replace(/[?#].*$/s, '') }),
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
