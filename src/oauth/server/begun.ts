/**
 * Remembers the sign-ins that have begun at the facade, by their PKCE challenges (RFC 7636). A code whose verifier fits
 * none is not passed on: whoever guesses codes would do so with the secret of the bridge.
 */
import { digest } from '../../crypto/digest.js'
import { BoundedMap } from '../../limits/bounded.js'

/** The form of a challenge with S256, and of a verifier. */
const CHALLENGE = /^[\w-]{43}$/
const VERIFIER = /^[\w.~-]{43,128}$/

/** Most sign-ins in progress. */
const MAX_BEGUN = 10_000
/** Milliseconds that a person has for a sign-in at the provider. */
const SIGN_IN_TIME = 3_600_000
/** How often one sign-in may ask for tokens. A client may repeat a request whose answer is lost. */
const MAX_CODES = 4

export class BegunSignIns {
  readonly #now: () => number
  readonly #begun: BoundedMap<string, { until: number; tries: number }>
  /** Until then, a sign-in may be in progress that is not remembered. */
  #unsureUntil = 0

  /** `now` is in milliseconds. `replicated`: sign-ins begin at other replicas, too. */
  constructor({
    replicated,
    now = () => performance.now(),
  }: { replicated: boolean; now?: (() => number) | undefined }) {
    this.#now = now
    if (replicated) this.#unsureUntil = Number.POSITIVE_INFINITY
    this.#begun = new BoundedMap(MAX_BEGUN, ({ until }) => {
      this.#unsureUntil = Math.max(this.#unsureUntil, until)
    })
  }

  /** Remembers a sign-in. Returns false if its challenge is none. */
  begin(challenge: string): boolean {
    if (!CHALLENGE.test(challenge)) return false
    this.#begun.set(challenge, { until: this.#now() + SIGN_IN_TIME, tries: 0 })
    return true
  }

  /** Whether a verifier is that of a sign-in that has begun here; undefined if it may have begun elsewhere. */
  isBegun(verifier: string): boolean | undefined {
    if (!VERIFIER.test(verifier)) return false
    const known = this.#begun.get(digest(verifier))
    if (known && known.until > this.#now() && ++known.tries <= MAX_CODES) return true
    return !known && this.#unsureUntil > this.#now() ? undefined : false
  }
}
