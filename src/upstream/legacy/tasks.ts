/**
 * Tasks of a legacy server (MCP 2025-11-25, basic/utilities/tasks) for clients of the extension that took their place. A
 * server knows a task only in the session that it was made in: that session is kept as long as the task may be asked for.
 */

import { Bound } from '../../protocol/bound.js'
import type { Call, Reply } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { wellFormed } from '../../protocol/input.js'
import { decodeReply, encodeParams } from '../../protocol/legacy-server.js'
import type { Loan, Memory } from '../../protocol/memory.js'
import { isTerminal, liftTask, statusOf } from '../../protocol/tasks.js'
import type { Response } from '../../rpc/message.js'
import {
  EMPTY,
  edit,
  type Json,
  keys,
  objectIn,
  type Payload,
  parseObject,
  payloadAt,
  sizeOf,
  value,
  write,
} from '../../rpc/splice.js'
import { randomId } from '../../seal.js'
import { pause } from '../../time.js'
import { callFault, sessionGone } from '../failure.js'
import { throwIfRefused } from '../refusals.js'
import { rested, weightOfRested } from '../rested.js'
import type { Lease } from './pool.js'
import { RunningCall } from './running-call.js'
import type { LegacySession } from './session.js'
import { TaskIds, type TaskIdsOptions } from './task-ids.js'

export interface TasksOptions extends TaskIdsOptions {
  /** Milliseconds for which a task is asked to be kept. */
  ttl: number
  /** Tasks that may be known at once. */
  max: number
  /** The part of what the others leave that one principal may have; 1 by default. */
  share?: number | undefined
  memory: Memory
}

/** Milliseconds, at least, between two looks at a task that somebody follows. */
const LOOK_EVERY = 1_000

/** A task that a server has begun. */
export interface Created {
  /** As the server calls it. */
  id: string
  task: Payload
}

type Refused = Reply & { kind: 'error' }

interface Task {
  id: string
  principal: string
  upstreamId: string
  lease: Lease
  call: Call
  /** The request for the result, which is also how the server asks what it wants to know. */
  waiting: RunningCall | undefined
  /** How it ended, once somebody has looked. */
  result: Reply | undefined
  /** Wakes up who waits for the client's answers. */
  answered: () => void
  timer: NodeJS.Timeout
  /** Of what is kept of the call, and of its result. */
  loan: Loan
}

export class LegacyTasks {
  readonly #options: TasksOptions
  readonly #ids: TaskIds
  readonly #tasks = new Map<string, Task>()
  readonly #bound: Bound

  constructor(options: TasksOptions) {
    this.#options = options
    this.#ids = new TaskIds(options)
    const { max, share = 1 } = options
    this.#bound = new Bound({ max, share })
  }

  get size(): number {
    return this.#tasks.size
  }

  /** Params of a call of a tool that is to be a task. */
  augmented(call: Call, { handshake }: LegacySession): Json {
    const params = parseObject(encodeParams(call, handshake.revision, undefined) ?? '{}')
    return write(edit(params, { task: `{"ttl":${this.#options.ttl}}` }))
  }

  /** Calls a tool as a task. Gives the server's error instead where it refuses. Rejects with a ChannelError. */
  async create(call: Call, { session }: Lease): Promise<Created | Refused> {
    return createdIn(call, await session.request('tools/call', this.augmented(call, session)))
  }

  /** What a client that knows tasks is told of the answer to such a call. */
  answered(call: Call, lease: Lease, response: Response): Reply {
    const created = createdIn(call, response)
    return 'kind' in created ? created : this.#announce(call, lease, created)
  }

  /** Tells a client that knows tasks of a new one. */
  #announce(call: Call, lease: Lease, { id, task }: Created): Reply {
    const kept = rested(call)
    let loan: Loan
    try {
      loan = this.#room(call.principal, weightOfRested(kept))
    } catch (error) {
      lease.session.request('tasks/cancel', idOf(id)).catch(() => {})
      throw error
    }
    const known: Task = {
      id: randomId(),
      principal: call.principal,
      upstreamId: id,
      lease: lease.share(),
      call: kept,
      loan,
      waiting: undefined,
      result: undefined,
      answered: () => {},
      timer: setTimeout(() => this.#forget(known), this.#options.ttl).unref(),
    }
    this.#tasks.set(known.id, known)
    const server = lease.session.handshake.serverInfo
    return { kind: 'result', type: 'task', result: liftTask(task, this.#ids.seal(known.id, call.principal)), server }
  }

  /** Takes room for one more task, of so many bytes. Throws a Fault where there is none. */
  #room(principal: string, bytes: number): Loan {
    const { max } = this.#bound
    const reached = this.#bound.reached(principal)
    if (reached === 'full')
      throw new Fault('overloaded', `All ${max} tasks of the server are in use`, { retryAfter: 1 })
    if (reached)
      throw new Fault('rateLimited', 'This caller already uses its share of the tasks of the server', { retryAfter: 1 })
    const loan = this.#options.memory.lend(principal, bytes)
    this.#bound.take(principal)
    return loan
  }

  /** Waits for a task on behalf of a client that does not know tasks, as if it were the call itself. */
  drive(call: Call, lease: Lease, { id }: Created): RunningCall {
    const { session } = lease
    const running = new RunningCall(lease.share(), call, {
      decode: (leg, response, exchange) => {
        const reply = decodeReply(leg, response, session.handshake.serverInfo)
        throwIfRefused(reply, session.serverRequests.refusedDuring(exchange))
        return reply
      },
      task: id,
      onGivenUp: () => {
        session.request('tasks/cancel', idOf(id)).catch(() => {})
      },
    })
    running.send('tasks/result', idOf(id))
    return running
  }

  /** Throws OwnedByReplica where all of these tasks are the caller's, and one other replica has them. */
  checkOwner(taskIds: readonly unknown[], { principal }: Call): void {
    this.#ids.checkOwner(taskIds, principal)
  }

  /** Answers `tasks/get`, `tasks/update` and `tasks/cancel`. Rejects with a Fault. */
  async answer(call: Call): Promise<Reply> {
    const taskId = value(call.params, 'taskId')
    const task = typeof taskId === 'string' ? this.#find(taskId, call) : undefined
    if (!task || typeof taskId !== 'string') throw new Fault('invalidParams', 'There is no such task')
    try {
      return await this.#answer(task, taskId, call)
    } catch (error) {
      if (!sessionGone(error)) throw callFault(error)
      this.#forget(task)
      throw new Fault('invalidParams', 'There is no such task')
    }
  }

  async #answer(task: Task, taskId: string, call: Call): Promise<Reply> {
    const { session } = task.lease
    call.log.note({
      serverEra: 'legacy',
      serverRevision: session.handshake.revision,
      serverTransport: session.transport,
    })
    const server = session.handshake.serverInfo
    switch (call.method) {
      case 'tasks/update':
        this.#update(task, call.answers?.responses)
        return { kind: 'result', result: EMPTY, server }
      case 'tasks/cancel':
        // That it has ended already is as good.
        await session.request('tasks/cancel', idOf(task.upstreamId))
        return { kind: 'result', result: EMPTY, server }
      default:
        return { kind: 'result', result: await this.#look(task, taskId), server }
    }
  }

  /** Which of these tasks are the caller's. */
  known(taskIds: readonly string[], call: Call): string[] {
    return taskIds.filter((taskId) => this.#find(taskId, call) !== undefined)
  }

  /** Tells how a task stands each time that it has changed, until it has ended or the signal aborts. */
  async *follow(taskId: string, call: Call): AsyncGenerator<Payload, void> {
    let told = ''
    while (!call.signal.aborted) {
      const task = this.#find(taskId, call)
      if (!task) return
      const found = await this.#look(task, taskId)
      const text = write(found)
      if (text !== told) yield found
      told = text
      const status = statusOf(found)
      if (status === undefined || isTerminal(status)) return
      const interval = value(found, 'pollIntervalMs')
      await pause(Math.max(typeof interval === 'number' ? interval : 0, LOOK_EVERY), call.signal)
    }
  }

  close(): void {
    for (const task of [...this.#tasks.values()]) this.#forget(task)
  }

  #find(taskId: string, call: Call): Task | undefined {
    const found = this.#ids.open(taskId, call.principal)
    const task = found && this.#tasks.get(found.id)
    return task?.principal === call.principal && task.lease.session.alive ? task : undefined
  }

  /** A task as it stands, with what came of it or with what the server wants to know. */
  async #look(task: Task, taskId: string): Promise<Payload> {
    const { session } = task.lease
    const response = await session.request('tasks/get', idOf(task.upstreamId))
    if (response.outcome.kind === 'error') throw new Fault('invalidParams', 'There is no such task')
    const found = resultOf(response)
    const status = statusOf(found) ?? 'working'
    if (status === 'cancelled') return liftTask(found, taskId)
    if (isTerminal(status)) return liftTask(found, taskId, await this.#outcome(task))
    if (status === 'working' && !task.waiting) return liftTask(found, taskId)
    const questions = this.#wait(task)
    if (questions.questions.size === 0) return liftTask(found, taskId, { status: '"working"' })
    const inputRequests = questions.inputRequests(task.call.caller.capabilities)
    return liftTask(found, taskId, { status: '"input_required"', inputRequests })
  }

  async #outcome(task: Task): Promise<Record<string, Json>> {
    const result = task.result ?? (await this.#fetched(task))
    if (result.kind === 'result') {
      // Of a tool that has failed the result says so: the task is complete.
      const complete = edit(result.result, { resultType: '"complete"' })
      return { status: '"completed"', result: write(complete) }
    }
    if (result.kind !== 'error')
      return { status: '"failed"', error: '{"code":-32603,"message":"The task has no result"}' }
    const { code, message, data } = result.error
    const error = `{"code":${code},"message":${JSON.stringify(message)}${data === undefined ? '' : `,"data":${data}`}}`
    return { status: '"failed"', error }
  }

  /** The result of a task, which is kept if there is memory for it: else it is fetched each time. */
  async #fetched(task: Task): Promise<Reply> {
    const response = await task.lease.session.request('tasks/result', idOf(task.upstreamId))
    const result = decodeReply(task.call, response, undefined)
    this.#keep(task, result)
    return result
  }

  #keep(task: Task, result: Reply): void {
    const bytes = result.kind === 'result' ? sizeOf(result.result) : 0
    if (task.loan.hold(weightOfRested(task.call) + bytes) === undefined) task.result = result
  }

  /** Has the server ask: it does when its result is waited for. */
  #wait(task: Task): RunningCall {
    if (task.waiting) return task.waiting
    const { session } = task.lease
    const controller = new AbortController()
    const call: Call = { ...task.call, method: 'tasks/result', signal: controller.signal }
    const waiting = new RunningCall(task.lease.share(), call, {
      decode: (_leg, response) => decodeReply(task.call, response, session.handshake.serverInfo),
      task: task.upstreamId,
    })
    task.waiting = waiting
    waiting.send('tasks/result', idOf(task.upstreamId))
    this.#gather(task, waiting, call).catch(() => {
      task.waiting = undefined
    })
    return waiting
  }

  /** Takes the server's questions as they come, and the result when it does. */
  async #gather(task: Task, waiting: RunningCall, call: Call): Promise<void> {
    try {
      for (;;) {
        let asks = false
        for await (const step of waiting.leg(call, () => true)) {
          if (step.kind === 'asks') asks = true
          else if (step.kind !== 'notification') this.#keep(task, step)
        }
        if (!asks) return
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
    for (const key of keys(responses)) {
      const question = waiting.questions.get(key)
      const answer = question && objectIn(responses, key)
      const good = question && answer && wellFormed(question.request.method, answer)
      if (good) waiting.answer(key, good)
    }
    task.answered()
  }

  #forget(task: Task): void {
    clearTimeout(task.timer)
    if (!this.#tasks.delete(task.id)) return
    this.#bound.give(task.principal)
    task.waiting?.end()
    task.answered()
    task.loan.end()
    task.lease.release()
  }
}

function createdIn(call: Call, response: Response): Created | Refused {
  if (response.outcome.kind === 'error') return decodeReply(call, response, undefined) as Refused
  const task = objectIn(resultOf(response), 'task')
  const id = task && value(task, 'taskId')
  if (!task || typeof id !== 'string') throw new Fault('upstreamProtocol', 'The server did not make a task of the call')
  return { id, task }
}

function idOf(taskId: string): Json {
  return `{"taskId":${JSON.stringify(taskId)}}`
}

function resultOf({ outcome: { source, member } }: Response): Payload {
  return payloadAt(source, member) ?? EMPTY
}
