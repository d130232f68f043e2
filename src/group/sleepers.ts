/**
 * Servers that are not asked for what is known of them, so that a list starts no program: those with `sleeps`, until the client
 * has used something of them. From then on its program runs, and a list shows what it has now.
 */

import { whoOf } from '../policy/who.js'
import type { Call } from '../protocol/call.js'
import { Recent } from '../rpc/memoize.js'
import type { Member } from './member.js'

/** Most callers whose use is remembered, in each generation. */
const MAX_USERS = 1_000

export class Sleepers {
  /** What clients with a session have used. */
  readonly #clients = new WeakMap<object, Set<Member>>()
  /** What all callers have used, by their keys. */
  readonly #callers = new Recent<Set<Member>>({ max: MAX_USERS })

  /** Whether what is known of a server is enough for a list of this client. */
  sleeps(call: Call, member: Member): boolean {
    if (!call.client) return this.isUnused(call, member)
    return member.sleeps === true && !this.#clients.get(call.client)?.has(member)
  }

  /** Whether no client with the key of this caller has used a server that sleeps. */
  isUnused(call: Call, member: Member): boolean {
    return member.sleeps === true && !this.#callers.get(whoOf(call))?.has(member)
  }

  /** Notes that a client uses a server. Returns whether it has not before. */
  wake(call: Call, member: Member): boolean {
    if (!this.sleeps(call, member)) return false
    const who = whoOf(call)
    const ofCaller = this.#callers.get(who) ?? new Set()
    this.#callers.set(who, ofCaller.add(member))
    const { client } = call
    if (client) this.#clients.set(client, (this.#clients.get(client) ?? new Set()).add(member))
    return true
  }
}
