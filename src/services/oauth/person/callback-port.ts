/**
 * The callback port of one account, to which browsers are redirected. It is also a mutex between the processes of this
 * machine: the process that listens runs the sign-in, and tells the others that it is a sibling. Ports of other
 * programs are skipped.
 */

import { digest, sha256 } from '../../../base/crypto/digest.js'
import { parseUrl } from '../../../base/texts/parse-url.js'
import type { ClientSettings } from '../client/settings.js'
import { failed } from '../failure.js'
import type { Pending } from '../store/record.js'
import { holderOf, type LoopbackListener, listen } from './loopback.js'
import type { PageName } from './pages.js'

/** The account, and its handler. */
export interface CallbackPortOptions {
  /** The key of the account's record: identifies the account to siblings, and chooses the port. */
  key: string
  settings: Pick<ClientSettings, 'redirectUri' | 'callbackPort' | 'successUrl'>
  now: () => number
  /** Handles a redirect. Resolves to the page for the browser. */
  onAnswer(params: URLSearchParams): Promise<PageName>
}

/** Milliseconds for which a sibling's answer counts. */
const SIBLING_FOR = 5_000
/** Milliseconds to wait for the answer of a busy sibling. */
const STRANGE_FOR = 15_000
/** Milliseconds to retry a port that seems free but cannot be taken. */
const VACANT_FOR = 2_000
const PORTS = { first: 33_000, count: 15_000, tries: 8 }

/** The callback port of one account. */
export class CallbackPort {
  readonly #options: CallbackPortOptions
  readonly #name: string
  #listener: LoopbackListener | undefined
  #siblingUntil = 0
  #strangeSince: number | undefined
  /** Sign-ins whose port another program has: they cannot be finished. */
  readonly #lost = new Set<string>()

  constructor(options: CallbackPortOptions) {
    this.#options = options
    this.#name = digest(`sibling ${options.key}`)
  }

  /** The port that this process listens on, if it does. */
  get port(): number | undefined {
    return this.#listener?.port
  }

  /** The redirect URI at a port of this machine. */
  redirectUri(port: number): string {
    return this.#options.settings.redirectUri ?? `http://localhost:${port}/callback`
  }

  /** Whether another program has the port of a sign-in. */
  hasLost({ state }: Pending): boolean {
    return this.#lost.has(state)
  }

  /**
   * Listens at the port of a sign-in, or without one at any of the account's ports. Resolves to whether this process
   * listens. If not, a sibling does, or a retry makes sense. Rejects with a Fault if no port is free.
   */
  async take(pending: Pending | undefined): Promise<boolean> {
    const own = pending && portOf(pending.redirectUri)
    if (this.#listener && own !== undefined && own !== this.#listener.port) await this.release()
    if (this.#listener) return true
    for (const port of new Set([...(own === undefined ? [] : [own]), ...this.#ports])) {
      const taken = await this.#try(port, port === own ? pending : undefined)
      if (taken !== undefined) return taken
    }
    const ports = this.#ports.join(', ')
    throw failed(`No callback port for the browser is free on this machine (${ports}). Set "oauth.callbackPort"`)
  }

  /** Frees the port for others. */
  async release(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    await listener?.close()
  }

  /** Undefined if another program has the port. */
  async #try(port: number, pending: Pending | undefined): Promise<boolean | undefined> {
    const { settings, now, onAnswer } = this.#options
    const path = settings.redirectUri === undefined ? '/callback' : new URL(settings.redirectUri).pathname
    const { successUrl } = settings
    this.#listener = await listen({ port, path, name: this.#name, onAnswer, successUrl })
    if (this.#listener) return true
    if (this.#siblingUntil > now()) return false
    const holder = await holderOf(port, this.#name)
    if (holder === 'sibling') {
      this.#strangeSince = undefined
      this.#siblingUntil = now() + SIBLING_FOR
      return false
    }
    // A busy sibling may answer late, and a port that has just become free may be available in a moment.
    const patience = pending ? STRANGE_FOR : holder === 'nobody' ? VACANT_FOR : 0
    this.#strangeSince ??= now()
    if (this.#strangeSince + patience > now()) return false
    if (pending) this.#lost.add(pending.state)
    return undefined
  }

  get #ports(): readonly number[] {
    const { settings, key } = this.#options
    const fixed = settings.redirectUri === undefined ? settings.callbackPort : portOf(settings.redirectUri)
    if (fixed !== undefined) return [fixed]
    const first = PORTS.first + (sha256(key).readUInt32BE() % PORTS.count)
    return Array.from({ length: PORTS.tries }, (_, at) => first + at)
  }
}

/** The port of an address; 80 if it names none, 0 if it is invalid. */
export function portOf(uri: string): number {
  const url = parseUrl(uri)
  return url ? Number(url.port) || 80 : 0
}
