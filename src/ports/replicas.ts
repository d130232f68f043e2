/**
 * Several bridges that stand for one: what lives in one of them (a parked call, a task, a session) is reached through all.
 * Whoever finds that something lives in another replica says so, and the request is carried there.
 */
import type { Payload } from '../rpc/splice.js'

/** What a request is about lives in another replica. Thrown before anything has been sent, or anything done. */
export class OwnedByReplica extends Error {
  override name = 'Elsewhere'
  readonly owner: string
  /** What is lost if that replica is. */
  readonly what: Owned

  constructor(owner: string, what: Owned) {
    super(`This lives in the replica ${owner}`)
    this.owner = owner
    this.what = what
  }
}

export type Owned = 'call' | 'session'

/** A request as it came in, to be answered by another replica as if it had come to that one. */
export interface ForwardedRequest {
  method: string
  path: string
  /** Names and values in turn, as they came. */
  headers: readonly string[]
  body: Uint8Array | undefined
  /** What it came over. What has been carried here goes no further. */
  connection: object
}

/** How another replica has answered it. */
export interface ForwardedAnswer {
  status: number
  headers: readonly string[]
  /** To be read to its end, or given up. Throws a Fault where the rest cannot be had. */
  body: AsyncIterable<Uint8Array>
}

/** Something that a server has said has changed. */
export interface ChangeNotice {
  server: string
  /** Who has heard it. Others hear of their own. */
  who: string
  method: string
  params: Payload
}

/** Who wants to hear what other replicas have heard of a server. */
export interface ChangeListener {
  changed(notice: ChangeNotice): void
  /** For a while nothing could be heard. */
  missed(): void
}

/** What all replicas know, for a time. */
export interface Store {
  /** What is known of something. Rejects with a Fault where that cannot be found out now. */
  recall(kind: string, name: string): Promise<string | undefined>
  /** Has all know it for so many milliseconds, as far as that is possible now. */
  remember(kind: string, name: string, text: string, milliseconds: number): Promise<void>
  forget(kind: string, name: string): void
}

/** What replicas do for each other. */
export interface Replicas {
  /** This one, until it ends. */
  readonly id: string
  /** Has another replica answer a request. Rejects with a Fault. */
  carry(elsewhere: OwnedByReplica, request: ForwardedRequest, signal: AbortSignal): Promise<ForwardedAnswer>
  /** An id for a session that lives here. */
  sessionId(): string
  /** The other replica in which the session of an id lives; undefined where it is this one, or the id is none of ours. */
  ownerOf(sessionId: string): string | undefined
  readonly records: Store
  /** Tells the others of a change. */
  tell(notice: ChangeNotice): void
  /** Gives what ends it. */
  hear(server: string, listener: ChangeListener): () => void
}
