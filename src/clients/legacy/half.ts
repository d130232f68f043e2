/**
 * The downstream half of the legacy era: keeps the client's session in the bridge, and turns each request into a complete
 * call.
 */

import { Fault } from '../../base/fault/fault.js'
import { type Reservation, SMALL } from '../../base/limits/memory.js'
import {
  error as errorMessage,
  type Id,
  type Notification,
  notification,
  type Request,
  type Response,
  result,
} from '../../base/rpc/message.js'
import { detach } from '../../base/rpc/source.js'
import {
  EMPTY,
  edit,
  type Json,
  keys,
  NO_ORIGIN,
  objectIn,
  type Payload,
  parseObject,
  stringUnder,
  value,
  write,
} from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { HangUp } from '../../base/time/hang-up.js'
import { bridgeCall } from '../../mcp/protocol/bridge-call.js'
import {
  type Call,
  type Caller,
  type Final,
  type Grant,
  type Notice,
  type Notify,
  uneditedOf,
} from '../../mcp/protocol/call.js'
import { type Downlevel, downlevelNotification } from '../../mcp/protocol/downlevel/downlevel.js'
import type { Encoded } from '../../mcp/protocol/encoded.js'
import { type LegacyRevision, NEWEST_MODERN, traits } from '../../mcp/protocol/eras.js'
import {
  type DecodedSessionRequest,
  decodeInitialize,
  decodeRequest,
  encodeReply,
  initializeResult,
  legacyError,
} from '../../mcp/protocol/legacy-client.js'
import {
  CALL_TOOL,
  isLogLevel,
  isOfLegacySession,
  LISTEN,
  LOG_LEVELS,
  methodTraits,
  ROOTS_CHANGED,
} from '../../mcp/protocol/methods.js'
import { subjectOf } from '../../mcp/protocol/subscriptions.js'
import { withReceived } from '../../mcp/protocol/trace.js'
import { CallLogEntry } from '../call-log.js'
import { type Frame, onlyIncreasing, type Send } from '../frames.js'
import { tell, tellSession } from '../logger.js'
import { failureError, lastOf } from '../outcome.js'
import { AskedSession } from './asked-session.js'
import { InFlight, type RunningRequest } from './in-flight.js'
import { Questions } from './questions.js'
import type { AboutRequest, ClientSession, Opened, OpenOptions, SessionPlace, SessionRecord } from './session.js'
import { SessionChanges } from './subscription.js'
import { wantsTasks } from './task-driver.js'
import { EmulatedTasks } from './tasks.js'
import { type CallContext, continueCall, type TranslatedOutcome } from './translated-call.js'
import { withUndeclaredLists } from './undeclared-lists.js'

/** Removes `task` from the params of a tool call: only peers of 2025-11-25 negotiate it. */
const NO_TASK = { task: undefined }

/** Notifications of a server that belong to a call. */
const CALL_NOTIFICATIONS: ReadonlySet<string> = new Set(['notifications/progress', 'notifications/message'])

/** How many more ids the previous replica may use for requests to the client, while its calls in flight end. */
const ASKED_SINCE = 1_000_000

/** A session of a legacy client that the bridge itself answers. */
export class TranslatedSession implements ClientSession {
  readonly revision: LegacyRevision
  #options: OpenOptions
  /** Replaced on a change, not modified, because calls refer to it. */
  #caller: Caller
  /** The server's capabilities, as sent to the client, and their names. */
  readonly #capabilities: Payload
  readonly #offered: ReadonlySet<string>
  readonly #to: Downlevel
  readonly #running = new InFlight()
  readonly #questions: Questions
  /** The client, as servers ask it beside its calls. */
  readonly #client: AskedSession
  readonly #tasks: EmulatedTasks
  readonly #changes: SessionChanges
  /** Memory that the session needs until its end. */
  readonly #reservation: Reservation
  /** Reports to the upstream side that the client has disconnected. */
  #disconnected: (() => void) | undefined
  #ready: boolean
  #listened = false

  /** Throws a Fault if there is no memory for the session. */
  private constructor(record: SessionRecord, options: OpenOptions, to = downlevelFor(record.revision, options)) {
    const { revision, clientInfo = '', capabilities, logLevel, ready, asked } = record
    const { memory, settings, sender, upstream, log } = options
    const { principal } = sender
    const offered = parseObject(record.offered)
    this.#reservation = memory.reserve(principal, SMALL)
    // The client's info and capabilities are in memory twice: by themselves, and in the envelope of requests.
    this.#reservation.mustResize(record.offered.length + 2 * (clientInfo.length + capabilities.length))
    this.revision = revision
    this.#options = options
    const caller = callerOf(record)
    this.#caller = { ...caller, logLevel }
    this.#capabilities = offered
    this.#offered = new Set(keys(offered).filter((name) => objectIn(offered, name)))
    this.#to = to
    this.#tasks = new EmulatedTasks(() => memory.reserve(principal, SMALL))
    this.#questions = new Questions({
      capabilities,
      to,
      asked,
      within: settings.answerWithin,
      report: (what, call) => tell(this.#options.log, { kind: 'question', what, call }),
    })
    this.#client = new AskedSession(caller, this.#questions, options)
    this.#ready = ready
    if (ready) this.#client.ready()
    tellSession('opened', options, caller)
    this.#disconnected = upstream.connected?.(principal, this.#client)
    this.#changes = new SessionChanges({
      offered,
      reservation: memory.reserve(principal),
      listen: (params, controller, tell) => this.#listen(params, controller, tell),
      deliver: (method, params) => this.#deliver(method, params),
      log,
    })
  }

  /** Calls `server/discover` and answers `initialize` from its result. Rejects with a Fault. */
  static async open(request: Request, options: OpenOptions, record: CallLogEntry): Promise<Opened> {
    const opening = decodeInitialize(request)
    const caller = callerOf(opening)
    const controller = new HangUp()
    const whose = { caller, log: record }
    const call = ownCall('server/discover', options, controller, { ...whose, params: NO_ORIGIN })
    record.note({ clientRevision: opening.revision })
    const discovered = await options.upstream.handle(call)
    if (discovered.kind === 'error') {
      const origin = legacyError(call, discovered.error, opening.revision)
      const text = errorMessage(request.id, origin)
      record.ended(discovered, text, origin)
      return { text, last: { status: 200 } }
    }
    if (discovered.kind !== 'result')
      throw new Fault('upstreamProtocol', 'The server answered server/discover without a result')
    const to = downlevelFor(opening.revision, options)
    const complete = await withUndeclaredLists(discovered, (method) =>
      options.upstream.handle(ownCall(method, options, controller, whose)),
    )
    const { answer, offered } = initializeResult(complete, to, options.settings.serverInfo)
    const kept = { ...opening, offered: detach(write(offered)), wrapped: [], uris: [], ready: false, asked: 0 }
    const session = new TranslatedSession(kept, options, to)
    const text = result(request.id, answer)
    record.ended(discovered, text, 'rebuilt')
    return { text, last: { status: 200 }, session }
  }

  /** Continues a session that another replica had, or that was a direct one. Throws a Fault if there is no memory for it. */
  static continue(record: SessionRecord, options: OpenOptions): TranslatedSession {
    const session = new TranslatedSession({ ...record, asked: record.asked + ASKED_SINCE }, options)
    for (const name of record.wrapped) session.#to.memory.wrapped.add(name)
    session.#changes.continue(record.uris)
    return session
  }

  get record(): SessionRecord | undefined {
    // Emulated tasks run in this replica, so no other replica can continue the session.
    if (this.#tasks.size > 0) return undefined
    const { clientInfo, capabilities, reportsRoots, logLevel } = this.#caller
    return {
      revision: this.revision,
      clientInfo,
      capabilities,
      reportsRoots,
      logLevel,
      offered: write(this.#capabilities),
      wrapped: [...this.#to.memory.wrapped],
      uris: [...this.#changes.uris],
      ready: this.#ready,
      asked: this.#questions.asked,
    }
  }

  get session(): string | undefined {
    return this.#options.session
  }

  get open(): number {
    return this.#running.size
  }

  async answerClient(request: Request, send: Send, { trace, headers, grant, ends }: AboutRequest = {}): Promise<void> {
    const { id, method } = request
    const { log, transport, sender, session } = this.#options
    const fields = {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      method,
    } as const
    const record = new CallLogEntry(log, fields, { principal: sender.principal, session, trace }, request)
    const controller = this.#running.enterRequest(id, record.recorder?.number)
    const stop = ends && controller.follow(ends)
    try {
      let last: Frame
      try {
        record.recorder?.began(request, undefined, headers)
        const received = decodeRequest(request)
        const decoded = trace ? { ...received, meta: withReceived(received.meta, trace) } : received
        this.#checkOffered(method)
        const answerOwn = Object.hasOwn(this.#ownMethods, method) ? this.#ownMethods[method] : undefined
        const asTask = method === CALL_TOOL && this.#to.tasks && objectIn(decoded.params, 'task')
        if (answerOwn || asTask) {
          const text = result(id, await (answerOwn?.(decoded.params) ?? this.#startTask(decoded, record, grant)))
          record.answered('ok', text)
          last = { text, last: { status: 200 } }
        } else if (method === 'tasks/result') last = await this.#taskResult(request, decoded, controller, record, send)
        else {
          const call = this.#callOf(request, decoded, controller, record, send, grant)
          const reply = await this.#options.upstream.handle(call)
          const outcome = isOutcome(reply)
            ? reply
            : await this.#continueCall(call, reply, record, (text) => send({ text }))
          const { text, origin } =
            (outcome.received && this.#passed(outcome, id)) ??
            encodeReply(outcome, id, call, decoded.progressToken, this.#to)
          record.ended(outcome, text, origin)
          last = { text, last: { status: 200 } }
        }
      } catch (error) {
        last = this.#failed(request, error, controller, record)
      }
      controller.isAnswered = true
      const held = send(last)
      if (held) await held
    } finally {
      stop?.()
      this.#running.leaveRequest(id, controller)
    }
  }

  /** An answer of a legacy server, unless it is of a later revision than the client, or has to be adapted all the same. */
  #passed(reply: Final, id: Id): Encoded | undefined {
    const received = uneditedOf(reply)
    const { strict, tasks } = this.#to
    if (received?.revision === undefined || received.id !== id || strict || tasks) return undefined
    return received.revision <= this.revision ? { text: received.message, origin: received.origin } : undefined
  }

  /** The last frame of a request that has failed or was cancelled. */
  #failed({ id, method, params }: Request, error: unknown, controller: HangUp, record: CallLogEntry): Frame {
    const failure = record.failureOf(error, controller, 'session')
    const failed = { method, params: typeof params === 'string' ? EMPTY : params, caller: this.#caller }
    const text = errorMessage(id, legacyError(failed, failureError(failure), this.revision))
    record.failed(failure, text)
    return { text, last: lastOf(failure) }
  }

  take(message: Notification | Response): undefined {
    if (message.kind === 'response') {
      this.#questions.answer(message)
      return undefined
    }
    const { log, session } = this.#options
    const { method, params } = message
    const call = method === 'notifications/cancelled' ? this.#running.named(params)?.call : undefined
    log.telemetry?.recorder?.received(message, { call, session })
    if (method === 'notifications/initialized') {
      this.#ready = true
      this.#client.ready()
      this.#subscribeIfReady()
    } else if (method === 'notifications/cancelled') {
      this.#running.cancel(params)
    } else if (method === ROOTS_CHANGED ? this.#caller.reportsRoots : !isOfLegacySession(method)) {
      const { params: payload, meta } = decodeRequest({ ...message, kind: 'request', id: '0' as Request['id'] })
      const { principal, credential } = this.#options.sender
      const notice: Notice = { method, params: payload, meta, caller: this.#caller, principal, credential }
      this.#options.upstream.notify(notice)?.catch(() => {})
    }
    return undefined
  }

  isFor(message: Notification | Response): boolean {
    if (message.kind === 'response') return this.#questions.isOpen(message)
    return message.method !== 'notifications/cancelled' || this.#running.named(message.params) !== undefined
  }

  moved(to: SessionPlace): ClientSession {
    const { principal } = this.#options.sender
    const disconnected = to.upstream.connected?.(principal)
    this.#disconnected?.()
    this.#disconnected = disconnected
    this.#options = { ...this.#options, ...to }
    this.#changes.moved()
    return this
  }

  listened(): void {
    this.#listened = true
    this.#subscribeIfReady()
  }

  close(): void {
    this.#running.abortAll()
    this.#client.close()
    this.#tasks.close()
    this.#changes.stop()
    this.#reservation.end()
    this.#disconnected?.()
    tellSession('ended', this.#options, this.#caller)
  }

  /** Methods that the bridge answers itself, because they concern the session. */
  readonly #ownMethods: Readonly<Record<string, (params: Payload) => Json | Promise<Json>>> = {
    ping: () => '{}',
    initialize: () => {
      throw new Fault('invalidRequest', 'initialize was already called in this session')
    },
    'logging/setLevel': (params) => {
      const level = stringUnder(params, 'level')
      if (!isLogLevel(level)) throw new Fault('invalidParams', `level must be one of ${LOG_LEVELS.join(', ')}`)
      this.#caller = { ...this.#caller, logLevel: level }
      return '{}'
    },
    'resources/subscribe': async (params) => {
      await this.#changes.subscribe(uriIn(params))
      return '{}'
    },
    'tasks/get': (params) => this.#tasks.get(stringUnder(params, 'taskId')),
    'tasks/list': () => this.#tasks.list(),
    'tasks/cancel': (params) => this.#tasks.cancel(stringUnder(params, 'taskId')),
    'resources/unsubscribe': async (params) => {
      await this.#changes.unsubscribe(uriIn(params))
      return '{}'
    },
  }

  /** The call of a request. */
  #callOf(
    { id, method }: Request,
    { params, meta, progressToken }: DecodedSessionRequest,
    controller: RunningRequest,
    record: CallLogEntry,
    send: Send,
    grant: Grant | undefined,
  ): Call {
    let increasing: ReturnType<typeof onlyIncreasing> | undefined
    const notify: Notify = (notification) => {
      increasing ??= onlyIncreasing()
      if (controller.isAnswered || !CALL_NOTIFICATIONS.has(notification.method) || !increasing(notification))
        return undefined
      const { text, origin } = encodeReply(notification, id, call, progressToken, this.#to)
      record.recorder?.sent(text, origin)
      return send({ text })
    }
    const { sender } = this.#options
    const call: Call = {
      method,
      params: method === CALL_TOOL ? edit(params, NO_TASK) : params,
      meta,
      progress: progressToken !== undefined,
      caller: this.#caller,
      principal: sender.principal,
      credential: sender.credential,
      grant: grant ?? sender.grant,
      inBand: true,
      received: { era: 'legacy', id },
      client: this.#client,
      patient: sender.patient,
      notify,
      signal: controller,
      abort: (reason) => controller.abort(reason),
      log: record,
    }
    return call
  }

  /** Continues a call whose first reply does not end it. */
  #continueCall(
    call: Call,
    first: Final,
    record: CallLogEntry,
    send: CallContext['send'],
    about?: Json,
  ): Promise<TranslatedOutcome> {
    const caller = () => this.#caller
    return continueCall(call, first, { ...this.#options, questions: this.#questions, send, caller, about, record })
  }

  /** Starts a call as an emulated task. */
  #startTask({ params, meta }: DecodedSessionRequest, record: CallLogEntry, grant: Grant | undefined): Json {
    const task = objectIn(params, 'task') ?? EMPTY
    const bare = edit(params, NO_TASK)
    return this.#tasks.start(bare, value(task, 'ttl'), async ({ about, controller, notify, send }) => {
      const asked = { params: bare, meta, progress: true, notify, client: this.#client, ...(grant && { grant }) }
      const call = ownCall(CALL_TOOL, this.#options, controller, { ...asked, caller: this.#caller, log: record })
      const reply = await this.#options.upstream.handle(call)
      return isOutcome(reply) ? reply : this.#continueCall(call, reply, record, send, about)
    })
  }

  /** Waits for the result of a task, and sends its questions to the client in the meantime. */
  async #taskResult(
    { id }: Request,
    { params }: DecodedSessionRequest,
    controller: HangUp,
    record: CallLogEntry,
    send: Send,
  ): Promise<Frame> {
    const taskId = stringUnder(params, 'taskId')
    const called = this.#tasks.paramsOf(taskId)
    const outcome = await this.#tasks.result(taskId, controller, (text) => send({ text }))
    const whose = { caller: this.#caller, log: record }
    const call = ownCall(CALL_TOOL, this.#options, controller, { ...whose, params: called })
    const { text, origin } = encodeReply(outcome, id, call, undefined, this.#to, String(taskId))
    record.ended(outcome, text, origin)
    return { text, last: { status: 200 } }
  }

  /** Throws a Fault if the client's revision does not have the method, or the server does not offer it. */
  #checkOffered(method: string): void {
    const { eras, capability } = methodTraits(method)
    if (method.startsWith('tasks/') && method !== 'tasks/update' && this.#to.tasks) return
    if (eras === 'modern' || method.startsWith('tasks/'))
      throw new Fault('methodNotFound', `Method not found: ${this.revision} has no ${printable(method, ECHOED)}`)
    if (capability !== undefined && !this.#offered.has(capability))
      throw new Fault('methodNotFound', `Method not found: the server does not offer ${printable(method, ECHOED)}`)
  }

  /** Subscribes to the server's changes once the client is initialized and can receive messages. */
  #subscribeIfReady(): void {
    if (this.#ready && this.#listened) this.#changes.start()
  }

  #listen(params: Payload, controller: HangUp, notify: Notify): Promise<Final> {
    const { log, transport, upstream, settings } = this.#options
    const { listen = upstream.handle } = settings
    const fields = { clientEra: 'legacy', clientTransport: transport, method: LISTEN } as const
    const record = new CallLogEntry(log, fields)
    const caller = { ...this.#caller, logLevel: undefined }
    return listen(ownCall(LISTEN, this.#options, controller, { caller, log: record, params, notify }))
  }

  #deliver(method: string, params: Payload): void {
    const origin = downlevelNotification(method, params, this.#to)
    const { outlet, log, session } = this.#options
    const text = write(origin)
    const message = notification(method, text === '{}' ? undefined : text)
    log.telemetry?.recorder?.sent(message, origin, 'legacy', session)
    outlet.deliver(message, { key: subjectOf({ method, params }) })
  }
}

/** The client, by its `initialize`. The server has accepted it, whatever it says. */
export function callerOf(opening: Partial<Pick<Caller, 'clientInfo' | 'capabilities' | 'reportsRoots'>> = {}): Caller {
  const { clientInfo, capabilities = '{}', reportsRoots } = opening
  return { revision: NEWEST_MODERN, clientInfo, capabilities, reportsRoots }
}

/** Whether a reply ends its call, as almost every reply does. The others go through `continueCall`. */
function isOutcome(reply: Final): reply is TranslatedOutcome {
  return reply.kind === 'error' ? !wantsTasks(reply) : reply.kind === 'result' && reply.type !== 'task'
}

/** How to adapt messages to the client's revision. Each omitted feature is logged once. */
export function downlevelFor(revision: LegacyRevision, { settings, log }: OpenOptions): Downlevel {
  const logged = new Set<string>()
  return {
    revision,
    traits: traits[revision],
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

/** A call of the session that is not the call of a request. */
function ownCall(
  method: string,
  { sender }: OpenOptions,
  controller: HangUp,
  parts: Pick<Call, 'caller' | 'log'> & Partial<Call>,
): Call {
  return { ...bridgeCall(method, { ...sender, caller: parts.caller }, controller), inBand: true, ...parts }
}

function uriIn(params: Payload): string {
  const uri = stringUnder(params, 'uri')
  if (typeof uri !== 'string') throw new Fault('invalidParams', 'params.uri must be a string')
  return uri
}
