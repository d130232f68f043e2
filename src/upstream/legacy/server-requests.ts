/** What a legacy server asks of its client: whether it may, which call it belongs to, and whether it still wants to know. */
import { capabilityFor, isShowable, type Needed, uncovered } from '../../protocol/input.js'
import type { Loan } from '../../protocol/memory.js'
import { RELATED_TASK } from '../../protocol/meta.js'
import { type Id, idKey, type Params, type Request, type RpcError, readId } from '../../rpc/message.js'
import { weightOf } from '../../rpc/source.js'
import { EMPTY, type Json, objectIn, type Payload, parseObject, raw, textUnder, value } from '../../rpc/splice.js'
import type { Exchange, Question } from '../exchange.js'

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

export interface AskingOptions {
  /** Capabilities that have been declared to the server. */
  capabilities: Json
  /** The answer to a server that asks for roots, where no client is asked. */
  roots: Json | undefined
  /** Calls that may be asked something, oldest first. */
  candidates(): Exchange[]
  /** Begins a loan for a question. */
  borrow(): Loan
  /** Whether the tool, prompt or resource of a call has been seen to ask something. */
  hasAsked(exchange: Exchange): boolean
  /** A call has been seen to ask something. */
  asks(exchange: Exchange): void
  respond(id: Id, answer: Json | RpcError): void
  /** A question has gone without an answer. */
  settled(): void
}

/** Milliseconds for which a question is held that came while no call ran which it could belong to. */
const HOLD = { 'roots/list': 55_000, others: 2_000 }

/** Refusals that are remembered of a call: more of them would say nothing more. */
const MAX_REFUSALS = 16

export class ServerRequests {
  readonly #options: AskingOptions
  readonly #capabilities: Payload
  /** Questions that have not been answered, by their ids. */
  readonly #open = new Map<string, Question>()
  /** Questions that wait for a call to belong to. */
  readonly #held = new Map<Question, NodeJS.Timeout>()
  /** Calls that wait for a task, by its id. */
  readonly #tasks = new Map<string, Exchange>()
  readonly #refusals = new WeakMap<Exchange, Refusal[]>()

  constructor(options: AskingOptions) {
    this.#options = options
    this.#capabilities = parseObject(options.capabilities)
  }

  /** A call has begun that may be asked: what has waited for one is its affair. Questions about `task` are, too. */
  begun(exchange: Exchange, task: string | undefined): void {
    if (task !== undefined) this.#tasks.set(task, exchange)
    for (const [question, timer] of this.#held) {
      clearTimeout(timer)
      this.#give(question, exchange)
    }
    this.#held.clear()
  }

  ended(exchange: Exchange): void {
    for (const [task, waiting] of this.#tasks) if (waiting === exchange) this.#tasks.delete(task)
  }

  /** What the server asked for while a call ran, though nobody had declared it. */
  refusedDuring(exchange: Exchange): readonly Refusal[] {
    return this.#refusals.get(exchange) ?? []
  }

  /** The server asks something: the call that it belongs to carries it to the client. */
  asked(request: Request, exchange: Exchange | undefined): void {
    const { id, method } = request
    const params = typeof request.params === 'string' ? EMPTY : request.params
    const { respond, roots } = this.#options
    if (method === 'ping') return respond(id, '{}')
    if (method === 'roots/list' && roots !== undefined) return respond(id, roots)
    const needed = capabilityFor(method, params)
    if (!needed) return respond(id, { code: -32601, message: refusalOf(method) })
    const lacking = uncovered(method, params, this.#capabilities)
    if (lacking !== undefined) return this.#refuse(request, needed, lacking, exchange)
    if (value(params, 'mode') === 'url' && !isShowable(value(params, 'url')))
      return respond(id, { code: -32602, message: 'No person can be sent to this address' })
    const candidates = this.#options.candidates()
    if (exchange && !candidates.includes(exchange))
      return respond(id, { code: -32600, message: 'Nothing can be asked in the middle of this request' })
    const addressee = this.#waitingFor(params) ?? exchange
    const [only, another] = candidates
    const asker = addressee ?? (another ? undefined : only)
    if (asker) this.#options.asks(asker)
    const loan = this.#options.borrow()
    if (loan.hold(weightOf(params.source)))
      return respond(id, { code: -32603, message: 'There is no memory for what is asked' })
    const question: Question = { request, addressed: addressee !== undefined, withdrawn: false, loan }
    this.#open.set(idKey(id), question)
    this.#give(question, addressee)
  }

  /** Whether other calls run that may be asked. */
  hasOther(exchange: Exchange): boolean {
    return this.#options.candidates().some((one) => one !== exchange)
  }

  /** The call that a question was given to is over: another call gets it. */
  moveOn(question: Question): void {
    if (this.#open.get(idKey(question.request.id)) === question) this.#give(question, undefined)
  }

  /** Refuses a question that the client of a call, as it is now, has not agreed to be asked. Returns whether it has. */
  refuses(question: Question, exchange: Exchange, capabilities: Payload): boolean {
    const { request } = question
    const params = typeof request.params === 'string' ? EMPTY : request.params
    const needed = capabilityFor(request.method, params)
    const lacking = uncovered(request.method, params, capabilities)
    if (!needed || lacking === undefined) return false
    if (!this.#close(question)) return true
    this.#refuse(request, needed, lacking, exchange)
    return true
  }

  /** Sends the answer to a question, unless the server has withdrawn it. */
  respond(question: Question, answer: Json | RpcError): void {
    const { id } = question.request
    question.loan.end()
    // A server may have asked something else under the same id meanwhile.
    if (this.#open.get(idKey(id)) !== question) return
    this.#open.delete(idKey(id))
    this.#options.respond(id, answer)
  }

  /** Nobody can be answered any more. */
  close(): void {
    for (const { loan } of this.#open.values()) loan.end()
  }

  /** A question is open no longer. Gives whether it was. */
  #close({ request, loan }: Question): boolean {
    loan.end()
    return this.#open.delete(idKey(request.id))
  }

  /** The server does not want to know any more. */
  withdraw(params: Params): void {
    const text = typeof params === 'string' ? undefined : raw(params, 'requestId')
    const id = text === undefined ? undefined : readId(text)
    const question = id && this.#open.get(idKey(id))
    if (!question) return
    question.withdrawn = true
    this.#close(question)
    clearTimeout(this.#held.get(question))
    this.#held.delete(question)
    this.#options.settled()
  }

  /** The call that waits for the task which a question is about. */
  #waitingFor(params: Payload): Exchange | undefined {
    const meta = objectIn(params, '_meta')
    const related = meta && objectIn(meta, RELATED_TASK)
    return related && this.#tasks.get(textUnder(related, 'taskId'))
  }

  #give(question: Question, addressee: Exchange | undefined): void {
    question.carrier = addressee ?? this.#mostLikely()
    if (question.carrier) question.carrier.push({ kind: 'question', question })
    else this.#hold(question)
  }

  /**
   * The call that a question without an address belongs to: the oldest one of something that has been seen to ask, else the
   * oldest one. Calls whose client waits come before those that are parked, and those that carry no question yet before those
   * that do. A session has one principal and one client, and the answer goes where the question came from, whichever call
   * carries it. What is asked for a task says so, as a rule.
   */
  #mostLikely(): Exchange | undefined {
    const candidates = this.#options.candidates()
    const forTasks = new Set(this.#tasks.values())
    const others = candidates.filter((one) => !forTasks.has(one))
    const waiting = others.filter(({ read }) => read)
    const possible = [waiting, others, candidates].find(({ length }) => length > 0) ?? []
    if (possible.length <= 1) return possible[0]
    const askers = possible.filter((one) => this.#options.hasAsked(one))
    const likely = askers.length > 0 ? askers : possible
    const carrying = new Set([...this.#open.values()].map(({ carrier }) => carrier))
    return likely.find((one) => !carrying.has(one)) ?? likely[0]
  }

  /** A question that came between two calls, or before the first: one may begin that it can belong to. */
  #hold(question: Question): void {
    const { method } = question.request
    const giveUp = () => {
      this.#held.delete(question)
      this.respond(question, {
        code: -32603,
        message: 'No call is in progress that this request could belong to',
      })
    }
    const timer = setTimeout(giveUp, method === 'roots/list' ? HOLD['roots/list'] : HOLD.others)
    this.#held.set(question, timer.unref())
  }

  /** Nothing may be asked of a client that has not declared it. */
  #refuse(request: Request, { name, under }: Needed, lacking: string, exchange: Exchange | undefined): void {
    const part = lacking !== name
    const said = part ? `The client does not offer ${lacking}` : refusalOf(request.method)
    this.#options.respond(request.id, { code: part ? -32602 : -32601, message: said })
    const suspects = exchange ? [exchange] : this.#options.candidates()
    const refusal = { name, needed: under, said, certain: suspects.length === 1 }
    for (const suspect of suspects) {
      const known = this.refusedDuring(suspect)
      if (known.length < MAX_REFUSALS) this.#refusals.set(suspect, [...known, refusal])
    }
  }
}

export function refusalOf(method: string): string {
  return `Method not found: ${method}`
}
