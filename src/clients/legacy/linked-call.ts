/**
 * A request in a legacy client's own session with its legacy server, as a call: what nothing edits passes as it came, and
 * only what is edited is written.
 */

import { error as errorMessage, notification, type Request, result } from '../../base/rpc/message.js'
import type { Wire } from '../../base/rpc/source.js'
import { EMPTY, edit, isEmpty } from '../../base/rpc/splice.js'
import { edited, type PassedEvent } from '../../base/rpc/sse.js'
import type { SessionRecorder } from '../../mcp/ports/recorder.js'
import {
  type Call,
  type Caller,
  type Final,
  type Link,
  type Notify,
  type ReceivedHead,
  type ServerNotification,
  uneditedOf,
} from '../../mcp/protocol/call.js'
import { metaOf } from '../../mcp/protocol/classify.js'
import type { Encoded, MessageOrigin } from '../../mcp/protocol/encoded.js'
import type { LegacyRevision } from '../../mcp/protocol/eras.js'
import { legacyError } from '../../mcp/protocol/legacy-client.js'
import type { AboutAsked, DirectSession, TakeSessionMessage } from '../../mcp/protocol/upstream.js'
import type { CallLogEntry } from '../call-log.js'
import type { Frame, Send } from '../frames.js'
import { replyIn } from '../outcome.js'

/** What a request says. `_meta` is in the params, too. */
interface Asked extends Pick<Call, 'method' | 'params' | 'meta' | 'caller' | 'answers'> {
  answers: undefined
}

interface EncodedAnswer extends Encoded {
  http?: ReceivedHead | undefined
  event?: PassedEvent | undefined
}

/** A request in a session. `batch`: the one that it belongs to. `leaves` aborts when the client disconnects before the answer. */
interface LinkedRequest extends Pick<AboutAsked, 'batch' | 'leaves'> {
  request: Request
  caller: Caller
  direct: DirectSession
  record: CallLogEntry
  send: Send
  /** Records the questions of the server. */
  recorder: SessionRecorder | undefined
  revision: LegacyRevision
}

export class LinkedCall implements Link {
  readonly asked: Asked
  readonly revision: LegacyRevision
  readonly #parts: LinkedRequest
  /** The server has answered, or the request has failed. */
  isSettled = false
  /** The answer has been sent to the client. */
  isSent: () => void = () => {}
  #isOver = false

  constructor(parts: LinkedRequest) {
    const { request, caller, revision } = parts
    const { method, params } = request
    const meta = metaOf(request)
    this.asked = { method, params: typeof params === 'string' ? EMPTY : params, meta, caller, answers: undefined }
    this.revision = revision
    this.#parts = parts
  }

  ask(call: Call): Promise<Final> {
    const { direct, record, batch, leaves } = this.#parts
    // Policies read lists of the server, which are not what the client waits for.
    const isOwn = call.log === record
    return new Promise((resolve, reject) => {
      const say: TakeSessionMessage = ({ text, origin, answer, notification, dropped, event }) => {
        if (notification && typeof event !== 'number') {
          const passed: ServerNotification = { kind: 'notification', ...notification }
          passed.received = { era: 'legacy', text, ...(origin && { origin }), event, notification: passed }
          return isOwn ? call.notify(passed) : this.notify(passed)
        }
        if (!answer) return this.#pass(text, origin, event)
        if (dropped && isOwn) record.note({ dropped })
        const reply = replyIn(answer)
        const { id, http } = answer
        reply.received = { era: 'legacy', id, message: text, origin: origin ?? 'rebuilt', reply, http }
        resolve(reply)
        if (!isOwn) return undefined
        this.isSettled = true
        return new Promise((sent) => {
          this.isSent = sent
        })
      }
      const { forwarded, credential, grant } = call
      const about = isOwn
        ? { forwarded, credential, grant, call: record.recorder?.number, batch, leaves }
        : { forwarded, credential, grant, ofBridge: true }
      direct.ask(this.#messageOf(call, isOwn), call.signal, say, about).catch((error: unknown) => {
        this.isSettled ||= isOwn
        reject(error)
      })
    })
  }

  /** Sends the client a notification of the server. */
  readonly notify: Notify = (told) => {
    const { received } = told
    const isPassed = received?.era === 'legacy' && received.notification === told
    const text = isPassed ? received.text : notification(told.method, told.params)
    return this.#pass(text, isPassed ? received.origin : told.params, isPassed ? received.event : undefined)
  }

  #pass(text: Wire, origin: MessageOrigin | undefined, event: Frame['event']): Promise<void> | undefined {
    if (this.#isOver) return undefined
    const { recorder, record, send } = this.#parts
    if (text !== '') recorder?.sent(text, record.recorder?.number, origin)
    return send({ text, event })
  }

  /** The answer for the client, and the head that the server has sent with it, unless it was edited. */
  encoded(reply: Final): EncodedAnswer {
    this.#isOver = true
    const { id } = this.#parts.request
    const passed = uneditedOf(reply)
    if (passed) return { text: passed.message, origin: passed.origin, http: passed.http, event: passed.http?.event }
    const event = edited(reply.received?.http?.event)
    if (reply.kind === 'error') {
      const origin = legacyError(this.asked, reply.error, this.revision)
      return { text: errorMessage(id, origin), origin, event }
    }
    return { text: result(id, reply.result), origin: reply.result, event }
  }

  /** What the server gets: the request as it came, unless anything has edited the call. */
  #messageOf({ method, params, meta }: Call, isOwn: boolean): Request {
    const { asked } = this
    const { request, direct } = this.#parts
    // Over HTTP, headers say the same about the trace.
    const hasMeta = isOwn && !direct.keepsIds && meta !== asked.meta
    const isEdited =
      method !== asked.method || params !== asked.params || (hasMeta && request.params !== 'not an object')
    if (!isEdited) return request
    const written = hasMeta ? edit(params, { _meta: isEmpty(meta) ? undefined : meta }) : params
    return { kind: 'request', id: request.id, method, params: written }
  }
}
