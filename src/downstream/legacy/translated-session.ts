/**
 * The downstream half of the legacy era: keeps the client's session in the bridge, and turns each of its requests into
 * a complete call.
 */

import { ECHOED, printable } from '../../printable.js'
import type { Call, Caller, Notice, Reply } from '../../protocol/call.js'
import { type Downlevel, downlevelNotification } from '../../protocol/downlevel.js'
import { type LegacyRevision, NEWEST_MODERN, traits } from '../../protocol/eras.js'
import { Fault } from '../../protocol/fault.js'
import {
  type Decoded,
  decodeInitialize,
  decodeRequest,
  encodeReply,
  initializeResult,
  legacyError,
  type Opening,
} from '../../protocol/legacy-client.js'
import { type Loan, SMALL } from '../../protocol/memory.js'
import { isLogLevel, LEGACY_CLIENT_NOTIFICATIONS, LOG_LEVELS, methodTraits } from '../../protocol/methods.js'
import type { TraceContext } from '../../protocol/trace.js'
import {
  error as errorMessage,
  type Notification,
  notification,
  type Request,
  type Response,
  result,
} from '../../rpc/message.js'
import { own } from '../../rpc/own.js'
import type { Wire } from '../../rpc/source.js'
import { EMPTY, edit, type Json, objectIn, type Payload, parseObject, raw, value, write } from '../../rpc/splice.js'
import { CallLogEntry, subject, tell } from '../call-log.js'
import { type Frame, onlyIncreasing } from '../frames.js'
import { EmulatedTasks } from './emulated-tasks.js'
import { InFlight } from './in-flight.js'
import { Questions } from './questions.js'
import type { ClientSession, Opened, OpenOptions } from './session.js'
import { Changes } from './subscription.js'
import { type CallStep, type Outcome, runCall } from './translated-call.js'

/** Notifications of a server that belong to a call. */
const CALL_NOTIFICATIONS: ReadonlySet<string> = new Set(['notifications/progress', 'notifications/message'])

/** A session of a legacy client that the bridge itself answers. */
export class TranslatedSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #options: OpenOptions
  readonly #caller: Caller
  /** Capabilities of the server, as sent to the client. */
  readonly #offered: Payload
  readonly #to: Downlevel
  readonly #running = new InFlight()
  readonly #questions: Questions
  readonly #tasks: EmulatedTasks
  readonly #changes: Changes
  /** Memory that the session needs until its end. */
  readonly #loan: Loan
  /** Reports to the upstream side that the client has disconnected. */
  readonly #disconnected: (() => void) | undefined
  #ready = false
  #listened = false

  private constructor(
    { revision, clientInfo, capabilities }: Opening,
    to: Downlevel,
    offered: Payload,
    loan: Loan,
    options: OpenOptions,
  ) {
    this.revision = revision
    this.#options = options
    this.#caller = { revision: NEWEST_MODERN, clientInfo, capabilities }
    this.#offered = offered
    this.#loan = loan
    this.#to = to
    this.#tasks = new EmulatedTasks(() => options.memory.borrow(options.sender.principal, SMALL))
    this.#questions = new Questions({
      capabilities,
      to: this.#to,
      within: options.settings.answerWithin,
      report: (what) => tell(options.log, { kind: 'question', what }),
    })
    tell(options.log, { kind: 'session', side: 'client', what: 'opened' })
    this.#disconnected = options.upstream.connected?.(options.sender.principal)
    this.#changes = new Changes({
      offered,
      loan: options.memory.borrow(options.sender.principal),
      listen: (params, controller) => this.#listen(params, controller),
      deliver: (method, params) => this.#deliver(method, params),
      log: options.log,
    })
  }

  /** Calls `server/discover` and answers `initialize` from its result. Rejects with a Fault. */
  static async open(request: Request, options: OpenOptions, record: CallLogEntry): Promise<Opened> {
    const opening = decodeInitialize(request)
    const caller = { revision: NEWEST_MODERN, clientInfo: opening.clientInfo, capabilities: opening.capabilities }
    const controller = new AbortController()
    const call = callOf('server/discover', EMPTY, EMPTY, { caller, controller, record, options })
    record.note({ clientRevision: opening.revision })
    let discovered: Reply | undefined
    for await (const reply of options.upstream.handle(call)) discovered = reply
    if (discovered?.kind === 'error') {
      record.ended(discovered)
      return { text: errorMessage(request.id, legacyError(call, discovered.error, opening.revision)) }
    }
    if (discovered?.kind !== 'result')
      throw new Fault('upstreamProtocol', 'The server answered server/discover without a result')
    record.ended(discovered)
    const to = downlevelFor(opening.revision, options)
    const { answer, offered } = initializeResult(discovered, to, options.settings.serverInfo)
    const kept = own(write(offered))
    const { clientInfo = '', capabilities } = opening
    const loan = options.memory.borrow(options.sender.principal, SMALL)
    loan.demand(kept.length + clientInfo.length + capabilities.length)
    const session = new TranslatedSession(opening, to, parseObject(kept), loan, options)
    return { text: result(request.id, answer), session }
  }

  get open(): number {
    return this.#running.size
  }

  async *answer(request: Request, trace?: TraceContext): AsyncGenerator<Frame, void> {
    const { id, method } = request
    const { log, transport } = this.#options
    const record = new CallLogEntry(log, {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      method,
    })
    const controller = this.#running.begin(id)
    try {
      const decoded = decodeRequest(request)
      record.note({ ...subject(method, decoded.params) })
      record.follow(decoded.meta, trace)
      const answerOwn = Object.hasOwn(this.#ownMethods, method) ? this.#ownMethods[method] : undefined
      if (answerOwn) {
        const answer = await answerOwn(decoded.params)
        record.answered('ok')
        yield { text: result(id, answer), last: { status: 200 } }
        return
      }
      if (method === 'tasks/result' && this.#to.tasks) yield* this.#taskResult(request, decoded, controller, record)
      else if (method === 'tools/call' && this.#to.tasks && objectIn(decoded.params, 'task')) {
        const answer = this.#startTask(decoded, record)
        record.answered('ok')
        yield { text: result(id, answer), last: { status: 200 } }
      } else yield* this.#call(request, decoded, controller, record)
    } catch (error) {
      const { aborted, reason } = controller.signal
      const fault = record.faultOf(reason instanceof Fault ? reason : error)
      const cancelled = aborted && reason !== fault
      if (cancelled) record.cancelled()
      else record.failed(fault)
      const failed = {
        method,
        params: typeof request.params === 'string' ? EMPTY : request.params,
        caller: this.#caller,
      }
      const rpcError = cancelled
        ? { code: -32603, message: 'Request cancelled' }
        : legacyError(failed, fault.toRpcError(), this.revision)
      yield { text: errorMessage(id, rpcError), last: { status: 200, fault, cancelled } }
    } finally {
      this.#running.end(id, controller)
    }
  }

  take(message: Notification | Response): void {
    if (message.kind === 'response') return this.#questions.answer(message)
    const { method, params } = message
    if (method === 'notifications/initialized') {
      this.#ready = true
      this.#subscribeIfReady()
    } else if (method === 'notifications/cancelled') {
      this.#running.cancel(params)
    } else if (!LEGACY_CLIENT_NOTIFICATIONS.has(method) && method !== 'notifications/tasks/status') {
      const { params: payload, meta } = decodeRequest({ ...message, kind: 'request', id: '0' as Request['id'] })
      const { principal, credential } = this.#options.sender
      const notice: Notice = { method, params: payload, meta, caller: this.#caller, principal, credential }
      this.#options.upstream.notify(notice)
    }
  }

  listened(): void {
    this.#listened = true
    this.#subscribeIfReady()
  }

  close(): void {
    this.#running.abortAll()
    this.#tasks.close()
    this.#changes.stop()
    this.#loan.end()
    this.#disconnected?.()
    tell(this.#options.log, { kind: 'session', side: 'client', what: 'ended' })
  }

  /** Methods that the bridge answers itself, because they concern the session. */
  readonly #ownMethods: Readonly<Record<string, (params: Payload) => Json | Promise<Json>>> = {
    ping: () => '{}',
    initialize: () => {
      throw new Fault('invalidRequest', 'initialize was already called in this session')
    },
    'logging/setLevel': (params) => {
      this.#check('logging/setLevel')
      const level = value(params, 'level')
      if (!isLogLevel(level)) throw new Fault('invalidParams', `level must be one of ${LOG_LEVELS.join(', ')}`)
      this.#caller.logLevel = level
      return '{}'
    },
    'resources/subscribe': async (params) => {
      this.#check('resources/subscribe')
      await this.#changes.subscribe(uriIn(params))
      return '{}'
    },
    'tasks/get': (params) => {
      this.#check('tasks/get')
      return this.#tasks.get(value(params, 'taskId'))
    },
    'tasks/list': () => {
      this.#check('tasks/list')
      return this.#tasks.list()
    },
    'tasks/cancel': (params) => {
      this.#check('tasks/cancel')
      return this.#tasks.cancel(value(params, 'taskId'))
    },
    'resources/unsubscribe': async (params) => {
      this.#check('resources/unsubscribe')
      await this.#changes.unsubscribe(uriIn(params))
      return '{}'
    },
  }

  /** Makes a call of a request, and yields its answer. */
  async *#call(
    { id, method }: Request,
    { params, meta, progressToken }: Decoded,
    controller: AbortController,
    record: CallLogEntry,
  ): AsyncGenerator<Frame, void> {
    this.#check(method)
    const call = callOf(method, withoutTask(method, params), meta, {
      caller: { ...this.#caller },
      controller,
      record,
      options: this.#options,
      progress: progressToken !== undefined,
    })
    const increasing = onlyIncreasing()
    const steps = this.#run(call)
    let next: IteratorResult<CallStep, Outcome> | undefined
    try {
      next = await steps.next()
      for (; !next.done; next = await steps.next()) {
        const step = next.value
        if (step.kind === 'question') yield { text: step.text }
        else if (CALL_NOTIFICATIONS.has(step.reply.method) && increasing(step.reply))
          yield { text: encodeReply(step.reply, id, call, progressToken, this.#to) }
      }
    } finally {
      // The reader may stop at any yield.
      if (!next?.done) await steps.return(undefined as never)
    }
    const text = encodeReply(next.value, id, call, progressToken, this.#to)
    record.ended(next.value)
    // Nothing is left to clean up after this, because the reader may stop here.
    yield { text, last: { status: 200 } }
  }

  #run(call: Call, about?: Json): AsyncGenerator<CallStep, Outcome> {
    const { upstream, settings, memory } = this.#options
    const caller = () => ({ ...this.#caller })
    const borrow = () => memory.borrow(call.principal, SMALL)
    const { answerWithin } = settings
    return runCall(call, { handle: upstream.handle, questions: this.#questions, caller, answerWithin, borrow, about })
  }

  /** Starts a call as an emulated task. */
  #startTask({ params, meta }: Decoded, record: CallLogEntry): Json {
    this.#check('tools/call')
    const task = objectIn(params, 'task') ?? EMPTY
    const bare = withoutTask('tools/call', params)
    return this.#tasks.start(bare, value(task, 'ttl'), (about, controller) => {
      const parts = { caller: { ...this.#caller }, controller, record, options: this.#options, progress: true }
      return this.#run(callOf('tools/call', bare, meta, parts), about)
    })
  }

  /** Waits for the result of a task. Until then yields the questions to the client. */
  async *#taskResult(
    { id }: Request,
    { params }: Decoded,
    controller: AbortController,
    record: CallLogEntry,
  ): AsyncGenerator<Frame, void> {
    const taskId = value(params, 'taskId')
    const called = this.#tasks.paramsOf(taskId)
    const waiting = this.#tasks.result(taskId, controller.signal)
    let next: IteratorResult<Wire, Outcome> | undefined
    try {
      next = await waiting.next()
      for (; !next.done; next = await waiting.next()) yield { text: next.value }
    } finally {
      if (!next?.done) await waiting.return(undefined as never)
    }
    const call = callOf('tools/call', called, EMPTY, {
      caller: this.#caller,
      controller,
      record,
      options: this.#options,
    })
    const text = encodeReply(next.value, id, call, undefined, this.#to, String(taskId))
    record.ended(next.value)
    yield { text, last: { status: 200 } }
  }

  /** Throws a Fault if the client's revision does not have the method, or the server does not offer it. */
  #check(method: string): void {
    const { eras, capability } = methodTraits(method)
    if (method.startsWith('tasks/') && method !== 'tasks/update' && this.#to.tasks) return
    if (eras === 'modern' || method.startsWith('tasks/'))
      throw new Fault('methodNotFound', `Method not found: ${this.revision} has no ${printable(method, ECHOED)}`)
    if (capability !== undefined && !objectIn(this.#offered, capability))
      throw new Fault('methodNotFound', `Method not found: the server does not offer ${printable(method, ECHOED)}`)
  }

  /** Subscribes to the server's changes once the client is initialized and can receive messages. */
  #subscribeIfReady(): void {
    if (this.#ready && this.#listened) this.#changes.start()
  }

  #listen(params: Payload, controller: AbortController): AsyncIterable<Reply> {
    const { log, transport } = this.#options
    const fields = { clientEra: 'legacy', clientTransport: transport, method: 'subscriptions/listen' } as const
    const record = new CallLogEntry(log, fields)
    const caller = { ...this.#caller, logLevel: undefined }
    return this.#options.upstream.handle(
      callOf('subscriptions/listen', params, EMPTY, { caller, controller, record, options: this.#options }),
    )
  }

  #deliver(method: string, params: Payload): void {
    const text = write(downlevelNotification(method, params, this.#to))
    const uri = raw(params, 'uri')
    this.#options.outlet.deliver(
      notification(method, text === '{}' ? undefined : text),
      uri === undefined ? method : `${method} ${uri}`,
    )
  }
}

/** How to adapt messages to the client's revision. Each feature that is left out is logged once. */
function downlevelFor(revision: LegacyRevision, { settings, log }: OpenOptions): Downlevel {
  const logged = new Set<string>()
  return {
    revision,
    strict: settings.strict,
    memory: { wrapped: new Set() },
    // Calls can be tasks if the client's revision has tasks and the configuration allows them.
    tasks: settings.emulateTasks && traits[revision].tasks,
    lost: (feature) => {
      tell(log, { kind: 'downlevelled', what: feature })
      if (logged.has(feature)) return
      logged.add(feature)
      log.info(
        { event: 'feature_omitted', feature, revision },
        "feature left out: the client's revision does not have it",
      )
    },
  }
}

interface CallParts {
  caller: Caller
  controller: AbortController
  record: CallLogEntry
  options: OpenOptions
  progress?: boolean
}

function callOf(
  method: string,
  params: Payload,
  meta: Payload,
  { caller, controller, record, options: { sender }, progress = false }: CallParts,
): Call {
  return {
    method,
    params,
    meta,
    progress,
    caller,
    principal: sender.principal,
    credential: sender.credential,
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    log: record,
  }
}

/** Params of a tool call without `task`, which only peers of 2025-11-25 negotiate. */
function withoutTask(method: string, params: Payload): Payload {
  return method === 'tools/call' ? edit(params, { task: undefined }) : params
}

function uriIn(params: Payload): string {
  const uri = value(params, 'uri')
  if (typeof uri !== 'string') throw new Fault('invalidParams', 'params.uri must be a string')
  return uri
}
