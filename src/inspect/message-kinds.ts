/**
 * What messages have in common. Equal ones are one object: many messages of a server differ only in their ids, sizes and
 * times.
 */
import type { MessageSight } from '../ports/message-sight.js'
import type { Changes, Http, MessageSeen } from '../ports/seen.js'
import { type Head, Heads } from './heads.js'
import type { Copies } from './kept.js'
import { mixed } from './place.js'

/** What messages have in common, in memory of its own. */
export interface MessageKind extends Pick<MessageSeen, 'hop' | 'dir' | 'form' | 'method'> {
  readonly server: string | undefined
  readonly session: string | undefined
  readonly http: Http<string> | undefined
  readonly changed: Changes | undefined
  /** Bytes that a message of this kind takes, about. */
  readonly weight: number
  /** The JSON of these members. Undefined until it is needed. */
  json: string | undefined
}

/** Kinds that are remembered, a power of 2. A new one replaces the one in its place. */
const PLACES = 512
/** Bytes that a message takes besides its head and its changes, about. */
export const MESSAGE_BYTES = 120

export class MessageKinds {
  readonly #copies: Copies
  readonly #heads = new Heads()
  readonly #known = new Array<MessageKind | undefined>(PLACES).fill(undefined)

  constructor(copies: Copies) {
    this.#copies = copies
  }

  /** What a message has in common with others. */
  of(sight: MessageSight): MessageKind {
    const { hop, dir, form, method, server, changed } = sight
    const session = sight.session === undefined ? undefined : this.#copies.digestOf(sight.session)
    const head = sight.http && this.#heads.of(sight.http)
    const place = placeOf(sight, session, head)
    const known = this.#known[place]
    const isSame =
      known !== undefined &&
      known.method === method &&
      known.form === form &&
      known.dir === dir &&
      known.hop === hop &&
      known.changed === changed &&
      known.http === head?.shown &&
      known.session === session &&
      known.server === server
    if (isSame) return known
    const kind = {
      hop,
      dir,
      form,
      method: method === undefined ? undefined : this.#copies.recurring(method),
      server: server === undefined ? undefined : this.#copies.recurring(server),
      session,
      http: head?.shown,
      changed,
      weight: MESSAGE_BYTES + (changed ? changed.weight : 0) + (head ? head.weight : 0),
      json: undefined,
    }
    this.#known[place] = kind
    return kind
  }
}

/** Where a kind is remembered: what differs most decides. The messages of a call are beside each other. */
function placeOf(
  { hop, dir, form, method }: MessageSight,
  session: string | undefined,
  head: Head | undefined,
): number {
  const wire = (hop === 'client' ? 0 : 1) + (dir === 'in' ? 0 : 2) + (form === 'error' ? 4 : 0)
  return (wire + 8 * ((head ? head.place : 0) + mixed(session) + 7 * mixed(method))) & (PLACES - 1)
}
