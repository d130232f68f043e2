/** Fetches a published JSON object, and distinguishes the reasons why there is none. */
import { guardedRequest, type RequestOptions } from '../../base/net/fetch.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import { networkFault, quotedAddress, unavailable } from './failure.js'

/** The object, or why there is none. */
export type Got =
  | { readonly kind: 'object'; readonly value: object }
  /** Nothing is there, or not a JSON object. */
  | { readonly kind: 'absent'; readonly status: number }
  /** Something may be there, but the server does not return it. */
  | { readonly kind: 'withheld'; readonly status: number }

/** Statuses that mean that nothing is there. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 410])
/** Statuses that say nothing about the object. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429])

/** Rejects with a Fault if the answer says nothing about the object, or if the address must not be contacted. */
export async function getObject(url: string, options: RequestOptions): Promise<Got> {
  const what = parseUrl(url)?.host || quotedAddress(url)
  const { status, bytes } = await guardedRequest(url, options).catch((error: unknown) => {
    throw networkFault(error, what)
  })
  if (status >= 500 || TRANSIENT.has(status)) throw unavailable(`${what} answered HTTP ${status}`)
  if (ABSENT.has(status)) return { kind: 'absent', status }
  if (status !== 200) return { kind: 'withheld', status }
  const value = objectIn(bytes)
  // Web applications answer any path with their HTML page.
  return value === undefined ? { kind: 'absent', status } : { kind: 'object', value }
}

/** The JSON object in the bytes, with or without a byte order mark; undefined if there is none. */
export function objectIn(bytes: Uint8Array): object | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
