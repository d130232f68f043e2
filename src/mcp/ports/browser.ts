/** A request of a browser to the page where people sign in to servers, and the answer. */

export interface BrowserRequest {
  method: string
  /** The segments after the path of the page, decoded. */
  path: readonly string[]
  query: URLSearchParams
  form: URLSearchParams
  cookies: string | undefined
  origin: string | undefined
  /** `Sec-Fetch-Site`. */
  site: string | undefined
  /** The person that a proxy names; undefined without one. */
  proxied: { principal: string; who: string } | undefined
}

export interface BrowserAnswer {
  status: number
  headers: Readonly<Record<string, string | string[]>>
  body: string
  /** A wrong token was entered. It counts towards the limit. */
  isWrong?: boolean
}
