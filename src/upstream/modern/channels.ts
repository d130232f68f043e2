/**
 * The channels to a modern server. Over HTTP there is one. On a pipe, all principals share a process, but those that want logs
 * have a process each: log messages on a pipe name no call.
 */
import { ANONYMOUS, type Call, type Sender } from '../../protocol/call.js'
import { discoverParams } from '../../protocol/modern-server.js'
import type { Occupant } from '../../protocol/occupancy.js'
import type { Params } from '../../rpc/message.js'
import { type Json, value } from '../../rpc/splice.js'
import type { Exchange } from '../exchange.js'
import type { Access } from '../half.js'
import type { ServerLog, ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { RunningCalls } from '../running-calls.js'
import { ChannelError } from '../transport/channel.js'
import { connect } from './connect.js'

type Caller = Pick<Sender, 'principal' | 'caller'>

export const LISTEN = 'subscriptions/listen'
/** No principal's name. */
const EVERYBODY = ''
/** Principals of which it is remembered that they want logs. */
const MAX_SEPARATE = 1_000

export class ModernChannels {
  readonly #options: ServerOptions
  readonly #access: Access
  /** By principal, or for everybody. */
  readonly #channels = new Map<string, ModernChannel>()
  /** Principals that have asked for logs. All their later calls go to their own process. */
  readonly #separate = new Set<string>()
  /** On their way to their end. */
  readonly #ending = new Set<ModernChannel>()

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#access = access
  }

  /** Calls that are with the server, on all channels. */
  *running(): Generator<[Exchange, Call]> {
    for (const { calls } of this.#channels.values()) yield* calls
  }

  /** The channel for a caller, where it is open. */
  current(sender: Caller): ModernChannel | undefined {
    const channel = this.#channels.get(this.#keyOf(sender))
    return channel?.isOpen ? channel : undefined
  }

  /** The channel for a caller, opened if need be. Rejects with a Fault, or with a Contradiction. */
  async open(sender: Caller): Promise<ModernChannel> {
    const key = this.#keyOf(sender)
    const channel = this.#channels.get(key) ?? this.#add(key, sender.principal)
    await channel.opening
    return channel
  }

  async close(hurry = false): Promise<void> {
    await Promise.all([...this.#channels.values(), ...this.#ending].map((channel) => channel.close(hurry)))
  }

  #keyOf({ principal, caller }: Caller): string {
    if (!this.#isSeparate) return EVERYBODY
    if (caller.logLevel !== undefined && !this.#separate.has(principal)) {
      const [oldest] = this.#separate
      if (oldest !== undefined && this.#separate.size >= MAX_SEPARATE) this.#separate.delete(oldest)
      this.#separate.add(principal)
    }
    return this.#separate.has(principal) ? principal : EVERYBODY
  }

  /** A principal that wants logs has a process of its own. */
  get #isSeparate(): boolean {
    const { transport, several, isolation } = this.#options
    return transport.kind === 'stdio' && several === true && isolation !== 'shared'
  }

  #add(key: string, principal: string): ModernChannel {
    const { clientInfo, log } = this.#options
    const { detection, capacity } = this.#access
    const isProgram = this.#options.transport.kind === 'stdio'
    const several = isProgram && key === EVERYBODY && this.#options.several === true
    const channel = new ModernChannel({
      principal,
      several: several || principal === ANONYMOUS,
      idleLimit: () => capacity.idleLimit(principal),
      onOver: () => {
        if (isProgram) capacity.occupancy.leave(channel)
        if (this.#channels.get(key) === channel) this.#channels.delete(key)
      },
      onIdle: () => {
        if (isProgram) capacity.occupancy.touch(channel)
      },
      end: () => this.#end(key, channel),
      onEnd: (error, served) => detection.ended(error, served),
      clientInfo,
      log,
    })
    if (isProgram) capacity.occupancy.enter(channel)
    this.#channels.set(key, channel)
    const open = () => connect(principal, this.#options, this.#access)
    channel.connect(open, key === EVERYBODY ? undefined : () => this.#moveSubscriptions(principal))
    return channel
  }

  #end(key: string, channel: ModernChannel): void {
    if (this.#channels.get(key) === channel) this.#channels.delete(key)
    this.#ending.add(channel)
    const ended = () => this.#ending.delete(channel)
    channel.close().then(ended, ended)
  }

  /** The shared process does not hear of changes in a principal's own process. */
  #moveSubscriptions(principal: string): void {
    for (const [exchange, call] of [...(this.#channels.get(EVERYBODY)?.calls ?? [])]) {
      if (call.method === LISTEN && call.principal === principal) exchange.release('Opened again in another process')
    }
  }
}

interface ModernChannelOptions {
  principal: string
  several: boolean
  idleLimit(): number | undefined
  /** It has ended, or cannot be opened. */
  onOver(): void
  /** Its last running call has ended. */
  onIdle(): void
  /** Ends it because it is idle. */
  end(): void
  /** The channel has come to its end by itself. `served` says whether anything was answered on it. */
  onEnd(error: ChannelError, served: boolean): void
  /** The bridge's own Implementation. */
  clientInfo: Json
  log: ServerLog
}

/** A channel to a modern server, and the calls that are with the server on it. */
export class ModernChannel implements Occupant {
  readonly calls: RunningCalls
  readonly #options: ModernChannelOptions
  #opening: Promise<Peer> | undefined
  #peer: Peer | undefined
  #lastUsed = 0
  #served = false
  #closing = false

  constructor(options: ModernChannelOptions) {
    this.#options = options
    this.calls = new RunningCalls(options)
  }

  get principal(): string {
    return this.#options.principal
  }

  get idleSince(): number | undefined {
    return this.#peer && this.calls.size === 0 ? this.#lastUsed : undefined
  }

  get idleLimit(): number | undefined {
    return this.#options.idleLimit()
  }

  get opening(): Promise<Peer> | undefined {
    return this.#opening
  }

  get isOpen(): boolean {
    return this.#peer !== undefined && this.#peer.end === undefined
  }

  /** Defined while the channel is open. */
  get peer(): Peer {
    return this.#peer as Peer
  }

  connect(open: () => Promise<Peer>, opened = () => {}): void {
    this.#opening = open().then((peer) => {
      this.#take(peer)
      opened()
      return peer
    })
    this.#opening.catch(() => this.#options.onOver())
  }

  begin(call: Call): Exchange {
    const exchange = this.peer.begin(call.principal)
    this.calls.begin(exchange, call)
    return exchange
  }

  /** Ends a call: cancels it if it is not answered. Doing so again changes nothing. */
  finish(exchange: Exchange, reason?: string): void {
    if (!this.calls.of(exchange)) return
    if (exchange.answered) this.#served = true
    this.calls.end(exchange)
    exchange.release(reason)
    if (this.calls.size > 0) return
    this.#lastUsed = performance.now()
    this.#options.onIdle()
  }

  end(): void {
    this.#options.end()
  }

  async close(hurry = false): Promise<void> {
    this.#closing = true
    const peer = await this.#opening?.catch(() => undefined)
    await peer?.channel.close(hurry)
  }

  #take(peer: Peer): void {
    const { clientInfo, log, onEnd, onOver } = this.#options
    this.#peer = peer
    this.#lastUsed = performance.now()
    peer.events = {
      asked: ({ method }) =>
        log.debug({ event: 'server_request_dropped', method }, 'request from a modern server dropped'),
      notified: (method, params) => this.#notified(method, params),
      answeredLate: (id) => this.calls.answeredLate(id),
      ended: (error) => {
        onOver()
        if (!this.#closing) onEnd(error, this.#served)
      },
      ping: { method: 'server/discover', params: discoverParams(clientInfo) },
    }
  }

  /** A message on a pipe that names no call. */
  #notified(method: string, params: Params): void {
    if (method === 'notifications/cancelled') return this.#endSubscription(params)
    if (method !== 'notifications/message') return
    const exchange = this.calls.forLog(params)
    if (exchange) exchange.push({ kind: 'notification', method, params })
    else
      this.#options.log.debug(
        { event: 'log_message_dropped', running: this.calls.size },
        'log message dropped: it belongs to no call',
      )
  }

  /** A server that cannot answer a subscription ends it in this way (MCP 2026-07-28, basic/patterns/cancellation). */
  #endSubscription(params: Params): void {
    const requestId = typeof params === 'string' ? undefined : value(params, 'requestId')
    for (const [exchange, call] of this.calls) {
      if (call.method === LISTEN && exchange.id === Number(requestId)) exchange.fail(subscriptionEnded())
    }
  }
}

export function subscriptionEnded(): ChannelError {
  return new ChannelError('The server has ended the subscription')
}
