/** One request on its way through a channel: what has come in for it waits here until somebody reads it. */
import type { Account } from '../protocol/account.js'
import type { Call } from '../protocol/call.js'
import type { Fault } from '../protocol/fault.js'
import { type Loan, NOBODY } from '../protocol/memory.js'
import type { Params, Request, Response } from '../rpc/message.js'
import { weightOf } from '../rpc/source.js'
import type { Json } from '../rpc/splice.js'
import { within } from '../time.js'
import { answerTooLarge, ChannelError } from './transport/channel.js'
import { Unread } from './unread.js'

export type Arrival =
  | { kind: 'notification'; method: string; params: Params }
  | { kind: 'question'; question: Question }
  | Response

/** What the server asks in the middle of a call. */
export interface Question {
  request: Request
  /** It came on the stream of its call, or names the task that it is about: no other call can be meant. */
  addressed: boolean
  /** The call that carries it to its client; none as long as it waits for one. */
  carrier?: Exchange | undefined
  /** A client has been asked it. */
  shown?: boolean
  /** The server does not want to know any more. */
  withdrawn: boolean
  /** What is lent for it, until it has been answered. */
  loan: Loan
}

/** What an exchange needs of the peer that it belongs to. */
export interface Line {
  /** Begins a loan for what a principal has not read. */
  borrow(principal: string): Loan
  send(exchange: Exchange, method: string, params: Json | undefined, headers?: Readonly<Record<string, string>>): void
  /** Tells the server that nobody waits any more. */
  cancel(exchange: Exchange, reason: string): void
  forget(exchange: Exchange): void
}

interface Reader {
  resolve(arrival: Arrival): void
  reject(error: ChannelError | Fault): void
}

/** Has the line of a call in the log say how many notifications were dropped. */
export function noteDropped({ dropped }: Exchange, { log }: Call): void {
  if (dropped > 0) log.note({ dropped })
}

/** Why a call is given up that a policy has found to take too long: for the server, and for what is known of it. */
export const TIMED_OUT = 'The call timed out'

export class Exchange {
  /** The request's id towards the server, and the token of its progress. */
  readonly id: number
  /** Whose call it is. */
  readonly principal: string
  answered = false
  /** The answer is a result. */
  succeeded = false
  /** Somebody reads what comes in, or will at once; a call that waits for its client is not read. */
  read = true
  /** When it was sent, by `performance.now()`, and how many messages its channel had received by then. */
  sentAt = 0
  receivedBefore = 0
  /** In whose name it is sent, where that is another one than its peer's. */
  account: Account | undefined
  readonly #line: Line
  readonly #arrivals: Unread<Arrival>
  #reader: Reader | undefined
  #failure: ChannelError | Fault | undefined
  #sent = false

  constructor(line: Line, id: number, principal = NOBODY) {
    this.#line = line
    this.id = id
    this.principal = principal
    this.#arrivals = new Unread(sizeOf, () => line.borrow(principal))
  }

  /** Notifications that were dropped, because nobody read what had come before them. */
  get dropped(): number {
    return this.#arrivals.dropped
  }

  /** Something has come in that nobody has read. */
  get unread(): boolean {
    return this.#arrivals.length > 0
  }

  send(method: string, params: Json | undefined, headers?: Readonly<Record<string, string>>): void {
    this.#sent = true
    this.#line.send(this, method, params, headers)
  }

  /** What comes next, in the order in which it came. Rejects with a ChannelError when nothing can. */
  next(): Promise<Arrival> {
    const arrival = this.#arrivals.shift()
    if (arrival) return Promise.resolve(arrival)
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  /** The answer. Rejects with a ChannelError when none can come. What else comes before it is passed over. */
  async answer(): Promise<Response> {
    for (;;) {
      const arrival = await this.next()
      if (arrival.kind === 'response') return arrival
    }
  }

  /** The answer, if it comes within so many milliseconds. Rejects with a ChannelError when none can come. */
  async answerWithin(milliseconds: number): Promise<Response | undefined> {
    const deadline = performance.now() + milliseconds
    for (;;) {
      const arrival = await this.nextWithin(Math.max(0, deadline - performance.now()))
      if (arrival === undefined || arrival.kind === 'response') return arrival
    }
  }

  /** Calls back with the answer as soon as it comes in, before what comes in after it; with undefined if none can come. */
  onAnswer(told: (answer: Response | undefined) => void): void {
    for (let arrival = this.#arrivals.shift(); arrival; arrival = this.#arrivals.shift())
      if (arrival.kind === 'response') return told(arrival)
    if (this.#failure) return told(undefined)
    this.#reader = {
      resolve: (arrival) => (arrival.kind === 'response' ? told(arrival) : this.onAnswer(told)),
      reject: () => told(undefined),
    }
  }

  /** What comes next, if it comes within so many milliseconds. */
  nextWithin(milliseconds: number): Promise<Arrival | undefined> {
    return within(this.next(), milliseconds, () => {
      // What comes from now on is for whoever reads next.
      this.#reader = undefined
      return undefined
    })
  }

  /** Takes out the questions that nobody has read. */
  takeQuestions(): Question[] {
    return this.#arrivals.takeOut('question').map(({ question }) => question)
  }

  /** Returns whether it is kept for a reader. */
  push(arrival: Arrival): boolean {
    const reader = this.#reader
    if (!reader && !this.#arrivals.push(arrival)) {
      if (arrival.kind === 'response') this.fail(answerTooLarge())
      return false
    }
    if (arrival.kind === 'response') {
      this.answered = true
      this.succeeded = arrival.outcome.kind === 'result'
    }
    this.#reader = undefined
    reader?.resolve(arrival)
    return true
  }

  /** The answer cannot come any more. What has come already can still be read. */
  fail(error: ChannelError | Fault): void {
    if (this.answered || this.#failure) return
    this.#failure = error
    const reader = this.#reader
    this.#reader = undefined
    reader?.reject(error)
  }

  /** Gives up the answer without a cancellation. */
  drop(): void {
    this.fail(new ChannelError('The answer does not count any more'))
    this.release()
  }

  /** Nobody reads any more. A request that is still open is cancelled, once. */
  release(reason = 'The client has gone'): void {
    this.#line.forget(this)
    this.#arrivals.clear()
    if (this.answered) return
    if (this.#sent && !this.#failure) this.#line.cancel(this, reason)
    this.fail(new ChannelError(reason))
    this.answered = true
  }
}

function sizeOf(arrival: Arrival): number {
  switch (arrival.kind) {
    case 'notification':
      return typeof arrival.params === 'string' ? 0 : weightOf(arrival.params.source)
    case 'response':
      return weightOf(arrival.outcome.source)
    case 'question':
      return 0
  }
}
