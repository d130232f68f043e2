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

  /** The client's request with this id, if it is one of those that a stream answers. */
  namedOn(stream: number | undefined, id: Id | undefined): Exchange | undefined {
    const on = stream === undefined ? undefined : this.get(stream)
    return on?.hasId(id) ? on : on?.members?.find((member) => member.hasId(id))
  }

  /** The client's request with this id: on the stream, or else on another one. A client may use an id twice at a time. */
  named(stream: number | undefined, id: Id | undefined): Exchange | undefined {
    const here = this.namedOn(stream, id)
    if (here) return here
    for (const exchange of this.values()) if (exchange.hasId(id)) return exchange
    return undefined
  }

  /**
   * The exchange that an answer with this id is for, if it came on a stream. `ofClient`: all requests have ids of one client. Where only
   * some have, they are of several clients, and each is answered on its own stream.
   */
  answeredBy(stream: number | undefined, id: Id | undefined, ofClient: boolean): Exchange | undefined {
    if (ofClient) return this.named(stream, id)
    const on = stream === undefined ? undefined : this.get(stream)
    if (on?.wireId !== undefined) return on.hasId(id) ? on : undefined
    const exchange = this.get((id === undefined ? undefined : numberOf(id)) ?? 0)
    return exchange?.wireId === undefined ? exchange : undefined
  }

  /** The exchange that an unread message answers. Some servers write the id last. */
  answeredUnread(head: Head | undefined, ofClient: boolean, last?: string, stream?: number): Exchange | undefined {
    const on = stream === undefined ? undefined : this.get(stream)
    if (head?.form !== 'result' && head?.form !== 'error') return head ? undefined : on
    const id = (head.id === undefined ? last : JSON.stringify(head.id)) as Id | undefined
    const named = this.answeredBy(stream, id, ofClient)
    if (named) return named
    if (ofClient || on?.wireId !== undefined) return on?.members ? undefined : on
    if (id !== undefined && numberOf(id) !== undefined) return undefined
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
