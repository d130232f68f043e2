/** The downstream half of the modern era: takes requests that say everything, and answers each by itself. */

import { OwnedByReplica } from '../ports/replicas.js'
import { ECHOED, printable } from '../printable.js'
import type { Call, Upstream } from '../protocol/call.js'
import type { Compat } from '../protocol/classify.js'
import { NEWEST_MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import type { Loan, Memory } from '../protocol/memory.js'
import { TASKS_EXTENSION } from '../protocol/meta.js'
import { LEGACY_CLIENT_NOTIFICATIONS, methodTraits } from '../protocol/methods.js'
import {
  type Decoded,
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
import { CallLogEntry, type Logger, subject } from './call-log.js'
import { type Frame, onlyIncreasing } from './frames.js'

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
  readonly #memory: Memory

  constructor(upstream: Upstream, { draftErrorCodes }: Pick<Compat, 'draftErrorCodes'>, memory: Memory) {
    this.#upstream = upstream
    this.#memory = memory
    this.#draftErrorCodes = draftErrorCodes
  }

  /**
   * Answers a request that has been classified as modern. What goes wrong is the last frame; throws nothing but Elsewhere,
   * instead of a first one.
   */
  answer(request: Request, arrived: Arrived): AsyncGenerator<Frame, void> {
    const { id, method } = request
    const record = new CallLogEntry(arrived.log, { clientEra: 'modern', clientTransport: arrived.transport, method })
    const kept = methodTraits(method).endless ? own(id) : id
    // No generator: while one waits, everything is kept that it was given.
    return this.#answer(kept, decode(request, arrived, record), arrived, record)
  }

  async *#answer(
    id: Id,
    decoded: (Decoded & { size?: number }) | Fault,
    arrived: Arrived,
    record: CallLogEntry,
  ): AsyncGenerator<Frame, void> {
    let loan: Loan | undefined
    let told = false
    try {
      if (decoded instanceof Fault) throw decoded
      // As it came in, and as it has been sent on.
      if (decoded.size !== undefined) loan = this.#memory.lend(arrived.principal, 2 * decoded.size)
      const increasing = onlyIncreasing()
      let last: Frame | undefined
      for await (const reply of this.#upstream.handle(toCall(decoded, arrived, record))) {
        if (reply.kind !== 'notification') {
          told = true
          record.ended(reply)
          const status = reply.kind === 'error' ? (reply.status ?? 200) : 200
          last = { text: encodeReply(reply, id, decoded), last: { status } }
          break
        }
        if (increasing(reply)) yield { text: encodeReply(reply, id, decoded) }
      }
      if (!last) throw new Fault('internalUnknown', 'The call ended without an answer')
      loan?.end()
      // Everything behind this is over already: the reader need not come back from it.
      yield last
    } catch (error) {
      told = true
      if (error instanceof OwnedByReplica) {
        record.carried(error.owner)
        throw error
      }
      const { aborted, reason } = arrived.abort.signal
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      loan?.end()
      if (aborted && reason !== fault) record.cancelled()
      else record.failed(fault)
      yield { text: errorMessage(id, fault.toRpcError(this.#draftErrorCodes)), last: { status: fault.status, fault } }
    } finally {
      loan?.end()
      // The reader has stopped in the middle of it, because the client has gone or does not read.
      if (!told) record.cancelled()
    }
  }

  /** Carries a notification on, if it is one that means anything to the other side. */
  notify({ method, params }: Notification, { principal, credential }: Pick<Arrived, 'principal' | 'credential'>): void {
    if (method === 'notifications/cancelled' || LEGACY_CLIENT_NOTIFICATIONS.has(method)) return
    this.#upstream.notify({ method, ...decodeNotification(params), principal, credential })
  }
}

/** Takes a request apart. What stays open for long keeps nothing of what it came in. */
function decode(request: Request, { bare, trace }: Arrived, record: CallLogEntry): Decoded | Fault {
  const { method } = request
  try {
    const decoded = bare ? decodeBareDiscover() : decodeRequest(request)
    record.note({ ...subject(method, decoded.params) })
    record.follow(decoded.meta, trace)
    refuseUnknown(decoded)
    if (!methodTraits(method).endless) return decoded
    checkFilter(decoded.params)
    return detached(decoded)
  } catch (error) {
    return Fault.from(error)
  }
}

function toCall(decoded: Decoded, arrived: Arrived, log: CallLogEntry): Call {
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
    throw new Fault('methodNotFound', `Method not found: ${NEWEST_MODERN} has no ${printable(method, ECHOED)}`)
  if (!method.startsWith('tasks/')) return
  const extensions = objectIn(parseObject(caller.capabilities), 'extensions')
  if (extensions && objectIn(extensions, TASKS_EXTENSION)) return
  throw new Fault('missingCapability', `${printable(method, ECHOED)} needs the extension ${TASKS_EXTENSION}`, {
    data: { requiredCapabilities: `{"extensions":{"${TASKS_EXTENSION}":{}}}` },
  })
}
