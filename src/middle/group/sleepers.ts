/**
 * Servers that are not asked for what is known of them, so that a list starts no program: those with `sleeps`, unless the client
 * has used something of them lately. From then on its program runs, and a list shows what it has now. When nobody has used it
 * for a while, it sleeps again.
 */

import { Recent } from '../../base/rpc/memoize.js'
import { lookEvery } from '../../base/time/time.js'
import type { Call } from '../../mcp/protocol/call.js'
import { clientName } from '../../mcp/protocol/capabilities.js'
import { whoOf } from '../policy/who.js'
import type { Member } from './member.js'

/** Most callers whose use is remembered, in each generation. */
const MAX_USERS = 1_000
/** Milliseconds between two looks for servers that nobody uses any more, at most and at least. */
const LOOK_EVERY = 30_000
const LOOK_LEAST = 10

/** When something of a server was last used, by `performance.now()`. */
type Uses = WeakMap<Member, number>

export class Sleepers {
  /** Looks for servers that sleep again. Returns whether there may be more of them later. */
  readonly #look: () => boolean
  /** What clients with a session have used. */
  readonly #clients = new WeakMap<object, Uses>()
  /** What all callers have used, by their keys. */
  readonly #callers = new Recent<Uses>({ max: MAX_USERS })
  #looking: NodeJS.Timeout | undefined

  constructor(look: () => boolean) {
    this.#look = look
  }

  /** Whether what is known of a server is enough for a list of this client. */
  sleeps(call: Call, member: Member): boolean {
    if (!call.client) return this.isUnused(call, member)
    return member.sleeps === true && !isUsed(this.#clients.get(call.client), member)
  }

  /** Whether no client with the key of this caller uses a server that sleeps. */
  isUnused(call: Call, member: Member): boolean {
    return member.sleeps === true && !isUsed(this.#callers.get(keyOf(call)), member)
  }

  /** Notes that a client uses a server. Returns whether that slept. */
  wake(call: Call, member: Member): boolean {
    const slept = this.sleeps(call, member)
    const key = keyOf(call)
    const ofCaller: Uses = this.#callers.get(key) ?? new WeakMap()
    this.#callers.set(key, ofCaller.set(member, performance.now()))
    const { client } = call
    if (client)
      this.#clients.set(
        client,
        (this.#clients.get(client) ?? new WeakMap<Member, number>()).set(member, performance.now()),
      )
    if (slept) this.#lookLater(member)
    return slept
  }

  close(): void {
    clearInterval(this.#looking)
    this.#looking = undefined
  }

  #lookLater({ sleepsAfter }: Member): void {
    if (!sleepsAfter || this.#looking) return
    const looking = lookEvery(Math.max(LOOK_LEAST, Math.min(sleepsAfter(), LOOK_EVERY)), () => {
      if (this.#looking === looking && !this.#look()) this.close()
    })
    this.#looking = looking
  }
}

/** Applications with other names have programs of their own. */
function keyOf(call: Call): string {
  return `${whoOf(call)} ${clientName(call.caller.clientInfo ?? '{}')}`
}

function isUsed(uses: Uses | undefined, member: Member): boolean {
  const last = uses?.get(member)
  return last !== undefined && performance.now() - last < (member.sleepsAfter?.() ?? Number.POSITIVE_INFINITY)
}
