/** One session with a legacy server: from `initialize` to its end, with all that belongs to it for that time. */
import type { Account } from '../../protocol/account.js'
import type { Call } from '../../protocol/call.js'
import { isModern, type LegacyRevision, legacyRevision, NEWEST_LEGACY } from '../../protocol/eras.js'
import { decodeHandshake, type Handshake, initializeParams, offers } from '../../protocol/legacy-server.js'
import { MAX_NAME } from '../../protocol/lengths.js'
import { type Loan, type Memory, SMALL } from '../../protocol/memory.js'
import { atLeast, type LogLevel, methodTraits } from '../../protocol/methods.js'
import { offersTasks } from '../../protocol/tasks.js'
import type { Params, Request, Response } from '../../rpc/message.js'
import { cut, weightOf } from '../../rpc/source.js'
import { type Json, objectIn, type Payload, payloadAt, value } from '../../rpc/splice.js'
import { within } from '../../time.js'
import { type Exchange, noteDropped } from '../exchange.js'
import type { Lift } from '../lists.js'
import type { ServerLog } from '../options.js'
import type { Peer } from '../peer.js'
import { RunningCalls } from '../running-calls.js'
import { ToolCache } from '../tools.js'
import { type Channel, ChannelError } from '../transport/channel.js'
import type { Askers } from './askers.js'
import { ChangeFeed } from './change-feed.js'
import { refusalOf, ServerRequests } from './server-requests.js'

/** In whose name a session is opened. */
export interface Identity {
  /** Those whose sessions hear of the same changes. */
  who: string
  /** Calls of several callers share the session. */
  several: boolean
  clientInfo: Json
  /** Capabilities as they are declared to the server. */
  capabilities: Json
  /** The client's own `Authorization`, where it is to be sent on. */
  credential?: string | undefined
  /** In whose name the server is asked, where the bridge signs in to it. */
  account?: Account | undefined
}

export interface SessionOptions {
  identity: Identity
  log: ServerLog
  /** Milliseconds for the answer to `initialize`. */
  timeout: number
  memory: Memory
  /** Takes results into the middle, and remembers what came of lists of tools. */
  lift: Lift
  /** The answer to a server that asks for roots, where no client is asked. */
  roots?: Json | undefined
  /** What has been seen to ask its client something. */
  askers: Askers
  /** Tells other replicas of what has changed. */
  changed?: ((method: string, params: Payload) => void) | undefined
  /** What has become of the session, for whoever counts. */
  told?: ((what: 'opened' | 'ended' | 'lost') => void) | undefined
  /** The channel under the open session has come to its end by itself. `served` says whether it has answered a call at all. */
  onEnd?: (error: ChannelError, served: boolean) => void
}

/** Milliseconds. */
const LIST_TIMEOUT = 10_000
const REQUEST_TIMEOUT = 60_000
const SET_LEVEL_TIMEOUT = 1_000
const LISTEN_WAIT = 1_000
const LEVEL_IDLE = 60_000
const TRAILING = 25
const MAX_VISITED = 1_000
/** Bytes of the answer to `initialize`, which is kept as long as the session. */
const MAX_HANDSHAKE = 1024 * 1024
/** Revisions to try where a server refuses the newest rather than offering another. */
const FALLBACKS: readonly LegacyRevision[] = ['2025-03-26', '2024-11-05']

export class LegacySession {
  readonly handshake: Handshake
  readonly tools: ToolCache
  /** Calls of tools can be tasks. */
  readonly makesTasks: boolean
  /** Takes results into the middle. */
  readonly lift: Lift
  /** Calls that are with the server. */
  readonly running: RunningCalls
  lastUsed = performance.now()
  /** Who wants to hear of what changes. */
  readonly changeFeed: ChangeFeed
  /** Those who hear of the same changes. */
  readonly who: string
  /** What the server asks. */
  readonly serverRequests: ServerRequests
  /** Addresses that people have been to, and who waits for that. */
  readonly #visited = new Set<string>()
  readonly #visits = new Set<() => void>()
  readonly #peer: Peer
  /** Of what the server has said of itself. */
  readonly #loan: Loan
  readonly #log: ServerLog
  readonly #told: SessionOptions['told']
  #over = false
  readonly #listening: Promise<void>
  #receives: boolean | undefined
  #served = false
  #closing = false
  #level: LogLevel | undefined
  #levelSet: Promise<unknown> = Promise.resolve()

  private constructor(peer: Peer, handshake: Handshake, options: SessionOptions) {
    const { identity, log, memory, roots, askers, told, changed } = options
    this.#peer = peer
    this.who = identity.who
    this.running = new RunningCalls(identity)
    this.changeFeed = new ChangeFeed({
      send: async (method, uri) => {
        resultOf(await this.#peer.call(method, `{"uri":${JSON.stringify(uri)}}`, LIST_TIMEOUT), method)
      },
      told: changed,
    })
    this.serverRequests = new ServerRequests({
      capabilities: identity.capabilities,
      roots,
      candidates: () =>
        [...this.running].flatMap(([one, call]) => (methodTraits(call.method).asks && !one.answered ? [one] : [])),
      hasAsked: (exchange) => askers.has(this.running.of(exchange)),
      asks: (exchange) => askers.add(this.running.of(exchange)),
      borrow: () => peer.borrow(identity.who),
      respond: (id, answer) => peer.respond(id, answer),
      settled: () => peer.settled(),
    })
    this.handshake = handshake
    this.#loan = memory.borrow(identity.who, SMALL)
    this.#loan.hold(weightOf(handshake.capabilities.source))
    this.lift = options.lift
    this.makesTasks = offersTasks(handshake.capabilities)
    this.#log = log
    this.#told = told
    told?.('opened')
    this.tools = new ToolCache((cursor) => this.#listTools(cursor), memory.borrow(identity.who, SMALL))
    this.#receives = peer.channel.listen ? undefined : true
    this.#listening = (peer.channel.listen?.(peer.headers, peer.account) ?? Promise.resolve(true)).then((receives) => {
      this.#receives = receives
    })
  }

  /** Shakes hands. Rejects with a ChannelError or a Fault; the channel is then the caller's to close. */
  static async open(peer: Peer, options: SessionOptions): Promise<LegacySession> {
    const { identity, timeout, onEnd } = options
    let session: LegacySession | undefined
    // A server may ask as soon as it has answered, before it is heard that it has taken `notifications/initialized`.
    let early: Request[] | undefined
    peer.events = {
      asked: (request, exchange) => {
        if (session) session.serverRequests.asked(request, exchange)
        else if (early && request.method !== 'ping') early.push(request)
        else refuse(peer, request)
      },
      notified: (method, params) => {
        if (session) session.#notified(method, params)
      },
      ended: (error) => {
        session?.changeFeed.lose()
        if (session === undefined || session.#closing) return
        session.#tellEnd('lost')
        onEnd?.(error, session.#served)
      },
      answeredLate: (id) => session?.running.answeredLate(id),
      deaf: () => {
        if (!session) return
        session.#receives = false
        session.changeFeed.lose()
      },
      missed: () => session?.changeFeed.missed(),
      // A server may say on the stream of a call that it does not want to know any more, or that something has changed.
      ofSession: (method) => method !== 'notifications/message',
      ping: { method: 'ping', params: undefined },
    }
    const { credential, account } = identity
    peer.account = account
    const own = credential === undefined ? {} : { authorization: credential }
    peer.headers = own
    const handshake = await shakeHands(peer, identity, timeout)
    early = []
    // Harmless where the revision does not know the header, and servers of every revision see the same.
    peer.headers = { ...own, 'mcp-protocol-version': handshake.revision }
    await peer.notify('notifications/initialized', undefined)
    session = new LegacySession(peer, handshake, options)
    for (const request of early) session.serverRequests.asked(request, undefined)
    return session
  }

  /** Begins a loan for what waits in this session for a principal. */
  borrow(principal: string): Loan {
    return this.#peer.borrow(principal)
  }

  get transport(): Channel['transport'] {
    return this.#peer.channel.transport
  }

  /** Whether calls can still be sent. */
  get alive(): boolean {
    return this.#peer.end === undefined && this.#peer.channel.alive
  }

  /** Begins a call. Questions about `task` belong to it, however they come. */
  begin(call: Call, task?: string): Exchange {
    const exchange = this.#peer.begin(call.principal)
    this.running.begin(exchange, call)
    this.lastUsed = performance.now()
    if (methodTraits(call.method).asks) this.serverRequests.begun(exchange, task)
    return exchange
  }

  /** Another leg of a call that waited for its client. */
  resume(exchange: Exchange, call: Call): void {
    this.running.resume(exchange, call)
    this.lastUsed = performance.now()
  }

  /** Resolves when the server says that a person has been to all these addresses, or after so many milliseconds. */
  async visited(ids: readonly string[], milliseconds: number): Promise<void> {
    let changed = () => {}
    const deadline = performance.now() + milliseconds
    while (this.alive && !ids.every((id) => this.#visited.has(id)) && performance.now() < deadline) {
      const visit = new Promise<void>((resolve) => {
        changed = resolve
        this.#visits.add(changed)
      })
      await within(visit, deadline - performance.now())
      this.#visits.delete(changed)
    }
    for (const id of ids) this.#visited.delete(id)
  }

  finish(exchange: Exchange, reason?: string): void {
    if (exchange.answered) this.#served = true
    const call = this.running.of(exchange)
    if (call) noteDropped(exchange, call)
    this.running.end(exchange)
    exchange.release(reason)
    this.lastUsed = performance.now()
    this.serverRequests.ended(exchange)
  }

  notify(method: string, params: Json | undefined): Promise<void> {
    return this.#peer.notify(method, params)
  }

  /** Asks the server something of the bridge's own. Rejects with a ChannelError. */
  async request(method: string, params: Json | undefined): Promise<Response> {
    const response = await this.#peer.call(method, params, REQUEST_TIMEOUT)
    this.#served = true
    return response
  }

  /** Whether messages of the server's own accord have a way in; undefined as long as that is not known. */
  get receives(): boolean | undefined {
    return this.#receives
  }

  /** Waits a moment for that to be known. */
  async settled(): Promise<void> {
    await within(this.#listening, LISTEN_WAIT)
  }

  /** Has the server log at `level` at least. Asks only for more; what is too much is filtered on the way back. */
  async logAt(level: LogLevel): Promise<void> {
    if (!offers(this.handshake, 'logging/setLevel')) return
    const idle = this.running.size === 0 && performance.now() - this.lastUsed >= LEVEL_IDLE
    if (this.#level === undefined || idle || !atLeast(level, this.#level)) {
      this.#level = level
      this.#levelSet = this.#peer.call('logging/setLevel', `{"level":"${level}"}`, SET_LEVEL_TIMEOUT).catch(() => {})
    }
    await this.#levelSet
  }

  /** The server has forgotten the session: nothing more will be heard on it. */
  forgotten(): void {
    this.changeFeed.lose()
    this.#tellEnd('lost')
  }

  close(hurry = false): Promise<void> {
    this.#closing = true
    this.#tellEnd('ended')
    this.changeFeed.lose()
    return this.#peer.channel.close(hurry)
  }

  #tellEnd(what: 'ended' | 'lost'): void {
    if (!this.#over) this.#told?.(what)
    this.#over = true
    this.tools.close()
    this.serverRequests.close()
    this.#loan.end()
  }

  #notified(method: string, params: Params): void {
    if (method === 'notifications/tools/list_changed') this.tools.forget()
    if (method === 'notifications/cancelled') return this.serverRequests.withdraw(params)
    if (method === 'notifications/elicitation/complete') return this.#visit(params)
    this.changeFeed.notified(method, params)
    if (method !== 'notifications/message') return
    const exchange = this.running.forLog(params)
    if (exchange) exchange.push({ kind: 'notification', method, params })
    else
      this.#log.debug(
        { event: 'log_message_dropped', running: this.running.size },
        'log message dropped: it belongs to no call',
      )
  }

  #visit(params: Params): void {
    const id = typeof params === 'string' ? undefined : value(params, 'elicitationId')
    if (typeof id !== 'string' || id.length > MAX_NAME) return
    if (this.#visited.size >= MAX_VISITED) this.#visited.clear()
    this.#visited.add(id)
    for (const changed of this.#visits) changed()
  }

  /** Milliseconds for which log messages may come after the answer that they were sent before. */
  get trailing(): number {
    return this.#peer.channel.shared ? 0 : TRAILING
  }

  async #listTools(cursor: Json | undefined): Promise<Payload> {
    const params = cursor === undefined ? undefined : `{"cursor":${cursor}}`
    return resultOf(await this.#peer.call('tools/list', params, LIST_TIMEOUT), 'tools/list')
  }
}

/** `initialize`, and once more with what the server says it wants, should it refuse rather than offer. */
async function shakeHands(peer: Peer, { clientInfo, capabilities }: Identity, timeout: number): Promise<Handshake> {
  const offers: LegacyRevision[] = [NEWEST_LEGACY]
  for (let i = 0; ; i++) {
    const answer = await peer.call(
      'initialize',
      initializeParams(offers[i] as LegacyRevision, clientInfo, capabilities),
      timeout,
    )
    if (answer.outcome.kind === 'result') {
      const result = resultOf(answer, 'initialize')
      if (weightOf(result.source) > MAX_HANDSHAKE)
        throw new ChannelError(`The server says over ${MAX_HANDSHAKE / 1024} KiB of itself`, { protocol: true })
      return decodeHandshake(result, legacyRevision(value(result, 'protocolVersion')))
    }
    if (i === 0) offers.push(...wanted(answer))
    if (i + 1 >= offers.length) {
      const { source, member } = answer.outcome
      throw new ChannelError(
        `The server refused to open a session: ${cut(source, member.start, member.end).slice(0, 300)}`,
      )
    }
  }
}

function wanted({ outcome: { source, member } }: Response): readonly LegacyRevision[] {
  const error = payloadAt(source, member)
  const data = error && objectIn(error, 'data')
  const supported: unknown = data && value(data, 'supported')
  if (!Array.isArray(supported)) return FALLBACKS
  const first = supported.map(legacyRevision).find((revision) => revision !== undefined)
  if (first) return [first]
  // A server that names modern revisions only has no session to open, whatever is offered to it.
  return supported.some((version) => isModern(version)) ? [] : FALLBACKS
}

function resultOf({ outcome: { kind, source, member } }: Response, method: string): Payload {
  const result = kind === 'result' ? payloadAt(source, member) : undefined
  if (!result) throw new ChannelError(`The server did not answer ${method} with a result`, { protocol: true })
  return result
}

/** Before a session is open, nothing can be asked; that the bridge is alive, it can say itself. */
function refuse(peer: Peer, { id, method }: Request): void {
  peer.respond(id, method === 'ping' ? '{}' : { code: -32601, message: refusalOf(method) })
}
