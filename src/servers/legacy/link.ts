/**
 * The link to a legacy server in one session, of the bridge or of a client: opens the session, and finds out whether the server still
 * knows it, with a request that changes nothing: a look.
 */
import type { Response } from '../../base/rpc/message.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import type { Detection } from '../era/detection.js'
import type { Verdict } from '../era/verdict.js'
import { Contradiction, openingFault } from '../failure.js'
import type { ServerOptions } from '../options.js'
import type { Peer } from '../peer.js'
import { type Doubt, doubtIn, type Loss, lossShownBy } from '../session-loss.js'
import { ChannelError, type Transport } from '../transport/channel.js'

/** The result of a look; undefined if it could not be sent. */
type Answer = Response | ChannelError | undefined

/** Methods that a server answers in an initialized session only. */
const LISTS = ['tools/list', 'prompts/list', 'resources/list']
/** Milliseconds for the answer to a look, or to a ping. */
const WITHIN = 5_000
/** Milliseconds after which a session that has served nothing may have been lost. */
const SETTLED = 1_000

export class ServerLink {
  readonly peer: Peer
  readonly #offers: (method: string) => boolean
  readonly #openedAt = performance.now()
  /** The session has been open elsewhere, or its client says so. */
  hasWorkedBefore = false
  /** Looks that have not been answered, by their methods. Callers share them. */
  readonly #looking = new Map<string, Promise<Answer>>()

  /** `revision`: the negotiated one; undefined if the server has refused the session. `offers`: whether the server offers a method. */
  constructor(peer: Peer, revision: LegacyRevision | undefined, offers: (method: string) => boolean) {
    this.peer = peer
    this.#offers = offers
    // Revisions that do not define this header ignore it, so all servers get it.
    if (revision !== undefined) peer.headers = { ...peer.headers, 'mcp-protocol-version': revision }
  }

  /**
   * Whether a failure, or an error that the server answered to this method, means that the server has lost the session;
   * undefined if not. If the answer leaves that open, and the session has worked before, a look decides. Without that
   * condition, a server that refuses everything would get a new session for each call.
   */
  async lossBehind(failure: ChannelError | Response, method: string): Promise<Loss | undefined> {
    const doubt = doubtIn(failure, method)
    if (doubt === 'lost') return 'unacted'
    if (!doubt) return undefined
    const isLongOpen = performance.now() - this.#openedAt > SETTLED
    // Who only says that there is a session may have no access to the server.
    const hasWorked = isLongOpen || (this.hasWorkedBefore && doubt.status !== 401 && doubt.status !== 403)
    if (!hasWorked && !this.peer.hasServed) return undefined
    const loss = await this.#look('ping', doubt)
    if (loss || !doubt.speaks) return loss
    // Some servers answer `ping` without a session.
    const list = LISTS.find(this.#offers)
    return list === undefined ? undefined : this.#look(list, doubt)
  }

  /** After the loss of the server's stream: a restarted server refuses it, and has lost the session too. Calls `forget` then. */
  async checkLoss(forget: () => void): Promise<void> {
    const answer = await this.#answerTo('ping')
    if (answer !== undefined && (await this.lossBehind(answer, 'ping'))) forget()
  }

  async #look(method: string, doubt: Doubt): Promise<Loss | undefined> {
    const answer = await this.#answerTo(method)
    const found = answer && doubtIn(answer, method)
    return found && lossShownBy(doubt, found)
  }

  #answerTo(method: string): Promise<Answer> {
    const looking = this.#looking.get(method) ?? this.#send(method)
    this.#looking.set(method, looking)
    return looking
  }

  async #send(method: string): Promise<Answer> {
    try {
      return await this.peer.call(method, undefined, WITHIN)
    } catch (error) {
      return error instanceof ChannelError ? error : undefined
    } finally {
      this.#looking.delete(method)
    }
  }
}

interface LinkOpening<S> {
  options: Pick<ServerOptions, 'name' | 'ping'>
  detection: Detection
  verdict: Verdict
  /** Whose credentials are used. `session`: the one to go on with, which another replica has left. */
  identity: Pick<NonNullable<Parameters<Transport['open']>[0]>, 'account' | 'credential' | 'session'>
  /** Gets its peer as soon as there is one. */
  peers: Set<Peer>
  /** Performs the handshake, if there is one. Rejects with a ChannelError or a Fault. */
  begin(peer: Peer): Promise<S>
}

/**
 * Opens a channel, and a session on it: the way in which all sessions with legacy servers begin. Rejects with a ChannelError or a
 * Fault, or with a Contradiction if a server that counted as legacy turns out to be modern.
 */
export async function openLink<S extends { readonly revision: LegacyRevision | undefined }>(
  opening: LinkOpening<S>,
): Promise<S> {
  const { options, detection, verdict, identity, peers, begin } = opening
  const { era } = verdict
  const reused = detection.hasSpare
  const peer = await detection.channel(verdict.transport, identity)
  peer.headers = identity.credential ?? {}
  peer.account = identity.account
  peers.add(peer)
  try {
    const session = await begin(peer)
    if (session.revision === undefined) return session
    detection.opened(peer)
    if (!identity.session) detection.markAvailable()
    keepAlive(peer, options.ping)
    return session
  } catch (error) {
    peers.delete(peer)
    if (detection.isClosed) throw error
    if (era === 'legacy' && (await detection.isModernAfterAll(verdict, peer, error).catch(() => false))) {
      detection.release(peer)
      throw new Contradiction('legacy', 'The server has no sessions')
    }
    const isLate = error instanceof ChannelError && error.late
    if (isLate) detection.markFailed(peer, openingFault(error, options.name))
    await peer.channel.close()
    // A program may fail because it got the probe before `initialize`, so a new process is tried. But if it has answered
    // nothing yet, it is slow to start, and a new process would be as slow.
    const isSlow = verdict.weak && isLate
    if (reused && era === 'legacy' && !isSlow) return openLink(opening)
    throw error
  }
}

/**
 * Pings in a session without calls at this interval, in milliseconds, until its channel has ended; never if it is undefined. So neither
 * the server nor a load balancer before it ends the session. What the answer is does not matter: the next call finds out whether the
 * session is lost.
 */
function keepAlive(peer: Peer, every: number | undefined): void {
  if (every === undefined) return
  const timer = setInterval(() => {
    if (peer.end !== undefined || !peer.channel.alive) return clearInterval(timer)
    if (peer.size > 0) return
    const { lastUsed } = peer
    const over = () => {
      // For the bounds of idle sessions, the session is as idle as before.
      if (peer.size === 0) peer.lastUsed = lastUsed
    }
    peer.call('ping', undefined, WITHIN).then(over, over)
  }, every).unref()
}

/** Reports a new state of a session, for metrics and, by `session`, for the inspector; with the peer of one that opens. */
export function reportSession(
  what: 'opened' | 'ended' | 'lost',
  { observe, name }: Pick<ServerOptions, 'observe' | 'name'>,
  { session, principal }: { session: string | undefined; principal: string },
  peer?: Peer,
): void {
  const overSse = what === 'opened' && peer?.channel.transport === 'sse' ? '' : undefined
  observe?.({ kind: 'session', server: name, side: 'server', what, session, principal, overSse })
}
