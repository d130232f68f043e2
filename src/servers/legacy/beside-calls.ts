/** Asks connected clients what a legacy server asks beside their calls, so that no call waits for their answers. */

import type { RpcError } from '../../base/rpc/message.js'
import { EMPTY, edit, type Json, objectIn, type Payload, parseObject } from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import type { AskedClient } from '../../mcp/protocol/call.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { liftQuestion, Unanswered } from '../../mcp/protocol/input.js'
import type { ServerQuestion } from '../exchange.js'
import { answerTo, noAnswerTo, PROGRESS_EVERY, progressOf } from './answers.js'

export interface BesideCallsOptions {
  revision: LegacyRevision
  /** Sends the answer to a question. */
  respond(question: ServerQuestion, answer: Json | RpcError, origin?: MessageOrigin): void
  /** Gives a question to another client, because this one has gone. */
  moveOn(question: ServerQuestion): void
  notify(method: string, params: Json): Promise<void>
}

/** The name of the only question in `inputRequests`. */
const KEY = 'asked'

export class BesideCalls {
  readonly #options: BesideCallsOptions
  readonly #asked = new Map<ServerQuestion, HangUp>()

  constructor(options: BesideCallsOptions) {
    this.#options = options
  }

  /** Asks a client. Its answer goes to the server. */
  ask(question: ServerQuestion, client: AskedClient): void {
    const over = new HangUp()
    this.#asked.set(question, over)
    this.#ask(question, client, over).catch(() => {})
  }

  /** The server needs no answer any more. */
  withdraw(question: ServerQuestion): void {
    this.#asked.get(question)?.abort()
  }

  /** The session has ended. */
  close(): void {
    for (const over of [...this.#asked.values()]) over.abort()
  }

  async #ask(question: ServerQuestion, client: AskedClient, over: HangUp): Promise<void> {
    const { respond, moveOn, revision } = this.#options
    const progress = this.#keepWaiting(question)
    try {
      const { responses } = await client.ask(inputOf(question, client), over)
      const answer = objectIn(parseObject(responses ?? '{}'), KEY)
      respond(question, answer ? answerTo(question, answer, revision) : noAnswerTo(question), 'rebuilt')
    } catch (error) {
      if (over.aborted) return
      if (client.isGone) moveOn(question)
      else respond(question, error instanceof Unanswered ? errorOf(error) : noAnswerTo(question))
    } finally {
      clearInterval(progress)
      if (this.#asked.get(question) === over) this.#asked.delete(question)
    }
  }

  #keepWaiting(question: ServerQuestion): NodeJS.Timeout | undefined {
    if (progressOf(question, 0) === undefined) return undefined
    let progress = 0
    const tell = () => {
      const params = progressOf(question, ++progress)
      if (params !== undefined) this.#options.notify('notifications/progress', params).catch(() => {})
    }
    return setInterval(tell, PROGRESS_EVERY).unref()
  }
}

/** The question as the `inputRequests` of a result that asks. */
function inputOf({ request: { method, params } }: ServerQuestion, { caller }: AskedClient): Payload {
  const payload = typeof params === 'string' ? EMPTY : params
  const question = liftQuestion(method, payload, parseObject(caller.capabilities))
  return edit(EMPTY, { inputRequests: `{"${KEY}":${question}}` })
}

function errorOf({ code, message }: Unanswered): RpcError {
  return { code, message }
}
