/** Forwards requests to other replicas, each at the internal address that it has told the others. */
import { Fault } from '../../base/fault/fault.js'
import type { Signal } from '../../base/time/hang-up.js'
import type { ForwardedAnswer, ForwardedRequest, OwnedByReplica } from '../../mcp/ports/replicas.js'
import { faultOf, OtherReplica, type PeerOptions } from './peer.js'
import type { SealedStore } from './store.js'

export interface PeersOptions extends Omit<PeerOptions, 'lost'> {
  records: Pick<SealedStore, 'waitFor'>
}

/** The record of a replica: its internal address, or '' if it has shut down. */
export const ADDRESS = 'address'
/** Milliseconds between two writes of this record. */
export const RENEW = 2_000
/** Milliseconds to wait for a record. If Redis lost its data, a record is missing until it is renewed. */
const MISSING = RENEW + 500
/** Milliseconds before the address of a lost replica is looked up again. */
const REMEMBERED = 60_000
/** Most requests that are forwarded at the same time. */
const MAX_FORWARDED = 20_000

/** All other replicas. */
export class Peers {
  readonly #options: PeersOptions
  /** By id; resolves to undefined for one that is gone. */
  readonly #peers = new Map<string, Promise<OtherReplica | undefined>>()
  #open = 0

  constructor(options: PeersOptions) {
    this.#options = options
  }

  /** Forwards a request to its owner, and resolves to the answer. Rejects with a Fault. */
  async forward({ owner, what }: OwnedByReplica, request: ForwardedRequest, signal: Signal): Promise<ForwardedAnswer> {
    if (this.#open >= MAX_FORWARDED) throw new Fault('overloaded', 'Too many forwarded requests', { retryAfter: 1 })
    this.#open++
    try {
      const peer = await this.#find(owner)
      const trouble = peer ? await peer.trouble() : 'lost'
      if (!peer || trouble) throw faultOf(trouble ?? 'lost', what, false)
      return await peer.ask(what, request, signal)
    } finally {
      this.#open--
    }
  }

  close(): void {
    this.#each((peer) => peer.close())
  }

  /** Connects again for further requests, because the keys have changed. */
  connectAnew(): void {
    this.#each((peer) => peer.connectAnew())
  }

  #each(then: (peer: OtherReplica) => void): void {
    for (const found of this.#peers.values()) found.then((peer) => peer && then(peer)).catch(() => {})
  }

  #find(id: string): Promise<OtherReplica | undefined> {
    const known = this.#peers.get(id)
    if (known) return known
    const found = this.#options.records.waitFor(ADDRESS, id, MISSING).then((address) => {
      if (address) return new OtherReplica(id, address, { ...this.#options, lost: () => this.#forget(id) })
      this.#forget(id)
      return undefined
    })
    this.#peers.set(id, found)
    // Redis is unreachable: the next request tries again.
    found.catch(() => this.#peers.delete(id))
    return found
  }

  /** Forgets a lost replica after a while: then the next request looks up its address again. */
  #forget(id: string): void {
    const known = this.#peers.get(id)
    setTimeout(() => {
      if (this.#peers.get(id) !== known) return
      this.#peers.delete(id)
      known?.then((peer) => peer?.close()).catch(() => {})
    }, REMEMBERED).unref()
  }
}
