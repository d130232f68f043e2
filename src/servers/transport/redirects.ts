/** Follows redirects of a server on its own origin, with the same method, and remembers them. */

import { BoundedMap } from '../../base/limits/bounded.js'
import { parseUrl } from '../../base/texts/parse-url.js'
import type { OriginAnswer } from './answers.js'

/** Statuses of redirects that keep the method and the body (RFC 9110, 15.4.8 and 15.4.9). */
const KEEPING: ReadonlySet<number> = new Set([307, 308])
/** Maximum redirects that are followed for one request. */
export const MAX_REDIRECTS = 3
/** Statuses of a path that no longer exists, unless the answer is JSON, which may be about the session. */
const GONE: ReadonlySet<number> = new Set([404, 410])
/** Maximum principals whose paths are remembered. */
const MAX_PATHS = 1_000
/** Maximum characters of a remembered path. */
const MAX_REDIRECT_PATH = 8 * 1024

type Head = Pick<OriginAnswer, 'status' | 'headers'>

/**
 * The known redirects of a server. If it has redirected a principal to a path, all requests of that principal use the
 * path, because a server may redirect each principal to another one.
 */
export class Redirects {
  readonly #url: URL
  readonly #own: string
  readonly #paths = new BoundedMap<string, string>(MAX_PATHS)

  constructor(url: URL) {
    this.#url = url
    this.#own = pathOf(url)
  }

  pathFor(principal: string): string {
    return this.#paths.get(principal) ?? this.#own
  }

  /**
   * The path to which a request has to be sent again: the target of a redirect, or the address of the server if a
   * remembered path no longer exists. Undefined if the answer is final. `asked`: the path to which the request was sent.
   * `times`: how often it has been sent before. Without a principal, the path is not remembered.
   */
  next(principal: string | undefined, asked: string, answer: Head, times: number): string | undefined {
    if (times >= MAX_REDIRECTS) return undefined
    if (principal !== undefined && isGone(answer) && this.#paths.get(principal) === asked) {
      this.#paths.delete(principal)
      return this.#own
    }
    const path = redirectedTo(this.#url, asked, answer)
    const isRemembered = principal !== undefined && path !== undefined && path.length <= MAX_REDIRECT_PATH
    if (isRemembered) this.#paths.set(principal, path)
    return path
  }
}

/**
 * The path to which a server redirects a request that was sent to the path `asked`; undefined if it does not, or if the
 * target is on another origin, which must not get the credentials.
 */
export function redirectedTo(url: URL, asked: string, { status, headers }: Head): string | undefined {
  const { location } = headers
  if (!KEEPING.has(status) || typeof location !== 'string') return undefined
  const target = onSameOrigin(location, new URL(url.origin + asked))
  return target && pathOf(target)
}

/**
 * Resolves an address that a server names; undefined if it is invalid or on another origin, which must not get
 * credentials.
 */
export function onSameOrigin(location: string | undefined, base: URL): URL | undefined {
  const target = location === undefined ? undefined : parseUrl(location, base)
  // The origin of a `blob:` address is that of the address inside it, so the protocol is compared too.
  return target?.origin === base.origin && target.protocol === base.protocol ? target : undefined
}

function isGone({ status, headers }: Head): boolean {
  return GONE.has(status) && !/^application\/json\b/i.test(String(headers['content-type']))
}

function pathOf({ pathname, search }: URL): string {
  return pathname + search
}
