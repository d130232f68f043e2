/** Fetches a JSON object that somebody has published, and says what is there instead where there is none. */
import { guardedRequest, type RequestOptions } from '../net/fetch.js'
import { networkFault, unavailable } from './failure.js'

export type Got =
  | { readonly kind: 'object'; readonly value: object }
  /** There is nothing, or something else. */
  | { readonly kind: 'absent' }
  /** There may be something, and it is not given. */
  | { readonly kind: 'withheld'; readonly status: number }

/** Statuses that say that there is nothing. */
const ABSENT: ReadonlySet<number> = new Set([404, 405, 410])
/** Statuses that say nothing about what is there. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 425, 429])

/** Rejects with a Fault where it cannot be found out, or must not be asked. */
export async function getObject(url: string, options: RequestOptions): Promise<Got> {
  const what = new URL(url).host
  const { status, bytes } = await guardedRequest(url, options).catch((error: unknown) => {
    throw networkFault(error, what)
  })
  if (status >= 500 || TRANSIENT.has(status)) throw unavailable(`${what} answers with HTTP ${status}`)
  if (ABSENT.has(status)) return { kind: 'absent' }
  if (status !== 200) return { kind: 'withheld', status }
  const value = objectIn(bytes)
  // Web applications answer any path with their page.
  return value === undefined ? { kind: 'absent' } : { kind: 'object', value }
}

/** The JSON object that the bytes are; undefined where they are none. */
export function objectIn(bytes: Uint8Array): object | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
