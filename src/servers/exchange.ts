/** An exchange: one request to a server, the call that it belongs to, and its unread messages. */

import type { Fault } from '../base/fault/fault.js'
import { type Memory, NOBODY, SMALL } from '../base/limits/memory.js'
import { type Id, idKey, type Params, type Response } from '../base/rpc/message.js'
import { bytesIn, type JsonSource, weightOf } from '../base/rpc/source.js'
import type { Json } from '../base/rpc/splice.js'
import type { PassedEvent } from '../base/rpc/sse.js'
import type { UnreadResponse } from '../base/rpc/unread-response.js'
import { within } from '../base/time/time.js'
import type { Account } from '../mcp/protocol/account.js'
import type { Call } from '../mcp/protocol/call.js'
import { methodTraits } from '../mcp/protocol/methods.js'
import { type LaneCall, ROOM, type Turn } from './lane.js'
import type { ServerQuestion } from './legacy/question.js'
import { type Channel, ChannelError, noMemoryForAnswer } from './transport/channel.js'
import { Unread } from './unread.js'

export type Arrival =
  /** `isRequest`: a request of the server, in a client's own session. */
  | {
      kind: 'notification'
      method: string
      params: Params
      source?: JsonSource
      isRequest?: boolean
      event?: PassedEvent | undefined
    }
  /** In a client's own session: an event without a message; or the status with which its stream has ended before the answer. */
  | { kind: 'event'; event: PassedEvent | number }
  | { kind: 'question'; question: ServerQuestion }
  | Response
  | UnreadResponse

/** A request of the server that was refused because the client had not declared the capability for it. */
export interface Refusal {
  /** The required capability, and the members that it must have. */
  name: string
  needed: Json
  /** The error message to the server. If several calls were running, it identifies the one whose failure repeats it. */
  said: string
  /** The request was certainly caused by this call. */
  certain: boolean
}

interface Reader {
  resolve(arrival: Arrival): void
  reject(error: ChannelError | Fault): void
}

/**
 * The reason for cancelling a call that timed out. The server sees it, and `HangDetector` counts such calls.
 */
export const TIMED_OUT = 'The call timed out'

export class Exchange implements LaneCall {
  /** Names the exchange within its channel: the id of the request and its progress token, unless `wireId` is set. */
  readonly id: number
  /** The id of the request to the server, if it is the client's own. */
  wireId: Id | undefined
  /** A large answer is read only if somebody needs it. */
  passesUnread = false
  readonly principal: string
  answered = false
  succeeded = false
  /** The server has sent a message for it, so a later error is not about a lost session. */
  isServed = false
  /** The number of notifications that were dropped because earlier messages had not been read. */
  dropped = 0
  /** A reader waits or will wait soon. False while the call waits for its client. */
  read = true
  /** When it was sent, by `performance.now()`, and how many messages its channel had received before. */
  sentAt = 0
  receivedBefore = 0
  /** The account for the request, if it is not that of the peer. */
  account: Account | undefined
  /** Called when the answer arrives and no reader waits. */
  onUnreadAnswer: (() => unknown) | undefined
  /** The call; undefined for requests of the bridge itself, and when the exchange has ended. */
  call: Call | undefined
  /** Its method; undefined before it is sent. */
  method: string | undefined
  /** The id of the server's task that it waits for, if any. */
  task: string | undefined
  /** Requests of the server that were refused during the call. Created with the first one. */
  refusals: Refusal[] | undefined
  /** Its turn in a lane, and whether it counts in the lanes of its channel. */
  turn: Turn | undefined
  inLanes = false
  /** The tool or prompt, and the session of the client, for lanes, if it has no call. */
  name: string | undefined
  client: object | undefined
  /** The bytes of the answer, if it is in a lane: of one that was dropped, too. */
  bytes: number | undefined
  /** The whole request as the client sent it, to be sent in place of its params. */
  unchanged: string | undefined
  /** Sends it in an array, in place of the channel. */
  within: Pick<Channel, 'sendMessage'> | undefined
  /** The requests in its message, which is an array: they get what arrives for it. */
  members: readonly Exchange[] | undefined
  /** The exchange that it is a member of. */
  batch: Exchange | undefined
  /** Headers of the client's request that go on with it, if the session is its own. */
  forwarded: Readonly<Record<string, string>> | undefined
  /** The events of the answer pass to the client as they come. */
  passesEvents: boolean | undefined
  /** The client's own cancellation, which is on its way: the bridge sends none. */
  cancellation: Promise<unknown> | undefined
  /** For the inspector: the number of the call, and the received message that is forwarded without edits. */
  number: number | undefined
  origin: JsonSource | undefined
  readonly #memory: Memory
  /** Created when the first message has to wait. */
  #arrivals: Unread<Arrival> | undefined
  #reader: Reader | undefined
  /** Why the answer cannot arrive; undefined while it can. */
  failure: ChannelError | Fault | undefined
  /** Why the exchange has ended; undefined while it has not. */
  ended: string | undefined

  /** `memory`: where messages are kept that have not been read. */
  constructor(memory: Memory, id: number, principal = NOBODY, call?: Call) {
    this.#memory = memory
    this.id = id
    this.principal = principal
    this.call = call
    this.number = call?.log.recorder?.number
  }

  /** The id of a request of the bridge itself, where all others have the ids of the client. */
  get idOfBridge(): Id {
    return `"mcp-bridge-${this.id}"` as Id
  }

  /** Whether this is the id of the client's own request, as an answer may write it. */
  hasId(id: Id | undefined): boolean {
    const { wireId } = this
    if (id === undefined || wireId === undefined) return false
    // Some servers answer with a number that they have rounded, or that they have made a string.
    return id === wireId || idKey(id) === idKey(wireId) || plainNumber(id) === plainNumber(wireId)
  }

  get unread(): boolean {
    return this.#arrivals !== undefined && this.#arrivals.length > 0
  }

  /** An answer is expected. A subscription is answered when it ends, and has been acknowledged before. */
  get isUnanswered(): boolean {
    return (
      this.sentAt > 0 &&
      !this.answered &&
      !(this.isServed && this.method !== undefined && methodTraits(this.method).endless)
    )
  }

  get waits(): boolean {
    return this.isUnanswered && this.failure === undefined
  }

  resume(call: Call): void {
    if (this.ended !== undefined) return
    this.call = call
    this.number = call.log.recorder?.number
  }

  /** Resolves to the next message, in the order of arrival. Rejects with a ChannelError or a Fault if none can arrive. */
  nextArrival(): Promise<Arrival> {
    const arrival = this.#arrivals?.shift()
    if (arrival) return Promise.resolve(arrival)
    if (this.failure) return Promise.reject(this.failure)
    if (this.ended !== undefined) return Promise.reject(new ChannelError(this.ended))
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  /**
   * Resolves to the answer, and drops other messages; to undefined after `milliseconds`. Rejects with a ChannelError or a Fault if
   * none can arrive.
   */
  async answer(milliseconds = Number.POSITIVE_INFINITY): Promise<Response | undefined> {
    const deadline = performance.now() + milliseconds
    for (;;) {
      const arrival = await this.nextWithin(Math.max(0, deadline - performance.now()))
      if (arrival === undefined || arrival.kind === 'response') return arrival
    }
  }

  /**
   * Calls `onAnswer` with the answer as soon as it arrives, before later messages; with undefined if none can arrive.
   */
  onAnswer(onAnswer: (answer: Response | undefined) => void): void {
    for (let arrival = this.#arrivals?.shift(); arrival; arrival = this.#arrivals?.shift())
      if (arrival.kind === 'response') return onAnswer(arrival)
    if (this.failure) return onAnswer(undefined)
    this.#reader = {
      resolve: (arrival) => (arrival.kind === 'response' ? onAnswer(arrival) : this.onAnswer(onAnswer)),
      reject: () => onAnswer(undefined),
    }
  }

  /** As `nextArrival`, but resolves to undefined after `milliseconds`. */
  nextWithin(milliseconds: number): Promise<Arrival | undefined> {
    return within(this.nextArrival(), milliseconds, () => {
      // Later messages are for the next reader.
      this.#reader = undefined
      return undefined
    })
  }

  takeQuestions(): ServerQuestion[] {
    return this.#arrivals?.takeOut('question').map(({ question }) => question) ?? []
  }

  /** Gives a message to the reader, or stores it until one reads. Returns false if it was dropped. */
  arrive(arrival: Arrival): boolean {
    const reader = this.#reader
    if (!reader && !this.#waiting().push(arrival)) {
      if (arrival.kind === 'notification') this.dropped++
      if (arrival.kind === 'response') this.lose()
      return false
    }
    if (arrival.kind === 'response') {
      this.answered = true
      if (this.turn) this.bytes = sizeOf(arrival)
      const { batch } = this
      if (batch?.members?.every(({ answered }) => answered)) batch.arrive(arrival)
      this.succeeded = 'unread' in arrival || arrival.outcome.kind === 'result'
    } else if (arrival.kind !== 'event') this.isServed = true
    this.#reader = undefined
    if (reader) reader.resolve(arrival)
    else if (arrival.kind === 'response') this.onUnreadAnswer?.()
    return true
  }

  /** Notes that the answer can no longer arrive. Messages that have arrived can still be read. */
  fail(error: ChannelError | Fault): void {
    if (this.answered || this.failure) return
    this.failure = error
    const reader = this.#reader
    this.#reader = undefined
    reader?.reject(error)
  }

  /** Notes that the answer has been dropped, by default because there was no memory. */
  lose(why = noMemoryForAnswer()): void {
    // How long it was is not always known.
    this.bytes = ROOM
    this.fail(why)
  }

  /** Ends the exchange at its peer: nobody reads any more. */
  end(reason: string): void {
    // V8 may keep the exchange for long, see `OpenSet`.
    this.call = this.origin = this.onUnreadAnswer = this.unchanged = this.forwarded = undefined
    this.#arrivals?.clear()
    this.ended ??= reason
    if (this.answered) return
    this.fail(new ChannelError(reason))
    this.answered = true
  }

  #waiting(): Unread<Arrival> {
    this.#arrivals ??= new Unread(sizeOf, () => this.#memory.reserve(this.principal, SMALL))
    return this.#arrivals
  }
}

/** The number of an id, as JavaScript reads it; NaN if it has none. */
function plainNumber(id: Id): number {
  return id === '""' ? Number.NaN : Number(id.startsWith('"') ? id.slice(1, -1) : id)
}

function sizeOf(arrival: Arrival): number {
  switch (arrival.kind) {
    case 'notification':
      return typeof arrival.params === 'string' ? 0 : weightOf(arrival.params.source)
    case 'response':
      return 'unread' in arrival ? arrival.unread.length : weightOf(arrival.outcome.source)
    case 'event':
      return typeof arrival.event === 'number' ? 0 : bytesIn(arrival.event.raw ?? [])
    case 'question':
      return 0
  }
}
