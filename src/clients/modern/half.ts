/** The downstream half of the modern era: answers each request from the request alone, without a session. */

import { Fault } from '../../base/fault/fault.js'
import type { Memory, Reservation } from '../../base/limits/memory.js'
import { error as errorMessage, type Id, idKey, type Notification, type Request } from '../../base/rpc/message.js'
import { detach, type JsonSource, wireOf } from '../../base/rpc/source.js'
import { objectIn, parseObject } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import type { HangUp, Signal } from '../../base/time/hang-up.js'
import type { RecordedHeaders } from '../../mcp/ports/recorder.js'
import { OwnedByReplica } from '../../mcp/ports/replicas.js'
import type {
  Call,
  CallersHeaders,
  Final,
  Grant,
  Handler,
  Notice,
  Notify,
  ReceivedNotice,
  ServerNotification,
} from '../../mcp/protocol/call.js'
import type { Compat } from '../../mcp/protocol/classify.js'
import type { Encoded } from '../../mcp/protocol/encoded.js'
import { NEWEST_MODERN } from '../../mcp/protocol/eras.js'
import { TASKS_EXTENSION } from '../../mcp/protocol/meta.js'
import { LEGACY_CLIENT_NOTIFICATIONS, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import {
  type DecodedModernRequest,
  decodeBareDiscover,
  decodeNotification,
  decodeRequest,
  detached,
  type Envelope,
  encodeReply,
} from '../../mcp/protocol/modern-client.js'
import { checkFilter } from '../../mcp/protocol/subscriptions.js'
import type { ReceivedTrace } from '../../mcp/protocol/trace.js'
import type { Upstream } from '../../mcp/protocol/upstream.js'
import { CallLogEntry } from '../call-log.js'
import { type AnswerEnd, onlyIncreasing, type Send } from '../frames.js'
import type { Logger } from '../logger.js'
import { type FailedCall, failureError } from '../outcome.js'

/** What the transport knows about a request. */
export interface Arrived {
  principal: string
  /** The headers of the client that servers get. */
  credential?: CallersHeaders | undefined
  /** What the token of this request grants. */
  grant?: Grant | undefined
  /** Aborts when that token ends. */
  ends?: Signal | undefined
  /** Whether the client is willing to wait for a slow start of a program. */
  patient?: () => boolean
  /** Aborts when the client disconnects. */
  abort: HangUp
  log: Logger
  transport: 'http' | 'stdio'
  /** `Mcp-Param-*`, if the transport has headers. They must match the arguments. */
  paramHeaders?: ReadonlyMap<string, string>
  /** The trace context of the headers. */
  trace?: ReceivedTrace | undefined
  /** The whole message, if the answer has a stream of its own. */
  bytes?: Uint8Array | undefined
  source?: JsonSource | undefined
  /** `Mcp-Name`, and the headers that go on to the server. */
  nameHeader?: string | undefined
  forwarded?: Readonly<Record<string, string>> | undefined
  /** All headers, for the inspector. It shows those that cannot be secret. */
  headers?: RecordedHeaders
  /** The request in flight. It gets the number of its call for the inspector. */
  running?: { call: number | undefined }
}

export interface ModernDownstreamOptions {
  upstream: Pick<Upstream, 'handle' | 'notify'>
  /** Handles subscriptions, in place of `upstream`. */
  subscribe?: Handler | undefined
  compat: Pick<Compat, 'draftErrorCodes'>
  memory: Memory
}

/** The half. One instance serves all clients of a server. */
export class ModernDownstream {
  readonly #options: ModernDownstreamOptions

  constructor(options: ModernDownstreamOptions) {
    this.#options = options
  }

  /**
   * Answers a request that has been classified as modern: passes its frames to `send`. A failure is the last frame.
   * `envelope` is undefined for a `server/discover` without one.
   * Rejects only with OwnedByReplica, and only before the first frame.
   */
  answerRequest(request: Request, envelope: Envelope | undefined, arrived: Arrived, send: Send): Promise<void> {
    const { id, method } = request
    const { log, transport: clientTransport, headers } = arrived
    const record = new CallLogEntry(log, { clientEra: 'modern', clientTransport, method }, arrived, request)
    const { recorder } = record
    const { eras, endless } = methodTraits(method)
    let decoded: (DecodedModernRequest & { size?: number }) | Fault
    try {
      decoded = envelope ? decodeRequest(request, envelope) : decodeBareDiscover()
      if (eras === 'legacy' || method.startsWith('tasks/')) refuseUnknown(decoded)
      if (endless) {
        checkFilter(decoded.params)
        decoded = detached(decoded)
      }
      if (decoded.answers) recorder?.continues(decoded.answers)
      recorder?.began(request, decoded.answers, headers, decoded.caller.clientInfo)
    } catch (error) {
      decoded = Fault.from(error)
      recorder?.began(request, undefined, headers)
    }
    if (arrived.running) arrived.running.call = recorder?.number
    // Not async itself, because that would keep the whole request in memory while it waits.
    return this.#callAndSend(endless ? detach(id) : id, decoded, arrived, record, send)
  }

  async #callAndSend(
    id: Id,
    decoded: (DecodedModernRequest & { size?: number }) | Fault,
    arrived: Arrived,
    record: CallLogEntry,
    send: Send,
  ): Promise<void> {
    const { upstream, subscribe, memory } = this.#options
    let reservation: Reservation | undefined
    let ended = false
    let reply: Final | undefined
    let encoded: Pick<Encoded, 'text'> & Partial<Encoded>
    let failure: FailedCall | undefined
    const stop = arrived.ends && arrived.abort.follow(arrived.ends)
    try {
      if (decoded instanceof Fault) throw decoded
      // The request is in memory twice: as received, and as sent to the server.
      if (decoded.size !== undefined) reservation = memory.mustReserve(arrived.principal, 2 * decoded.size)
      let increasing: ReturnType<typeof onlyIncreasing> | undefined
      const notify: Notify = (notification) => {
        increasing ??= onlyIncreasing()
        if (ended || !increasing(notification)) return undefined
        const { text, origin } =
          (notification.received && passedNotification(notification, arrived)) ?? encodeReply(notification, id, decoded)
        record.recorder?.sent(text, origin)
        return send({ text })
      }
      const { method, params, meta, caller, progressToken, answers } = decoded
      const { principal, credential, grant, patient, abort: controller, paramHeaders, bytes, source } = arrived
      const call: Call = {
        method,
        params,
        meta,
        progress: progressToken !== undefined,
        caller,
        principal,
        credential,
        grant,
        patient,
        answers,
        received:
          arrived.transport === 'http'
            ? { era: 'modern', id, progressToken, bytes, source, nameHeader: arrived.nameHeader, decoded }
            : undefined,
        forwarded: arrived.forwarded,
        notify,
        signal: controller,
        abort: (reason?: unknown) => controller.abort(reason),
        log: record,
      }
      if (paramHeaders) call.paramHeaders = paramHeaders
      reply = await (subscribe && method === LISTEN ? subscribe(call) : upstream.handle(call))
      ended = true
      encoded = (reply.received && passedReply(reply, id, arrived)) ?? encodeReply(reply, id, decoded)
    } catch (error) {
      ended = true
      if (error instanceof OwnedByReplica) {
        record.carried(error.owner)
        throw error
      }
      failure = record.failureOf(error, arrived.abort, 'disconnected')
      encoded = { text: errorMessage(id, failureError(failure, this.#options.compat.draftErrorCodes)) }
    } finally {
      stop?.()
      reservation?.end()
    }
    const { text, origin } = encoded
    const answered = reply?.kind === 'error' ? (reply.status ?? 200) : 200
    const last: AnswerEnd = failure
      ? { status: failure.fault.status, ...failure }
      : { status: answered, headers: reply?.received?.http?.headers }
    let held: Promise<void> | undefined
    try {
      held = send({ text, last })
    } finally {
      const status = arrived.transport === 'http' ? last.status : undefined
      try {
        if (failure) record.failed(failure, text, status)
        else record.ended(reply as Final, text, origin, status)
      } catch (error) {
        // The client has its answer.
        arrived.log.error({ event: 'answer_failed', err: error }, 'a mistake of the bridge at the end of a call')
      }
    }
    if (held) await held
  }

  /**
   * Forwards a notification to the server: `notifications/cancelled`, and those that only the legacy era has, only if it
   * passes unchanged. The promise is that of `Upstream.notify`. `received`: what a modern server over HTTP needs of it.
   */
  notify(
    message: Notification,
    { principal, credential, log }: Pick<Arrived, 'principal' | 'credential' | 'log'>,
    received?: Omit<ReceivedNotice, 'bytes' | 'source' | 'onlyUnchanged'> & { body: Uint8Array },
  ): Promise<void> | undefined {
    const { method, params, source } = message
    log.telemetry?.recorder?.received(message, {})
    const onlyUnchanged = method === 'notifications/cancelled' || LEGACY_CLIENT_NOTIFICATIONS.has(method)
    const notice: Notice = { method, ...decodeNotification(params), principal, credential }
    if (received) {
      const isWhole = typeof params === 'string' || params.edits === undefined
      notice.received = { ...received, bytes: isWhole ? received.body : undefined, source, onlyUnchanged }
    } else if (onlyUnchanged) return undefined
    return this.#options.upstream.notify(notice)
  }
}

/** The answer as the server sent it, if nothing has edited it, and if it has the id of the request. */
function passedReply(reply: Final, id: Id, { bytes }: Arrived): Encoded | undefined {
  const { received } = reply
  if (!bytes || received?.era !== 'modern' || received.reply !== reply) return undefined
  if (received.id === undefined || idKey(received.id) !== idKey(id)) return undefined
  return { text: received.message, origin: received.origin }
}

/** A notification as the server sent it, if nothing has edited it. */
function passedNotification(notification: ServerNotification, { bytes }: Arrived): Encoded | undefined {
  const { received } = notification
  return bytes && received?.era === 'modern' && received.notification === notification
    ? { text: wireOf(received.source), origin: received.source }
    : undefined
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
