/** The open exchanges of a channel by their numbers, and which of them a received message is for. */

import type { Head } from '../base/rpc/head.js'
import { type Id, numberOf, type Params } from '../base/rpc/message.js'
import { objectIn, raw } from '../base/rpc/splice.js'
import { SUBSCRIPTION_ID } from '../mcp/protocol/meta.js'
import type { Exchange } from './exchange.js'

export class OpenExchanges extends Map<number, Exchange> {
  /** The exchange that has a stream: of the requests in an array the first that waits. */
  on(stream: number | undefined): Exchange | undefined {
    const exchange = stream === undefined ? undefined : this.get(stream)
    return exchange?.members?.find(({ answered }) => !answered) ?? exchange
  }

  /** The exchange of a stream, if its request has the client's own id: what answers on the stream answers that. */
  ofClientOn(stream: number | undefined): Exchange | undefined {
    const exchange = this.on(stream)
    return exchange?.wireId === undefined ? undefined : exchange
  }

  /** The exchange of the client's request that this answers on another stream. */
  named(id: Id | undefined): Exchange | undefined {
    for (const exchange of this.values()) if (exchange.hasId(id)) return exchange
    return undefined
  }

  /** The exchange whose request has its number as its id. */
  numbered(id: number | undefined): Exchange | undefined {
    const exchange = this.get(id ?? 0)
    return exchange?.wireId === undefined ? exchange : undefined
  }

  /** The exchange that an unread message answers. Some servers write the id last. `ofClient`: all requests have ids of a client. */
  answeredBy(head: Head | undefined, ofClient: boolean, last?: string, stream?: number): Exchange | undefined {
    const on = stream === undefined ? undefined : this.get(stream)
    if (head?.form !== 'result' && head?.form !== 'error') return head ? undefined : on
    if (on?.wireId !== undefined) return on
    if (ofClient) return this.named((head.id === undefined ? last : JSON.stringify(head.id)) as Id | undefined)
    const id = head.id === undefined ? last && numberOf(last) : Number(head.id)
    if (id) return this.numbered(Number(id))
    const [only] = this.size === 1 ? this.values() : []
    return on ?? (only?.wireId === undefined ? only : undefined)
  }
}

/**
 * The exchange that a progress notification belongs to, by its token. For a foreign token -1, which is no exchange's
 * id.
 */
export function progressOwner(params: Params): number {
  const token = typeof params === 'string' ? undefined : raw(params, 'progressToken')
  return (token === undefined ? undefined : numberOf(token)) ?? -1
}

/**
 * On stdio, notifications of a subscription name the request that opened it (MCP 2026-07-28,
 * basic/patterns/subscriptions).
 */
export function listener(params: Params): number | undefined {
  const meta = typeof params === 'string' ? undefined : objectIn(params, '_meta')
  const id = meta && raw(meta, SUBSCRIPTION_ID)
  return id === undefined ? undefined : numberOf(id)
}
