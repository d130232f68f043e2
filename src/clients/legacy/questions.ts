/**
 * Turns the input requests of a modern server into requests to a legacy client, and the client's answers into the
 * `inputResponses` of the repeated call (MCP 2026-07-28, basic/patterns/mrtr).
 */

import { Fault } from '../../base/fault/fault.js'
import type { Reservation } from '../../base/limits/memory.js'
import { type Id, idKey, keptKey, notification, type Response, readError, request } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { EMPTY, edit, type Json, type Payload, parseObject, sizeOf, value, write } from '../../base/rpc/splice.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { Deadline, unlessAborted } from '../../base/time/time.js'
import type { CallRecorder } from '../../mcp/ports/recorder.js'
import type { Answers } from '../../mcp/protocol/call.js'
import { type Downlevel, downlevelQuestion } from '../../mcp/protocol/downlevel/downlevel.js'
import { traits } from '../../mcp/protocol/eras.js'
import {
  type InputRequest,
  readInputRequests,
  stateOf,
  Unanswered,
  uncovered,
  wellFormed,
} from '../../mcp/protocol/input.js'
import { withoutEnvelope } from '../../mcp/protocol/meta.js'
import type { DeliveryKind } from '../../mcp/protocol/upstream.js'

export interface QuestionsOptions {
  /** ClientCapabilities that the client has declared. */
  capabilities: Json
  to: Downlevel
  /** The number of earlier requests to the client, from which the ids continue. */
  asked?: number
  /** With what ids begin, where the server's own requests have ids of their own; by default they are numbers. */
  prefix?: string
  /** Milliseconds for one round of questions. */
  within: number
  /** Counts the start and the end of a round of questions. `call` is the number of the call for the inspector. */
  report(what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost', call: number | undefined): void
}

type Outcome = { kind: 'result'; result: Payload } | { kind: 'error'; code: number; message: string }

const CANCELLED: Payload = parseObject('{"action":"cancel"}')

/** The open requests of one session to its client. */
export class Questions {
  readonly #options: QuestionsOptions
  readonly #open = new Map<string, { settle(outcome: Outcome): void; record: ClientAsking['record'] }>()
  #lastId: number
  /** Forms and URLs are shown one after another, because a person looks at one dialogue at a time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: QuestionsOptions) {
    this.#options = options
    this.#lastId = options.asked ?? 0
  }

  /**
   * Sends the requests to the client, those for a person one after another. Resolves to the answers for the repeated call.
   * Rejects with a Fault if the server requests something that the client did not declare, and with an Unanswered if the
   * client did not answer and its answer cannot be replaced by `cancel`.
   */
  async ask(input: Payload, signal: Signal, asking: ClientAsking): Promise<Answers> {
    const { number: call } = asking.record.recorder ?? {}
    signal.throwIfAborted()
    // The answers of the previous round have been sent.
    asking.reservation.resize(0)
    const requests = readInputRequests(input)
    for (const { method, params } of requests) {
      const lacking = uncovered(method, params, parseObject(this.#options.capabilities))
      if (!lacking) continue
      this.#options.report('refused', call)
      throw new Fault('upstreamProtocol', `The server requested ${lacking}, which the client did not declare`)
    }
    let end: 'answered' | 'refused' | 'lost' = 'lost'
    const report = (what: 'parked' | 'expired' | typeof end) => requests.length > 0 && this.#options.report(what, call)
    report('parked')
    const over = new HangUp(signal)
    const timer = new Deadline(this.#options.within, () => over.abort())
    const { needless } = asking
    const unfollow = needless && over.follow(needless)
    const round: Round = { ...asking, signal: over, asked: [], bytes: 0 }
    // A null prototype, because the server chooses the keys.
    const answers: Record<string, Json> = Object.create(null) as Record<string, Json>
    try {
      // Requests to a model or a program are sent at once. Requests to a person follow, one after another.
      const forPeople = requests.filter(({ method }) => method === 'elicitation/create')
      const others = requests.filter((one) => !forPeople.includes(one))
      const waiting: Asked[] = []
      for (const one of others) waiting.push(await this.#send(one, round))
      for (const one of forPeople) {
        const done = await this.#waitForTurn(over)
        if (!done) {
          answers[one.key] = write(CANCELLED)
          continue
        }
        try {
          const question = await this.#send(one, round)
          answers[one.key] = write(elicited(await question.outcome, question))
        } finally {
          done()
        }
      }
      for (const question of waiting) answers[question.request.key] = write(answered(await question.outcome, question))
      await this.#withdraw(round)
      end = 'answered'
    } catch (error) {
      end = 'refused'
      await this.#withdraw(round)
      if (!needless?.aborted) throw error
    } finally {
      const isLost = signal.aborted || needless?.aborted
      report(isLost ? 'lost' : over.aborted ? 'expired' : end)
      unfollow?.()
      for (const { id } of round.asked) this.#open.delete(idKey(id))
      timer.clear()
      over.abort()
    }
    signal.throwIfAborted()
    const responses = requests.length === 0 ? undefined : write(edit(EMPTY, answers))
    return { responses, state: stateOf(input) }
  }

  /** Number of requests that were sent to the client. */
  get asked(): number {
    return this.#lastId
  }

  /** Whether a response answers an open request. */
  isOpen({ id }: Response): boolean {
    return id !== undefined && keptKey(this.#open, id) !== undefined
  }

  /** Whether a response answers a request that was sent here, which may be over; only with a prefix. */
  isOwn({ id }: Response): boolean {
    const { prefix } = this.#options
    return prefix !== undefined && id?.startsWith(`"${prefix}`) === true
  }

  /** Handles an answer of the client. Ignores one to an unknown request. */
  answer(response: Response): void {
    const {
      id,
      outcome: { kind, payload = EMPTY },
    } = response
    const key = id === undefined ? undefined : keptKey(this.#open, id)
    const open = key === undefined ? undefined : this.#open.get(key)
    if (key === undefined || !open) return
    const { settle, record } = open
    record.recorder?.received(response)
    this.#open.delete(key)
    if (kind === 'result') return settle({ kind, result: payload })
    settle({ kind, ...readError(payload, 'The client did not answer') })
  }

  /**
   * Sends one request. A field for several values becomes a checkbox per value, if the client's revision requires it.
   */
  async #send(asked: InputRequest, round: Round): Promise<Asked> {
    const { capabilities, to } = this.#options
    const { about, record } = round
    const { method } = asked
    const { params, uplift } = downlevelQuestion(method, asked.params, parseObject(capabilities), to)
    const name = `"${this.#options.prefix ?? ''}${++this.#lastId}"`
    const id = (this.#options.prefix === undefined ? String(this.#lastId) : name) as Id
    const bare = withoutEnvelope(this.#isUrl(method, params) ? edit(params, { elicitationId: name }) : params)
    const text = write(about === undefined ? bare : edit(bare, { _meta: about }))
    const outcome = new Promise<Outcome>((resolve) => {
      this.#open.set(idKey(id), { settle: (outcome) => resolve(kept(outcome, round)), record })
      const late = () => resolve({ kind: 'error', code: -32603, message: 'The client did not answer in time' })
      round.signal.addEventListener('abort', late, { once: true })
    })
    const question: Asked = { request: asked, id, outcome, uplift }
    round.asked.push(question)
    const message = request(id, method, text === '{}' ? undefined : text)
    record.recorder?.sent(message, 'rebuilt')
    await round.send(message, { kind: 'question', key: idKey(id) })
    return question
  }

  /** Cancels the requests that have not been answered. */
  async #withdraw({ asked, send, record }: Round): Promise<void> {
    for (const { id } of asked) {
      if (!this.#open.delete(idKey(id))) continue
      const params = `{"requestId":${id},"reason":"No answer is needed any more"}`
      const message = notification('notifications/cancelled', params)
      record.recorder?.sent(message)
      await send(message, { kind: 'withdrawal', key: idKey(id) })
    }
  }

  #isUrl(method: string, params: Payload): boolean {
    const { revision } = this.#options.to
    return method === 'elicitation/create' && value(params, 'mode') === 'url' && traits[revision].elicitationModes
  }

  /**
   * Waits until no other dialogue is open. Returns the function that ends this turn; undefined if the signal aborts
   * first.
   */
  async #waitForTurn(signal: Signal): Promise<(() => void) | undefined> {
    let done = () => {}
    const mine = new Promise<void>((resolve) => {
      done = resolve
    })
    const before = this.#turn
    this.#turn = before.then(() => mine)
    await unlessAborted(before, signal).catch(() => {})
    if (!signal.aborted) return done
    done()
    return undefined
  }
}

/** Records questions and their answers. Outside of calls there is no number. */
type QuestionRecorder = Pick<CallRecorder, 'sent' | 'received'> & { readonly number?: number | undefined }

/** What a call gives to its questions. */
export interface ClientAsking {
  /** Records the messages between the call and its client, for the inspector. */
  record: { readonly recorder?: QuestionRecorder | undefined }
  /** Sends a question to the client, or its withdrawal. Applies backpressure like a `Notify`. */
  send(text: Wire, about?: DeliveryKind): Promise<void> | undefined
  /** `_meta` of the requests. */
  about?: Json | undefined
  /** For the client's answers. */
  reservation: Reservation
  /** Aborts when the server needs no answers any more. */
  needless?: Signal | undefined
}

/** One round of questions: the requests that were sent, and the bytes of their answers. */
interface Round extends ClientAsking {
  signal: Signal
  asked: Asked[]
  bytes: number
}

interface Asked {
  request: InputRequest
  id: Id
  outcome: Promise<Outcome>
  uplift(answer: Payload): Payload
}

/** An answer, or an error if there is no memory for it. */
function kept(outcome: Outcome, round: Round): Outcome {
  if (outcome.kind === 'error') return outcome
  round.bytes += sizeOf(outcome.result)
  if (round.reservation.resize(round.bytes) === undefined) return outcome
  return { kind: 'error', code: -32603, message: 'The bridge has no memory left for the answer (limits.memory)' }
}

/** The answer of a person. No answer, or an invalid one, counts as `cancel`. */
function elicited(outcome: Outcome, { request: { method, params }, uplift }: Asked): Payload {
  if (outcome.kind === 'error') return CANCELLED
  const answer = wellFormed(method, withoutEnvelope(uplift(outcome.result))) ?? CANCELLED
  // In URL mode there is no form, so there is no content.
  return value(params, 'mode') === 'url' ? edit(answer, { content: undefined }) : answer
}

/** The answer of a model or a program. Throws an Unanswered for an error or an invalid answer. */
function answered(outcome: Outcome, { request: { method }, uplift }: Asked): Payload {
  if (outcome.kind === 'error') throw new Unanswered(outcome.code, outcome.message)
  const result = wellFormed(method, withoutEnvelope(uplift(outcome.result)))
  if (!result) throw new Unanswered(-32603, `The client sent an invalid answer to ${method}`)
  return result
}
