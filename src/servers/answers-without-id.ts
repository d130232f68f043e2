/**
 * Finds the request that an answer with the id 0, null, none or one that no request can have is for. Some servers write such
 * an id into every answer, others into errors alone. An answer must never reach another caller, so it is taken only if exactly one request can be meant.
 */
import type { Response } from '../base/rpc/message.js'
import { value } from '../base/rpc/splice.js'
import type { Exchange } from './exchange.js'
import { ChannelError } from './transport/channel.js'

/** Codes of errors with which some servers answer notifications. */
const OF_NOTIFICATIONS: readonly unknown[] = [-32600, -32601]
/** Single requests in a row that may be meant together with ended ones, before the server counts as lost. */
const MOST_IN_A_ROW = 3

/** Whether an answer names no request. The ids of the bridge begin at 1. */
export function lacksId({ id }: Response): boolean {
  return id === undefined || id === '0' || id === '"0"'
}

export class AnswersWithoutId {
  /** The server has answered a request under its id. */
  usesIds = false
  /** How many messages had been received when the last notification was sent. */
  notifiedAt = -1
  /** Requests that have ended without an answer. It may still arrive. */
  #owed = 0
  #hasTaken = false
  #inARow = 0

  /** The server does not answer requests that have ended, so no later answer would be certain. */
  get isLost(): boolean {
    return this.#inARow >= MOST_IN_A_ROW
  }

  /** A request has ended without an answer. */
  unanswered(exchange: Exchange): void {
    if (exchange.isUnanswered) this.#owed++
  }

  /** An answer has arrived under the id of a request that has ended. */
  late(): void {
    if (this.#owed > 0) this.#owed--
  }

  /**
   * The request that the answer is for; undefined if that is not certain. Then all that may be meant fail, because none of them
   * would end. `all`: the requests of the channel. `received`: how many messages arrived before it.
   */
  owner(message: Response, all: Iterable<Exchange>, received: number): Exchange | undefined {
    const isError = message.outcome.kind === 'error'
    const open = [...all].filter((exchange) => exchange.isUnanswered)
    const waiting = open.filter((exchange) => exchange.waits)
    const [only] = waiting
    // The server may have answered a notification, which it should not.
    if (isError && this.usesIds && this.notifiedAt === received && OF_NOTIFICATIONS.includes(codeOf(message)))
      return undefined
    if (only && open.length + this.#owed === 1) {
      this.#hasTaken = true
      this.#inARow = 0
      return only
    }
    // A server that uses ids may say this about anything; a slow one may refuse a probe that has ended.
    if (isError && (this.usesIds || !this.#hasTaken)) {
      if (!this.usesIds) this.late()
      return undefined
    }
    const many = open.length + this.#owed
    // Those that fail now are owed when they are released.
    if (many > 0) this.#owed--
    if (waiting.length === 1 && open.length === 1) this.#inARow++
    for (const exchange of waiting) exchange.fail(ambiguous(many))
    return undefined
  }
}

function codeOf({ outcome: { payload } }: Response): unknown {
  return payload && value(payload, 'code')
}

function ambiguous(many: number): ChannelError {
  const which = `it may answer any of ${many} requests`
  return new ChannelError(`The server sent an answer without the id of its request: ${which}`, { protocol: true })
}
