/**
 * Requests of a legacy server to its client: whether they are allowed, which call each belongs to, and how long one
 * waits for its call.
 */

import { idKey, type Params, type Request } from '../../base/rpc/message.js'
import { weightOf } from '../../base/rpc/source.js'
import { EMPTY, type Json, objectIn, type Payload, parseObject, textUnder, value } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { AskedClient } from '../../mcp/protocol/call.js'
import { cancelledId } from '../../mcp/protocol/cancelled.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { capabilityFor, isShowable, type Needed, uncovered } from '../../mcp/protocol/input.js'
import { RELATED_TASK } from '../../mcp/protocol/meta.js'
import { methodTraits } from '../../mcp/protocol/methods.js'
import type { Exchange } from '../exchange.js'
import type { Peer } from '../peer.js'
import { askBeside } from './beside-calls.js'
import { ServerQuestion } from './question.js'
import type { QuestionHistory } from './question-history.js'

export interface ServerRequestsOptions {
  capabilities: Json
  /** Whether a request is refused because the client of a call lacks a capability. */
  blames: boolean
  /** The answer to `roots/list` if the configuration gives it; undefined if the client answers. */
  roots: Json | undefined
  /** The principal whose reservations questions use. */
  who: string
  /** Tools, prompts and resources whose calls have made the server send requests. */
  questionHistory: Pick<QuestionHistory, 'add' | 'has'>
  revision: LegacyRevision
  /** A connected client of the session that may be asked beside its calls; undefined without one. */
  client(): AskedClient | undefined
}

/** Milliseconds for which a question waits for a call that it can belong to. */
const HOLD = { 'roots/list': 55_000, others: 2_000 }
/** The same while another request is open, such as a list, which may wait for the answer. */
const HOLD_BESIDE_OTHER = 1_000
/** Milliseconds after `initialize` in which a question may concern the whole session. */
const BEGINNING = 5_000

/** The maximum number of refusals remembered per call. */
const MAX_REFUSALS = 16

export class ServerRequests {
  /** Questions that arrived while no call was running: they wait for one that begins soon. */
  readonly held = new Map<ServerQuestion, NodeJS.Timeout>()
  /** A question was refused, because too many calls wait for answers. */
  hadNoRoom = false
  /** The server has asked a client for its roots. */
  knowsRoots = false
  readonly #peer: Peer
  readonly #options: ServerRequestsOptions
  readonly #capabilities: Payload
  /** Unanswered questions, by their ids. */
  readonly #open = new Map<string, ServerQuestion>()
  readonly #began = performance.now()
  /** The server has sent a request that names no call. */
  #hasAsked = false

  constructor(peer: Peer, options: ServerRequestsOptions) {
    this.#peer = peer
    this.#options = options
    this.#capabilities = parseObject(options.capabilities)
  }

  /** Gives the waiting questions to a call that has begun and whose client may be asked, or to its client. */
  giveHeld(exchange: Exchange): void {
    const client = exchange.call?.client
    for (const question of this.#takeHeld()) {
      if (client) this.#askBeside(question, client)
      else this.#give(question, exchange)
    }
  }

  /** Gives the waiting questions to a client that has connected, if it is one of this session. */
  askHeld(): void {
    const client = this.held.size > 0 ? this.#options.client() : undefined
    if (client) for (const question of this.#takeHeld()) this.#askBeside(question, client)
  }

  /** Refuses the waiting questions: they were for a client that has gone. */
  refuseHeld(): void {
    for (const question of this.#takeHeld()) question.respond({ code: -32603, message: 'The client has gone' })
  }

  /** Takes a request of the server: answers or refuses it, or gives it to the call that it belongs to. */
  asked(request: Request, exchange: Exchange | undefined): void {
    const { id, method } = request
    const params = typeof request.params === 'string' ? EMPTY : request.params
    const { roots, questionHistory, who } = this.#options
    const peer = this.#peer
    if (method === 'ping') return peer.respond(id, '{}')
    if (method === 'roots/list' && roots !== undefined) return peer.respond(id, roots)
    const needed = capabilityFor(method, params)
    if (!needed) return peer.respond(id, { code: -32601, message: refusalOf(method) })
    const lacking = uncovered(method, params, this.#capabilities)
    if (lacking !== undefined) return this.#refuse(request, needed, lacking, exchange)
    if (value(params, 'mode') === 'url' && !isShowable(value(params, 'url')))
      return peer.respond(id, { code: -32602, message: 'Unsupported url: it has to be https, or http on localhost' })
    const candidates = this.#candidates()
    if (exchange && !candidates.includes(exchange))
      return peer.respond(id, {
        code: -32600,
        message: 'The client request on this stream allows no requests to the client',
      })
    const addressee = this.#waitingFor(params) ?? exchange
    const client = addressee ? undefined : this.#askedClient()
    // The first request may be about the new session, not about an open list.
    const mayWait = !this.#hasAsked && performance.now() - this.#began < BEGINNING
    if (!exchange) this.#hasAsked = true
    if (!addressee && !client && !mayWait && candidates.length === 0 && this.#others().length > 0)
      return peer.respond(id, { code: -32600, message: 'The open client requests allow no requests to the client' })
    const [only, another] = candidates
    const asker = addressee ?? (another || client ? undefined : only)
    if (asker) questionHistory.add(asker.call)
    const reservation = peer.reserve(who)
    if (reservation.resize(weightOf(params.source)))
      return peer.respond(id, {
        code: -32603,
        message: 'The bridge has no memory left for this request (limits.memory)',
      })
    const asking = { peer, open: this.#open, revision: this.#options.revision }
    const question = new ServerQuestion(request, addressee !== undefined, asking, reservation)
    if (method === 'roots/list') this.knowsRoots = true
    this.#give(question, addressee)
  }

  /** The number, for the inspector, of the call to which a request of the server probably belongs. */
  callOf({ params }: Request): number | undefined {
    const related = typeof params === 'string' ? undefined : this.#waitingFor(params)
    return (related ?? this.#mostLikely())?.number
  }

  /** Whether another call is running whose client may be asked. */
  hasOther(exchange: Exchange): boolean {
    return this.#candidates().some((one) => one !== exchange)
  }

  /** Gives an open question to another call, because its call has ended. */
  moveOn(question: ServerQuestion): void {
    if (question.isOpen) this.#give(question, undefined)
  }

  /**
   * Refuses a question if a client with these capabilities does not support it. Returns whether the question is
   * refused.
   */
  refuses(question: ServerQuestion, exchange: Exchange, capabilities: Payload): boolean {
    const { method, params } = question
    const needed = capabilityFor(method, params)
    const lacking = uncovered(method, params, capabilities)
    if (!needed || lacking === undefined) return false
    if (question.close()) this.#refuse(question, needed, lacking, exchange)
    return true
  }

  /** Ends what all questions hold. Nothing can be answered any more. */
  close(): void {
    for (const question of this.#open.values()) question.end()
  }

  /** Takes the server's `notifications/cancelled`: withdraws the question that it names. */
  withdraw(params: Params): void {
    const id = cancelledId(params)
    const question = id && this.#open.get(idKey(id))
    if (!question) return
    question.withdrawn = true
    question.close()
    question.onWithdrawn?.()
    this.#drop(question)
    this.#peer.settled()
  }

  /** The call that waits for the related task of a question. */
  #waitingFor(params: Payload): Exchange | undefined {
    const meta = objectIn(params, '_meta')
    const related = meta && objectIn(meta, RELATED_TASK)
    const taskId = related && textUnder(related, 'taskId')
    return taskId === undefined ? undefined : [...this.#peer.open].find(({ task }) => task === taskId)
  }

  /** Running calls whose clients may be asked, oldest first. */
  #candidates(): Exchange[] {
    return [...this.#peer.open].filter(({ call, answered }) => call && !answered && methodTraits(call.method).asks)
  }

  /** Open requests in which no client may be asked: calls such as lists, and lists that the bridge itself requests. */
  #others(): Exchange[] {
    return [...this.#peer.open].filter(({ call, method, answered }) => {
      return !answered && (call ? !methodTraits(call.method).asks : method?.endsWith('/list') === true)
    })
  }

  /**
   * Gives a question to the call that it belongs to. If it names none, to its client, or else, if the client can only be asked
   * during a call, to the likeliest one.
   */
  #give(question: ServerQuestion, addressee: Exchange | undefined): void {
    const client = addressee ? undefined : this.#askedClient()
    const carrier = client ? undefined : (addressee ?? this.#mostLikely())
    question.carrier = carrier
    if (client) this.#askBeside(question, client)
    else if (carrier) carrier.arrive({ kind: 'question', question })
    else this.#hold(question)
  }

  #hold(question: ServerQuestion): void {
    const until = performance.now() + (question.method === 'roots/list' ? HOLD['roots/list'] : HOLD.others)
    const wait = () => {
      const now = performance.now()
      const delaysOther = this.#others().some(({ sentAt }) => sentAt > 0 && now - sentAt >= HOLD_BESIDE_OTHER - 1)
      if (until - now >= 1 && !delaysOther)
        return this.held.set(question, setTimeout(wait, Math.min(until - now, HOLD_BESIDE_OTHER)).unref())
      this.held.delete(question)
      return question.respond({ code: -32603, message: 'No call is in progress that this request could belong to' })
    }
    this.held.set(question, setTimeout(wait, HOLD_BESIDE_OTHER).unref())
  }

  #drop(question: ServerQuestion): void {
    clearTimeout(this.held.get(question))
    this.held.delete(question)
  }

  #takeHeld(): readonly ServerQuestion[] {
    const all = [...this.held.keys()]
    for (const question of all) this.#drop(question)
    return all
  }

  #askBeside(question: ServerQuestion, client: AskedClient): void {
    askBeside(question, client, () => this.moveOn(question)).catch(() => {})
  }

  /** The client to be asked beside its calls: that of the likeliest call, or else a connected one. */
  #askedClient(): AskedClient | undefined {
    const likely = this.#mostLikely()
    return likely ? likely.call?.client : this.#options.client()
  }

  /**
   * The call that gets a question which names none: the oldest one whose tool, prompt or resource has made the server ask
   * before, or else the oldest one. Calls whose client waits come before parked ones, and calls without a question before
   * calls with one. Questions about a task usually name it, so calls that wait for tasks come last. A wrong choice does no
   * harm: a session has one principal and one client, and the answer goes back to the server's request in any case.
   */
  #mostLikely(): Exchange | undefined {
    const candidates = this.#candidates()
    const others = candidates.filter(({ task }) => task === undefined)
    const waiting = others.filter(({ read }) => read)
    const possible = [waiting, others, candidates].find(({ length }) => length > 0) ?? []
    if (possible.length <= 1) return possible[0]
    const askers = possible.filter(({ call }) => this.#options.questionHistory.has(call))
    const likely = askers.length > 0 ? askers : possible
    const carrying = new Set([...this.#open.values()].map(({ carrier }) => carrier))
    return likely.find((one) => !carrying.has(one)) ?? likely[0]
  }

  /**
   * Refuses a request because the client has not declared the capability for it, and notes that for the calls it may
   * concern.
   */
  #refuse(
    { id, method }: Pick<Request, 'id' | 'method'>,
    { name, under }: Needed,
    lacking: string,
    exchange: Exchange | undefined,
  ): void {
    const isPart = lacking !== name
    const said = isPart ? `The client does not offer ${lacking}` : refusalOf(method)
    this.#peer.respond(id, { code: isPart ? -32602 : -32601, message: said })
    if (!this.#options.blames) return
    const suspects = exchange ? [exchange] : this.#candidates()
    const refusal = { name, needed: under, said, certain: suspects.length === 1 }
    for (const suspect of suspects) {
      suspect.refusals ??= []
      if (suspect.refusals.length < MAX_REFUSALS) suspect.refusals.push(refusal)
    }
  }
}

/** The message of a -32601 to the server. */
function refusalOf(method: string): string {
  return `Method not found: ${printable(method, ECHOED)}`
}
