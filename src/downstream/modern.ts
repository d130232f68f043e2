/** The downstream half of the modern era: takes requests that say everything, and answers each by itself. */
import type { Call, Upstream } from '../protocol/call.js'
import type { Compat } from '../protocol/classify.js'
import { NEWEST_MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import { TASKS_EXTENSION } from '../protocol/meta.js'
import { LEGACY_CLIENT_NOTIFICATIONS, methodTraits } from '../protocol/methods.js'
import {
  type Decoded,
  decodeBareDiscover,
  decodeNotification,
  decodeRequest,
  encodeReply,
} from '../protocol/modern-client.js'
import { Elsewhere } from '../protocol/replicas.js'
import { ECHOED, shown } from '../protocol/shown.js'
import type { TraceContext } from '../protocol/trace.js'
import { error as errorMessage, type Notification, type Request } from '../rpc/message.js'
import { objectIn, parseObject } from '../rpc/splice.js'
import { type Frame, onlyIncreasing } from './frames.js'
import { CallRecord, type Logger, subject } from './record.js'

/** What the transport knows of a request. */
export interface Arrived {
  principal: string
  /** The client's own `Authorization`, where it is to be sent on. */
  credential?: string | undefined
  /** Aborted when the client has gone. */
  abort: AbortController
  log: Logger
  transport: 'http' | 'stdio'
  /** `Mcp-Param-*`, where there are headers; the caller is held to them. */
  paramHeaders?: ReadonlyMap<string, string>
  /** A `server/discover` without its envelope. */
  bare?: boolean
  /** Where the headers say that the request is in a trace. */
  trace?: TraceContext | undefined
}

export class ModernDownstream {
  readonly #upstream: Upstream
  readonly #draftErrorCodes: boolean

  constructor(upstream: Upstream, { draftErrorCodes }: Pick<Compat, 'draftErrorCodes'>) {
    this.#upstream = upstream
    this.#draftErrorCodes = draftErrorCodes
  }

  /**
   * Answers a request that has been classified as modern. What goes wrong is the last frame; throws nothing but Elsewhere,
   * instead of a first one.
   */
  async *answer(request: Request, arrived: Arrived): AsyncGenerator<Frame, void> {
    const { id, method } = request
    const record = new CallRecord(arrived.log, { clientEra: 'modern', clientTransport: arrived.transport, method })
    try {
      const decoded = arrived.bare ? decodeBareDiscover() : decodeRequest(request)
      record.note({ ...subject(method, decoded.params) })
      record.follow(decoded.meta, arrived.trace)
      refuseUnknown(decoded)
      const increasing = onlyIncreasing()
      let last: Frame | undefined
      for await (const reply of this.#upstream.handle(toCall(decoded, arrived, record))) {
        if (reply.kind !== 'notification') {
          record.ended(reply)
          const status = reply.kind === 'error' ? (reply.status ?? 200) : 200
          last = { text: encodeReply(reply, id, decoded), last: { status } }
          break
        }
        if (increasing(reply)) yield { text: encodeReply(reply, id, decoded) }
      }
      if (!last) throw new Fault('internalUnknown', 'The call ended without an answer')
      // Everything behind this is over already: the reader need not come back from it.
      yield last
    } catch (error) {
      if (error instanceof Elsewhere) {
        record.carried(error.owner)
        throw error
      }
      const { aborted, reason } = arrived.abort.signal
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      if (aborted && reason !== fault) record.cancelled()
      else record.failed(fault)
      yield { text: errorMessage(id, fault.toRpcError(this.#draftErrorCodes)), last: { status: fault.status, fault } }
    }
  }

  /** Carries a notification on, if it is one that means anything to the other side. */
  notify({ method, params }: Notification, { principal, credential }: Pick<Arrived, 'principal' | 'credential'>): void {
    if (method === 'notifications/cancelled' || LEGACY_CLIENT_NOTIFICATIONS.has(method)) return
    this.#upstream.notify({ method, ...decodeNotification(params), principal, credential })
  }
}

function toCall(decoded: Decoded, arrived: Arrived, log: CallRecord): Call {
  const { method, params, meta, caller, progressToken, answers } = decoded
  const { principal, credential, abort: controller, paramHeaders } = arrived
  const progress = progressToken !== undefined
  const abort = (reason?: unknown) => controller.abort(reason)
  const { signal } = controller
  const call: Call = { method, params, meta, progress, caller, principal, credential, answers, signal, abort, log }
  if (paramHeaders) call.paramHeaders = paramHeaders
  return call
}

/** Methods that this revision has taken away, or that need an extension the client did not declare. */
function refuseUnknown({ method, caller }: Decoded): void {
  if (methodTraits(method).eras === 'legacy')
    throw new Fault('methodNotFound', `Method not found: ${NEWEST_MODERN} has no ${shown(method, ECHOED)}`)
  if (!method.startsWith('tasks/')) return
  const extensions = objectIn(parseObject(caller.capabilities), 'extensions')
  if (extensions && objectIn(extensions, TASKS_EXTENSION)) return
  throw new Fault('missingCapability', `${shown(method, ECHOED)} needs the extension ${TASKS_EXTENSION}`, {
    data: { requiredCapabilities: `{"extensions":{"${TASKS_EXTENSION}":{}}}` },
  })
}
