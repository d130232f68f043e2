/** Opens tunnels, the sessions of single legacy clients with a legacy server. Ends idle ones if others need the room. */

import { Fault, isOfSignIn } from '../../fault/fault.js'
import type { Occupant } from '../../limits/occupancy.js'
import type { Sender } from '../../protocol/call.js'
import type { Request } from '../../rpc/message.js'
import type { Verdict } from '../era/verdict.js'
import { credentialOf, openingFault } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'
import { DirectTunnel, type TunnelOptions } from './tunnel.js'

/** How a tunnel is opened. */
type Opening = Pick<TunnelOptions, 'call' | 'write'>

/** A tunnel, open or being opened. */
interface TunnelOccupant extends Occupant {
  tunnel: DirectTunnel | undefined
  /** Identifies the session for the inspector. */
  session: string | undefined
}

export class Tunnels {
  readonly #options: ServerOptions
  readonly #access: Access
  /** Channels that have not ended. */
  readonly #peers = new Set<Peer>()
  #closed = false

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#access = access
  }

  /**
   * Sends a client's `initialize` to the server, on a channel of its own. Resolves to undefined if the server turns out
   * not to support sessions. Rejects with a Fault.
   */
  async connect(
    verdict: Verdict,
    opening: Request,
    sender: Sender,
    options: Opening,
  ): Promise<DirectTunnel | undefined> {
    const { occupancy } = this.#access.capacity
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    const occupant: TunnelOccupant = {
      principal: sender.principal,
      session: this.#options.recorder && crypto.randomUUID(),
      tunnel: undefined,
      get idleSince() {
        return this.tunnel?.idleSince
      },
      end() {
        this.tunnel?.end()
      },
    }
    occupancy.enter(occupant)
    try {
      const tunnel = await this.#connect(verdict, opening, sender, occupant, options)
      if (!occupant.tunnel) occupancy.leave(occupant)
      return tunnel
    } catch (error) {
      occupancy.leave(occupant)
      throw error
    }
  }

  async close(hurry: boolean): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#peers].map(({ channel }) => channel.close(hurry)))
  }

  async #connect(
    verdict: Verdict,
    opening: Request,
    sender: Sender,
    occupant: TunnelOccupant,
    options: Opening,
  ): Promise<DirectTunnel | undefined> {
    const { detection, capacity } = this.#access
    const { era } = verdict
    const turnedModern = () => era === 'legacy' && verdict.era === 'modern'
    const account = this.#options.accounts?.for(sender)
    await capacity.mayStart(sender.principal)
    const peer = await detection.channel(verdict.transport, { account }).catch((error: unknown) => {
      if (turnedModern()) return undefined
      throw detection.failed(error)
    })
    if (!peer) return undefined
    this.#peers.add(peer)
    try {
      const tunnel = await this.#open(peer, opening, sender, occupant, options)
      if (tunnel.revision !== undefined) {
        if (verdict.revision === undefined) detection.amend(verdict, { revision: tunnel.revision })
        detection.opened(peer)
        detection.worked(false)
        occupant.tunnel = tunnel
        this.#report('opened', occupant)
        return tunnel
      }
      if (await this.#isModern(verdict, peer, sender)) {
        this.#peers.delete(peer)
        detection.amend(verdict, { alsoLegacy: false })
        detection.giveBack(peer)
        return undefined
      }
      tunnel.close()
      return tunnel
    } catch (error) {
      this.#peers.delete(peer)
      if (turnedModern()) return undefined
      if (error instanceof ChannelError && error.late) detection.givenUp(peer, openingFault(error, this.#options.name))
      await peer.channel.close()
      if (isOfSignIn(error)) throw error
      const refused = error instanceof ChannelError && error.refusal !== undefined
      if (verdict.era === 'legacy' && !(refused && (await this.#isModern(verdict, peer, sender))))
        throw detection.failed(error)
      detection.amend(verdict, { alsoLegacy: false })
      return undefined
    }
  }

  /** Whether a server that refused `initialize` is modern. It may have become modern since its detection. */
  async #isModern(verdict: Verdict, peer: Peer, sender: Sender): Promise<boolean> {
    const { detection } = this.#access
    if (verdict.era === 'modern') return true
    if (verdict.transport.kind !== 'http') return detection.isModernAfterAll(verdict, peer)
    detection.forget()
    return (await detection.known(sender)).era === 'modern'
  }

  #open(
    peer: Peer,
    opening: Request,
    sender: Sender,
    occupant: TunnelOccupant,
    options: Opening,
  ): Promise<DirectTunnel> {
    const { timeouts, log, accounts } = this.#options
    const { detection, capacity, tasks, revision } = this.#access
    const { occupancy } = capacity
    const { principal } = sender
    peer.headers = credentialOf(sender)
    peer.account = accounts?.for(sender)
    const onEnd = (error: ChannelError | undefined, lost: boolean) => {
      if (occupant.tunnel) this.#report(lost ? 'lost' : 'ended', occupant)
      occupancy.leave(occupant)
      if (error) detection.ended(error, true)
    }
    const onClosed = () => this.#peers.delete(peer)
    const { initialize: timeout, start } = timeouts
    return DirectTunnel.open(peer, opening, {
      ...{ principal, timeout, start, log, onEnd, onClosed, tasks, revision },
      ...options,
    })
  }

  /** Reports a new state of a session, for metrics. */
  #report(what: 'opened' | 'ended' | 'lost', { session, principal }: TunnelOccupant): void {
    const { observe, name } = this.#options
    observe?.({ kind: 'session', server: name, side: 'server', what, session, principal })
  }
}
