/**
 * Runs tasks of a legacy server (MCP 2025-11-25, basic/utilities/tasks) for modern clients: as tasks of the extension, or
 * as plain calls. A server knows a task only in the session that created it, so each task keeps its session in use.
 */

import { randomId } from '../../base/crypto/seal.js'
import { Fault } from '../../base/fault/fault.js'
import { Bound } from '../../base/limits/bound.js'
import type { Reservation } from '../../base/limits/memory.js'
import type { Response } from '../../base/rpc/message.js'
import {
  EMPTY,
  edit,
  type Json,
  objectIn,
  type Payload,
  parseObject,
  sizeOf,
  stringUnder,
  value,
  write,
} from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { pause } from '../../base/time/pause.js'
import type { Call, Final } from '../../mcp/protocol/call.js'
import { decodeReply, encodeParams } from '../../mcp/protocol/legacy-server.js'
import { CALL_TOOL } from '../../mcp/protocol/methods.js'
import { isTerminal, liftTask, statusOf } from '../../mcp/protocol/tasks.js'
import { callFault } from '../failure.js'
import type { ServerOptions } from '../options.js'
import { throwIfRefused } from '../refusals.js'
import { SessionLost } from '../session-loss.js'
import { waitingCall, weightOfWaiting } from '../waiting-call.js'
import { AskedCall, validAnswers } from './asked-call.js'
import type { WhenRequired } from './required-urls.js'
import type { LegacySession } from './session.js'
import { TaskIds } from './task-ids.js'

/** The maximum number of tasks remembered at once. */
export const MAX_SERVER_TASKS = 1_000
/** Requested lifetime of a task in milliseconds. */
const TASK_TTL = 3_600_000
/** Minimum milliseconds between two polls of a followed task. */
const POLL_EVERY = 1_000

export interface Created {
  /** The server's id. */
  id: string
  task: Payload
}

type Refused = Final & { kind: 'error' }

class Task {
  readonly id = randomId()
  readonly upstreamId: string
  readonly session: LegacySession
  readonly call: Call
  /** The open `tasks/result`, during which the server sends its requests to the client. */
  waiting: AskedCall | undefined
  /** The result, after it has been fetched, if there is memory for it. */
  result: Final | undefined
  answered = () => {}
  timer: NodeJS.Timeout | undefined
  /** The reservation for the stored parts of the call, and for its result. */
  readonly reservation: Reservation

  constructor(upstreamId: string, session: LegacySession, call: Call, reservation: Reservation) {
    this.upstreamId = upstreamId
    this.session = session
    this.call = call
    this.reservation = reservation
  }
}

export class LegacyTasks {
  readonly #options: ServerOptions
  readonly #ids: TaskIds
  readonly #tasks = new Map<string, Task>()
  readonly #bound: Bound

  constructor(options: ServerOptions) {
    this.#options = options
    this.#ids = new TaskIds(options)
    this.#bound = new Bound({ max: MAX_SERVER_TASKS })
    this.change()
  }

  get size(): number {
    return this.#tasks.size
  }

  /** Applies the share of a principal, which may have changed. */
  change(): void {
    this.#bound.share = this.#options.share ?? 1
  }

  /** The params of a `tools/call` that creates a task. */
  augmented(call: Call, { handshake }: LegacySession): Payload {
    return edit(encodeParams(call, handshake.revision, undefined), { task: `{"ttl":${TASK_TTL}}` })
  }

  /** Calls a tool as a task. Resolves to the server's error if it refuses. Rejects with a ChannelError, or a Fault. */
  async create(call: Call, session: LegacySession, required: WhenRequired): Promise<Created | Final> {
    const response = await session.request(CALL_TOOL, this.augmented(call, session))
    return required(call, response, session) ?? createdIn(call, response)
  }

  /** The reply to a task-augmented call, for a client that supports tasks. */
  answered(call: Call, session: LegacySession, response: Response): Final {
    const created = createdIn(call, response)
    return 'kind' in created ? created : this.#announce(call, session, created)
  }

  /**
   * Remembers a new task. Returns the reply that announces it. Throws a Fault if there is no room; then the task is
   * cancelled.
   */
  #announce(call: Call, session: LegacySession, { id, task }: Created): Final {
    const kept = waitingCall(call)
    let reservation: Reservation
    try {
      reservation = this.#room(call.principal, weightOfWaiting(kept))
    } catch (error) {
      session.request('tasks/cancel', idOf(id)).catch(() => {})
      throw error
    }
    const known = new Task(id, session, kept, reservation)
    known.timer = setTimeout(() => this.#forget(known), TASK_TTL).unref()
    session.use()
    this.#tasks.set(known.id, known)
    const server = session.handshake.serverInfo
    return { kind: 'result', type: 'task', result: liftTask(task, this.#ids.seal(known.id, call.principal)), server }
  }

  /** Takes room for one more task of `bytes`. Throws a Fault if there is none. */
  #room(principal: string, bytes: number): Reservation {
    const reached = this.#bound.reached(principal)
    if (reached === 'full')
      throw new Fault('overloaded', `All ${MAX_SERVER_TASKS} tasks of the server are in use`, { retryAfter: 1 })
    if (reached)
      throw new Fault('rateLimited', 'This caller already uses its share of the tasks of the server', { retryAfter: 1 })
    const reservation = this.#options.memory.mustReserve(principal, bytes)
    this.#bound.occupy(principal)
    return reservation
  }

  /**
   * Waits for the result of a task, for a client that does not support tasks. Cancels the task if the call is cancelled.
   */
  drive(call: Call, session: LegacySession, { id }: Created, required: WhenRequired): AskedCall {
    return new AskedCall(session, session.beginCall(call, id), {
      decode: (leg, response, exchange) => {
        const asking = required(leg, response, session)
        if (asking) return asking
        const reply = decodeReply(leg, response, session.handshake.serverInfo)
        if (exchange.refusals) throwIfRefused(reply, exchange.refusals)
        return reply
      },
      onGivenUp: () => {
        session.request('tasks/cancel', idOf(id)).catch(() => {})
      },
    }).send('tasks/result', idOf(id))
  }

  /** Throws OwnedByReplica if one other replica owns all of these tasks, and all ids are valid for the caller. */
  checkOwner(taskIds: readonly unknown[], { principal }: Call): void {
    this.#ids.checkOwner(taskIds, principal)
  }

  /** Answers `tasks/get`, `tasks/update` and `tasks/cancel`. Rejects with a Fault. */
  async answer(call: Call): Promise<Final> {
    const taskId = stringUnder(call.params, 'taskId')
    const task = typeof taskId === 'string' ? this.#find(taskId, call) : undefined
    if (!task || typeof taskId !== 'string') throw new Fault('invalidParams', 'There is no such task')
    try {
      return await this.#answer(task, taskId, call)
    } catch (error) {
      if (!(error instanceof SessionLost)) throw callFault(error)
      this.#forget(task)
      throw new Fault('invalidParams', 'There is no such task')
    }
  }

  async #answer(task: Task, taskId: string, call: Call): Promise<Final> {
    const { session } = task
    call.log.note(session.described)
    const server = session.handshake.serverInfo
    switch (call.method) {
      case 'tasks/update':
        this.#update(task, call.answers?.responses)
        return { kind: 'result', result: EMPTY, server }
      case 'tasks/cancel':
        // An error is ignored, because a task that has already ended needs no cancellation.
        await session.request('tasks/cancel', idOf(task.upstreamId))
        return { kind: 'result', result: EMPTY, server }
      default:
        return { kind: 'result', result: await this.#poll(task, taskId), server }
    }
  }

  known(taskIds: readonly string[], call: Call): string[] {
    return taskIds.filter((taskId) => this.#find(taskId, call) !== undefined)
  }

  /** Polls a task. Yields its state after each change, until it has ended or the signal aborts. */
  async *follow(taskId: string, call: Call): AsyncGenerator<Payload, void> {
    let last = ''
    while (!call.signal.aborted) {
      const task = this.#find(taskId, call)
      if (!task) return
      const found = await this.#poll(task, taskId)
      const text = write(found)
      if (text !== last) yield found
      last = text
      const status = statusOf(found)
      if (status === undefined || isTerminal(status)) return
      const interval = value(found, 'pollIntervalMs')
      await pause(Math.max(typeof interval === 'number' ? interval : 0, POLL_EVERY), call.signal)
    }
  }

  close(): void {
    for (const task of [...this.#tasks.values()]) this.#forget(task)
  }

  #find(taskId: string, call: Call): Task | undefined {
    const found = this.#ids.open(taskId, call.principal, call.foreign)
    const task = found && this.#tasks.get(found.id)
    return task?.call.principal === call.principal && task.session.alive ? task : undefined
  }

  /** The current state of a task, with its result or with the open questions. */
  async #poll(task: Task, taskId: string): Promise<Payload> {
    const { session } = task
    const response = await session.request('tasks/get', idOf(task.upstreamId))
    if (response.outcome.kind === 'error') throw new Fault('invalidParams', 'There is no such task')
    const found = resultOf(response)
    const status = statusOf(found) ?? 'working'
    if (status === 'cancelled') return liftTask(found, taskId)
    if (isTerminal(status)) return liftTask(found, taskId, await this.#outcome(task))
    if (status === 'working' && !task.waiting) return liftTask(found, taskId)
    const waiting = this.#awaitResult(task)
    if (waiting.questions.size === 0) return liftTask(found, taskId, { status: '"working"' })
    const inputRequests = waiting.inputRequests(task.call.caller.capabilities)
    return liftTask(found, taskId, { status: '"input_required"', inputRequests })
  }

  async #outcome(task: Task): Promise<Record<string, Json>> {
    const result = task.result ?? (await this.#fetched(task))
    if (result.kind === 'result') {
      // A failed tool has a result with `isError`, so its task is complete.
      const complete = edit(result.result, { resultType: '"complete"' })
      return { status: '"completed"', result: write(complete) }
    }
    if (result.kind !== 'error')
      return { status: '"failed"', error: '{"code":-32603,"message":"The task has no result"}' }
    const { code, message, data } = result.error
    const error = `{"code":${code},"message":${JSON.stringify(message)}${data === undefined ? '' : `,"data":${data}`}}`
    return { status: '"failed"', error }
  }

  /** Fetches the result of a task. Stores it if there is memory for it; otherwise each poll fetches it again. */
  async #fetched(task: Task): Promise<Final> {
    const response = await task.session.request('tasks/result', idOf(task.upstreamId))
    const result = decodeReply(task.call, response, undefined)
    this.#keep(task, result)
    return result
  }

  #keep(task: Task, result: Final): void {
    const bytes = result.kind === 'result' ? sizeOf(result.result) : 0
    if (task.reservation.resize(weightOfWaiting(task.call) + bytes) === undefined) task.result = result
  }

  /** Sends `tasks/result`, unless it is open already: only while it is open does the server ask its client. */
  #awaitResult(task: Task): AskedCall {
    if (task.waiting) return task.waiting
    const { session } = task
    const call: Call = { ...task.call, method: 'tasks/result', signal: new HangUp() }
    const waiting = new AskedCall(session, session.beginCall(call, task.upstreamId), {
      decode: (_leg, response) => decodeReply(task.call, response, session.handshake.serverInfo),
    }).send('tasks/result', idOf(task.upstreamId))
    task.waiting = waiting
    this.#gather(task, waiting, call).catch(() => {
      task.waiting = undefined
    })
    return waiting
  }

  /** Collects the server's questions, and keeps the result. */
  async #gather(task: Task, waiting: AskedCall, call: Call): Promise<void> {
    try {
      for (;;) {
        const end = await waiting.leg(call, () => true)
        if (end.kind !== 'asks') return this.#keep(task, end)
        await new Promise<void>((resolve) => {
          task.answered = resolve
        })
      }
    } finally {
      waiting.end()
    }
  }

  #update(task: Task, given: Json | undefined): void {
    if (!given?.startsWith('{')) throw new Fault('invalidParams', 'params.inputResponses has to be an object')
    const responses = parseObject(given)
    const { waiting } = task
    if (!waiting) return
    for (const [key, answer] of validAnswers(waiting, responses)) waiting.answer(key, answer)
    task.answered()
  }

  #forget(task: Task): void {
    clearTimeout(task.timer)
    if (!this.#tasks.delete(task.id)) return
    this.#bound.vacate(task.call.principal)
    task.waiting?.end()
    task.answered()
    task.reservation.end()
    task.session.unuse()
  }
}

function createdIn(call: Call, response: Response): Created | Refused {
  if (response.outcome.kind === 'error') return decodeReply(call, response, undefined) as Refused
  const task = objectIn(resultOf(response), 'task')
  const id = task && value(task, 'taskId')
  if (!task || typeof id !== 'string')
    throw new Fault('upstreamProtocol', 'The server answered a task-augmented tools/call without a task')
  return { id, task }
}

function idOf(taskId: string): Json {
  return `{"taskId":${JSON.stringify(taskId)}}`
}

function resultOf({ outcome }: Response): Payload {
  return outcome.payload ?? EMPTY
}
