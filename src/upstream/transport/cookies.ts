/**
 * The cookies of one session with a server, so that a balancer with sticky cookies sends the whole session to one
 * replica. Sessions share no cookies, because a cookie may stand for a principal.
 */
import type { Jar } from './cookie-jar.js'

export type WithHeaders = Readonly<Record<string, string | string[] | undefined>>

export class Cookies {
  readonly #url: URL
  #jar: Jar | undefined
  /** Loads the jar. Cookies that come meanwhile are kept in order. */
  #loading: Promise<void> | undefined
  #taken = 0
  /** What was adopted last, unless an answer has set a cookie since. */
  #adopted: string | undefined

  constructor(url: URL) {
    this.#url = url
  }

  /** Resolves when all cookies have been kept; undefined if they have. */
  get settled(): Promise<void> | undefined {
    return this.#loading
  }

  /** How many answers have set cookies. */
  get taken(): number {
    return this.#taken
  }

  /** Whether any cookies are kept. */
  get any(): boolean {
    return this.#jar !== undefined
  }

  /** All cookies, for `adopt` in another replica; undefined without any. To be read when they are settled. */
  get text(): string | undefined {
    return this.#jar && JSON.stringify({ origin: this.#url.origin, jar: this.#jar.text })
  }

  /** Replaces the cookies by those of another replica, unless they are of another origin or an answer sets some meanwhile. */
  async adopt(text: string): Promise<void> {
    if (text === this.#adopted) return
    const { origin, jar } = JSON.parse(text) as { origin: string; jar: string }
    const taken = this.#taken
    const { Jar } = await import('./cookie-jar.js')
    if (origin !== this.#url.origin || this.#taken !== taken) return
    this.#jar = Jar.from(jar)
    this.#adopted = text
  }

  /** Keeps the cookies that an answer from this path sets. */
  keepFrom(path: string, headers: WithHeaders): void {
    const { 'set-cookie': set } = headers
    if (set === undefined) return
    this.#taken++
    this.#adopted = undefined
    const url = this.#at(path)
    const keep = (jar: Jar) => {
      for (const text of [set].flat()) jar.keep(url, text)
    }
    if (this.#jar) return keep(this.#jar)
    const loading = (this.#loading ?? Promise.resolve()).then(async () => {
      const { Jar } = await import('./cookie-jar.js')
      this.#jar ??= new Jar()
      keep(this.#jar)
      if (this.#loading === loading) this.#loading = undefined
    })
    this.#loading = loading
  }

  /** These headers with the cookies for a request to this path, beside those of the configuration. */
  addTo<T extends WithHeaders>(path: string, headers: T): T {
    const own = this.#jar?.headerFor(this.#at(path))
    if (!own) return headers
    const { cookie } = headers
    return { ...headers, cookie: cookie === undefined ? own : `${cookie}; ${own}` }
  }

  #at(path: string): string {
    return new URL(this.#url.origin + path).href
  }
}
