/** Records the messages on one channel to a server. */
import { BoundedMap } from '../../base/limits/bounded.js'
import { type Id, idKey, idValue, type Notification, type Request, type Response } from '../../base/rpc/message.js'
import {
  type ChannelRecorder,
  type ResponseHead,
  type SentMessage,
  type SentWith,
  UNRECORDED,
} from '../../mcp/ports/recorder.js'
import type { HttpRefusal } from '../../mcp/protocol/refusal.js'
import type { RecordEvent } from './events.js'
import { bytesOf, recordReceived, recordSent, traceOf } from './message.js'

/** Most open requests of the server whose calls are remembered. */
const MAX_ASKED = 1_000

export class RecordedChannel implements ChannelRecorder {
  readonly #record: RecordEvent
  readonly #server: string
  readonly #isHttp: boolean
  /** The calls that open requests of the server belong to, by the keys of their ids. */
  readonly #asked = new BoundedMap<string, number>(MAX_ASKED)

  /** `isHttp`: the messages have headers. */
  constructor(record: RecordEvent, server: string, isHttp: boolean) {
    this.#record = record
    this.#server = server
    this.#isHttp = isHttp
  }

  /** A message is sent to the server, for this call. `now` is its `performance.now()`, if it is known. */
  sent(
    { form, method, id }: SentMessage,
    text: string,
    call: number | undefined,
    { origin, headers }: SentWith,
    now?: number,
  ): void {
    if (call === UNRECORDED) return
    const trace = traceOf('server', 'out', this.#server, call, undefined, now)
    trace.form = form
    trace.method = method
    trace.id = id
    if (this.#isHttp) trace.http = { headers }
    recordSent(this.#record, text, trace, origin, 'server')
  }

  /** The answer to a request of the server is sent. Returns the call that has asked, if it is known. */
  answered(form: 'result' | 'error', id: Id, text: string, more: SentWith): number | undefined {
    const key = idKey(id)
    const call = this.#asked.get(key)
    this.sent({ form, id: idValue(id) }, text, call, more)
    this.#asked.delete(key)
    return call
  }

  /** The server has answered a message of this call with an HTTP status, and a body that is no message. */
  refused({ status, body, text = body, contentType }: HttpRefusal, call: number | undefined): void {
    if (call === UNRECORDED) return
    const trace = traceOf('server', 'in', this.#server, call, undefined, undefined)
    trace.form = 'error'
    trace.bytes = bytesOf(body)
    trace.http = { status, headers: { 'content-type': contentType } }
    this.#record(trace, text)
  }

  /** A message of the server has arrived, for this call. `http` is the head of the response that it came in. */
  received(message: Request | Notification | Response, call: number | undefined, http: ResponseHead | undefined): void {
    if (call !== UNRECORDED) {
      const trace = traceOf('server', 'in', this.#server, call, undefined, undefined)
      trace.http = http
      recordReceived(this.#record, message, trace)
    }
    if (message.kind !== 'request' || call === undefined) return
    this.#asked.set(idKey(message.id), call)
  }
}
