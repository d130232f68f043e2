/**
 * Shared parts of the start and end events of calls. Equal parts are one object: many calls of a client differ only in
 * their ids and times.
 */
import type { CallBody, Side, TraceEvent } from '../recorder/events.js'
import type { Copies } from './kept.js'
import { mixed } from './place.js'
import { MAX_SHORT_TEXT, short } from './short.js'

type CallSight = Extract<TraceEvent, { kind: 'call' }>

/** Parts that many calls share, copied out of the received data. */
export interface CallKind extends Omit<CallBody, 'kind' | 'why' | 'ms' | 'upstreamMs' | 'trace'> {
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
  readonly #copies: Copies
  readonly #known = new Array<CallKind | undefined>(PLACES).fill(undefined)
  readonly #sides: Side[] = []
  /** The last start and the last end: the next one is often of the same kind, which saves the look-up. */
  #begun: CallKind | undefined
  #ended: CallKind | undefined

  constructor(copies: Copies) {
    this.#copies = copies
  }

  /** The shared parts of a start or end event. */
  of(sight: CallSight): CallKind {
    const session = sight.session === undefined ? undefined : this.#copies.digestOf(sight.session)
    const last = sight.what === 'begun' ? this.#begun : this.#ended
    if (last && isSame(last, sight, session)) return last
    const kind = this.#find(sight, session)
    if (sight.what === 'begun') this.#begun = kind
    else this.#ended = kind
    return kind
  }

  #find(sight: CallSight, session: string | undefined): CallKind {
    const place = placeOf(sight, session)
    const known = this.#known[place]
    if (known && isSame(known, sight, session)) return known
    const kind = this.#copy(sight, session)
    if (known) {
      known.isRemembered = false
      known.json = undefined
    }
    this.#known[place] = kind
    return kind
  }

  #copy(sight: CallSight, session: string | undefined): CallKind {
    const { server, name, upstream } = sight
    return {
      what: sight.what,
      server: server === undefined ? undefined : this.#copies.recurring(server),
      session,
      principal: this.#copies.recurring(sight.principal),
      client: this.#sideOf(sight.client),
      upstream: upstream && this.#sideOf(upstream),
      method: this.#copies.recurring(sight.method),
      name: name === undefined ? undefined : this.#copies.recurring(name),
      relayed: sight.relayed,
      outcome: sight.outcome,
      cancelled: sight.cancelled,
      code: sight.code,
      fault: sight.fault,
      blame: sight.blame,
      weight: [name, sight.method, sight.principal, sight.client.name].reduce(weightWith, OBJECT_BYTES),
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

function isSame(kind: CallKind, sight: CallSight, session: string | undefined): boolean {
  return (
    kind.name === sight.name &&
    kind.method === sight.method &&
    kind.what === sight.what &&
    kind.outcome === sight.outcome &&
    kind.cancelled === sight.cancelled &&
    kind.session === session &&
    kind.principal === sight.principal &&
    kind.server === sight.server &&
    kind.code === sight.code &&
    kind.fault === sight.fault &&
    kind.blame === sight.blame &&
    kind.relayed === sight.relayed &&
    isSameSide(kind.client, sight.client) &&
    isSameSide(kind.upstream, sight.upstream)
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
function placeOf({ what, name, method, principal }: CallSight, session: string | undefined): number {
  const place = mixed(name) + 7 * mixed(method) + 31 * mixed(principal) + 61 * mixed(session)
  return ((place << 1) | (what === 'begun' ? 0 : 1)) & (PLACES - 1)
}
