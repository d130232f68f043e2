/** The client of a session, as servers ask it beside its calls: on the stream for messages that belong to no call. */

import { SMALL } from '../../base/limits/memory.js'
import { EMPTY, type Payload } from '../../base/rpc/splice.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import { unlessAborted } from '../../base/time/time.js'
import type { Answers, AskedClient, Caller } from '../../mcp/protocol/call.js'
import type { ClientAsking, Questions } from './questions.js'
import type { OpenOptions } from './session.js'

export class AskedSession implements AskedClient {
  readonly principal: string
  readonly caller: Caller
  readonly #questions: Questions
  readonly #options: OpenOptions
  readonly #record: ClientAsking['record']
  readonly #gone = new HangUp()
  #open = 0
  /** Resolves when the client can be asked: a server must not ask one that is not initialized. */
  readonly #ready: Promise<void>
  ready: () => void = () => {}

  constructor(caller: Caller, questions: Questions, options: OpenOptions) {
    const { sender, log, session } = options
    const recorder = log.telemetry?.recorder
    this.principal = sender.principal
    this.caller = caller
    this.#questions = questions
    this.#options = options
    this.#ready = new Promise((resolve) => {
      this.ready = resolve
    })
    this.#record = recorder
      ? {
          recorder: {
            sent: (text, origin = EMPTY) => recorder.sent(text, origin, 'legacy', session),
            received: (message) => {
              if (message.kind !== 'request') recorder.received(message, { session })
            },
          },
        }
      : {}
  }

  get isThinking(): boolean {
    return this.#open > 0
  }

  get isGone(): boolean {
    return this.#gone.aborted
  }

  async ask(input: Payload, signal: Signal): Promise<Answers> {
    const { memory, outlet } = this.#options
    const over = new HangUp(signal)
    const unfollow = over.follow(this.#gone)
    const reservation = memory.reserve(this.principal, SMALL)
    this.#open++
    try {
      await unlessAborted(this.#ready, over)
      return await this.#questions.ask(input, over, {
        record: this.#record,
        reservation,
        send: (text, about) => {
          outlet.deliver(text, about)
          return undefined
        },
      })
    } finally {
      this.#open--
      unfollow()
      over.abort()
      reservation.end()
    }
  }

  /** Ends all questions: the client has gone. */
  close(): void {
    this.#gone.abort()
  }
}
