/** Broadcasts changes that servers report: each replica's own connections receive only a part of them. */
import type { ChangeListener, ChangeNotice } from '../ports/replicas.js'
import { type Json, parseObject, write } from '../rpc/splice.js'
import type { Sealer } from '../seal.js'
import type { Redis } from './redis.js'

/** The parties of the broadcast. */
export interface BroadcastOptions {
  /** The id of this replica. */
  id: string
  /** Prefix of all channels. */
  prefix: string
  redis: Redis
  sealer(): Sealer
}

/** A change as sent. */
type Sent = Omit<ChangeNotice, 'params'> & { params: Json; from: string }

/** Milliseconds within which equal changes are sent once, even if several sessions receive them. */
const TOGETHER = 100
/** Longest notification, in characters. */
const MAX_LENGTH = 64 * 1024

/** Sends and receives changes. */
export class Broadcast {
  readonly #options: BroadcastOptions
  readonly #channel: string
  readonly #justTold = new Set<string>()
  readonly #listeners = new Map<string, Set<ChangeListener>>()

  constructor(options: BroadcastOptions) {
    this.#options = options
    this.#channel = `${options.prefix}n`
    options.redis.listen(this.#channel, (sealed) => this.#take(sealed))
    options.redis.onReturn = () => {
      for (const listeners of this.#listeners.values()) for (const listener of listeners) listener.missed()
    }
  }

  /** Sends a change to the other replicas, if Redis is reachable. */
  tell(notice: ChangeNotice): void {
    const { id, redis, sealer } = this.#options
    const text = JSON.stringify({ ...notice, params: write(notice.params), from: id })
    if (text.length > MAX_LENGTH || this.#justTold.has(text)) return
    this.#justTold.add(text)
    setTimeout(() => this.#justTold.delete(text), TOGETHER).unref()
    redis.publish(this.#channel, sealer().sealBytes(Buffer.from(text), this.#channel)).catch(() => {})
  }

  hear(server: string, listener: ChangeListener): () => void {
    const listeners = this.#listeners.get(server) ?? new Set()
    this.#listeners.set(server, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(server) === listeners) this.#listeners.delete(server)
    }
  }

  #take(sealed: Buffer): void {
    const opened = this.#options.sealer().openBytes(sealed, this.#channel)
    if (!opened) return
    const { from, ...rest } = JSON.parse(opened.toString('utf8')) as Sent
    if (from === this.#options.id) return
    const notice = { ...rest, params: parseObject(rest.params) }
    for (const listener of this.#listeners.get(notice.server) ?? []) listener.changed(notice)
  }
}
