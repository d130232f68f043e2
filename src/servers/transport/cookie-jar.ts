/** A bounded jar of cookies (RFC 6265) for one origin. Loaded only when a server sets a cookie, because it is large. */
import { Cookie, CookieJar } from 'tough-cookie'

const MAX_COOKIES = 20
/** Characters of a cookie with its attributes: the limit of browsers. */
const MAX_COOKIE = 4_096

export class Jar {
  readonly #jar: CookieJar

  constructor(jar = new CookieJar()) {
    this.#jar = jar
  }

  static from(text: string): Jar {
    return new Jar(CookieJar.deserializeSync(text))
  }

  /** All cookies with their attributes. */
  get text(): string {
    return JSON.stringify(this.#jar.serializeSync())
  }

  /** Stores a cookie of an answer from this address, unless it is invalid or too long, or there are too many. */
  keep(url: string, text: string): void {
    const cookie = text.length <= MAX_COOKIE ? Cookie.parse(text) : undefined
    if (!cookie) return
    const kept = this.#jar.getCookiesSync(url, { allPaths: true })
    if (kept.length >= MAX_COOKIES && !kept.some(({ key }) => key === cookie.key)) return
    this.#jar.setCookieSync(cookie, url, { ignoreError: true })
  }

  /** The cookies for a request to this address, as a header; empty if there are none. */
  headerFor(url: string): string {
    return this.#jar.getCookieStringSync(url)
  }
}
