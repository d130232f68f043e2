/**
 * Asks a legacy client what a modern server wants to know before it answers, and makes of the client's answers what the
 * server expects with the call that it is sent again (MCP 2026-07-28, basic/patterns/mrtr).
 */
import type { Answers } from '../../protocol/call.js'
import { type Downlevel, downlevelQuestion } from '../../protocol/downlevel.js'
import { traits } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import { type InputRequest, readInputRequests, stateOf, uncovered, wellFormed } from '../../protocol/input.js'
import type { Loan } from '../../protocol/memory.js'
import { withoutEnvelope } from '../../protocol/meta.js'
import { type Id, idKey, keptKey, notification, type Response, request } from '../../rpc/message.js'
import type { Wire } from '../../rpc/source.js'
import { EMPTY, edit, type Json, type Payload, parseObject, payloadAt, sizeOf, value, write } from '../../rpc/splice.js'
import { unlessAborted } from '../../time.js'

export interface QuestionsOptions {
  /** ClientCapabilities that the client has declared. */
  capabilities: Json
  to: Downlevel
  /** Milliseconds for one round of questions. */
  within: number
  /** What has become of a round of questions, for whoever counts. */
  told(what: 'parked' | 'answered' | 'expired' | 'refused' | 'lost'): void
}

/** The client did not answer a question that modern servers cannot be told of: the call ends with what it said. */
export class Unanswered extends Error {
  override name = 'Unanswered'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

type Outcome = { kind: 'result'; result: Payload } | { kind: 'error'; code: number; message: string }

const CANCELLED: Payload = parseObject('{"action":"cancel"}')

export class Questions {
  readonly #options: QuestionsOptions
  readonly #open = new Map<string, (outcome: Outcome) => void>()
  #lastId = 0
  /** Forms and addresses are shown one after another: a person looks at one dialogue at a time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: QuestionsOptions) {
    this.#options = options
  }

  /**
   * Gives the questions to be sent, each when it is its turn, and returns what the call is to be sent again with. Throws a
   * Fault where the server asks what the client has not agreed to, and an Unanswered where it can be told of no answer.
   */
  async *ask(input: Payload, { signal, about, loan }: Round): AsyncGenerator<Wire, Answers> {
    signal.throwIfAborted()
    // What was answered before has been sent.
    loan.hold(0)
    const requests = readInputRequests(input)
    for (const { method, params } of requests) {
      const lacking = uncovered(method, params, parseObject(this.#options.capabilities))
      if (!lacking) continue
      this.#options.told('refused')
      throw new Fault('upstreamProtocol', `The server asks for ${lacking}, which the client has not declared`)
    }
    let end: 'answered' | 'refused' | 'lost' = 'lost'
    const told = (what: 'parked' | 'expired' | typeof end) => requests.length > 0 && this.#options.told(what)
    told('parked')
    const round = new AbortController()
    const giveUp = () => round.abort()
    signal.addEventListener('abort', giveUp, { once: true })
    const timer = setTimeout(giveUp, this.#options.within)
    const asked: Asked[] = []
    const all = { asked, loan, bytes: 0 }
    // A null prototype, because it is the server that chooses the keys.
    const answers: Record<string, Json> = Object.create(null) as Record<string, Json>
    try {
      // What a model or a program answers is asked all at once; what a person answers, after that and in turn.
      const forPeople = requests.filter(({ method }) => method === 'elicitation/create')
      const others = requests.filter((one) => !forPeople.includes(one))
      const waiting: Asked[] = []
      for (const one of others) waiting.push(yield* this.#put(one, { signal: round.signal, all, about }))
      for (const one of forPeople) {
        const done = await this.#myTurn(round.signal)
        if (!done) {
          answers[one.key] = write(CANCELLED)
          continue
        }
        try {
          const question = yield* this.#put(one, { signal: round.signal, all, about })
          answers[one.key] = write(elicited(await question.outcome, question))
        } finally {
          done()
        }
      }
      for (const question of waiting) answers[question.request.key] = write(answered(await question.outcome, question))
      yield* this.#withdraw(asked)
      end = 'answered'
    } catch (error) {
      end = 'refused'
      yield* this.#withdraw(asked)
      throw error
    } finally {
      told(signal.aborted ? 'lost' : round.signal.aborted ? 'expired' : end)
      for (const { id } of asked) this.#open.delete(idKey(id))
      clearTimeout(timer)
      signal.removeEventListener('abort', giveUp)
    }
    signal.throwIfAborted()
    const responses = requests.length === 0 ? undefined : write(edit(EMPTY, answers))
    return { responses, state: stateOf(input) }
  }

  /** Takes an answer of the client. */
  answer({ id, outcome: { kind, source, member } }: Response): void {
    const key = id === undefined ? undefined : keptKey(this.#open, id)
    const settle = key === undefined ? undefined : this.#open.get(key)
    if (key === undefined || !settle) return
    this.#open.delete(key)
    const payload = payloadAt(source, member) ?? EMPTY
    if (kind === 'result') return settle({ kind, result: payload })
    const [code, message] = [value(payload, 'code'), value(payload, 'message')]
    settle({
      kind,
      code: typeof code === 'number' ? code : -32603,
      message: typeof message === 'string' ? message : 'The client did not answer',
    })
  }

  /** Sends one question. A form that takes several answers to one field is told in boxes, and taken back from them. */
  async *#put(asked: InputRequest, { signal, all, about }: Putting): AsyncGenerator<Wire, Asked> {
    const { capabilities, to } = this.#options
    const { method } = asked
    const { params, uplift } = downlevelQuestion(method, asked.params, parseObject(capabilities), to)
    const id = String(++this.#lastId) as Id
    const told = withoutEnvelope(this.#isAddress(method, params) ? edit(params, { elicitationId: `"${id}"` }) : params)
    const text = write(about === undefined ? told : edit(told, { _meta: about }))
    const outcome = new Promise<Outcome>((resolve) => {
      this.#open.set(idKey(id), (outcome) => resolve(kept(outcome, all)))
      const late = () => resolve({ kind: 'error', code: -32603, message: 'The client did not answer in time' })
      signal.addEventListener('abort', late, { once: true })
    })
    const question: Asked = { request: asked, id, outcome, uplift }
    all.asked.push(question)
    yield request(id, method, text === '{}' ? undefined : text)
    return question
  }

  /** Takes back what has not been answered. */
  *#withdraw(asked: readonly Asked[]): Generator<Wire> {
    for (const { id } of asked) {
      if (!this.#open.delete(idKey(id))) continue
      yield notification('notifications/cancelled', `{"requestId":${id},"reason":"No answer is needed any more"}`)
    }
  }

  #isAddress(method: string, params: Payload): boolean {
    const { revision } = this.#options.to
    return method === 'elicitation/create' && value(params, 'mode') === 'url' && traits[revision].elicitationModes
  }

  /** Waits until no other dialogue is open. Gives what to call when this one is closed; undefined where it is too late for it. */
  async #myTurn(signal: AbortSignal): Promise<(() => void) | undefined> {
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

/** What a round of questions belongs to. */
interface Round {
  signal: AbortSignal
  /** What questions say in their `_meta` that they are about. */
  about: Json | undefined
  /** Of what the client answers. */
  loan: Loan
}

/** Everything that has been asked in a round, and what the answers take. */
interface AllAsked {
  asked: Asked[]
  loan: Loan
  bytes: number
}

interface Putting {
  signal: AbortSignal
  all: AllAsked
  /** What the question says in its `_meta` that it is about. */
  about: Json | undefined
}

interface Asked {
  request: InputRequest
  id: Id
  outcome: Promise<Outcome>
  uplift(answer: Payload): Payload
}

/** An answer, if there is memory for it. */
function kept(outcome: Outcome, all: AllAsked): Outcome {
  if (outcome.kind === 'error') return outcome
  all.bytes += sizeOf(outcome.result)
  if (all.loan.hold(all.bytes) === undefined) return outcome
  return { kind: 'error', code: -32603, message: 'There is no memory for the answer (limits.memory)' }
}

/** What a person said. Saying nothing, or nothing that makes sense, is to dismiss the question. */
function elicited(outcome: Outcome, { request: { method, params }, uplift }: Asked): Payload {
  if (outcome.kind === 'error') return CANCELLED
  const answer = wellFormed(method, withoutEnvelope(uplift(outcome.result))) ?? CANCELLED
  // To an address there is nothing to fill in.
  return value(params, 'mode') === 'url' ? edit(answer, { content: undefined }) : answer
}

/** What a model or a program said. A modern server cannot be told that it said nothing. */
function answered(outcome: Outcome, { request: { method }, uplift }: Asked): Payload {
  if (outcome.kind === 'error') throw new Unanswered(outcome.code, outcome.message)
  const result = wellFormed(method, withoutEnvelope(uplift(outcome.result)))
  if (!result) throw new Unanswered(-32603, `The client answered ${method} with something that is no answer`)
  return result
}
