/** One session with a legacy server, from `initialize` to its end, and its log level (`logging/setLevel`). */
import { type Reservation, SMALL } from '../../base/limits/memory.js'
import type { Notification, Params, Request, Response, Sent } from '../../base/rpc/message.js'
import { weightOf } from '../../base/rpc/source.js'
import { edit, type Json, type Payload } from '../../base/rpc/splice.js'
import { within } from '../../base/time/time.js'
import type { Account, AccountsByPrincipal } from '../../mcp/protocol/account.js'
import type { AskedClient, Call, CallersHeaders } from '../../mcp/protocol/call.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { type Handshake, offers } from '../../mcp/protocol/legacy-server.js'
import { isWantedLevel, type LogLevel, methodTraits } from '../../mcp/protocol/methods.js'
import { askForLists, declaresNoList } from '../../mcp/protocol/offered.js'
import { offersTasks } from '../../mcp/protocol/tasks.js'
import { ActiveCallers } from '../active-callers.js'
import type { Exchange } from '../exchange.js'
import type { Lift } from '../lists.js'
import { giveLog, LOG, logReader } from '../log-reader.js'
import type { ServerOptions } from '../options.js'
import type { Owner } from '../owner.js'
import type { Peer } from '../peer.js'
import { SessionLost } from '../session-loss.js'
import { ToolCache } from '../tools.js'
import { ChannelError } from '../transport/channel.js'
import { ChangeFeed } from './change-feed.js'
import { answersIn, resetsLevel } from './client-traces.js'
import { CompletedElicitations } from './completed-elicitations.js'
import { resultOf, shakeHands } from './handshake.js'
import { ServerLink } from './link.js'
import { Pooled } from './pool.js'
import type { QuestionHistory } from './question-history.js'
import { ServerRequests } from './server-requests.js'

/** What a session declares to the server, and whose credentials it uses. */
export interface SessionIdentity {
  /**
   * The principal, or '' if all principals share the session. Sessions with the same value receive the same changes.
   */
  who: string
  /** What tells its callers from those of other sessions. */
  key: string
  /** Several callers may share the session. */
  several: boolean
  /** Clients with different capabilities share the session, so it declares none of them. */
  single: boolean
  clientInfo: Json
  capabilities: Json
  /** The headers of the client that the server gets. */
  credential?: CallersHeaders | undefined
  /** The account that the bridge uses, if it signs in to the server. */
  account?: Account | undefined
  /** A connected client that the server may ask beside its calls; undefined without one. */
  client(): AskedClient | undefined
}

export interface SessionOptions {
  server: Pick<ServerOptions, 'log' | 'memory' | 'timeouts'>
  identity: SessionIdentity
  /** The accounts of single calls, if callers' tokens are exchanged: the session outlives these tokens. */
  accounts?: AccountsByPrincipal | undefined
  /** Milliseconds for the answer to `initialize`. */
  timeout: number
  /** Translates lists of tools into the middle form, and remembers the results. */
  liftList: Lift
  /** The answer to `roots/list` if the configuration gives it; undefined if the client answers. */
  roots?: Json | undefined
  /** Tools, prompts and resources whose calls have made the server send requests. */
  questionHistory: QuestionHistory
  onChange?: ((method: string, params: Payload) => void) | undefined
  /** Reports a new state of the session, for metrics. */
  onState: (what: 'opened' | 'ended' | 'lost') => void
  /**
   * The channel ended while the session was open, and not because the bridge closed it. `served`: it has answered a
   * request.
   */
  onEnd: (error: ChannelError, served: boolean) => void
}

/** Timeouts in milliseconds: of lists and subscriptions, of requests of the bridge, and of `logging/setLevel`. */
const LIST_TIMEOUT = 10_000
const REQUEST_TIMEOUT = 60_000
const SET_LEVEL_TIMEOUT = 1_000
/** Milliseconds to wait for the stream of the server's own messages to open. */
const LISTEN_WAIT = 1_000
/** Milliseconds of idleness after which the log level is set again, even to a higher one. */
const LEVEL_IDLE = 60_000
/** Milliseconds for which log messages may arrive after the answer of their call, on another connection. */
const TRAILING = 25

export class LegacySession extends Pooled implements Owner {
  readonly ping = { method: 'ping', params: undefined }
  readonly options: SessionOptions
  /** Replaced when the lists show what a server without declared capabilities offers. */
  handshake: Handshake
  readonly tools: ToolCache
  readonly makesTasks: boolean
  /** The fields about the server for the log of a call. */
  readonly described: { serverEra: string; serverRevision: string; serverTransport: string }
  /** A client has done what nobody undoes: it has created a task, or has sent what the specification does not define. */
  hasTraces = false
  /** Whether the server can send messages that belong to no call; undefined until that is known. */
  receives: boolean | undefined
  readonly changeFeed: ChangeFeed
  readonly serverRequests: ServerRequests
  /** URL elicitations that the server has reported as complete. */
  readonly completedElicitations = new CompletedElicitations(() => this.alive)
  readonly link: ServerLink
  readonly #peer: Peer
  readonly #reservation: Reservation
  /** It opens when `notifications/initialized` has been delivered. `lost`: the server no longer knows it, or its channel has ended. */
  #state: 'opening' | 'open' | 'lost' | 'ended' = 'opening'
  #listening: Promise<void> | undefined
  #level: LogLevel | undefined
  #levelSet: Promise<unknown> = Promise.resolve()

  private constructor(peer: Peer, handshake: Handshake, options: SessionOptions) {
    super()
    const { server, identity, roots, questionHistory, onChange } = options
    const { memory } = server
    this.#peer = peer
    this.options = options
    if (identity.several) peer.activeCallers = new ActiveCallers()
    this.changeFeed = new ChangeFeed({
      send: (method, uri) => this.#sendSubscription(method, uri),
      onChange,
    })
    this.serverRequests = new ServerRequests(peer, {
      capabilities: identity.capabilities,
      blames: !identity.single,
      roots,
      who: identity.who,
      questionHistory,
      revision: handshake.revision,
      client: identity.client,
    })
    this.handshake = handshake
    this.link = new ServerLink(peer, handshake.revision, (method) => offers(this.handshake, method))
    this.#reservation = memory.reserve(identity.who, SMALL)
    this.#reservation.resize(weightOf(handshake.capabilities.source))
    const { transport: serverTransport } = peer.channel
    this.described = { serverEra: 'legacy', serverRevision: handshake.revision, serverTransport }
    this.makesTasks = offersTasks(handshake.capabilities)
    this.tools = new ToolCache((cursor) => this.#list('tools/list', cursor), memory.reserve(identity.who, SMALL))
    peer.owner = this
  }

  /** Performs the handshake. Rejects with a ChannelError or a Fault; the caller then closes the channel. */
  static async open(peer: Peer, options: SessionOptions): Promise<LegacySession> {
    const handshake = await shakeHands(peer, options.identity, options.timeout, options.server.timeouts.start)
    const session = new LegacySession(peer, handshake, options)
    try {
      await peer.notify('notifications/initialized', undefined)
    } catch (error) {
      session.#leave('ended')
      throw error
    }
    session.#opened()
    if (declaresNoList(handshake.capabilities)) await session.#askForLists()
    return session
  }

  #opened(): void {
    const { channel, headers, account } = this.#peer
    this.#state = 'open'
    this.options.onState('opened')
    this.receives = channel.listen ? undefined : true
    this.#listening = channel.listen?.(headers, account).then((receives) => {
      this.receives = receives
    })
  }

  get revision(): LegacyRevision {
    return this.handshake.revision
  }

  get alive(): boolean {
    return this.#peer.end === undefined && this.#peer.channel.alive && this.#state !== 'lost'
  }

  /** Begins a call. Requests of the server about `task` belong to it, on any stream. */
  beginCall(call: Call, task?: string): Exchange {
    const exchange = this.#peer.beginExchange(call.principal, call)
    exchange.task = task
    // The newest account is also used for the session's own messages.
    const { accounts } = this.options
    if (accounts) this.#peer.account = exchange.account = accounts.for(call)
    if (this.serverRequests.held.size > 0 && methodTraits(call.method).asks) this.serverRequests.giveHeld(exchange)
    return exchange
  }

  /** Sends a request of the bridge itself. Rejects with a ChannelError, or with SessionLost. */
  async request(method: string, params: Sent, timeout = REQUEST_TIMEOUT): Promise<Response> {
    let answer: Response | ChannelError
    try {
      answer = await this.#peer.call(method, params, timeout)
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error
      answer = error
    }
    const loss = await this.link.lossBehind(answer, method)
    if (answer instanceof ChannelError) throw loss ? new SessionLost(loss, { cause: answer }) : answer
    if (loss) {
      const delivered = loss === 'unacted' ? 'no' : 'maybe'
      throw new SessionLost(loss, { cause: new ChannelError('The server has lost the session', { delivered }) })
    }
    this.#peer.hasServed = true
    return answer
  }

  /** Waits up to a second until `receives` is known. */
  async settled(): Promise<void> {
    if (this.#listening) await within(this.#listening, LISTEN_WAIT)
  }

  /**
   * Makes the server log at `level` or a lower one. While the session is in use, the level is only lowered; callers do not
   * get messages below their own level.
   */
  async logAt(level: LogLevel): Promise<void> {
    if (!offers(this.handshake, 'logging/setLevel')) return
    const idle = this.#peer.size === 0 && performance.now() - this.lastUsed >= LEVEL_IDLE
    if (idle || !isWantedLevel(level, this.#level)) {
      this.#level = level
      this.#levelSet = this.#peer.call('logging/setLevel', `{"level":"${level}"}`, SET_LEVEL_TIMEOUT).catch(() => {})
    }
    await this.#levelSet
  }

  get canBeTakenOver(): boolean {
    return !this.serverRequests.knowsRoots && !this.hasTraces
  }

  async takeOver(): Promise<boolean> {
    this.serverRequests.refuseHeld()
    const hadLevel = this.#level !== undefined
    this.#level = undefined
    return this.alive && (!hadLevel || (await resetsLevel(this.#peer))) && (await answersIn(this.#peer))
  }

  /** Notes that the server no longer knows the session. */
  forgotten(): void {
    this.#leave('lost')
  }

  async close(hurry = false): Promise<void> {
    this.#leave('ended')
    await this.#peer.channel.close(hurry)
  }

  /** Ends what belongs to the session. One that was lost still has to be closed. */
  #leave(as: 'lost' | 'ended'): void {
    if (this.#state === 'open') this.options.onState(as)
    if (this.#state !== 'ended') this.#state = as
    this.changeFeed.lose()
    this.tools.close()
    this.serverRequests.close()
    this.#reservation.end()
  }

  callOf(message: Request | Notification): number | undefined {
    if (message.kind === 'request') return this.serverRequests.callOf(message)
    return message.method === LOG ? logReader(this.#peer, message.params)?.number : undefined
  }

  asked(request: Request, exchange: Exchange | undefined): void {
    this.serverRequests.asked(request, exchange)
  }

  /** On the stream of a call, a server may also cancel its requests or report changes of the whole session. */
  ofSession(method: string): boolean {
    return method !== LOG
  }

  notified(method: string, params: Params): void {
    if (method === 'notifications/tools/list_changed') this.tools.forget()
    if (method === 'notifications/cancelled') return this.serverRequests.withdraw(params)
    if (method === 'notifications/elicitation/complete') return this.completedElicitations.completed(params)
    this.changeFeed.notified(method, params)
    if (method === LOG) giveLog(this.#peer, params, this.options.server.log)
  }

  streamLost(): void {
    if (this.#state === 'opening') return
    this.receives = false
    this.changeFeed.lose()
    this.link.checkLoss(() => this.forgotten()).catch(() => {})
  }

  missed(): void {
    this.changeFeed.missed()
  }

  ended(error: ChannelError): void {
    if (this.#state === 'opening' || this.#state === 'ended') return
    this.#leave('lost')
    this.options.onEnd(error, this.#peer.hasServed)
  }

  /** Milliseconds to wait after an answer for log messages that were sent before it. */
  get trailing(): number {
    return this.#peer.channel.shared ? 0 : TRAILING
  }

  async #sendSubscription(method: string, uri: string): Promise<void> {
    try {
      resultOf(await this.request(method, `{"uri":${JSON.stringify(uri)}}`, LIST_TIMEOUT), method)
    } catch (error) {
      if (error instanceof SessionLost) this.forgotten()
      throw error
    }
  }

  /** Asks a server that declares no lists for them, and adds the capabilities that its answers show. */
  #askForLists(): Promise<void> {
    return askForLists(
      (method) => this.#list(method),
      (capability) => {
        const { capabilities, ...others } = this.handshake
        this.handshake = { ...others, capabilities: edit(capabilities, { [capability]: '{}' }) }
      },
    )
  }

  /** A page of a list, for the bridge itself. */
  async #list(method: string, cursor?: Json): Promise<Payload> {
    const params = cursor === undefined ? undefined : `{"cursor":${cursor}}`
    return resultOf(await this.#peer.call(method, params, LIST_TIMEOUT), method)
  }
}
