/** The upstream half of the legacy era: answers calls through sessions with a legacy server. */

import { ECHOED, printable } from '../../printable.js'
import type { Call, Final, Handler } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { checkParamHeaders } from '../../protocol/headers.js'
import { isShowable, uncovered } from '../../protocol/input.js'
import { decodeReply, discoverResult, encodeParams, offers } from '../../protocol/legacy-server.js'
import { methodTraits } from '../../protocol/methods.js'
import { knowsTasks } from '../../protocol/tasks.js'
import type { Span } from '../../rpc/scan.js'
import type { Source } from '../../rpc/source.js'
import { type Json, objectIn, parseObject, payloadAt, raw, textUnder, value } from '../../rpc/splice.js'
import { pause } from '../../time.js'
import { starting } from '../era/starting.js'
import { Contradiction, callFault, repeatable, sessionGone, worthRepeating } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { throwIfRefused } from '../refusals.js'
import type { ToolFacts } from '../tools.js'
import { listen } from './listen.js'
import { addressKey, type ParkedCalls } from './parked.js'
import type { Lease } from './pool.js'
import { RunningCall, type RunningOptions } from './running-call.js'
import type { LegacySession } from './session.js'
import type { LegacySessions } from './sessions.js'
import type { LegacyTasks } from './tasks.js'

const URL_ELICITATION_REQUIRED = -32042
const TASK_METHODS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])

/** Shared by all calls of one server. */
interface Shared {
  parked: ParkedCalls
  tasks: LegacyTasks
  taskMode: ServerOptions['tasks']
  /** How the answers to calls that are no tasks are read. */
  answers: RunningOptions
}

/**
 * Answers calls through `sessions`. Throws a Contradiction if the server turns out to be modern; then no call was sent.
 */
export function legacyHandler(
  { transport, tasks: taskMode, retry: retries }: ServerOptions,
  sessions: LegacySessions,
  parked: ParkedCalls,
  tasks: LegacyTasks,
): Handler {
  const shared: Shared = { parked, tasks, taskMode, answers: { decode: decoderFor(parked) } }
  const isProgram = transport.kind === 'stdio'
  return async function answerFromSession(retry) {
    const resumed = retry.answers && (await parked.resume(retry))
    if (resumed) return resumed
    if (TASK_METHODS.has(retry.method) && taskMode !== 'off') return tasks.answer(retry)
    if (retry.method === 'subscriptions/listen') return listen(sessions, retry, tasks)
    const call: Call = retry.answers ? { ...retry, answers: undefined } : retry
    for (let attempt = 0; ; attempt++) {
      const lending = sessions.lend(call)
      const waits = lending instanceof Promise
      const lease = waits ? await (isProgram && call.progress ? starting(call, lending, giveBack) : lending) : lending
      let delay: number
      try {
        return await ask(lease, call, shared)
      } catch (error) {
        const isModern = error instanceof Contradiction
        const wait = isModern ? undefined : retryDelay(error, call, lease.session, retries)
        if (isModern || sessionGone(error) || !lease.session.alive) {
          lease.discard()
          lease.session.forgotten()
        }
        if (isModern) throw error
        if (attempt > 0 || wait === undefined || call.signal.aborted) throw callFault(error)
        delay = wait
      } finally {
        lease.release()
      }
      await pause(delay, call.signal)
    }
  }
}

function giveBack(unused: Lease): void {
  unused.release()
}

/** Answers a call in a session. Throws or rejects with a Fault. */
function ask(lease: Lease, call: Call, shared: Shared): Promise<Final> {
  const { session } = lease
  const { handshake } = session
  call.log.note(session.described)
  if (call.method === 'server/discover') return discover(lease, shared)
  const { eras } = methodTraits(call.method)
  if (eras === 'modern' || call.method.startsWith('tasks/') || !offers(handshake, call.method)) throw notFound(call)
  const prepare = preparationFor(session, call)
  const mayBeTask = call.method === 'tools/call' && session.makesTasks && shared.taskMode !== 'off'
  return prepare || mayBeTask ? prepared(lease, call, shared, mayBeTask, prepare) : send(lease, call, shared)
}

async function discover(lease: Lease, { taskMode }: Shared): Promise<Final> {
  const { session } = lease
  const { handshake } = session
  await session.settled()
  const receives = session.receives !== false && !lease.alone
  const result = discoverResult(handshake, { receives, tasks: taskMode !== 'off' })
  return { kind: 'result', result, server: handshake.serverInfo }
}

/** Sends a call after its preparation, as a task if the tool requires that. */
async function prepared(
  lease: Lease,
  call: Call,
  shared: Shared,
  mayBeTask: boolean,
  prepare: (() => Promise<void>) | undefined,
): Promise<Final> {
  await prepare?.()
  if (mayBeTask && isTask(await taskSupportOf(lease.session, call), call, shared)) return asTask(lease, call, shared)
  return send(lease, call, shared)
}

/** Sends the call to the server. */
function send(lease: Lease, call: Call, { parked, answers }: Shared): Promise<Final> {
  // The running call needs a lease of its own, because it may outlive this leg.
  const running = new RunningCall(lease.share(), call, answers)
  const { revision } = lease.session.handshake
  running.send(call.method, encodeParams(call, revision, call.progress ? running.id : undefined))
  return parked.run(running, call)
}

/** The tool's `taskSupport`. Lists the tools if they are not known yet. */
async function taskSupportOf({ tools }: LegacySession, call: Call): Promise<unknown> {
  return (tools.known(toolOf(call)) ?? (await tools.find(toolOf(call))))?.taskSupport
}

/** Whether to call a tool as a task: it requires that, or it allows that and both configuration and client want it. */
function isTask(support: unknown, call: Call, { taskMode }: Shared): boolean {
  return (
    support === 'required' || (support === 'optional' && taskMode === 'async' && knowsTasks(call.caller.capabilities))
  )
}

async function asTask(lease: Lease, call: Call, { tasks, parked }: Shared): Promise<Final> {
  if (knowsTasks(call.caller.capabilities)) {
    // The server may send requests before it creates the task.
    const running = new RunningCall(lease.share(), call, {
      decode: (leg, response) => tasks.answered(leg, lease, response),
    })
    running.send('tools/call', tasks.augmented(call, lease.session))
    return parked.run(running, call)
  }
  const created = await tasks.create(call, lease)
  return 'kind' in created ? created : parked.run(tasks.drive(call, lease, created), call)
}

/** What to do before the call is sent; usually nothing, then undefined. */
function preparationFor(session: LegacySession, call: Call): (() => Promise<void>) | undefined {
  const { logLevel } = call.caller
  const listens = methodTraits(call.method).asks && session.receives === undefined
  const mirrors = call.method === 'tools/call' && call.paramHeaders !== undefined
  if (mirrors && session.tools.knowsAll) checkMirrored(session.tools.known(toolOf(call)), call)
  const looksUp = mirrors && !session.tools.knowsAll
  if (!listens && !looksUp && logLevel === undefined) return undefined
  return async () => {
    if (listens) await session.settled()
    if (logLevel !== undefined) await session.logAt(logLevel)
    if (looksUp) checkMirrored(await session.tools.find(toolOf(call)), call)
  }
}

function checkMirrored(tool: ToolFacts | undefined, call: Call): void {
  if (!tool || tool.annotations.length === 0 || !call.paramHeaders) return
  checkParamHeaders(tool.annotations, objectIn(call.params, 'arguments'), call.paramHeaders)
}

function toolOf(call: Call): string {
  return textUnder(call.params, 'name')
}

/** Reads the answers to calls that are no tasks. A call whose client has to open a URL first is parked. */
function decoderFor(parked: ParkedCalls): RunningOptions['decode'] {
  return function decodeAnswer(call, response, exchange, session) {
    const { kind, source, member } = response.outcome
    const required = kind === 'error' ? requiredUrls(call, source, member) : undefined
    if (required) return parked.afterVisit(session, call, required.ids, required.inputRequests)
    const lists = call.method === 'tools/list'
    const reply = decodeReply(call, response, session.handshake.serverInfo, lists ? session.liftList : undefined)
    if (reply.kind === 'result' && lists) {
      const page = payloadAt(source, member)
      if (page) session.tools.learn(page, raw(call.params, 'cursor'))
    }
    const refused = session.serverRequests.refusedDuring(exchange)
    if (refused.length > 0) throwIfRefused(reply, refused)
    if (reply.kind !== 'error') return reply
    // If the method names a tool, prompt or resource, -32601 may be about that instead of the method.
    if (reply.error.code === -32601 && methodTraits(call.method).named === undefined)
      throw new Fault('methodNotFound', reply.error.message)
    return reply
  }
}

/**
 * The URLs of a `URLElicitationRequiredError` (MCP 2025-11-25, client/elicitation) as input requests; undefined if the
 * error is another one. Throws a Fault if the client did not declare URL elicitation.
 */
function requiredUrls(call: Call, source: Source, member: Span): { ids: string[]; inputRequests: Json } | undefined {
  const error = payloadAt(source, member)
  if (!error || value(error, 'code') !== URL_ELICITATION_REQUIRED || !methodTraits(call.method).asks) return undefined
  const data = objectIn(error, 'data')
  const wanted =
    data && (value(data, 'elicitations') as { elicitationId?: unknown; url?: unknown; message?: unknown }[])
  if (!Array.isArray(wanted) || wanted.length === 0 || !wanted.every((one) => isShowable(one?.url))) return undefined
  const lacking = uncovered('elicitation/create', parseObject('{"mode":"url"}'), parseObject(call.caller.capabilities))
  if (lacking !== undefined) {
    const requiredCapabilities = '{"elicitation":{"url":{}}}'
    throw new Fault('missingCapability', 'The server requires URL elicitation, which the client did not declare', {
      data: { requiredCapabilities },
    })
  }
  const questions = wanted.map(({ message, url }, at) => {
    const params = { mode: 'url', message: typeof message === 'string' ? message : 'Please open this URL', url }
    return [addressKey(at), { method: 'elicitation/create', params }]
  })
  return {
    ids: wanted.map(({ elicitationId }) => (typeof elicitationId === 'string' ? elicitationId : '')),
    inputRequests: JSON.stringify(Object.fromEntries(questions)),
  }
}

/**
 * Milliseconds after which the call may be sent again without the risk of doing something twice; undefined for never.
 */
function retryDelay(
  error: unknown,
  call: Call,
  { tools }: LegacySession,
  retry: ServerOptions['retry'],
): number | undefined {
  return sessionGone(error) ? 0 : worthRepeating(error, repeatable(call, tools, retry))
}

function notFound({ method }: Call): Fault {
  return new Fault('methodNotFound', `Method not found: the server does not offer ${printable(method, ECHOED)}`)
}
