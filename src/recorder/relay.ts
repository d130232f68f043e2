/** Records relayed requests to one server, and finds the call of each answer of a client. */
import {
  type CallRecorder,
  type RelayedBegin,
  type RelayedRecorder,
  type RelayRecorder,
  UNRECORDED,
} from '../ports/recorder.js'
import { type Id, idValue } from '../rpc/message.js'
import { RecordedCall } from './call.js'
import type { Calls } from './calls.js'
import { RecordedQuestions } from './questions.js'
import { questionKey, RelayedMessages } from './relayed.js'
import { clientIn } from './relayed-bodies.js'

export class RecordedRelay implements RelayRecorder {
  readonly #calls: Calls
  readonly #server: string
  readonly #questions: RecordedQuestions

  constructor(calls: Calls, server: string) {
    this.#calls = calls
    this.#server = server
    this.#questions = new RecordedQuestions(calls.record, server)
  }

  answered(session: string | undefined, id: Id | undefined): number | undefined {
    const isAnswer = session !== undefined && id !== undefined
    return isAnswer ? this.#questions.answered(questionKey(session, idValue(id))) : undefined
  }

  begin(call: CallRecorder | undefined, request: RelayedBegin): RelayedRecorder | undefined {
    const { body, headers, session, partOf, opens, reserve } = request
    const isRecorded = call !== undefined && call.number !== UNRECORDED
    if (isRecorded && call instanceof RecordedCall)
      call.beganBy(opens && body ? clientIn(this.#calls, body) : undefined)
    const number = isRecorded ? call.number : partOf
    if (!number) return undefined
    const about = { call: number, session, questions: this.#questions, opens, listed: reserve?.() }
    const messages = new RelayedMessages(this.#calls.record, this.#server, about)
    // The other requests of a session have the same headers.
    if (body) messages.received(body, opens ? headers : undefined)
    return messages
  }
}
