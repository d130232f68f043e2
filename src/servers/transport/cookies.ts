/**
 * The cookies of one session with a server, so that a balancer with sticky cookies sends the whole session to one
 * replica. Sessions share no cookies, because a cookie may stand for a principal.
 */
import type { ResponseHeaders } from './answers.js'
import type { Jar } from './cookie-jar.js'

export class Cookies {
  readonly #url: URL
  #jar: Jar | undefined
  /** Resolves when the cookies that have arrived are stored, in order; undefined if they are. The jar may have to be loaded. */
  settled: Promise<void> | undefined

  constructor(url: URL) {
    this.#url = url
  }

  /** All cookies, for `adopt` in another replica; undefined if there are none. Read it after `settled`. */
  get text(): string | undefined {
    return this.#jar && JSON.stringify({ origin: this.#url.origin, jar: this.#jar.text })
  }

  /** Takes the cookies of another replica, before any answer has set some, unless they belong to another origin. */
  async adopt(text: string): Promise<void> {
    const { origin, jar } = JSON.parse(text) as { origin: string; jar: string }
    const { Jar } = await import('./cookie-jar.js')
    if (origin === this.#url.origin) this.#jar = Jar.from(jar)
  }

  /** Stores the cookies that an answer from this path sets. */
  keepFrom(path: string, headers: ResponseHeaders): void {
    const { 'set-cookie': set } = headers
    if (set === undefined) return
    const url = this.#at(path)
    const keep = (jar: Jar) => {
      for (const text of [set].flat()) jar.keep(url, text)
    }
    if (this.#jar) return keep(this.#jar)
    const loading = (this.settled ?? Promise.resolve()).then(async () => {
      const { Jar } = await import('./cookie-jar.js')
      this.#jar ??= new Jar()
      keep(this.#jar)
      if (this.settled === loading) this.settled = undefined
    })
    this.settled = loading
  }

  /** These headers with the cookies for a request to this path, in addition to configured cookies. */
  addTo<T extends ResponseHeaders>(path: string, headers: T): T {
    const own = this.#jar?.headerFor(this.#at(path))
    if (!own) return headers
    const { cookie } = headers
    return { ...headers, cookie: cookie === undefined ? own : `${cookie}; ${own}` }
  }

  #at(path: string): string {
    return new URL(this.#url.origin + path).href
  }
}
