/** Records what the clients of one server or group do: their calls, and the messages and streams outside of calls. */

import { type Id, idValue, type Notification, type Response } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import {
  type CallFields,
  type CallRecorder,
  type ClientRecorder,
  type RecordedContext,
  type SessionRecorder,
  UNRECORDED,
  type Whose,
} from '../../mcp/ports/recorder.js'
import type { MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { Era } from '../../mcp/protocol/eras.js'
import { RecordedCall } from './call.js'
import type { Calls } from './calls.js'
import { fillIn, recordReceived, recordSent, TOWARDS, traceOf } from './message.js'
import { RecordedSession } from './session.js'

export class RecordedClients implements ClientRecorder {
  readonly #calls: Calls
  readonly #server: string

  constructor(calls: Calls, server: string) {
    this.#calls = calls
    this.#server = server
  }

  call(fields: Readonly<CallFields>, whose: Whose, started: number): CallRecorder {
    return new RecordedCall(this.#calls, this.#server, fields, whose, started)
  }

  received(message: Notification | Response, { call, session }: RecordedContext): void {
    if (call !== UNRECORDED)
      recordReceived(this.#calls.record, message, traceOf('client', 'in', this.#server, call, session, undefined))
  }

  sent(text: Wire, origin: MessageOrigin, era: Era, session: string | undefined): void {
    const trace = traceOf('client', 'out', this.#server, undefined, session, undefined)
    if (fillIn(trace, text)) recordSent(this.#calls.record, text, trace, origin, TOWARDS[era])
  }

  session(session: string | undefined): SessionRecorder {
    return new RecordedSession(this.#calls.record, this.#server, session)
  }

  /** The end of a stream with an answer is not recorded: its call has ended, too. */
  stream(
    what: 'opened' | 'left' | 'resumed' | 'ended',
    stream: string,
    request: Id | undefined,
    session: string | undefined,
  ): void {
    if (request !== undefined && what === 'ended') return
    const id = request === undefined ? undefined : idValue(request)
    this.#calls.record({ kind: 'stream', what, server: this.#server, session, stream, id })
  }
}
