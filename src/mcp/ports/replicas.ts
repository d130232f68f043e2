/**
 * What the bridge asks of replicas: several bridges that serve the same servers. A parked call, a task or a session
 * lives in one replica and can be reached through all. Code that finds that its owner is another replica throws
 * `OwnedByReplica`.
 */
import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import type { Fault } from '../../base/fault/fault.js'
import type { Payload } from '../../base/rpc/splice.js'
import type { Signal } from '../../base/time/hang-up.js'

/** The request belongs to another replica. Thrown before anything is sent or done. */
export class OwnedByReplica extends Error {
  override name = 'OwnedByReplica'
  readonly owner: string
  /** What is lost if that replica ends. */
  readonly what: Owned

  constructor(owner: string, what: Owned) {
    // A stack trace would cost as much as the rest of forwarding, and nobody reads it.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(`Owned by the replica ${owner}`)
    Error.stackTraceLimit = stackTraceLimit
    this.owner = owner
    this.what = what
  }
}

/** In place of an owner: any replica but this one, which shuts down. */
export const ANOTHER = ''

/** What a replica can own. */
export type Owned = 'call' | 'session'

/** A received request, for another replica to answer as if it had received it. */
export interface ForwardedRequest {
  method: string
  path: string
  /** Names and values in turn, as received. */
  headers: readonly string[]
  body: Uint8Array | undefined
  /** The request of the HTTP server. One that another replica has forwarded is not forwarded again. */
  received: IncomingMessage
}

/** The answer of another replica. */
export interface ForwardedAnswer {
  status: number
  /** By lower-cased name, without those of a single connection. */
  headers: Readonly<Record<string, string | string[]>>
  /** Whole, if it is small. A stream has to be read to its end or destroyed. */
  body: Buffer | Readable
  /** The fault for the client if the body breaks off. A function, because a Fault for each answer would cost more than its signature. */
  lost(): Fault
}

/** A change that a server reported. */
export interface ChangeNotice {
  server: string
  /** The principal that received it. Others receive their own. */
  who: string
  method: string
  params: Payload
}

/** Listens to changes that other replicas report about a server. */
export interface ChangeListener {
  changed(notice: ChangeNotice): void
  /** Changes may have been missed, and the store may have lost its values. */
  missed(): void
}

/** Values that all replicas share for a time. */
export interface SharedStore {
  /** Whether values outlive all replicas. */
  readonly lasting: boolean
  /**
   * The shared value; undefined if there is none, or if it cannot be decrypted, for which `unreadable` is called. Rejects with a
   * Fault if the store is unreachable.
   */
  recall(kind: string, name: string, unreadable?: () => void): Promise<string | undefined>
  /** Shares a value for so many milliseconds. Resolves to false if the store is unreachable. */
  remember(kind: string, name: string, text: string, milliseconds: number): Promise<boolean>
  forget(kind: string, name: string): void
  /**
   * Changes a value atomically; undefined stands for none. It is kept for so many milliseconds.
   * `edit` may be called again. Rejects with a Fault if the store is unreachable.
   */
  change<T>(
    kind: string,
    name: string,
    milliseconds: number,
    edit: (text: string | undefined) => { text: string | undefined; result: T },
  ): Promise<T>
  /**
   * Takes a name for so many milliseconds. Resolves to false if another replica has it. Rejects with a Fault if the store is
   * unreachable.
   */
  claim(kind: string, name: string, milliseconds: number): Promise<boolean>
  /**
   * Counts one more under a name. Resolves to the count since the first one, and the milliseconds until it is reset,
   * which is so many milliseconds after the first. Rejects if the store is unreachable.
   */
  count(kind: string, name: string, milliseconds: number): Promise<{ current: number; ttl: number }>
}

/** What a replica can ask of the others. */
export interface Replicas {
  /** The id of this replica, for as long as it runs. */
  readonly id: string
  /** Forwards a request to the replica that owns it. Rejects with a Fault. */
  forward(owned: OwnedByReplica, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer>
  /** Whether another replica has forwarded a request. */
  isForwarded(request: IncomingMessage): boolean
  /** Throws a Fault if another replica has forwarded a request with another body. */
  checkBody(request: IncomingMessage, body: unknown): void
  /** The id of another replica that serves; undefined if there is none. Rejects with a Fault. */
  another(): Promise<string | undefined>
  /** Makes the id of a session of a client: it names this replica, and a keyed hash proves that. */
  sessionId(): string
  /** The other replica that owns a session; undefined if it is this one or the id is unknown. */
  ownerOf(sessionId: string): string | undefined
  readonly records: SharedStore
  /** Reports a change to the other replicas. */
  tell(notice: ChangeNotice): void
  /** Listens to changes. The returned function ends that. */
  hear(server: string, listener: ChangeListener): () => void
}
