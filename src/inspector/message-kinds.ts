/**
 * Shared parts of messages. Equal parts are one object: many messages of a server differ only in their ids, sizes and
 * times.
 */

import { Heads, isHeadOf, type KeptHead } from './heads.js'
import type { Changes, MessageBody } from './recorder/events.js'
import type { MessageTrace } from './recorder/message.js'
import { slotHash } from './slot-hash.js'
import type { StoredCopies } from './stored-copies.js'

/** Parts that many messages share, copied out of the received data. */
export interface MessageKind extends Pick<MessageBody, 'hop' | 'dir' | 'form' | 'method'> {
  /** Servers of different bridges have different names. */
  readonly bridge: string | undefined
  readonly server: string | undefined
  readonly session: string | undefined
  readonly changed: Changes | undefined
  readonly head: KeptHead | undefined
  /** Approximate bytes of a message of this kind. */
  readonly weight: number
  /** The JSON of these members, made on first use, for a cached kind. */
  json: string | undefined
  /** Whether the next message of this kind may share the object. */
  isRemembered: boolean
}

/** Cached kinds, a power of 2. A new one replaces the one in its slot. */
const PLACES = 512
/** Most characters of JSON for the changes of a cached kind. */
const MAX_CHANGES_JSON = 4 * 1024
/** Two wires with two directions each. */
const WIRES = 4
/** Approximate bytes of a message without its head and its changes. */
export const MESSAGE_BYTES = 120

export class MessageKinds {
  readonly #copies: StoredCopies
  readonly #heads = new Heads()
  readonly #known = new Array<MessageKind | undefined>(PLACES).fill(undefined)
  /** The last kind of each wire and direction. The next message is often of the same kind, which saves the look-up. */
  readonly #last = new Array<MessageKind | undefined>(WIRES).fill(undefined)

  constructor(copies: StoredCopies) {
    this.#copies = copies
  }

  /** The shared parts of a message. */
  of(event: MessageTrace): MessageKind {
    const session = event.session === undefined ? undefined : this.#copies.digestOf(event.session)
    const wire = wireOf(event)
    const last = this.#last[wire]
    if (last && isSame(last, event, session) && isHeadOf(last.head, event.http)) return last
    const kind = this.#find(event, session, wire)
    if (kind.isRemembered) this.#last[wire] = kind
    return kind
  }

  #find(event: MessageTrace, session: string | undefined, wire: number): MessageKind {
    const { hop, dir, form, method, server, changed } = event
    const head = event.http && this.#heads.of(event.http)
    const place = placeOf(event, session, head, wire)
    const known = this.#known[place]
    if (known && known.head === head && isSame(known, event, session)) return known
    const size = changed?.size ?? 0
    const isRemembered = size <= MAX_CHANGES_JSON
    const kind = {
      hop,
      dir,
      form,
      bridge: event.bridge,
      method: method === undefined ? undefined : this.#copies.recurring(method),
      server: server === undefined ? undefined : this.#copies.recurring(server),
      session,
      changed,
      head,
      weight: MESSAGE_BYTES + (changed ? changed.weight : 0) + (head ? head.weight : 0) + (isRemembered ? 0 : size),
      json: undefined,
      isRemembered,
    }
    if (!isRemembered) return kind
    if (known) forget(known)
    this.#known[place] = kind
    return kind
  }
}

/** Another kind replaces this one. */
function forget(kind: MessageKind): void {
  kind.isRemembered = false
  kind.json = undefined
}

/** Whether a message is of this kind, apart from its head. */
function isSame(kind: MessageKind, event: MessageTrace, session: string | undefined): boolean {
  return (
    kind.method === event.method &&
    kind.form === event.form &&
    kind.dir === event.dir &&
    kind.hop === event.hop &&
    kind.changed === event.changed &&
    kind.session === session &&
    kind.server === event.server
  )
}

/** The number of the wire and the direction of a message. */
function wireOf({ hop, dir }: MessageTrace): number {
  return (hop === 'client' ? 0 : 1) + (dir === 'in' ? 0 : 2)
}

/** The slot of a kind, by the members that differ most. The messages of a call are next to each other. */
function placeOf(
  { form, method }: MessageTrace,
  session: string | undefined,
  head: KeptHead | undefined,
  wire: number,
): number {
  return (
    (wire +
      (form === 'error' ? WIRES : 0) +
      2 * WIRES * ((head ? head.place : 0) + slotHash(session) + 7 * slotHash(method))) &
    (PLACES - 1)
  )
}
