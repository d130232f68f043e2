/**
 * The person in a browser, by a sealed cookie, and the secret of its forms. Cookies have the prefix `__Host-`: no other
 * host can set them, and they go over TLS only.
 */
import { randomId, Sealer, type SealKey } from '../../../base/crypto/seal.js'
import type { CompanySecrets, KnownPerson } from './company.js'

/** A person in a browser. */
export interface Visitor extends KnownPerson {
  /** Random, for each sign-in of a browser. */
  id: string
}

/** A browser whose person has not been identified yet. */
export interface ArrivingBrowser {
  id: string
  /** The secrets of a sign-in at the identity provider; undefined if the person enters a token instead. */
  secrets: CompanySecrets | undefined
  /** Where to continue: a server, and a ticket for it. */
  to: Destination
}

/** A place on the page: a server, a question about a call, or the list of all servers. */
export interface Destination {
  question?: string | undefined
  server?: string | undefined
  ticket?: string | undefined
}

const COOKIE = '__Host-mcp-bridge'
const ARRIVAL = '__Host-mcp-bridge-arrival'
/** Milliseconds until a person in a browser must identify again, and to complete that. */
const KNOWN = 8 * 3_600_000
const ARRIVES = 600_000

/** Reads and writes cookies. */
export class Visitors {
  readonly #sealer: Sealer
  readonly #now: () => number

  constructor(keys: readonly SealKey[], now: () => number = Date.now) {
    this.#sealer = new Sealer(keys, 'visitor')
    this.#now = now
  }

  /** The person in a browser; undefined if unknown. */
  in(cookies: string | undefined): Visitor | undefined {
    return this.#read<Visitor>(COOKIE, cookies)
  }

  /** The cookie for a person who was just identified. */
  admit(person: KnownPerson): { visitor: Visitor; cookie: string } {
    const visitor = { ...person, id: randomId() }
    return { visitor, cookie: this.#write(COOKIE, visitor, KNOWN) }
  }

  /** The pending identification of a browser; undefined if there is none. */
  arriving(cookies: string | undefined): ArrivingBrowser | undefined {
    return this.#read<ArrivingBrowser>(ARRIVAL, cookies)
  }

  /** The cookie for a browser whose person has not been identified yet. */
  expect(to: Destination, secrets: CompanySecrets | undefined): { arrival: ArrivingBrowser; cookie: string } {
    const arrival = { id: randomId(), to, secrets }
    return { arrival, cookie: this.#write(ARRIVAL, arrival, ARRIVES) }
  }

  /** The cookies that make a browser forget its person. */
  get forgotten(): string[] {
    return [COOKIE, ARRIVAL].map((name) => cookieOf(name, '', 0))
  }

  /** The secret of the forms in a browser. */
  secretOf({ id }: { id: string }): string {
    return this.#sealer.sign(`form ${id}`)
  }

  isSecretOf({ id }: { id: string }, secret: string | null): boolean {
    return secret !== null && this.#sealer.isSigned(secret, `form ${id}`)
  }

  #write(name: string, value: object, milliseconds: number): string {
    const text = JSON.stringify({ ...value, until: this.#now() + milliseconds })
    return cookieOf(name, this.#sealer.sealBytes(Buffer.from(text), name).toString('base64url'), milliseconds)
  }

  #read<T>(name: string, cookies: string | undefined): T | undefined {
    const values = (cookies ?? '').split(/; */).filter((one) => one.startsWith(`${name}=`))
    // If there are two, one may have been set by somebody else.
    const [only, ...others] = values
    if (only === undefined || others.length > 0) return undefined
    const opened = this.#sealer.openBytes(Buffer.from(only.slice(name.length + 1), 'base64url'), name)
    const value = opened && (JSON.parse(opened.toString('utf8')) as T & { until: number })
    return value && value.until > this.#now() ? value : undefined
  }
}

/** Lax: the cookie has to come along when an authorization server sends the browser back. */
function cookieOf(name: string, value: string, milliseconds: number): string {
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${Math.floor(milliseconds / 1_000)}`
}
