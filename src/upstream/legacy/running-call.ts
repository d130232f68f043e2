/**
 * A call with a legacy server, over as many legs as its client needs to answer what the server asks in the middle of it. The
 * server knows nothing of legs: for it the call goes on until it is answered.
 */
import type { Call, Reply } from '../../protocol/call.js'
import { liftQuestion, lowerAnswer } from '../../protocol/input.js'
import { RELATED_TASK, withoutEnvelope } from '../../protocol/meta.js'
import { atLeast, isLogLevel } from '../../protocol/methods.js'
import type { Params, Response } from '../../rpc/message.js'
import { EMPTY, type Json, objectIn, type Payload, parseObject, raw, value, write } from '../../rpc/splice.js'
import { type Exchange, noteDropped, type Question } from '../exchange.js'
import { answerOf, outsideSession } from '../failure.js'
import { rested } from '../rested.js'
import type { Lease } from './pool.js'
import type { LegacySession } from './session.js'

/** What a leg gives: replies, and when the server asks something, that it does. */
export type Step = Reply | { kind: 'asks' }

/** Milliseconds for which further questions are awaited that can be put in the same round. */
const GATHER = { quiet: 25, most: 250 }
const NO_ROOM = { code: -32603, message: 'Too many questions wait for answers' }

export interface RunningOptions {
  decode(call: Call, response: Response, exchange: Exchange): Reply
  /** The task at the server that the call waits for, if it is one. */
  task?: string
  /** Nobody waits any more, and the server has not answered. */
  onGivenUp?: (() => void) | undefined
}

export class RunningCall {
  readonly session: LegacySession
  readonly #lease: Lease
  readonly #exchange: Exchange
  readonly #decode: RunningOptions['decode']
  readonly #onGivenUp: RunningOptions['onGivenUp']
  readonly #questions = new Map<string, Question>()
  /** The request, which waits until the server has been answered what it asked before. */
  #unsent: { method: string; params: Json | undefined } | undefined
  #asked = 0
  #over = false

  constructor(lease: Lease, call: Call, { decode, task, onGivenUp }: RunningOptions) {
    this.session = lease.session
    this.#lease = lease
    this.#decode = decode
    this.#onGivenUp = onGivenUp
    this.#exchange = lease.session.begin(call, task)
  }

  get id(): number {
    return this.#exchange.id
  }

  /** The server has answered, whether or not anybody has read it. */
  get answered(): boolean {
    return this.#exchange.answered
  }

  get over(): boolean {
    return this.#over
  }

  /** Questions that nobody has answered, by the keys that the client knows them by. */
  get questions(): ReadonlyMap<string, Question> {
    return this.#questions
  }

  /** What is to be sent with the first leg: once that is read, and nothing that the server has asked before is open. */
  send(method: string, params: Json | undefined): void {
    this.#unsent = { method, params }
  }

  /** One leg: what belongs to the call, until it is answered or the server asks. `mayAsk` says whether there is room for that. */
  async *leg(call: Call, mayAsk: () => boolean): AsyncGenerator<Step, void> {
    const exchange = this.#exchange
    this.session.resume(exchange, call)
    exchange.read = true
    let gathering: number | undefined = this.#questions.size > 0 ? performance.now() : undefined
    for (;;) {
      if (this.#unsent && this.#questions.size === 0 && !exchange.unread) {
        exchange.send(this.#unsent.method, this.#unsent.params)
        this.#unsent = undefined
      }
      const arrival = await this.#next(gathering)
      if (arrival === undefined) {
        // Others may have taken the room that there was when the first of them came.
        if (!mayAsk()) this.#refuseAll()
        if (!this.#asks(call)) {
          gathering = undefined
          continue
        }
        exchange.read = false
        this.session.resume(exchange, rested(call))
        for (const question of this.#questions.values()) question.shown = true
        yield { kind: 'asks' }
        return
      }
      if (arrival.kind === 'question') {
        if (mayAsk()) gathering = this.#keep(arrival.question) ?? gathering
        else this.session.serverRequests.respond(arrival.question, NO_ROOM)
      } else if (arrival.kind === 'response') {
        noteDropped(exchange, call)
        const last = this.#decode(call, arrival, exchange)
        if (call.caller.logLevel !== undefined && this.session.trailing > 0) yield* this.#trailing(call)
        yield last
        return
      } else {
        const reply = relayed(call, arrival.method, arrival.params)
        if (reply) yield reply
      }
    }
  }

  /** The questions as a modern client is asked them, under their keys. */
  inputRequests(capabilities: Json): Json {
    const declared = parseObject(capabilities)
    const requests = [...this.#open()].map(
      ([
        key,
        {
          request: { method, params },
        },
      ]) => {
        return `"${key}":${liftQuestion(method, typeof params === 'string' ? EMPTY : params, declared)}`
      },
    )
    return `{${requests.join(',')}}`
  }

  /** Gives the server the client's answer to one question. */
  answer(key: string, answer: Payload): void {
    const question = this.#questions.get(key)
    this.#questions.delete(key)
    if (!question) return
    const { method } = question.request
    const lowered = lowerAnswer(method, answer, this.session.handshake.revision)
    this.session.serverRequests.respond(
      question,
      lowered ? write(lowered) : { code: -32603, message: 'The answer cannot be said in the revision of the session' },
    )
  }

  /** Tells the server that somebody is still thinking, where it has asked to be told. */
  keepPatient(progress: number): void {
    for (const [, { request }] of this.#open()) {
      const meta = typeof request.params === 'string' ? undefined : objectIn(request.params, '_meta')
      const progressToken = meta && raw(meta, 'progressToken')
      if (progressToken === undefined) continue
      this.session
        .notify('notifications/progress', `{"progressToken":${progressToken},"progress":${progress}}`)
        .catch(() => {})
    }
  }

  /** The call is answered, or given up: then the server is told, and its questions are answered as if by nobody. */
  end(reason?: string): void {
    if (this.#over) return
    this.#over = true
    const { serverRequests: asking } = this.session
    const { answered } = this.#exchange
    const left = [...this.#questions.values(), ...this.#exchange.takeQuestions()]
    // A question without an address is another call's if this one is answered, and may be another's if it was given up.
    const movesOn = answered || asking.hasOther(this.#exchange)
    const anothers = left.filter(({ addressed, shown }) => movesOn && !addressed && (answered || !shown))
    this.#questions.clear()
    for (const question of left) if (!anothers.includes(question)) asking.respond(question, answerOfNobody(question))
    if (!answered) this.#onGivenUp?.()
    this.session.finish(this.#exchange, reason)
    for (const question of anothers) asking.moveOn(question)
    this.#lease.release()
  }

  async #next(gathering: number | undefined) {
    const left = gathering === undefined ? undefined : GATHER.most - (performance.now() - gathering)
    const arriving =
      left === undefined ? this.#exchange.next() : this.#exchange.nextWithin(Math.max(0, Math.min(GATHER.quiet, left)))
    return arriving.catch((error: unknown) => answerOf(error, outsideSession))
  }

  /** Keeps a question for the client. Gives when that was, unless others have been kept before. */
  #keep(question: Question): number | undefined {
    const first = this.#questions.size === 0
    this.#questions.set(`${question.request.method.split('/', 1)[0]}-${++this.#asked}`, question)
    return first ? performance.now() : undefined
  }

  #refuseAll(): void {
    for (const question of this.#questions.values()) this.session.serverRequests.respond(question, NO_ROOM)
    this.#questions.clear()
  }

  /** Whether the client is to be asked anything: what it has not declared with this leg, it is not. */
  #asks(call: Call): boolean {
    const declared = parseObject(call.caller.capabilities)
    for (const [key, question] of this.#open())
      if (this.session.serverRequests.refuses(question, this.#exchange, declared)) this.#questions.delete(key)
    return this.#questions.size > 0
  }

  /** Questions that the server still wants answers to. */
  *#open(): Generator<[string, Question]> {
    for (const [key, question] of this.#questions) {
      if (question.withdrawn) this.#questions.delete(key)
      else yield [key, question]
    }
  }

  /** Log messages that were sent before the answer, but on another connection. */
  async *#trailing(call: Call): AsyncGenerator<Reply> {
    for (;;) {
      const arrival = await this.#exchange.nextWithin(this.session.trailing)
      if (arrival?.kind !== 'notification') return
      const reply = relayed(call, arrival.method, arrival.params)
      if (reply) yield reply
    }
  }
}

/** What a server is told when nobody answers. */
function answerOfNobody({ request: { method } }: Question) {
  if (method === 'elicitation/create') return '{"action":"cancel"}'
  if (method === 'sampling/createMessage') return { code: -1, message: 'The request was rejected' }
  return { code: -32603, message: 'The client did not answer' }
}

/** A notification that came during the call, if the caller wants it. */
function relayed(call: Call, method: string, params: Params): Reply | undefined {
  const payload = typeof params === 'string' ? EMPTY : params
  switch (method) {
    case 'notifications/progress':
      return call.progress ? { kind: 'notification', method, params: withoutEnvelope(payload) } : undefined
    case 'notifications/message': {
      const level = value(payload, 'level')
      const wanted = call.caller.logLevel
      if (wanted === undefined || !isLogLevel(level) || !atLeast(level, wanted)) return undefined
      const meta = objectIn(payload, '_meta')
      if (meta && raw(meta, RELATED_TASK) !== undefined) return undefined
      return { kind: 'notification', method, params: withoutEnvelope(payload) }
    }
    default:
      return undefined
  }
}
