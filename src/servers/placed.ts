/** At which of several addresses what is: sessions of callers, calls that wait for the answers of their clients, and tasks. */

import { digest } from '../base/crypto/digest.js'
import { BoundedMap } from '../base/limits/bounded.js'
import { raw, stringUnder } from '../base/rpc/splice.js'
import type { Call, Final, Sender } from '../mcp/protocol/call.js'
import { clientName } from '../mcp/protocol/capabilities.js'
import { LISTEN } from '../mcp/protocol/methods.js'
import { filterIn } from '../mcp/protocol/subscriptions.js'
import type { ServerPlace } from './server-place.js'

/** Most calls that wait for their clients, tasks and callers of sessions whose address is remembered. */
const MAX_PLACED = 10_000
/** Milliseconds without calls after which a caller may get another address, as its idle session has ended. */
const STAYS = 600_000

export class Placed {
  /** Where calls wait for their clients' answers, and where tasks are, by digests. */
  readonly #owners = new BoundedMap<string, ServerPlace>(MAX_PLACED)
  readonly #stays = new BoundedMap<string, { place: ServerPlace; at: number }>(MAX_PLACED)

  /** The address with the session of a caller, while it can be used. */
  sessionOf(key: string | undefined): ServerPlace | undefined {
    const known = key === undefined ? undefined : this.#stays.get(key)
    if (!known) return undefined
    const { place, at } = known
    const now = performance.now()
    const isUsable = place.restsUntil <= now && (!place.leaves || place.sessions > 0) && now - at < STAYS
    return isUsable && place.server.verdict?.era !== 'modern' ? place : undefined
  }

  /** Notes that a caller uses an address, unless it stands for all of them. Modern servers have no sessions. */
  noteSession(key: string, place: ServerPlace): void {
    if (place.server.verdict?.era === 'modern') this.#stays.delete(key)
    else if (place.address !== '') this.#stays.set(key, { place, at: performance.now() })
  }

  /** The address that has asked the question which a call answers, or has its task. */
  ownerOf(call: Call): ServerPlace | undefined {
    const { answers, params, method } = call
    if (answers?.state !== undefined) return this.#owners.get(nameOf(call, 'state', answers.state))
    if (method.startsWith('tasks/')) return this.#owners.get(nameOf(call, 'task', stringUnder(params, 'taskId') ?? ''))
    const [id] = method === LISTEN ? filterIn(params).tasks : []
    return id === undefined ? undefined : this.#owners.get(nameOf(call, 'task', id))
  }

  /** Notes the question or the task that an answer has. */
  noteOwner(call: Call, last: Final, place: ServerPlace): void {
    if (last.kind === 'input') {
      const state = raw(last.result, 'requestState')
      if (state !== undefined) this.#owners.set(nameOf(call, 'state', state), place)
    } else if (last.kind === 'result' && last.type === 'task') {
      const id = stringUnder(last.result, 'taskId')
      if (id !== undefined) this.#owners.set(nameOf(call, 'task', id), place)
    }
  }

  forget(over: readonly ServerPlace[]): void {
    for (const [key, { place }] of this.#stays) if (over.includes(place)) this.#stays.delete(key)
    for (const [key, place] of this.#owners) if (over.includes(place)) this.#owners.delete(key)
  }
}

/** What callers with a session of their own have in common, as `LegacySessions` tells them apart. */
export function keyOf({ principal, caller }: Pick<Sender, 'principal' | 'caller'>): string {
  return `${principal} ${clientName(caller.clientInfo ?? '{}')}`
}

function nameOf({ principal }: Call, what: 'state' | 'task', text: string): string {
  return digest(JSON.stringify([principal, what, text]))
}
