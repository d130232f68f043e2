/**
 * Seals the cursors of events that a group gives to clients: a position at one server, of one principal. Addresses get their
 * events from the server itself, with its own cursors, so a subscription of an address takes these, too.
 */

import type { SealKey } from '../../base/crypto/seal.js'
import { TextSealer } from '../../base/crypto/text-sealer.js'
import { Fault } from '../../base/fault/fault.js'
import { edit, type Json, type Payload, raw } from '../../base/rpc/splice.js'
import type { Call } from '../../mcp/protocol/call.js'
import { EVENT_SUBSCRIBE, EVENT_USES } from '../../mcp/protocol/methods.js'

/** Whose position at which server. */
interface Belonging {
  call: Pick<Call, 'method' | 'principal' | 'foreign'>
  server: string
}

export class EventCursors {
  readonly #group: string
  readonly #sealer: TextSealer

  constructor(group: string, keys: readonly SealKey[]) {
    this.#group = group
    this.#sealer = new TextSealer(keys, 'group-event-cursor')
  }

  /** The cursor for the client. */
  sealed(cursor: string, { call, server }: Belonging): string {
    const fields = { g: this.#group, s: server, p: this.#sealer.hash(call.principal) }
    return JSON.parse(this.#sealer.seal(fields, JSON.stringify(cursor))) as string
  }

  /** The params of a call with the cursor of the server. Throws a Fault if the cursor is not one of this caller. */
  opened(params: Payload, { call, server }: Belonging): Payload {
    const cursor = EVENT_USES.has(call.method) ? raw(params, 'cursor') : undefined
    if (cursor === undefined || cursor === 'null') return params
    const theirs = this.#open(cursor, { call, server })
    return theirs === cursor ? params : edit(params, { cursor: theirs })
  }

  #open(cursor: Json, { call, server }: Belonging): Json {
    const carried = this.#sealer.open(cursor)
    if (!carried && call.method === EVENT_SUBSCRIBE) return cursor
    const { g, s, p } = carried?.fields ?? {}
    const isOfCaller = carried !== undefined && this.#sealer.standsFor(p, call.principal)
    if (carried && !isOfCaller) call.foreign?.('foreignCursor')
    if (!isOfCaller || carried.text === undefined || g !== this.#group || s !== server)
      throw new Fault('invalidParams', 'params.cursor is not a cursor of these events: leave it out to start from now')
    return carried.text
  }
}
