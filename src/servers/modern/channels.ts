/**
 * The channels to a modern server: over HTTP one, for a program one for each process. All principals share a process of a
 * program, but a principal that wants logs gets its own, because log messages on stdio name no call. With `single`, where
 * all clients of a principal have to share a process, each principal has its own from the beginning.
 */

import { BoundedSet } from '../../base/limits/bounded.js'
import type { Occupant } from '../../base/limits/occupancy.js'
import type { Notification, Params, Request } from '../../base/rpc/message.js'
import { EMPTY, value } from '../../base/rpc/splice.js'
import { printable } from '../../base/texts/printable.js'
import { ANONYMOUS, type Sender } from '../../mcp/protocol/call.js'
import { requestHeaders } from '../../mcp/protocol/headers.js'
import { LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import { discoverParams } from '../../mcp/protocol/modern-server.js'
import { ActiveCallers } from '../active-callers.js'
import { probe } from '../era/probe.js'
import type { Exchange } from '../exchange.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import { giveLog, LOG, logReader } from '../log-reader.js'
import type { ServerOptions } from '../options.js'
import type { Owner } from '../owner.js'
import type { Peer } from '../peer.js'
import { notStarted } from '../start.js'
import { ChannelError } from '../transport/channel.js'

type Caller = Pick<Sender, 'principal' | 'caller'>

/** Stands for all principals together. No principal has this name. */
const EVERYBODY = ''
/** The maximum number of principals remembered as wanting logs. */
const MAX_SEPARATE = 1_000

export class ModernChannels {
  readonly #options: ServerOptions
  readonly #access: Access
  /** By principal, or for EVERYBODY. */
  readonly #channels = new Map<string, ModernChannel>()
  /** Principals that want logs get a process of their own. */
  readonly #isSeparate: boolean
  /** Principals that have requested logs. All their later calls go to their own process. */
  readonly #separate = new BoundedSet<string>(MAX_SEPARATE)

  constructor(options: ServerOptions, access: Access) {
    const { transport, several, isolation } = options
    this.#options = options
    this.#access = access
    this.#isSeparate = transport.kind === 'stdio' && several === true && isolation !== 'shared'
  }

  /** Open requests on all channels. */
  *running(): Generator<Exchange> {
    for (const { running } of this.#channels.values()) yield* running
  }

  /** The channel for a caller; undefined if it is not open. */
  currentPeer(sender: Caller): Peer | undefined {
    const peer = this.#channels.get(this.#isSeparate ? this.#keyOf(sender) : EVERYBODY)?.peer
    return peer?.end ? undefined : peer
  }

  /**
   * The channel for a caller; opens it if needed. Rejects with a Fault, or with a Contradiction if the server is
   * legacy.
   */
  async open(sender: Caller): Promise<Peer> {
    const key = this.#keyOf(sender)
    const channel = this.#channels.get(key) ?? this.#add(key, sender.principal)
    return channel.opening
  }

  async close(hurry = false): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => channel.close(hurry)))
  }

  #keyOf({ principal, caller }: Caller): string {
    if (!this.#isSeparate) return EVERYBODY
    if (this.#options.single) return principal
    if (caller.logLevel !== undefined) this.#separate.add(principal)
    return this.#separate.has(principal) ? principal : EVERYBODY
  }

  #add(key: string, principal: string): ModernChannel {
    const isShared = key === EVERYBODY
    const leave = () => {
      if (this.#channels.get(key) === channel) this.#channels.delete(key)
    }
    const channel: ModernChannel = new ModernChannel(this.#options, this.#access, { principal, isShared, leave })
    this.#channels.set(key, channel)
    if (!isShared) channel.opening.then(() => this.#moveSubscriptions(principal)).catch(() => {})
    return channel
  }

  /**
   * Ends a principal's subscriptions in the shared process, because it does not report changes in the principal's own one.
   */
  #moveSubscriptions(principal: string): void {
    const { peer } = this.#channels.get(EVERYBODY) ?? {}
    for (const exchange of [...(peer?.open ?? [])]) {
      if (exchange.call?.method === LISTEN && exchange.principal === principal)
        peer?.release(exchange, 'Opened again in another process')
    }
  }
}

interface Place {
  principal: string
  isShared: boolean
  /** Called when it ends or could not be opened. */
  leave(): void
}

class ModernChannel implements Occupant, Owner {
  readonly ping: NonNullable<Owner['ping']>
  readonly principal: string
  readonly opening: Promise<Peer>
  /** The peer, once the channel is open. */
  peer: Peer | undefined
  readonly #options: ServerOptions
  readonly #access: Access
  readonly #place: Place
  readonly #isProgram: boolean
  #closing = false

  /** Throws a Fault if there is no room for one more program. */
  constructor(options: ServerOptions, access: Access, place: Place) {
    this.#options = options
    this.#access = access
    this.#place = place
    this.principal = place.principal
    this.#isProgram = options.transport.kind === 'stdio'
    const method = 'server/discover'
    this.ping = { method, params: discoverParams(options.clientInfo), headers: requestHeaders(method, EMPTY) }
    if (this.#isProgram) access.capacity.occupancy.enter(this)
    this.opening = this.#open()
    this.opening.catch(() => this.#leave())
  }

  get idleSince(): number | undefined {
    return this.peer?.size === 0 ? this.peer.lastUsed : undefined
  }

  get idleLimit(): number | undefined {
    return this.#access.capacity.channelIdleLimit(this.#place.isShared ? undefined : this.principal)
  }

  /** Open requests. */
  get running(): Iterable<Exchange> {
    return this.peer?.open ?? []
  }

  async #open(): Promise<Peer> {
    const { isShared } = this.#place
    const peer = await this.#connect()
    this.peer = peer
    peer.lastUsed = performance.now()
    const ofSeveral = this.#isProgram && isShared && this.#options.several === true
    if (ofSeveral || this.principal === ANONYMOUS) peer.activeCallers = new ActiveCallers()
    peer.owner = this
    return peer
  }

  /**
   * Opens a channel; probes a new process first, because the program may have changed its era. Rejects with a Fault, or
   * with a Contradiction if the program is legacy now.
   */
  async #connect(): Promise<Peer> {
    const { transport, timeouts, era } = this.#options
    const { detection, capacity } = this.#access
    detection.throwIfDown()
    await capacity.mayStart(this.principal)
    try {
      if (transport.kind === 'http' || era === 'modern' || detection.hasSpare)
        return await detection.channel(transport, { stateless: true })
      // A new process may be slow to start, so the probe may take as long as `initialize`.
      const timeout = Math.max(timeouts.probe, timeouts.initialize)
      const finding = await probe(this.#options, { timeout, start: timeouts.start })
      if (finding.era === 'modern') return finding.peer
      const { peer, unanswered } = finding
      const { start = timeout } = timeouts
      const late = unanswered && peer && notStarted(peer.channel, 'server/discover', { silence: timeout, start })
      await peer?.channel.close()
      if (late) throw late
    } catch (error) {
      throw detection.failed(error)
    }
    throw new Contradiction('modern', 'The server no longer supports 2026-07-28')
  }

  #leave(): void {
    if (this.#isProgram) this.#access.capacity.occupancy.leave(this)
    this.#place.leave()
  }

  /** Ends it because it is idle. */
  end(): void {
    this.#place.leave()
    this.close().catch(() => {})
  }

  async close(hurry = false): Promise<void> {
    this.#closing = true
    const peer = await this.opening.catch(() => undefined)
    await peer?.channel.close(hurry)
  }

  callOf({ method, params }: Request | Notification): number | undefined {
    return method === LOG ? logReader(this.peer as Peer, params)?.number : undefined
  }

  asked(request: Request): void {
    const { method } = request
    if (method === 'ping') this.peer?.refuse(request)
    else
      this.#options.log.debug(
        { event: 'server_request_dropped', method: printable(method) },
        'request from a modern server dropped',
      )
  }

  /** Takes a notification on stdio that names no call. */
  notified(method: string, params: Params): void {
    if (method === 'notifications/cancelled') this.#endSubscription(params)
    else if (method === LOG) giveLog(this.peer as Peer, params, this.#options.log)
  }

  ended(error: ChannelError): void {
    this.#leave()
    if (!this.#closing) this.#access.detection.ended(error, this.peer?.hasServed === true)
  }

  /** A server may end a subscription by cancelling it (MCP 2026-07-28, basic/patterns/cancellation). */
  #endSubscription(params: Params): void {
    const requestId = typeof params === 'string' ? undefined : value(params, 'requestId')
    for (const exchange of this.running) {
      if (methodTraits(exchange.method ?? '').endless && exchange.id === Number(requestId))
        exchange.fail(subscriptionEnded())
    }
  }
}

/** The failure of a subscription that the server has cancelled. */
export function subscriptionEnded(): ChannelError {
  return new ChannelError('The server has ended the subscription')
}
