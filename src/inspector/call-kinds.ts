/**
 * Shared parts of the start and end events of calls. Equal parts are one object: many calls of a client differ only in
 * their ids and times.
 */

import type { CallBody, CallTrace, Side } from './recorder/events.js'
import { MAX_SHORT_TEXT, short } from './short.js'
import { slotHash } from './slot-hash.js'
import type { StoredCopies } from './stored-copies.js'

/** Parts that many calls share, copied out of the received data. */
export interface CallKind extends Omit<CallBody, 'kind' | 'why' | 'ms' | 'upstreamMs' | 'trace'> {
  /** Servers of different bridges have different names. */
  readonly bridge: string | undefined
  readonly server: string | undefined
  readonly session: string | undefined
  /** Approximate bytes of a start or end event of this kind. */
  readonly weight: number
  /** The JSON of these members, made on first use, for a cached kind. */
  json: string | undefined
  /** Whether the next start or end event of this kind may share the object. */
  isRemembered: boolean
}

/** Cached kinds, a power of 2. A new one replaces the one in its slot. */
const PLACES = 1_024
/** Most cached sides of calls. */
const MAX_SIDES = 16
/** Approximate bytes of a start or end event without its texts. */
const OBJECT_BYTES = 300

export class CallKinds {
  readonly #copies: StoredCopies
  readonly #known = new Array<CallKind | undefined>(PLACES).fill(undefined)
  readonly #sides: Side[] = []
  /** The last start and the last end: the next one is often of the same kind, which saves the look-up. */
  #begun: CallKind | undefined
  #ended: CallKind | undefined

  constructor(copies: StoredCopies) {
    this.#copies = copies
  }

  /** The shared parts of a start or end event. */
  of(event: CallTrace): CallKind {
    const session = event.session === undefined ? undefined : this.#copies.digestOf(event.session)
    const last = event.what === 'begun' ? this.#begun : this.#ended
    if (last && isSame(last, event, session)) return last
    const kind = this.#find(event, session)
    if (event.what === 'begun') this.#begun = kind
    else this.#ended = kind
    return kind
  }

  #find(event: CallTrace, session: string | undefined): CallKind {
    const place = placeOf(event, session)
    const known = this.#known[place]
    if (known && isSame(known, event, session)) return known
    const kind = this.#copy(event, session)
    if (known) {
      known.isRemembered = false
      known.json = undefined
    }
    this.#known[place] = kind
    return kind
  }

  #copy(event: CallTrace, session: string | undefined): CallKind {
    const { server, name, member, upstream } = event
    return {
      what: event.what,
      bridge: event.bridge,
      server: server === undefined ? undefined : this.#copies.recurring(server),
      session,
      principal: this.#copies.recurring(event.principal),
      client: this.#sideOf(event.client),
      upstream: upstream && this.#sideOf(upstream),
      method: this.#copies.recurring(event.method),
      name: name === undefined ? undefined : this.#copies.recurring(name),
      member: member === undefined ? undefined : this.#copies.recurring(member),
      outcome: event.outcome,
      cancelled: event.cancelled,
      code: event.code,
      fault: event.fault,
      blame: event.blame,
      weight: [name, event.method, event.principal, event.client.name].reduce(weightWith, OBJECT_BYTES),
      json: undefined,
      isRemembered: true,
    }
  }

  #sideOf(side: Side): Side {
    for (const known of this.#sides) if (isSameSide(known, side)) return known
    const { era, revision, transport, name } = side
    const copy = {
      era,
      revision: revision === undefined ? undefined : short(revision),
      transport,
      name: name === undefined ? undefined : short(name),
    }
    if (this.#sides.length < MAX_SIDES) this.#sides.push(copy)
    return copy
  }
}

function weightWith(weight: number, text: string | undefined): number {
  return weight + Math.min(text?.length ?? 0, MAX_SHORT_TEXT)
}

function isSame(kind: CallKind, event: CallTrace, session: string | undefined): boolean {
  return (
    kind.name === event.name &&
    kind.method === event.method &&
    kind.what === event.what &&
    kind.outcome === event.outcome &&
    kind.cancelled === event.cancelled &&
    kind.session === session &&
    kind.principal === event.principal &&
    kind.server === event.server &&
    kind.member === event.member &&
    kind.code === event.code &&
    kind.fault === event.fault &&
    kind.blame === event.blame &&
    isSameSide(kind.client, event.client) &&
    isSameSide(kind.upstream, event.upstream)
  )
}

function isSameSide(one: Side | undefined, other: Side | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return (
    one.era === other.era &&
    one.revision === other.revision &&
    one.transport === other.transport &&
    one.name === other.name
  )
}

/** The slot of a kind, by the members that differ most. Starts and ends are next to each other. */
function placeOf({ what, name, method, principal }: CallTrace, session: string | undefined): number {
  const place = slotHash(name) + 7 * slotHash(method) + 31 * slotHash(principal) + 61 * slotHash(session)
  return ((place << 1) | (what === 'begun' ? 0 : 1)) & (PLACES - 1)
}
