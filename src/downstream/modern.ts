/** The downstream half of the modern era: answers each request from the request alone, without a session. */

import { Fault } from '../fault/fault.js'
import type { Memory, Reservation } from '../limits/memory.js'
import type { RecordedHeaders } from '../ports/recorder.js'
import { OwnedByReplica } from '../ports/replicas.js'
import type { Call, Grant, Tell, Upstream } from '../protocol/call.js'
import type { Compat } from '../protocol/classify.js'
import { NEWEST_MODERN } from '../protocol/eras.js'
import { TASKS_EXTENSION } from '../protocol/meta.js'
import { LEGACY_CLIENT_NOTIFICATIONS, methodTraits } from '../protocol/methods.js'
import {
  type DecodedModernRequest,
  decodeBareDiscover,
  decodeNotification,
  decodeRequest,
  detached,
  encodeReply,
} from '../protocol/modern-client.js'
import { checkFilter } from '../protocol/subscriptions.js'
import type { TraceContext } from '../protocol/trace.js'
import { error as errorMessage, type Id, type Notification, type Request } from '../rpc/message.js'
import { own } from '../rpc/own.js'
import { objectIn, parseObject } from '../rpc/splice.js'
import { ECHOED, printable } from '../texts/printable.js'
import type { HangUp } from '../time/hang-up.js'
import { CallLogEntry } from './call-log.js'
import { type Frame, onlyIncreasing, type Send } from './frames.js'
import type { Logger } from './logger.js'
import { cancelledBy } from './outcome.js'

/** What the transport knows about a request. */
export interface Arrived {
  principal: string
  /** The client's own `Authorization`, if credentials are passed through. */
  credential?: string | undefined
  /** What the caller may do by the token of this request. */
  grant?: Grant | undefined
  /** Whether the client waits for a program to start, however long that takes. */
  patient?: () => boolean
  /** Aborts when the client disconnects. */
  abort: HangUp
  log: Logger
  transport: 'http' | 'stdio'
  /** `Mcp-Param-*`, if the transport has headers. They must match the arguments. */
  paramHeaders?: ReadonlyMap<string, string>
  /** A `server/discover` without its envelope. */
  bare?: boolean
  /** The trace context of the headers. */
  trace?: TraceContext | undefined
  /** All headers, for the inspector. It shows those that cannot be secret. */
  headers?: RecordedHeaders
  /** The request in flight. It gets the number of its call for the inspector. */
  running?: { call: number | undefined }
  /** The HTTP answer, for the inspector: with which status it would send this last frame now. */
  answer?: { statusOf(last: NonNullable<Frame['last']>): number } | undefined
}

/** The half. One instance serves all clients of a server. */
export class ModernDownstream {
  readonly #upstream: Pick<Upstream, 'handle' | 'notify'>
  readonly #draftErrorCodes: boolean
  readonly #memory: Memory

  constructor(
    upstream: Pick<Upstream, 'handle' | 'notify'>,
    { draftErrorCodes }: Pick<Compat, 'draftErrorCodes'>,
    memory: Memory,
  ) {
    this.#upstream = upstream
    this.#memory = memory
    this.#draftErrorCodes = draftErrorCodes
  }

  /**
   * Answers a request that has been classified as modern: passes its frames to `send`. A failure is the last frame.
   * Rejects only with OwnedByReplica, and only before the first frame.
   */
  answerRequest(request: Request, arrived: Arrived, send: Send): Promise<void> {
    const { id, method } = request
    const { log, transport: clientTransport } = arrived
    const record = new CallLogEntry(log, { clientEra: 'modern', clientTransport, method }, arrived)
    const kept = methodTraits(method).endless ? own(id) : id
    const decoded = decodeModern(request, arrived, record)
    if (decoded instanceof Fault) record.recorder?.began(request, undefined, arrived.headers)
    else {
      if (decoded.answers) record.recorder?.continues(decoded.answers)
      record.recorder?.began(request, decoded.answers, arrived.headers, decoded.caller.clientInfo)
    }
    if (arrived.running) arrived.running.call = record.recorder?.number
    // Not async itself, because that would keep the whole request in memory while it waits.
    return this.#callAndSend(kept, decoded, arrived, record, send)
  }

  async #callAndSend(
    id: Id,
    decoded: (DecodedModernRequest & { size?: number }) | Fault,
    arrived: Arrived,
    record: CallLogEntry,
    send: Send,
  ): Promise<void> {
    let reservation: Reservation | undefined
    let ended = false
    let last: Frame & Required<Pick<Frame, 'last'>>
    try {
      if (decoded instanceof Fault) throw decoded
      // The request is in memory twice: as received, and as sent to the server.
      if (decoded.size !== undefined) reservation = this.#memory.mustReserve(arrived.principal, 2 * decoded.size)
      let increasing: ReturnType<typeof onlyIncreasing> | undefined
      const tell: Tell = (told) => {
        increasing ??= onlyIncreasing()
        if (ended || !increasing(told)) return undefined
        const { text, origin } = encodeReply(told, id, decoded)
        record.recorder?.sent(text, origin)
        return send({ text })
      }
      const reply = await this.#upstream.handle(toCall(decoded, arrived, record, tell))
      ended = true
      const { text, origin } = encodeReply(reply, id, decoded)
      const status = reply.kind === 'error' ? (reply.status ?? 200) : 200
      record.ended(reply, text, origin, status === 200 ? undefined : arrived.answer?.statusOf({ status }))
      last = { text, last: { status } }
    } catch (error) {
      ended = true
      if (error instanceof OwnedByReplica) {
        record.carried(error.owner)
        throw error
      }
      const { aborted, reason } = arrived.abort
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      const text = errorMessage(id, fault.toRpcError(this.#draftErrorCodes))
      last = { text, last: { status: fault.status, fault } }
      if (aborted && reason !== fault) record.cancelled(cancelledBy(reason, 'disconnected'))
      else record.failed(fault, text, arrived.answer?.statusOf(last.last))
    } finally {
      reservation?.end()
    }
    await send(last)
  }

  /** Forwards a notification to the server. Drops `notifications/cancelled`, and those that only the legacy era has. */
  notify(
    message: Notification,
    { principal, credential, log }: Pick<Arrived, 'principal' | 'credential' | 'log'>,
  ): void {
    const { method, params } = message
    log.telemetry?.recorder?.received(message, {})
    if (method === 'notifications/cancelled' || LEGACY_CLIENT_NOTIFICATIONS.has(method)) return
    this.#upstream.notify({ method, ...decodeNotification(params), principal, credential })
  }
}

/** Decodes and checks a request. An endless call keeps nothing of the received text. */
function decodeModern(request: Request, { bare, trace }: Arrived, record: CallLogEntry): DecodedModernRequest | Fault {
  const { method } = request
  try {
    record.beginRecord(request, trace)
    const decoded = bare ? decodeBareDiscover() : decodeRequest(request)
    const { eras, endless } = methodTraits(method)
    if (eras === 'legacy' || method.startsWith('tasks/')) refuseUnknown(decoded)
    if (!endless) return decoded
    checkFilter(decoded.params)
    return detached(decoded)
  } catch (error) {
    return Fault.from(error)
  }
}

function toCall(decoded: DecodedModernRequest, arrived: Arrived, log: CallLogEntry, tell: Tell): Call {
  const { method, params, meta, caller, progressToken, answers } = decoded
  const { principal, credential, grant, patient, abort: controller, paramHeaders } = arrived
  const progress = progressToken !== undefined
  const abort = (reason?: unknown) => controller.abort(reason)
  const call: Call = {
    method,
    params,
    meta,
    progress,
    caller,
    principal,
    credential,
    grant,
    patient,
    answers,
    tell,
    signal: controller,
    abort,
    log,
  }
  if (paramHeaders) call.paramHeaders = paramHeaders
  return call
}

/** Throws a Fault for a legacy method, which this revision does not have, or for one of tasks whose extension the client did not declare. */
function refuseUnknown({ method, caller }: DecodedModernRequest): void {
  if (methodTraits(method).eras === 'legacy')
    throw new Fault('methodNotFound', `Method not found: ${NEWEST_MODERN} has no ${printable(method, ECHOED)}`)
  const extensions = objectIn(parseObject(caller.capabilities), 'extensions')
  if (extensions && objectIn(extensions, TASKS_EXTENSION)) return
  throw new Fault(
    'missingCapability',
    `${printable(method, ECHOED)} requires the extension ${TASKS_EXTENSION}, which the client did not declare`,
    {
      data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
    },
  )
}
