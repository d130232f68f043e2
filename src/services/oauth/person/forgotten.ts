/** Whether an authorization server has forgotten a client that it registered: many drop clients after a while. */
import { type Answered, guardedRequest } from '../../../base/net/fetch.js'
import type { Reach } from '../reach.js'

/** Milliseconds for the answer. */
const TIME_LIMIT = 5_000
/**
 * The statuses of the page that a person gets for an unknown client: the authorization server must not send the browser
 * back (RFC 6749, 4.1.2.1), so nobody else learns of it.
 */
const UNKNOWN_CLIENT: ReadonlySet<number> = new Set([400, 401])
/** The error codes for it, in a page with another status or in the address of a page. */
const CODES = /\b(?:invalid|unauthorized)_client\b/

/** Whether the authorization server refuses this authorization request outright. False if that cannot be found out. */
export async function isForgotten(address: string, reach: Reach): Promise<boolean> {
  const answer = await guardedRequest(address, { ...reach, timeLimit: TIME_LIMIT }).catch(() => undefined)
  return answer !== undefined && refuses(answer)
}

function refuses({ status, headers, bytes }: Answered): boolean {
  if (status >= 400) return UNKNOWN_CLIENT.has(status) || CODES.test(Buffer.from(bytes).toString())
  return status >= 300 && CODES.test(String(headers['location']))
}
