/**
 * The port that browsers come back to for one account. It is also a mutex over all processes of this machine: whoever listens
 * there leads the sign-in, and the others are told that they are siblings. Ports that strangers have are passed over.
 */
import { digest } from '../../seal.js'
import type { ClientSettings } from '../client/settings.js'
import { failed } from '../failure.js'
import type { Pending } from '../store/record.js'
import { holderOf, type Listener, listen } from './loopback.js'
import type { PageName } from './pages.js'

export interface CallbackPortOptions {
  /** Of the account's record: names the account to siblings, and chooses the port. */
  key: string
  settings: Pick<ClientSettings, 'redirectUri' | 'callbackPort'>
  now: () => number
  /** What a browser brought back. Resolves to what it is shown. */
  onAnswer(params: URLSearchParams): Promise<PageName>
}

/** Milliseconds for which somebody who has answered that they are a sibling is one. */
const SIBLING_FOR = 5_000
/** For which a sibling may not answer, because it is busy. */
const STRANGE_FOR = 15_000
/** For which a port that nobody seems to have may not be had. */
const VACANT_FOR = 2_000
const PORTS = { first: 33_000, count: 15_000, tries: 8 }

export class CallbackPort {
  readonly #options: CallbackPortOptions
  readonly #name: string
  #listener: Listener | undefined
  #siblingUntil = 0
  #strangeSince: number | undefined
  /** Sign-ins whose port somebody else has now: nobody can finish them. */
  readonly #lost = new Set<string>()

  constructor(options: CallbackPortOptions) {
    this.#options = options
    this.#name = digest(`sibling ${options.key}`)
  }

  /** Where this process listens, if it does. */
  get port(): number | undefined {
    return this.#listener?.port
  }

  /** Where a browser is to come back to, at a port of this machine. */
  redirectUri(port: number): string {
    return this.#options.settings.redirectUri ?? `http://localhost:${port}/callback`
  }

  /** Whether somebody else has the port of a sign-in, who is no sibling. */
  hasLost({ state }: Pending): boolean {
    return this.#lost.has(state)
  }

  /**
   * Listens at the port of a sign-in, or at any of the account's where there is none. Resolves to whether this process does;
   * if not, a sibling does, or it is worth trying again. Rejects with a Fault where no port can be had.
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
    throw failed(`No port is free on this machine for the browser to come back to (${ports}). Set "oauth.callbackPort"`)
  }

  /** Lets others have the port. */
  async release(): Promise<void> {
    const listener = this.#listener
    this.#listener = undefined
    await listener?.close()
  }

  /** Undefined where a stranger has the port. */
  async #try(port: number, pending: Pending | undefined): Promise<boolean | undefined> {
    const { settings, now, onAnswer } = this.#options
    const path = settings.redirectUri === undefined ? '/callback' : new URL(settings.redirectUri).pathname
    this.#listener = await listen({ port, path, name: this.#name, onAnswer })
    if (this.#listener) return true
    if (this.#siblingUntil > now()) return false
    const holder = await holderOf(port, this.#name)
    if (holder === 'sibling') {
      this.#strangeSince = undefined
      this.#siblingUntil = now() + SIBLING_FOR
      return false
    }
    // A sibling on a busy machine may take its time, and a port that has just become free may be had in a moment.
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
    const first = PORTS.first + (Buffer.from(digest(key), 'base64url').readUInt32BE() % PORTS.count)
    return Array.from({ length: PORTS.tries }, (_, at) => first + at)
  }
}

export function portOf(uri: string): number {
  return URL.canParse(uri) ? Number(new URL(uri).port) || 80 : 0
}
