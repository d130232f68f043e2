/** Broadcasts changes that servers report: each replica's own connections receive only a part of them. */

import type { Sealer } from '../../base/crypto/seal.js'
import { type Json, parseObject, write } from '../../base/rpc/splice.js'
import type { ChangeListener, ChangeNotice } from '../../mcp/ports/replicas.js'
import type { Common } from './common.js'

export interface BroadcastOptions {
  /** The id of this replica. */
  id: string
  /** Prefix of all channels. */
  prefix: string
  common: Pick<Common, 'listen' | 'publish' | 'onReturn'>
  sealer(): Sealer
}

/** A sent change. */
type Sent = Omit<ChangeNotice, 'params'> & { params: Json; from: string }

/**
 * Milliseconds in which equal changes are sent once, even if several sessions receive them. If there were more, the change is
 * sent again at the end, because a client may have read between two changes.
 */
const TOGETHER = 100
/** Longest notification, in characters. */
const MAX_NOTIFICATION = 64 * 1024

/** Sends and receives changes. */
export class Broadcast {
  readonly #options: BroadcastOptions
  readonly #channel: string
  /** Changes sent within TOGETHER. `again`: the same change has occurred since. */
  readonly #justSent = new Map<string, { again: boolean }>()
  readonly #listeners = new Map<string, Set<ChangeListener>>()

  constructor(options: BroadcastOptions) {
    this.#options = options
    this.#channel = `${options.prefix}n`
    options.common.listen(this.#channel, (sealed) => this.#take(sealed))
    options.common.onReturn = () => {
      for (const listeners of this.#listeners.values()) for (const listener of listeners) listener.missed()
    }
  }

  /** Sends a change to the other replicas, if they can be reached. */
  tell(notice: ChangeNotice): void {
    const text = JSON.stringify({ ...notice, params: write(notice.params), from: this.#options.id })
    const sent = this.#justSent.get(text)
    if (sent) sent.again = true
    else if (text.length <= MAX_NOTIFICATION) this.#send(text)
  }

  hear(server: string, listener: ChangeListener): () => void {
    const listeners = this.#listeners.get(server) ?? new Set()
    this.#listeners.set(server, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(server) === listeners) this.#listeners.delete(server)
    }
  }

  #send(text: string): void {
    const { common, sealer } = this.#options
    const sent = { again: false }
    this.#justSent.set(text, sent)
    setTimeout(() => {
      this.#justSent.delete(text)
      if (sent.again) this.#send(text)
    }, TOGETHER).unref()
    common.publish(this.#channel, sealer().sealBytes(Buffer.from(text), this.#channel)).catch(() => {})
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
