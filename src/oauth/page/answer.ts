/** The requests of browsers to the page, and its answers. */
import type { KnownPerson } from './company.js'
import { type Content, document, HEADERS, type PageContext } from './html.js'

/** A request of a browser. */
export interface PageRequest {
  method: string
  /** After the path of the page, decoded. */
  path: readonly string[]
  query: URLSearchParams
  form: URLSearchParams
  cookies: string | undefined
  origin: string | undefined
  /** `Sec-Fetch-Site`. */
  site: string | undefined
  /** The person that a proxy names; undefined without one. */
  proxied: KnownPerson | undefined
}

/** The answer. */
export interface PageAnswer {
  status: number
  headers: Readonly<Record<string, string | string[]>>
  body: string
  /** A wrong token was entered. It counts towards the limit. */
  isWrong?: boolean
}

/** The answer with a page. */
export function shown(
  content: Content,
  context: PageContext,
  status = 200,
  ...cookies: (string | undefined)[]
): PageAnswer {
  const given = cookies.filter((one) => one !== undefined)
  const leaves = content.onTo === undefined ? {} : { 'referrer-policy': 'no-referrer' }
  const headers = { ...HEADERS, ...leaves, ...(given.length > 0 && { 'set-cookie': given }) }
  return { status, headers, body: document(content, context) }
}

/** The answer that sends the browser to another place. */
export function redirect(location: string, ...cookies: string[]): PageAnswer {
  const headers = { ...HEADERS, location, ...(cookies.length > 0 && { 'set-cookie': cookies }) }
  return { status: 303, headers, body: '' }
}
