/** The upstream half of the legacy era: answers calls through sessions with a legacy server. */

import { Fault } from '../../base/fault/fault.js'
import { objectIn, type Payload, raw, stringUnder, textUnder } from '../../base/rpc/splice.js'
import { ECHOED, printable } from '../../base/texts/printable.js'
import { pause } from '../../base/time/pause.js'
import type { Call, Final, Handler } from '../../mcp/protocol/call.js'
import { checkParamHeaders } from '../../mcp/protocol/headers.js'
import { decodeReply, discoverResult, encodeParams, offers } from '../../mcp/protocol/legacy-server.js'
import { CALL_TOOL, LISTEN, methodTraits } from '../../mcp/protocol/methods.js'
import { knowsTasks } from '../../mcp/protocol/tasks.js'
import type { Arrival, Exchange } from '../exchange.js'
import { Contradiction, callFault, cancelReason, repeatable, worthRepeating } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { throwIfRefused } from '../refusals.js'
import { SessionLost } from '../session-loss.js'
import type { ToolFacts } from '../tools.js'
import { AskedCall, answerIn, type Decode, notificationOf, settle } from './asked-call.js'
import { listen } from './listen.js'
import type { ParkedCalls } from './parked.js'
import { requiredUrls, StillRequired, UrlElicitation, type WhenRequired } from './required-urls.js'
import type { LegacySession } from './session.js'
import type { LegacySessions } from './sessions.js'
import type { LegacyTasks } from './tasks.js'

const TASK_METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])

/** What is known of a call before it is sent, if it is not a usual one. */
interface Prepared {
  /** The params of a call that is sent as a task. */
  asTask?: Payload
  /** How its answer is read. */
  decode?: Decode
}

/** What answers calls, besides sessions. */
interface Shared {
  parked: ParkedCalls
  tasks: LegacyTasks
  taskMode: ServerOptions['tasks']
  /** Asks the client to open URLs, if an answer requires that. */
  required: WhenRequired
  /** Reads the answers to calls that are not tasks. */
  decode: Decode
}

/**
 * Answers calls through `sessions`. Throws a Contradiction if the server turns out to be modern; then no call was sent.
 */
export function legacyHandler(
  { tasks: taskMode, retry: retries }: ServerOptions,
  sessions: LegacySessions,
  parked: ParkedCalls,
  tasks: LegacyTasks,
): Handler {
  const withElicitation = (elicitation?: UrlElicitation): Shared => {
    const required = whenRequired(parked, elicitation)
    return { parked, tasks, taskMode, required, decode: decoderFor(required) }
  }
  const usual = withElicitation()
  return async function answerFromSession(retry) {
    const resumed = retry.answers && (await parked.resume(retry))
    const elicitation = resumed instanceof UrlElicitation ? resumed : undefined
    if (resumed && !(resumed instanceof UrlElicitation)) return resumed
    if (TASK_METHODS.has(retry.method) && taskMode !== 'off') return tasks.answer(retry)
    if (retry.method === LISTEN) return listen(sessions, retry, tasks)
    const call: Call = retry.answers ? { ...retry, answers: undefined } : retry
    const { signal } = call
    const shared = elicitation ? withElicitation(elicitation) : usual
    for (let attempt = 0; ; attempt++) {
      const opening = sessions.use(call)
      const session = opening instanceof Promise ? await sessions.opened(call, opening) : opening
      let exchange: Exchange | undefined
      let decode = shared.decode
      let delay: number
      const hangUp = () => {
        const reason = cancelReason(signal)
        // Unread questions are answered, or given to another call.
        if (exchange?.unread) new AskedCall(session, exchange, { decode }).end(reason)
        else exchange?.endExchange(reason)
      }
      try {
        const preparing = prepare(session, call, shared)
        const prepared = preparing && (await preparing)
        if (prepared && 'kind' in prepared) return prepared
        decode = prepared?.decode ?? decode
        const { serverRequests, handshake } = session
        const mayHaveQuestions = serverRequests.held.questions.size > 0
        exchange = session.beginCall(call)
        signal.addEventListener('abort', hangUp, { once: true })
        signal.throwIfAborted()
        const params =
          prepared?.asTask ?? encodeParams(call, handshake.revision, call.progress ? exchange.id : undefined)
        let asked: AskedCall | undefined
        // Questions that have waited for a call are answered before it is sent.
        if (mayHaveQuestions && exchange.unread)
          asked = new AskedCall(session, exchange, { decode }).send(call.method, params)
        else exchange.sendCall(call.method, params)
        while (!asked) {
          let arrival: Arrival
          try {
            arrival = await exchange.nextArrival()
          } catch (error) {
            arrival = await answerIn(error, session, exchange, call)
          }
          if (arrival.kind === 'response') {
            const last = decode(call, arrival, exchange, session)
            if (last.kind === 'error' || serverRequests.hadNoRoom || call.caller.logLevel !== undefined)
              await settle(session, exchange, call, arrival, last)
            exchange.endExchange()
            return last
          }
          // Once the server asks, it is an asked call, which may be parked.
          if (arrival.kind === 'question')
            asked = new AskedCall(session, exchange, { decode, question: arrival.question })
          else if (arrival.kind === 'notification') {
            const notification = notificationOf(call, arrival.method, arrival.params)
            const held = notification && call.notify(notification)
            if (held) await held
          }
        }
        signal.removeEventListener('abort', hangUp)
        exchange = undefined
        return await parked.run(asked, call)
      } catch (error) {
        hangUp()
        if (elicitation && error instanceof StillRequired) {
          await elicitation.wait(error.urls, session.completedElicitations, signal)
          attempt = -1
          continue
        }
        const isModern = error instanceof Contradiction
        const wait = isModern ? undefined : retryDelay(error, call, session, retries)
        if (isModern || error instanceof SessionLost) {
          session.discard()
          session.forgotten()
        }
        if (isModern) throw error
        if (attempt > 0 || wait === undefined || signal.aborted) return lastOf(error)
        delay = wait
      } finally {
        signal.removeEventListener('abort', hangUp)
        session.unuse()
      }
      await pause(delay, signal)
    }
  }
}

/**
 * What has to be done before a call is sent in a session; undefined if that is nothing, as usual. Resolves to an answer if the call
 * is not sent. Throws or rejects with a Fault.
 */
function prepare(session: LegacySession, call: Call, shared: Shared): Promise<Final | Prepared> | undefined {
  const { handshake, tools } = session
  call.log.note(session.described)
  if (call.method === 'server/discover') return discover(session, shared)
  const { eras, asks, isUnknown } = methodTraits(call.method)
  if (eras === 'modern' || call.method.startsWith('tasks/') || !offers(handshake, call.method)) throw notFound(call)
  if (isUnknown) session.hasTraces = true
  const isTool = call.method === CALL_TOOL
  const mirrors = isTool && call.paramHeaders !== undefined
  const name = mirrors && tools.knowsAll ? stringUnder(call.params, 'name') : undefined
  const tool = typeof name === 'string' ? tools.known(name) : undefined
  if (tool && tool.annotations.length > 0) checkMirrored(tool, call)
  const looksUp = mirrors && !tools.knowsAll
  const mayBeTask = isTool && session.makesTasks && shared.taskMode !== 'off'
  const isReady = !(asks && session.receives === undefined) && call.caller.logLevel === undefined
  return isReady && !looksUp && !mayBeTask ? undefined : prepared(session, call, shared, looksUp, mayBeTask)
}

async function discover(session: LegacySession, { taskMode }: Shared): Promise<Final> {
  const { handshake } = session
  await session.settled()
  const receives = session.receives !== false && !session.alone
  const result = discoverResult(handshake, { receives, tasks: taskMode !== 'off' })
  return { kind: 'result', result, server: handshake.serverInfo }
}

/**
 * Waits until it is known whether the server can ask, sets the level of its log, looks up a tool whose arguments are mirrored
 * into headers, and makes the call a task if its tool requires that.
 */
async function prepared(
  session: LegacySession,
  call: Call,
  shared: Shared,
  looksUp: boolean,
  mayBeTask: boolean,
): Promise<Final | Prepared> {
  const { logLevel } = call.caller
  if (methodTraits(call.method).asks && session.receives === undefined) await session.settled()
  if (logLevel !== undefined) await session.logAt(logLevel)
  if (looksUp) checkMirrored(await session.tools.find(textUnder(call.params, 'name')), call)
  if (mayBeTask && isTask(await taskSupportOf(session, call), call, shared)) return asTask(session, call, shared)
  return {}
}

/** The tool's `taskSupport`. Lists the tools if they are not known yet. */
async function taskSupportOf({ tools }: LegacySession, call: Call): Promise<unknown> {
  const name = textUnder(call.params, 'name')
  return (tools.known(name) ?? (await tools.find(name)))?.taskSupport
}

/** Whether to call a tool as a task: it requires that, or it allows that and both the configuration and the client do. */
function isTask(support: unknown, call: Call, { taskMode }: Shared): boolean {
  return (
    support === 'required' || (support === 'optional' && taskMode === 'async' && knowsTasks(call.caller.capabilities))
  )
}

async function asTask(session: LegacySession, call: Call, shared: Shared): Promise<Final | Prepared> {
  const { tasks, parked, required } = shared
  session.hasTraces = true
  if (knowsTasks(call.caller.capabilities)) {
    // The server may send requests before it creates the task.
    const decode: Decode = (leg, response) => required(leg, response, session) ?? tasks.answered(leg, session, response)
    return { decode, asTask: tasks.augmented(call, session) }
  }
  const created = await tasks.create(call, session, required)
  return 'kind' in created ? created : parked.run(tasks.drive(call, session, created, required), call)
}

function checkMirrored(tool: ToolFacts | undefined, call: Call): void {
  if (!tool || tool.annotations.length === 0 || !call.paramHeaders) return
  checkParamHeaders(tool.annotations, objectIn(call.params, 'arguments'), call.paramHeaders)
}

/** Parks a call whose client has to open a URL first. Throws StillRequired if `visit` is not over yet. */
function whenRequired(parked: ParkedCalls, elicitation: UrlElicitation | undefined): WhenRequired {
  return function parkIfRequired(call, response, session) {
    const urls = requiredUrls(call, response)
    if (!urls) return undefined
    const toAsk = elicitation ? elicitation.toAsk(urls, session.completedElicitations) : urls
    if (toAsk.length === 0) throw new StillRequired(urls)
    return parked.afterElicitation(session, call, toAsk, elicitation?.accepted)
  }
}

/** Reads the answers to calls that are not tasks. */
function decoderFor(required: WhenRequired): Decode {
  return function decodeAnswer(call, response, exchange, session) {
    const { kind, payload: page } = response.outcome
    const asking = kind === 'error' ? required(call, response, session) : undefined
    if (asking) return asking
    const lists = call.method === 'tools/list'
    const reply = decodeReply(
      call,
      response,
      session.handshake.serverInfo,
      lists ? session.options.liftList : undefined,
    )
    if (reply.kind === 'result' && lists && page) session.tools.learn(page, raw(call.params, 'cursor'))
    if (exchange.refusals) throwIfRefused(reply, exchange.refusals)
    if (reply.kind !== 'error') return reply
    // If the method names a tool, prompt or resource, -32601 may be about that instead of the method.
    if (reply.error.code === -32601 && methodTraits(call.method).named === undefined)
      throw new Fault('methodNotFound', reply.error.message)
    return reply
  }
}

/**
 * Milliseconds after which the call may be repeated without the risk that the server acts on it twice; undefined if it
 * must not be.
 */
function retryDelay(
  error: unknown,
  call: Call,
  { tools }: LegacySession,
  retry: ServerOptions['retry'],
): number | undefined {
  const isRepeatable = repeatable(call, tools, retry)
  if (error instanceof SessionLost) return error.loss === 'unacted' || isRepeatable ? 0 : undefined
  return worthRepeating(error, isRepeatable)
}

/** The end of a call that is not repeated: the server's own error, or a thrown Fault. */
function lastOf(error: unknown): Final {
  if (!(error instanceof SessionLost)) throw callFault(error)
  if (error.answer) return error.answer
  throw callFault(error.cause)
}

function notFound({ method }: Call): Fault {
  return new Fault('methodNotFound', `Method not found: the server does not offer ${printable(method, ECHOED)}`)
}
