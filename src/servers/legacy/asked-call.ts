/**
 * A call during which a legacy server asks its client questions. Each round of questions begins another leg; for the
 * server it stays one open request.
 */

import { Fault } from '../../base/fault/fault.js'
import type { Params, Response, Sent } from '../../base/rpc/message.js'
import { EMPTY, type Json, keys, objectIn, type Payload, parseObject, raw, value } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { wellFormed } from '../../mcp/protocol/input.js'
import { decodeReply } from '../../mcp/protocol/legacy-server.js'
import { RELATED_TASK, withoutEnvelope } from '../../mcp/protocol/meta.js'
import { isWantedLevel } from '../../mcp/protocol/methods.js'
import type { Arrival, Exchange } from '../exchange.js'
import { answerOf, Contradiction, contradicts, errorIn } from '../failure.js'
import { LOG } from '../log-reader.js'
import { failureIn } from '../refusals.js'
import { type Loss, SessionLost } from '../session-loss.js'
import { ChannelError } from '../transport/channel.js'
import { waitingCall } from '../waiting-call.js'
import type { ServerQuestion } from './question.js'
import type { LegacySession } from './session.js'

/** How a leg ends: with the answer, or because the server asks something. */
export type LegEnd = Final | { kind: 'asks' }

/** Milliseconds to wait for further questions for the same round: after each question, and in total. */
const GATHER = { quiet: 25, most: 250 }
/** Milliseconds for which the client of an answered call may still answer a question, before another client is asked. */
const PASS_ON = 1_000
const NO_ROOM = { code: -32603, message: 'Too many calls wait for answers of their clients' }

/** The Fault for a call that cannot wait for the answer of its client. */
export function noRoom(): Fault {
  return new Fault('overloaded', 'Too many calls wait for answers (limits.parked, limits.parkedPerPrincipal)', {
    retryAfter: 1,
  })
}

export type Decode = (call: Call, response: Response, exchange: Exchange, session: LegacySession) => Final

export interface AskedOptions {
  decode: Decode
  /** The first question of the server, if it has arrived. */
  question?: ServerQuestion
  /** Called when the call ends without an answer. */
  onGivenUp?: (() => void) | undefined
}

export class AskedCall {
  readonly session: LegacySession
  /** Unanswered questions, by their keys in `inputRequests`. */
  readonly questions = new Map<string, ServerQuestion>()
  /** Aborts when the open questions of this leg need no answer any more. */
  moot = new HangUp()
  over = false
  readonly #exchange: Exchange
  readonly #decode: Decode
  readonly #onGivenUp: AskedOptions['onGivenUp']
  /** The first question, until it is read. */
  #first: ServerQuestion | undefined
  /** The request, until it is sent. Questions that arrived before it are answered first. */
  #unsent: { method: string; params: Sent } | undefined
  #asked = 0
  /** A question was refused because too many calls wait for answers. */
  #hadNoRoom = false

  constructor(session: LegacySession, exchange: Exchange, { decode, question, onGivenUp }: AskedOptions) {
    this.session = session
    this.#exchange = exchange
    this.#decode = decode
    this.#first = question
    this.#onGivenUp = onGivenUp
    // The call may outlive the leg that acquired the session.
    session.use()
  }

  /** The server has answered, even if the answer has not been read. */
  get answered(): boolean {
    return this.#exchange.answered
  }

  /** Sets the request. The first leg sends it when no earlier question is open. */
  send(method: string, params: Sent): this {
    this.#unsent = { method, params }
    return this
  }

  /** Runs one leg: until the call is answered, or the server asks. `mayAsk`: whether there is room for a parked call. */
  async leg(call: Call, mayAsk: () => boolean): Promise<LegEnd> {
    const exchange = this.#exchange
    exchange.resume(call)
    exchange.read = true
    let gathering: number | undefined = this.questions.size > 0 ? performance.now() : undefined
    for (;;) {
      if (this.#unsent && this.questions.size === 0 && !exchange.unread) {
        this.session.link.peer.send(exchange, this.#unsent.method, this.#unsent.params)
        this.#unsent = undefined
      }
      const arrival = await this.#next(call, gathering)
      if (arrival === undefined) {
        // Other calls may have been parked since the first question arrived.
        if (!mayAsk()) this.#refuseAll()
        if (!this.#asks(call)) {
          gathering = undefined
          continue
        }
        exchange.read = false
        this.moot = new HangUp()
        exchange.onUnreadAnswer = () => {
          this.moot.abort()
          setTimeout(() => this.#passOn(), PASS_ON).unref()
        }
        exchange.resume(waitingCall(call))
        for (const question of this.questions.values()) {
          question.shown = true
          question.onWithdrawn = () => this.#open().next().done && this.moot.abort()
        }
        return { kind: 'asks' }
      }
      if (arrival.kind === 'question') {
        if (mayAsk()) gathering = this.#keep(arrival.question) ?? gathering
        else this.#refuse(arrival.question)
      } else if (arrival.kind === 'response') {
        const last = this.#decode(call, arrival, exchange, this.session)
        await settle(this.session, exchange, call, arrival, last, this.#hadNoRoom)
        return last
      } else if (arrival.kind === 'notification') {
        const held = notifyOf(call, arrival)
        if (held) await held
      }
    }
  }

  inputRequests(capabilities: Json): Json {
    const declared = parseObject(capabilities)
    const requests = [...this.#open()].map(([key, question]) => `"${key}":${question.lifted(declared)}`)
    return `{${requests.join(',')}}`
  }

  answer(key: string, answer: Payload): void {
    this.questions.get(key)?.answer(answer)
    this.questions.delete(key)
  }

  /** Sends progress for questions with a progress token, so that the server keeps waiting for the client. */
  sendProgress(progress: number): void {
    for (const [, question] of this.#open()) question.sendProgress(progress)
  }

  /**
   * Ends the call. A call without an answer is cancelled with `reason`, and its questions are answered for the client.
   */
  end(reason?: string): void {
    if (this.over) return
    this.over = true
    const exchange = this.#exchange
    const moving = this.#answerOrMove()
    if (!exchange.answered) this.#onGivenUp?.()
    this.session.link.peer.release(exchange, reason)
    for (const question of moving) this.session.serverRequests.moveOn(question)
    this.session.unuse()
  }

  /** Answers questions at the end of the call, for the client. Returns those that may belong to another call. */
  #answerOrMove(): readonly ServerQuestion[] {
    const first = this.#first ? [this.#first] : []
    const open = [...first, ...this.questions.values(), ...this.#exchange.takeQuestions()]
    const { serverRequests } = this.session
    const { answered } = this.#exchange
    // A question that names no call belongs to another call if this one is answered, and may do so if it was cancelled.
    const movesOn = answered || serverRequests.hasOther(this.#exchange)
    const moving = open.filter(({ addressed, shown }) => movesOn && !addressed && (answered || !shown))
    this.questions.clear()
    for (const question of open) if (!moving.includes(question)) question.decline()
    return moving
  }

  /**
   * Moves the open questions to other calls. The server has answered this call although the client has not, so the
   * questions belong to other calls; these may have got the questions of this one.
   */
  #passOn(): void {
    for (const [key, question] of this.#open()) {
      if (question.addressed) continue
      this.questions.delete(key)
      this.session.serverRequests.moveOn(question)
    }
  }

  /** The next message; undefined if none has arrived for the round of questions that began at `gathering`. */
  async #next(call: Call, gathering: number | undefined): Promise<Arrival | undefined> {
    const question = this.#first
    this.#first = undefined
    if (question) return { kind: 'question', question }
    try {
      return await (gathering === undefined ? this.#exchange.nextArrival() : this.#nextOfRound(gathering))
    } catch (error) {
      return answerIn(error, this.session, this.#exchange, call)
    }
  }

  /** The next message, as long as further questions of the round that began at `since` may arrive. */
  #nextOfRound(since: number): Promise<Arrival | undefined> {
    const left = GATHER.most - (performance.now() - since)
    return this.#exchange.nextWithin(Math.max(0, Math.min(GATHER.quiet, left)))
  }

  /** Keeps a question for the client. Returns the current time if it is the first one. */
  #keep(question: ServerQuestion): number | undefined {
    const first = this.questions.size === 0
    this.questions.set(`${question.method.split('/', 1)[0]}-${++this.#asked}`, question)
    return first ? performance.now() : undefined
  }

  #refuse(question: ServerQuestion): void {
    this.#hadNoRoom = true
    this.session.serverRequests.hadNoRoom = true
    question.respond(NO_ROOM)
  }

  #refuseAll(): void {
    for (const question of this.questions.values()) this.#refuse(question)
    this.questions.clear()
  }

  /** Refuses questions that the client does not support in this leg. Returns whether any question remains. */
  #asks(call: Call): boolean {
    const declared = parseObject(call.caller.capabilities)
    for (const [key, question] of this.#open())
      if (this.session.serverRequests.refuses(question, this.#exchange, declared)) this.questions.delete(key)
    return this.questions.size > 0
  }

  /** Questions that the server has not withdrawn. Removes the withdrawn ones. */
  *#open(): Generator<[string, ServerQuestion]> {
    for (const [key, question] of this.questions) {
      if (question.withdrawn) this.questions.delete(key)
      else yield [key, question]
    }
  }
}

/** The valid answers of a client to open questions, by their keys. */
export function validAnswers({ questions }: Pick<AskedCall, 'questions'>, responses: Payload): [string, Payload][] {
  return keys(responses).flatMap((key) => {
    const question = questions.get(key)
    const answer = question && objectIn(responses, key)
    const good = question && answer && wellFormed(question.method, answer)
    return good ? [[key, good]] : []
  })
}

/**
 * The answer in a refusal of a request. Rejects with the failure if there is none, or with a Contradiction or SessionLost.
 */
export async function answerIn(
  error: unknown,
  session: LegacySession,
  exchange: Exchange,
  call: Call,
): Promise<Response> {
  if (!(error instanceof ChannelError)) throw error
  throwIfModern(error, call)
  const loss = await lossBehind(error, session, exchange, call)
  if (loss) throw new SessionLost(loss, { cause: error })
  exchange.isServed = true
  return answerOf(error)
}

/** Throws a Contradiction if no legacy server sends such a refusal, because the server may have changed its era. */
function throwIfModern({ refusal }: ChannelError, call: Call): void {
  const said = refusal && errorIn(refusal)
  if (!said || !contradicts(refusal, 'legacy', said)) return
  const instead = decodeReply(call, said, undefined)
  throw new Contradiction('legacy', 'The server answered with an error of 2026-07-28', instead)
}

/**
 * Handles what an answer implies. Rejects with SessionLost if an error shows that the session is lost, and with a Fault if
 * the call failed because its client could not be asked (`hadNoRoom`). Waits for late log messages.
 */
export async function settle(
  session: LegacySession,
  exchange: Exchange,
  call: Call,
  response: Response,
  last: Final,
  hadNoRoom = false,
): Promise<void> {
  const loss = last.kind === 'error' && (await lossBehind(response, session, exchange, call))
  if (loss) throw new SessionLost(loss, { answer: last })
  // The refused question may have been given to another call; then the failure repeats the refusal. If the server managed
  // without an answer, its result counts.
  const failure = failureIn(last)
  if (failure !== undefined && (hadNoRoom || failure.includes(NO_ROOM.message))) throw noRoom()
  if (call.caller.logLevel !== undefined && session.trailing > 0) await tellTrailing(session, exchange, call)
}

/** Whether the server has lost the session, and the call with it. A task has begun in any case. */
async function lossBehind(
  failure: ChannelError | Response,
  session: LegacySession,
  { isServed, task }: Exchange,
  { method }: Call,
): Promise<Loss | undefined> {
  const loss = isServed ? undefined : await session.link.lossBehind(failure, method)
  return loss && task !== undefined ? 'acted' : loss
}

/** Passes on log messages that were sent before the answer, but arrive after it on another connection. */
async function tellTrailing({ trailing }: LegacySession, exchange: Exchange, call: Call): Promise<void> {
  for (;;) {
    const arrival = await exchange.nextWithin(trailing)
    if (arrival?.kind !== 'notification') return
    await notifyOf(call, arrival)
  }
}

/** Passes a notification of the call on to its caller, if the caller has asked for it. */
export function notifyOf(
  call: Call,
  { method, params }: { method: string; params: Params },
): Promise<void> | undefined {
  const payload = typeof params === 'string' ? EMPTY : params
  const isWanted = method === 'notifications/progress' ? call.progress : method === LOG && isWantedLog(call, payload)
  if (!isWanted) return undefined
  return call.notify({ kind: 'notification', method, params: withoutEnvelope(payload, {}, 'server') })
}

function isWantedLog({ caller }: Call, params: Payload): boolean {
  const meta = objectIn(params, '_meta')
  const isOfTask = meta !== undefined && raw(meta, RELATED_TASK) !== undefined
  return isWantedLevel(value(params, 'level'), caller.logLevel) && !isOfTask
}
