/** One session with a legacy server: from `initialize` to its end, with all that belongs to it for that time. */
import type { Call } from '../protocol/call.js'
import { type LegacyRevision, legacyRevision, NEWEST_LEGACY } from '../protocol/eras.js'
import { decodeHandshake, type Handshake, initializeParams, offers } from '../protocol/legacy-server.js'
import { lift } from '../protocol/lift.js'
import { atLeast, type LogLevel, methodTraits } from '../protocol/methods.js'
import type { Params, Request, Response } from '../rpc/message.js'
import { cut } from '../rpc/source.js'
import { type Json, objectIn, type Payload, payloadAt, value } from '../rpc/splice.js'
import { type Channel, ChannelError } from './channel.js'
import type { Exchange } from './exchange.js'
import { rememberingList } from './lists.js'
import type { Peer } from './peer.js'
import { ToolCache } from './tools.js'

/** In whose name a session is opened. */
export interface Identity {
  clientInfo: Json
  /** Capabilities as they are declared to the server. */
  capabilities: Json
  /** The client's own `Authorization`, where it is to be sent on. */
  credential?: string | undefined
}

export interface SessionLog {
  debug(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface SessionOptions {
  identity: Identity
  log: SessionLog
  /** Milliseconds for the answer to `initialize`. */
  timeout: number
  /** The channel under the open session has come to its end by itself. `served` says whether it has answered a call at all. */
  onEnd?: (error: ChannelError, served: boolean) => void
}

/** A question that was refused because no client had agreed to be asked. */
export interface Refusal {
  /** The capability that it takes, and what has to be declared under it. */
  name: string
  needed: Json
  /** What the server was told. Where several calls ran, it is how a call that failed for it gives itself away. */
  said: string
  /** No other call can have caused it. */
  certain: boolean
}

/** Milliseconds. */
const LIST_TIMEOUT = 10_000
const SET_LEVEL_TIMEOUT = 1_000
const LISTEN_WAIT = 1_000
const LEVEL_IDLE = 60_000
const TRAILING = 25
/** Revisions to try where a server refuses the newest rather than offering another. */
const FALLBACKS: readonly LegacyRevision[] = ['2025-03-26', '2024-11-05']

export class LegacySession {
  readonly handshake: Handshake
  readonly tools: ToolCache
  /** Takes results into the middle. Of the list of tools, which is long and stays the same, it is done once. */
  readonly lift = rememberingList(lift)
  /** Calls that are with the server, oldest first. */
  readonly running = new Map<Exchange, Call>()
  lastUsed = Date.now()
  readonly #refusals = new WeakMap<Exchange, Refusal[]>()
  readonly #peer: Peer
  readonly #log: SessionLog
  readonly #listening: Promise<void>
  #receives: boolean | undefined
  #served = false
  #mayTrail = 0
  #closing = false
  #level: LogLevel | undefined
  #levelSet: Promise<unknown> = Promise.resolve()

  private constructor(peer: Peer, handshake: Handshake, log: SessionLog) {
    this.#peer = peer
    this.handshake = handshake
    this.#log = log
    this.tools = new ToolCache((cursor) => this.#listTools(cursor))
    this.#receives = peer.channel.listen ? undefined : true
    this.#listening = (peer.channel.listen?.(peer.headers) ?? Promise.resolve(true)).then((receives) => {
      this.#receives = receives
    })
  }

  /** Shakes hands. Rejects with a ChannelError or a Fault; the channel is then the caller's to close. */
  static async open(peer: Peer, { identity, log, timeout, onEnd }: SessionOptions): Promise<LegacySession> {
    let session: LegacySession | undefined
    peer.events = {
      asked: (request, exchange) => (session ? session.#asked(request, exchange) : refuse(peer, request)),
      notified: (method, params) => {
        if (session) session.#notified(method, params)
      },
      ended: (error) => {
        if (session === undefined || session.#closing) return
        onEnd?.(error, session.#served)
      },
      stray: (what) => log.debug({ what }, 'message from the server dropped'),
    }
    const { credential } = identity
    const own = credential === undefined ? {} : { authorization: credential }
    peer.headers = own
    const handshake = await shakeHands(peer, identity, timeout)
    // Harmless where the revision does not know the header, and servers of every revision see the same.
    peer.headers = { ...own, 'mcp-protocol-version': handshake.revision }
    await peer.notify('notifications/initialized', undefined)
    session = new LegacySession(peer, handshake, log)
    return session
  }

  get transport(): Channel['transport'] {
    return this.#peer.channel.transport
  }

  /** Whether calls can still be sent. */
  get alive(): boolean {
    return this.#peer.end === undefined && this.#peer.channel.alive
  }

  begin(call: Call): Exchange {
    const exchange = this.#peer.begin()
    this.running.set(exchange, call)
    this.lastUsed = Date.now()
    return exchange
  }

  finish(exchange: Exchange): void {
    if (exchange.answered) this.#served = true
    exchange.release()
    this.lastUsed = Date.now()
    // Who wanted log messages has waited for them: of the others there may be some on the way.
    if (this.running.get(exchange)?.caller.logLevel === undefined) this.#mayTrail = this.lastUsed
    this.running.delete(exchange)
  }

  notify(method: string, params: Json | undefined): Promise<void> {
    return this.#peer.notify(method, params)
  }

  /** Whether messages of the server's own accord have a way in; undefined as long as that is not known. */
  get receives(): boolean | undefined {
    return this.#receives
  }

  /** Waits a moment for that to be known. */
  async settled(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LISTEN_WAIT)
    })
    try {
      await Promise.race([this.#listening, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /** Has the server log at `level` at least. Asks only for more; what is too much is filtered on the way back. */
  async logAt(level: LogLevel): Promise<void> {
    if (!offers(this.handshake, 'logging/setLevel')) return
    const idle = this.running.size === 0 && Date.now() - this.lastUsed >= LEVEL_IDLE
    if (this.#level === undefined || idle || !atLeast(level, this.#level)) {
      this.#level = level
      this.#levelSet = this.#peer.call('logging/setLevel', `{"level":"${level}"}`, SET_LEVEL_TIMEOUT).catch(() => {})
    }
    await this.#levelSet
  }

  /** What the server asked for while a call ran, though nobody had declared it. */
  refusedDuring(exchange: Exchange): readonly Refusal[] {
    return this.#refusals.get(exchange) ?? []
  }

  close(hurry = false): Promise<void> {
    this.#closing = true
    return this.#peer.channel.close(hurry)
  }

  #asked(request: Request, exchange: Exchange | undefined): void {
    refuse(this.#peer, request)
    const capability = capabilityFor(request)
    if (!capability) return
    const suspects = exchange
      ? [exchange]
      : [...this.running].filter(([, call]) => methodTraits(call.method).asks).map(([one]) => one)
    const refusal = { ...capability, said: refusalOf(request.method), certain: suspects.length === 1 }
    for (const suspect of suspects) this.#refusals.set(suspect, [...this.refusedDuring(suspect), refusal])
  }

  #notified(method: string, params: Params): void {
    if (method === 'notifications/tools/list_changed') this.tools.forget()
    if (method !== 'notifications/message') return
    // Without a stream of its own a message belongs to the one call that runs; among several it could be anybody's, and
    // so it could be where another has only just ended, if messages and answers come on different connections.
    const [only, another] = this.running.keys()
    const alone = only && !another && (this.#peer.channel.shared || Date.now() - this.#mayTrail > TRAILING)
    if (alone) only.push({ kind: 'notification', method, params })
    else this.#log.debug({ running: this.running.size }, 'log message of the server belongs to no call')
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
  const supported = data && value(data, 'supported')
  const first = Array.isArray(supported) ? legacyRevision(supported[0]) : undefined
  return first ? [first] : FALLBACKS
}

function resultOf({ outcome: { kind, source, member } }: Response, method: string): Payload {
  const result = kind === 'result' ? payloadAt(source, member) : undefined
  if (!result) throw new ChannelError(`The server did not answer ${method} with a result`, { protocol: true })
  return result
}

/** Nothing may be asked of a client that has not declared it; that the bridge is alive, it can say itself. */
function refuse(peer: Peer, { id, method }: Request): void {
  peer.respond(id, method === 'ping' ? '{}' : { code: -32601, message: refusalOf(method) })
}

function refusalOf(method: string): string {
  return `Method not found: ${method}`
}

/** The client capability without which a server may not ask this. */
function capabilityFor({ method, params }: Request): Pick<Refusal, 'name' | 'needed'> | undefined {
  switch (method) {
    case 'elicitation/create': {
      const url = typeof params !== 'string' && value(params, 'mode') === 'url'
      return { name: 'elicitation', needed: url ? '{"url":{}}' : '{"form":{}}' }
    }
    case 'sampling/createMessage':
      return { name: 'sampling', needed: '{}' }
    case 'roots/list':
      return { name: 'roots', needed: '{}' }
    default:
      return undefined
  }
}
