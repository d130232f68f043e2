/**
 * The downstream half of the legacy era: keeps the session that the client believes in, and makes of each of its requests
 * a call that says everything.
 */
import type { Answers, Call, Caller, Notice, Reply } from '../protocol/call.js'
import { type Downlevel, downlevelNotification } from '../protocol/downlevel.js'
import { type LegacyRevision, NEWEST_MODERN } from '../protocol/eras.js'
import { Fault } from '../protocol/fault.js'
import {
  type Decoded,
  decodeInitialize,
  decodeRequest,
  encodeReply,
  initializeResult,
  legacyError,
  type Opening,
} from '../protocol/legacy-client.js'
import { isLogLevel, LEGACY_CLIENT_NOTIFICATIONS, LOG_LEVELS, methodTraits } from '../protocol/methods.js'
import { knowsTasks, withTasks } from '../protocol/tasks.js'
import {
  error as errorMessage,
  type Notification,
  notification,
  type Request,
  type Response,
  result,
} from '../rpc/message.js'
import type { Wire } from '../rpc/source.js'
import { EMPTY, edit, type Json, objectIn, type Payload, parseObject, raw, value, write } from '../rpc/splice.js'
import { Changes } from './changes.js'
import { type Frame, onlyIncreasing } from './frames.js'
import { Questions, Unanswered } from './questions.js'
import { CallRecord, subject } from './record.js'
import { Rounds } from './rounds.js'
import { Running } from './running.js'
import type { ClientSession, Opened, OpenOptions } from './session.js'
import { drive, wantsTasks } from './task-driver.js'

/** Notifications of a server that belong to a call. */
const OF_A_CALL: ReadonlySet<string> = new Set(['notifications/progress', 'notifications/message'])

export class TranslatedSession implements ClientSession {
  readonly revision: LegacyRevision
  readonly #options: OpenOptions
  readonly #caller: Caller
  /** Capabilities of the server, as the client was told of them. */
  readonly #offered: Payload
  readonly #to: Downlevel
  readonly #running = new Running()
  readonly #questions: Questions
  readonly #changes: Changes
  #ready = false
  #listened = false

  private constructor({ revision, clientInfo, capabilities }: Opening, offered: Payload, options: OpenOptions) {
    this.revision = revision
    this.#options = options
    this.#caller = { revision: NEWEST_MODERN, clientInfo, capabilities }
    this.#offered = offered
    const told = new Set<string>()
    const lost = (feature: string) => {
      if (told.has(feature)) return
      told.add(feature)
      options.log.info({ feature, revision }, 'not known to the client, and left out')
    }
    this.#to = { revision, strict: options.strict, memory: { wrapped: new Set() }, lost }
    this.#questions = new Questions({ capabilities, to: this.#to })
    this.#changes = new Changes({
      offered,
      listen: (params, controller) => this.#listen(params, controller),
      deliver: (method, params) => this.#deliver(method, params),
      log: options.log,
    })
  }

  /** Answers `initialize` with what the server says of itself. Rejects with a Fault. */
  static async open(request: Request, options: OpenOptions, record: CallRecord): Promise<Opened> {
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
    if (discovered?.kind !== 'result') throw new Fault('upstreamProtocol', 'The server does not say what it offers')
    record.ended(discovered)
    const answer = initializeResult(discovered, opening.revision, options.serverInfo)
    const offered = objectIn(parseObject(answer), 'capabilities') ?? EMPTY
    return { text: result(request.id, answer), session: new TranslatedSession(opening, offered, options) }
  }

  get open(): number {
    return this.#running.size
  }

  async *answer(request: Request): AsyncGenerator<Frame, void> {
    const { id, method } = request
    const { log, transport } = this.#options
    const record = new CallRecord(log, {
      clientEra: 'legacy',
      clientRevision: this.revision,
      clientTransport: transport,
      method,
    })
    const controller = this.#running.begin(id)
    try {
      const decoded = decodeRequest(request)
      record.note({ ...subject(method, decoded.params) })
      const own = Object.hasOwn(this.#own, method) ? this.#own[method] : undefined
      if (own) {
        const answer = await own(decoded.params)
        record.answered('ok')
        yield { text: result(id, answer), last: { status: 200 } }
        return
      }
      yield* this.#ask(request, decoded, controller, record)
    } catch (error) {
      const { aborted, reason } = controller.signal
      if (error instanceof Unanswered && !aborted) {
        record.answered('error', error.code)
        yield { text: this.#unanswered(request, error), last: { status: 200 } }
        return
      }
      const fault = Fault.from(reason instanceof Fault ? reason : error)
      const cancelled = aborted && reason !== fault
      if (cancelled) record.cancelled()
      else record.failed(fault)
      const asked = {
        method,
        params: typeof request.params === 'string' ? EMPTY : request.params,
        caller: this.#caller,
      }
      const said = cancelled
        ? { code: -32603, message: 'Request cancelled' }
        : legacyError(asked, fault.toRpcError(), this.revision)
      yield { text: errorMessage(id, said), last: { status: 200, fault, cancelled } }
    } finally {
      this.#running.end(id, controller)
    }
  }

  take(message: Notification | Response): void {
    if (message.kind === 'response') return this.#questions.answer(message)
    const { method, params } = message
    if (method === 'notifications/initialized') {
      this.#ready = true
      this.#hear()
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
    this.#hear()
  }

  close(): void {
    this.#running.abortAll()
    this.#changes.stop()
  }

  /** Requests that the bridge answers itself, because what they are about is the session. */
  readonly #own: Readonly<Record<string, (params: Payload) => Json | Promise<Json>>> = {
    ping: () => '{}',
    initialize: () => {
      throw new Fault('invalidRequest', 'The session is open already')
    },
    'logging/setLevel': (params) => {
      this.#check('logging/setLevel')
      const level = value(params, 'level')
      if (!isLogLevel(level)) throw new Fault('invalidParams', `level has to be one of ${LOG_LEVELS.join(', ')}`)
      this.#caller.logLevel = level
      return '{}'
    },
    'resources/subscribe': async (params) => {
      this.#check('resources/subscribe')
      await this.#changes.subscribe(uriIn(params))
      return '{}'
    },
    'resources/unsubscribe': async (params) => {
      this.#check('resources/unsubscribe')
      await this.#changes.unsubscribe(uriIn(params))
      return '{}'
    },
  }

  async *#ask(
    { id, method }: Request,
    { params, meta, progressToken }: Decoded,
    controller: AbortController,
    record: CallRecord,
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
    const rounds = new Rounds()
    let { capabilities } = this.#caller
    let final: Final | undefined
    for (let answers: Answers | undefined; !final; ) {
      // The level may have been set anew while the client was asked.
      const leg: Call = { ...call, answers, caller: { ...this.#caller, capabilities } }
      let reply: Final | undefined
      for await (const one of this.#options.upstream.handle(leg)) {
        if (one.kind !== 'notification') {
          reply = one
          break
        }
        if (OF_A_CALL.has(one.method) && increasing(one))
          yield { text: encodeReply(one, id, call, progressToken, this.#to) }
      }
      if (!reply) throw new Fault('internal', 'The call ended without an answer')
      if (wantsTasks(reply) && !knowsTasks(capabilities)) {
        capabilities = withTasks(capabilities)
      } else if (reply.kind === 'result' && reply.type === 'task' && knowsTasks(capabilities)) {
        const asked = progressToken !== undefined
        final = yield* this.#drive(leg, reply.result, asked ? { token: progressToken, increasing } : undefined)
      } else if (reply.kind === 'input') {
        if (!methodTraits(method).asks)
          throw new Fault('upstreamProtocol', `The server asks something in the middle of ${method}, which it may not`)
        await rounds.next(reply.result, controller.signal)
        answers = yield* this.#put(reply.result, controller.signal)
      } else {
        final = reply
      }
    }
    const text = encodeReply(final as Exclude<Final, { kind: 'input' }>, id, call, progressToken, this.#to)
    record.ended(final)
    // Everything behind this is over already: the reader need not come back from it.
    yield { text, last: { status: 200 } }
  }

  /** Waits for a task as if it were the call. */
  async *#drive(call: Call, created: Payload, progress: TokenOf | undefined): AsyncGenerator<Frame, Final> {
    const steps = drive(this.#options.upstream.handle, call, created)
    let said = 0
    for (let next = await steps.next(); !next.done; ) {
      const step = next.value
      if (step.kind === 'ends') {
        await steps.return()
        return step.reply as Final
      }
      if (step.kind === 'asks') {
        next = await steps.next(yield* this.#put(step.input, call.signal))
        continue
      }
      const params = edit(EMPTY, { progress: String(++said), message: step.message })
      const method = 'notifications/progress'
      if (progress?.increasing({ kind: 'notification', method, params }))
        yield {
          text: notification(
            method,
            write(downlevelNotification(method, edit(params, { progressToken: progress.token }), this.#to)),
          ),
        }
      next = await steps.next()
    }
    throw new Fault('internal', 'The task ended without an answer')
  }

  /** Asks the client. */
  async *#put(input: Payload, signal: AbortSignal): AsyncGenerator<Frame, Answers> {
    const asking = this.#questions.ask(input, signal)
    for (;;) {
      const next = await asking.next()
      if (next.done) return next.value
      yield { text: next.value }
    }
  }

  /** How a call ends whose question nobody has answered: a tool has failed, anything else has not been done. */
  #unanswered({ id, method }: Request, { code, message }: Unanswered): Wire {
    if (method !== 'tools/call') {
      const reserved = code <= -32000 && code >= -32099
      return errorMessage(id, { code: reserved ? -32603 : code, message })
    }
    return result(id, `{"content":[{"type":"text","text":${JSON.stringify(message)}}],"isError":true}`)
  }

  /** Throws a Fault for methods that the client's revision does not have or that the server does not offer. */
  #check(method: string): void {
    const { eras, capability } = methodTraits(method)
    if (eras === 'modern' || method.startsWith('tasks/'))
      throw new Fault('methodNotFound', `Method not found: ${this.revision} has no ${method}`)
    if (capability !== undefined && !objectIn(this.#offered, capability))
      throw new Fault('methodNotFound', `Method not found: the server does not offer ${method}`)
  }

  /** What the server says of its own accord is wanted from when the client is ready, and somebody can be told. */
  #hear(): void {
    if (this.#ready && this.#listened) this.#changes.start()
  }

  #listen(params: Payload, controller: AbortController): AsyncIterable<Reply> {
    const { log, transport } = this.#options
    const fields = { clientEra: 'legacy', clientTransport: transport, method: 'subscriptions/listen' }
    const record = new CallRecord(log, fields)
    const caller = { ...this.#caller, logLevel: undefined }
    return this.#options.upstream.handle(
      callOf('subscriptions/listen', params, EMPTY, { caller, controller, record, options: this.#options }),
    )
  }

  #deliver(method: string, params: Payload): void {
    const text = write(params)
    const uri = raw(params, 'uri')
    this.#options.outlet.deliver(
      notification(method, text === '{}' ? undefined : text),
      uri === undefined ? method : `${method} ${uri}`,
    )
  }
}

type Final = Exclude<Reply, { kind: 'notification' }>

/** How a client is told of progress. */
interface TokenOf {
  token: Json
  increasing: ReturnType<typeof onlyIncreasing>
}

interface CallParts {
  caller: Caller
  controller: AbortController
  record: CallRecord
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

/** That a call is to be made a task is a matter between peers of 2025-11-25 that have agreed on it. */
function withoutTask(method: string, params: Payload): Payload {
  return method === 'tools/call' ? edit(params, { task: undefined }) : params
}

function uriIn(params: Payload): string {
  const uri = value(params, 'uri')
  if (typeof uri !== 'string') throw new Fault('invalidParams', 'params.uri has to be a string')
  return uri
}
