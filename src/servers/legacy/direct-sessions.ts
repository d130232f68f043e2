/**
 * Opens direct sessions, the sessions of single legacy clients with a legacy server. Ends idle ones if others need the room, and
 * gives those of clients that have gone to the next equal client of the same principal.
 */

import { Fault, isAboutOthers } from '../../base/fault/fault.js'
import type { Occupant } from '../../base/limits/occupancy.js'
import { canonical } from '../../base/rpc/canonical.js'
import { jsonOf, type Request } from '../../base/rpc/message.js'
import { edit } from '../../base/rpc/splice.js'
import type { Account } from '../../mcp/protocol/account.js'
import type { Sender } from '../../mcp/protocol/call.js'
import type { LeftDirectSession } from '../../mcp/protocol/upstream.js'
import type { Verdict } from '../era/verdict.js'
import { Contradiction } from '../failure.js'
import type { Access } from '../half.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { ChannelError } from '../transport/channel.js'
import { answersIn } from './client-traces.js'
import { DirectServerSession, type DirectSessionOptions, type LeftSession } from './direct-session.js'
import { openLink, reportSession } from './link.js'

export type DirectSessionOpening = Pick<DirectSessionOptions, 'call' | 'write' | 'fromHttp' | 'forwarded'>

/** A direct session, open or being opened. */
interface DirectSessionOccupant extends Occupant {
  /** What equal clients of one principal have in common; undefined if that is too long to be kept. */
  key: string | undefined
  account: Account | undefined
  direct: DirectServerSession | undefined
  spare: Spare | undefined
  /** Identifies the session for the inspector. */
  session: string | undefined
}

/** A session whose client has gone. */
interface Spare extends LeftSession {
  /** When that was, by `performance.now()`; undefined as soon as another client is to get it. */
  since: number | undefined
  /** Whether what the client has set is undone. */
  undone: Promise<boolean>
}

/** Maximum characters of a key. */
const MAX_OPENING = 8 * 1024

export class DirectSessions {
  readonly #options: ServerOptions
  readonly #access: Access
  /** Channels that have not ended. */
  readonly #peers = new Set<Peer>()
  /** Sessions whose client has gone, by their keys. */
  readonly #spares = new Map<string, DirectSessionOccupant>()
  #closed = false

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.#access = access
  }

  /**
   * Sends a client's `initialize` to the server, on a channel of its own, or gives the client the session of an equal one
   * that has gone. Resolves to undefined if the server turns out not to support sessions. Rejects with a Fault.
   */
  async connect(
    verdict: Verdict,
    opening: Request,
    sender: Sender,
    options: DirectSessionOpening,
  ): Promise<DirectServerSession | undefined> {
    // Another client would use the same ids again.
    const isLeft = !options.fromHttp || verdict.transport.kind !== 'http'
    const occupant = this.#occupantOf(sender, isLeft ? keyOf(opening, sender) : undefined)
    return (
      (await this.#takeOver(occupant, options)) ??
      this.#inRoom(occupant, () => this.#connect(verdict, opening, sender, occupant, options))
    )
  }

  /** Goes on with a session over HTTP that another replica has left. Rejects with a Fault. */
  async resume(verdict: Verdict, left: LeftDirectSession, sender: Sender): Promise<DirectServerSession> {
    const occupant = this.#occupantOf(sender)
    return this.#inRoom(occupant, async () => {
      const begin = async (peer: Peer) =>
        DirectServerSession.resume(peer, left, this.#optionsOf(peer, occupant, { fromHttp: true }))
      return this.#opened(await this.#open(verdict, sender, occupant, begin, left), occupant)
    })
  }

  #occupantOf(sender: Sender, key?: string): DirectSessionOccupant {
    const { capacity } = this.#access
    if (this.#closed) throw new Fault('draining', 'The bridge is shutting down')
    const endSpare = () => this.#endSpare(occupant)
    const occupant: DirectSessionOccupant = {
      principal: sender.principal,
      key,
      account: this.#options.accounts?.for(sender),
      session: this.#options.recorder && crypto.randomUUID(),
      direct: undefined,
      spare: undefined,
      get idleSince() {
        return this.spare ? this.spare.since : this.direct?.idleSince
      },
      get idleLimit() {
        return this.spare && capacity.spareLimit
      },
      get isSpare() {
        return this.spare?.since !== undefined
      },
      end() {
        if (this.spare) endSpare()
        else this.direct?.end()
      },
    }
    return occupant
  }

  /** Opens a session that has room meanwhile, and as long as it is open. */
  async #inRoom<S>(occupant: DirectSessionOccupant, open: () => Promise<S>): Promise<S> {
    const { occupancy } = this.#access.capacity
    occupancy.enter(occupant)
    try {
      return await open()
    } finally {
      if (!occupant.direct) occupancy.leave(occupant)
    }
  }

  #open(
    verdict: Verdict,
    { credential }: Sender,
    { account }: DirectSessionOccupant,
    begin: (peer: Peer) => Promise<DirectServerSession>,
    session?: LeftDirectSession,
  ): Promise<DirectServerSession> {
    const { detection } = this.#access
    const identity = { account, credential, session }
    return openLink({ options: this.#options, detection, verdict, identity, peers: this.#peers, begin })
  }

  #opened(direct: DirectServerSession, occupant: DirectSessionOccupant): DirectServerSession {
    occupant.direct = direct
    reportSession('opened', this.#options, occupant, direct.link.peer)
    return direct
  }

  async close(hurry: boolean): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#peers].map(({ channel }) => channel.close(hurry)))
  }

  async #connect(
    verdict: Verdict,
    opening: Request,
    sender: Sender,
    occupant: DirectSessionOccupant,
    options: DirectSessionOpening,
  ): Promise<DirectServerSession | undefined> {
    const { detection, capacity } = this.#access
    const { era } = verdict
    await capacity.mayStart(sender.principal)
    let isSent = false
    try {
      const direct = await this.#open(verdict, sender, occupant, (peer) => {
        isSent = true
        return DirectServerSession.open(peer, opening, this.#optionsOf(peer, occupant, options))
      })
      const { peer } = direct.link
      if (direct.revision !== undefined) {
        if (verdict.revision === undefined) detection.amend(verdict, { revision: direct.revision })
        return this.#opened(direct, occupant)
      }
      const isModern = await this.#isModern(verdict, peer, sender).catch((error: unknown) => {
        direct.close()
        throw error
      })
      if (isModern) {
        this.#peers.delete(peer)
        detection.amend(verdict, { alsoLegacy: false })
        detection.release(peer)
        return undefined
      }
      direct.close()
      return direct
    } catch (error) {
      if (error instanceof Contradiction || (era === 'legacy' && verdict.era === 'modern')) return undefined
      if (isAboutOthers(error)) throw error
      const isRefused = error instanceof ChannelError && error.refusal !== undefined
      const isLegacy = verdict.era === 'legacy' && !(isRefused && (await this.#isModernNow(sender)))
      if (!isSent || isLegacy) throw detection.failed(error)
      detection.amend(verdict, { alsoLegacy: false })
      return undefined
    }
  }

  /** Whether a server that refused `initialize` is modern. It may have become modern since its detection. */
  async #isModern(verdict: Verdict, peer: Peer, sender: Sender): Promise<boolean> {
    if (verdict.era === 'modern') return true
    if (verdict.transport.kind === 'http') return this.#isModernNow(sender)
    return this.#access.detection.isModernAfterAll(verdict, peer)
  }

  async #isModernNow(sender: Sender): Promise<boolean> {
    const { detection } = this.#access
    detection.forget()
    return (await detection.known(sender)).era === 'modern'
  }

  #optionsOf(peer: Peer, occupant: DirectSessionOccupant, options: DirectSessionOpening): DirectSessionOptions {
    const { detection, capacity } = this.#access
    return {
      server: this.#options,
      access: this.#access,
      principal: occupant.principal,
      onEnd: (error, lost) => {
        if (occupant.direct) reportSession(lost ? 'lost' : 'ended', this.#options, occupant)
        capacity.occupancy.leave(occupant)
        if (error) detection.ended(error, true)
      },
      onClosed: () => this.#peers.delete(peer),
      keep: (left) => this.#keep(left, occupant),
      ...options,
    }
  }

  /** Keeps the session of a client that has gone for the next one. Returns whether it does. */
  #keep(left: LeftSession, occupant: DirectSessionOccupant): boolean {
    const { key } = occupant
    const { reuse = 0 } = this.#options.timeouts
    if (key === undefined || reuse === 0 || this.#closed) return false
    const { peer, traces } = left
    const end = () => {
      if (occupant.spare === spare) this.#endSpare(occupant)
    }
    peer.owner = {
      ping: { method: 'ping', params: undefined },
      asked: (request) => peer.refuse(request),
      notified: () => {},
      streamLost: end,
      ended: end,
    }
    const spare: Spare = { ...left, since: performance.now(), undone: traces.undo(peer) }
    occupant.direct = undefined
    occupant.spare = spare
    this.#spares.set(key, occupant)
    spare.undone.then((isUndone) => !isUndone && end()).catch(end)
    this.#access.capacity.occupancy.endIdleOf(occupant.principal)
    return true
  }

  #endSpare(occupant: DirectSessionOccupant): void {
    const { spare } = occupant
    if (!spare) return
    const { peer } = spare
    occupant.spare = undefined
    this.#forgetSpare(occupant)
    this.#access.capacity.occupancy.leave(occupant)
    reportSession('ended', this.#options, occupant)
    const closed = () => this.#peers.delete(peer)
    peer.channel.close().then(closed, closed)
  }

  #forgetSpare(occupant: DirectSessionOccupant): void {
    const { key } = occupant
    if (key !== undefined && this.#spares.get(key) === occupant) this.#spares.delete(key)
  }

  /** Gives the session of an equal client that has gone to the next one, if there is one that still works. */
  async #takeOver(
    { key, account }: DirectSessionOccupant,
    options: DirectSessionOpening,
  ): Promise<DirectServerSession | undefined> {
    const occupant = key === undefined ? undefined : this.#spares.get(key)
    const spare = occupant?.spare
    if (!occupant || !spare || occupant.account !== account) return undefined
    this.#forgetSpare(occupant)
    // It is not idle meanwhile, so it does not have to make room.
    spare.since = undefined
    const { peer } = spare
    const works = (await spare.undone) && (await answersIn(peer))
    if (occupant.spare !== spare) return undefined
    if (!works) {
      this.#endSpare(occupant)
      return undefined
    }
    occupant.spare = undefined
    const direct = DirectServerSession.takeOver(spare, this.#optionsOf(peer, occupant, options))
    occupant.direct = direct
    return direct
  }
}

/** What equal clients of one principal have in common: what they say in `initialize`, and their credential. */
function keyOf({ params }: Request, { principal, credential = {} }: Sender): string | undefined {
  const said = typeof params === 'string' ? undefined : jsonOf(edit(params, { _meta: undefined }))
  if (said === undefined || said.length > MAX_OPENING) return undefined
  return `${principal} ${JSON.stringify(credential)} ${canonical(said)}`
}
