/**
 * A batch of a client on its way to a legacy server over HTTP. What is sent in it goes as one array, as soon as it is known of each
 * request whether it goes: policies may withhold or edit some. What comes later goes alone.
 */

import { type Id, idKey } from '../../base/rpc/message.js'
import { cut } from '../../base/rpc/source.js'
import { UNRECORDED } from '../../mcp/ports/recorder.js'
import type { SentBatch } from '../../mcp/protocol/call.js'
import type { ReceivedBatch } from '../../mcp/protocol/upstream.js'
import type { Peer } from '../peer.js'
import type { Channel, OutgoingMessage } from '../transport/channel.js'

/** Stands for everything in a batch that is no request. */
const OTHERS = 'others'

interface Part {
  message: OutgoingMessage
  resolve(): void
  reject(error: unknown): void
}

export class OutgoingBatch implements SentBatch, Pick<Channel, 'sendMessage'> {
  readonly #peer: Peer
  readonly #received: ReceivedBatch
  readonly #undecided: Set<string>
  readonly #parts: Part[] = []

  constructor(peer: Peer, received: ReceivedBatch) {
    this.#peer = peer
    this.#received = received
    this.#undecided = new Set([OTHERS, ...received.ids.map(idKey)])
  }

  decided(id?: Id): void {
    if (!this.#undecided.delete(id === undefined ? OTHERS : idKey(id)) || this.#undecided.size > 0) return
    const parts = this.#parts.splice(0)
    if (parts.length > 0) this.#send(parts).catch(() => {})
  }

  /** Takes a message for the array. Resolves and rejects as the channel does for the array. */
  sendMessage(message: OutgoingMessage): Promise<void> {
    if (this.#undecided.size === 0) return this.#peer.channel.sendMessage(message)
    return new Promise((resolve, reject) => {
      this.#parts.push({ message, resolve, reject })
    })
  }

  async #send(parts: readonly Part[]): Promise<void> {
    try {
      await this.#sendAll(parts.map(({ message }) => message))
      for (const { resolve } of parts) resolve()
    } catch (error) {
      for (const { reject } of parts) reject(error)
    }
  }

  async #sendAll(messages: readonly OutgoingMessage[]): Promise<void> {
    const { channel } = this.#peer
    // Some may have been cancelled in the meantime.
    const open = new Map([...this.#peer.open].map((exchange) => [exchange.id, exchange]))
    const left = messages.filter(({ exchange }) => exchange === undefined || open.has(exchange))
    const members = left.flatMap(({ exchange }) => (exchange === undefined ? [] : (open.get(exchange) ?? [])))
    const first = left.find(({ exchange }) => exchange === members[0]?.id)
    if (!first) return
    const bytes = this.#arrayOf(left)
    if (members.length === 0) return channel.sendMessage({ ...first, text: '', bytes })
    const { headers, forwarded, account } = first
    const batch = this.#peer.beginExchange(this.#received.principal)
    // Its members are recorded.
    Object.assign(batch, { number: UNRECORDED, client: members[0]?.client, forwarded, account, members })
    for (const member of members) member.batch = batch
    this.#peer.send(batch, 'batch', bytes, headers)
    try {
      await batch.nextArrival()
    } finally {
      this.#peer.release(batch)
    }
  }

  /** The array as it came, if all of it is sent unchanged. */
  #arrayOf(messages: readonly OutgoingMessage[]): Uint8Array {
    const { bytes, message } = this.#received
    const edited = messages.map((one) => (one.bytes ? Buffer.from(one.bytes).toString() : one.text))
    const elements = message.elements.map(({ start, end }) => cut(message.source, start, end))
    const kept = elements.filter((text) => {
      const at = edited.indexOf(text)
      return at >= 0 && edited.splice(at, 1)
    })
    const isWhole = edited.length === 0 && kept.length === elements.length
    return isWhole ? bytes : Buffer.from(`[${[...kept, ...edited].join(',')}]`)
  }
}
