/** The requests of oauth4webapi, over the guard that decides which addresses may be reached, and without TLS. */
import { allowInsecureRequests, customFetch } from 'oauth4webapi'
import { guardedRequest } from '../../base/net/fetch.js'
import type { Reach } from './reach.js'

type Asking = (
  url: string,
  options: { method: string; headers: Record<string, string>; body?: unknown },
) => Promise<Response>

/** Options for a request of oauth4webapi. */
export function guarded(reach: Reach): { [allowInsecureRequests]: true; [customFetch]: Asking } {
  return {
    [allowInsecureRequests]: true,
    [customFetch]: async (url, { body, headers, method }) => {
      const options = { ...reach, method: method as 'POST', headers }
      const { status, bytes, headers: received } = await guardedRequest(url, { ...options, body: String(body) })
      const type = received['content-type']
      // A response without content must not be given any (Fetch, null body status).
      return new Response(status === 204 || status === 304 ? null : Buffer.from(bytes), {
        status,
        headers: typeof type === 'string' ? { 'content-type': type } : {},
      })
    },
  }
}
