/** The events that a peer reports to its owner: a session of the bridge, a modern channel or a direct session. */
import type { Notification, Params, Request, Response, Sent } from '../base/rpc/message.js'
import type { PassedEvent } from '../base/rpc/sse.js'
import type { Exchange } from './exchange.js'
import type { ChannelError } from './transport/channel.js'

export interface Owner {
  /**
   * A request of the server, possibly on the stream of an exchange. It has to be answered with `respond`. `event`: what passes to
   * the client.
   */
  asked(request: Request, exchange: Exchange | undefined, event?: PassedEvent): void
  /** A notification that names no exchange and did not arrive on the stream of one. */
  notified(method: string, params: Params, event?: PassedEvent): void
  /** On a stream that a client has opened: an event without a message, or with an invalid one, or with an answer that no exchange waits for. */
  passed?(event: PassedEvent, message?: Response | 'invalid'): void
  ended(error: ChannelError): void
  /** The number, for the inspector, of the call to which a message without a stream or a name probably belongs. */
  callOf?(message: Request | Notification): number | undefined
  /** Whether notifications of this method belong to no exchange, even on the stream of one. */
  ofSession?(method: string): boolean
  /** A message for an exchange has arrived and waits for its reader. */
  arrived?(exchange: Exchange): void
  released?(exchange: Exchange): void
  /** The stream for messages that belong to no exchange is lost. */
  streamLost?(): void
  /** Messages that belong to no exchange may have been lost. */
  missed?(): void
  /**
   * A request that tests whether the server still answers, with its own headers over HTTP. Without it, a program that hangs is
   * never ended.
   */
  readonly ping?: { method: string; params: Sent; headers?: Readonly<Record<string, string>> }
}
