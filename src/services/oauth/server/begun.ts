/**
 * Remembers the sign-ins that have begun at the facade, by their PKCE challenges (RFC 7636), with other replicas if there are any.
 * A code whose verifier fits none is not passed on: whoever guesses codes would do so with the secret of the bridge.
 */
import { digest } from '../../../base/crypto/digest.js'
import { BoundedMap } from '../../../base/limits/bounded.js'
import type { SharedStore } from '../../../mcp/ports/replicas.js'

/** What the replicas of a bridge know of each other's sign-ins. */
export type SharedBegun = Pick<SharedStore, 'recall' | 'remember' | 'change' | 'forget'>

/** The form of a challenge with S256, and of a verifier. */
const CHALLENGE = /^[\w-]{43}$/
const VERIFIER = /^[\w.~-]{43,128}$/

/** Most sign-ins in progress, that began at this replica. */
const MAX_BEGUN = 10_000
/** Milliseconds that a person has for a sign-in at the provider. */
const SIGN_IN_TIME = 3_600_000
/** How often one sign-in may ask for tokens. A client may repeat a request whose answer is lost. */
const MAX_CODES = 4
/** Shared values: the number of requests by the challenge of a sign-in, and whether some may be forgotten. */
const KIND = 'begun'
const FORGOTTEN = 'forgotten'

export class BegunSignIns {
  readonly #now: () => number
  readonly #shared: SharedBegun | undefined
  readonly #begun: BoundedMap<string, { until: number; tries: number }>
  /** Until then, a sign-in may be in progress that is not remembered. */
  #unsureUntil = 0

  /** `now` is in milliseconds. */
  constructor({
    shared,
    now = () => performance.now(),
  }: {
    shared?: SharedBegun | undefined
    now?: (() => number) | undefined
  }) {
    this.#now = now
    this.#shared = shared
    this.#begun = new BoundedMap(MAX_BEGUN, ({ until }, challenge) => this.#forget(challenge, until))
  }

  /** Remembers a sign-in. Resolves to false if its challenge is none. */
  async begin(challenge: string): Promise<boolean> {
    if (!CHALLENGE.test(challenge)) return false
    this.#begun.set(challenge, { until: this.#now() + SIGN_IN_TIME, tries: 0 })
    await this.#shared?.remember(KIND, challenge, '0', SIGN_IN_TIME)
    return true
  }

  /** Whether a verifier is that of a sign-in that has begun here; undefined if nobody can know. */
  async isBegun(verifier: string): Promise<boolean | undefined> {
    if (!VERIFIER.test(verifier)) return false
    const challenge = digest(verifier)
    const known = this.#begun.get(challenge)
    if (known && known.until > this.#now()) return ++known.tries <= MAX_CODES
    if (this.#unsureUntil > this.#now()) return undefined
    return this.#shared ? isBegunElsewhere(this.#shared, challenge) : false
  }

  /** Strangers may begin any number of sign-ins, so that the oldest ones are forgotten. People among them can still sign in. */
  #forget(challenge: string, until: number): void {
    this.#shared?.forget(KIND, challenge)
    const now = this.#now()
    if (until <= now) return
    // Not told again for each.
    if (this.#unsureUntil < now + SIGN_IN_TIME / 2)
      this.#shared?.remember(KIND, FORGOTTEN, '1', 2 * SIGN_IN_TIME).catch(() => {})
    this.#unsureUntil = Math.max(this.#unsureUntil, until)
  }
}

async function isBegunElsewhere(shared: SharedBegun, challenge: string): Promise<boolean | undefined> {
  try {
    const isBegun = await shared.change(KIND, challenge, SIGN_IN_TIME, (tries) =>
      tries === undefined
        ? { text: undefined, result: undefined }
        : { text: String(Number(tries) + 1), result: Number(tries) < MAX_CODES },
    )
    return isBegun ?? ((await shared.recall(KIND, FORGOTTEN)) === undefined ? false : undefined)
  } catch {
    return undefined
  }
}
