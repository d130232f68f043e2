/**
 * Emulates tasks of 2025-11-25 (basic/utilities/tasks) for a client, whether or not its server supports them: makes the
 * call in the background, and stores its result.
 */

import { Fault } from '../../base/fault/fault.js'
import { MAX_NAME } from '../../base/limits/constants.js'
import type { Reservation } from '../../base/limits/memory.js'
import { detach, type Wire } from '../../base/rpc/source.js'
import { EMPTY, edit, type Json, type Payload, parseObject, raw, sizeOf, value, write } from '../../base/rpc/splice.js'
import { HangUp, type Signal } from '../../base/time/hang-up.js'
import type { Notify, ServerNotification } from '../../mcp/protocol/call.js'
import { RELATED_TASK } from '../../mcp/protocol/meta.js'
import type { TaskStatus } from '../../mcp/protocol/tasks.js'
import type { CallContext, TranslatedOutcome } from './translated-call.js'

/** What the call of a task gets: `about` is the `_meta` of its requests to the client, which `send` sends. */
interface RunTask extends Required<Pick<CallContext, 'send' | 'about'>> {
  notify: Notify
  controller: HangUp
}

/** Makes the call of a task. */
export type Run = (running: RunTask) => Promise<TranslatedOutcome>

/** Most tasks of one session. */
const MAX_SESSION_TASKS = 100
/** Milliseconds for which a task is stored. */
const TTL = { usual: 3_600_000, most: 3_600_000 }
/** Milliseconds that a client should wait between two polls. */
const POLL_INTERVAL = 1_000

/** The emulated tasks of one session. */
export class EmulatedTasks {
  readonly #tasks = new Map<string, Task>()
  readonly #reserve: () => Reservation

  /** `reserve` begins a reservation for the result of one task. */
  constructor(reserve: () => Reservation) {
    this.#reserve = reserve
  }

  get size(): number {
    return this.#tasks.size
  }

  /** Starts a tool call as a task. Returns the CreateTaskResult. Throws a Fault if there are too many tasks. */
  start(params: Payload, ttl: unknown, run: Run): Json {
    if (this.#tasks.size >= MAX_SESSION_TASKS)
      throw new Fault('overloaded', `Too many tasks in this session (at most ${MAX_SESSION_TASKS})`, { retryAfter: 1 })
    const task = new Task(params, ttl, this.#reserve())
    // The params are in memory twice: as received, and as sent to the server.
    task.reservation.mustResize(2 * sizeOf(params))
    task.timer = setTimeout(() => this.#forget(task), task.ttl).unref()
    this.#tasks.set(task.id, task)
    this.#follow(task, run).catch(() => {})
    return `{"task":${task.json}}`
  }

  /** The Task. Throws a Fault for an unknown id, like all methods that take one. */
  get(id: unknown): Json {
    return this.#find(id).json
  }

  /** The params of the task's call that are needed to encode its result. */
  paramsOf(id: unknown): Payload {
    return this.#find(id).params
  }

  /** The result of `tasks/list`. */
  list(): Json {
    return `{"tasks":[${[...this.#tasks.values()].map(({ json }) => json).join(',')}]}`
  }

  /** Cancels a task. Returns the Task. Throws a Fault if it has ended. */
  cancel(id: unknown): Json {
    const task = this.#find(id)
    if (task.outcome || task.failure || task.status === 'cancelled')
      throw new Fault('invalidParams', `The task is already ${task.status}`)
    task.controller.abort('The task was cancelled')
    task.update('cancelled')
    return task.json
  }

  /**
   * Waits for the result, and sends the requests to the client with `send` in the meantime. Rejects with a Fault if the
   * task has no result.
   */
  async result(id: unknown, signal: Signal, send: CallContext['send']): Promise<TranslatedOutcome> {
    const task = this.#find(id)
    const questions: Wire[] = []
    const wake = () => task.wake()
    signal.addEventListener('abort', wake, { once: true })
    task.ask = (text) => {
      questions.push(text)
      task.wake()
    }
    task.wake()
    try {
      while (!signal.aborted) {
        const question = questions.shift()
        if (question !== undefined) await send(question)
        else if (task.outcome) return task.outcome
        else if (task.failure) throw task.failure
        else if (task.status === 'cancelled') throw new Fault('upstreamRefused', 'The task was cancelled')
        else await task.changed
      }
      throw new Fault('requestTimeout', 'The client disconnected')
    } finally {
      signal.removeEventListener('abort', wake)
      task.ask = undefined
    }
  }

  /** Cancels all tasks. */
  close(): void {
    for (const task of [...this.#tasks.values()]) this.#forget(task)
  }

  async #follow(task: Task, run: Run): Promise<void> {
    const notify = ({ method, params }: ServerNotification) => {
      const message = method === 'notifications/progress' ? value(params, 'message') : undefined
      if (typeof message === 'string') task.statusMessage = detach(message.slice(0, MAX_NAME))
      if (task.status !== 'cancelled') task.update('working')
      return undefined
    }
    const send = (text: Wire) => this.#ask(task, text)
    try {
      const outcome = await run({ about: relatedTo(task.id), controller: task.controller, notify, send })
      // The result is stored until the task expires, because the client may fetch it at any time.
      const bytes = outcome.kind === 'result' ? sizeOf(outcome.result) : (outcome.error.data?.length ?? 0)
      if (task.reservation.resize(bytes))
        throw new Fault('answerLost', 'The bridge has no memory left for the result of the task (limits.memory)')
      task.outcome = outcome
      if (task.status !== 'cancelled') task.update(hasFailed(outcome) ? 'failed' : 'completed')
    } catch (error) {
      task.failure = Fault.from(error)
      if (task.status !== 'cancelled') task.update('failed', task.failure.message)
    }
  }

  /** Sends a request to the client as soon as a `tasks/result` is waiting. */
  async #ask(task: Task, text: Wire): Promise<void> {
    task.update('input_required')
    while (!task.ask && !task.controller.aborted) await task.changed
    task.ask?.(text)
    if (task.status !== 'cancelled') task.update('input_required')
  }

  #find(id: unknown): Task {
    const task = typeof id === 'string' ? this.#tasks.get(id) : undefined
    if (!task) throw new Fault('invalidParams', 'Unknown or expired taskId')
    return task
  }

  #forget(task: Task): void {
    clearTimeout(task.timer)
    this.#tasks.delete(task.id)
    task.reservation.end()
    task.controller.abort('The task is not kept any longer')
    task.wake()
  }
}

class Task {
  readonly id = crypto.randomUUID()
  /** The params of the call that are needed to encode its result. */
  readonly params: Payload
  readonly ttl: number
  /** For the result. */
  readonly reservation: Reservation
  readonly controller = new HangUp()
  readonly createdAt = new Date().toISOString()
  lastUpdatedAt = this.createdAt
  status: TaskStatus = 'working'
  statusMessage: string | undefined
  outcome: TranslatedOutcome | undefined
  failure: Fault | undefined
  /** Sends a request to the client; undefined while no `tasks/result` is waiting. */
  ask: ((text: Wire) => void) | undefined
  /** Resolves `changed`, and replaces it, so that the next change can be waited for. */
  wake = () => {}
  changed = Promise.resolve()
  timer: NodeJS.Timeout | undefined

  constructor(params: Payload, ttl: unknown, reservation: Reservation) {
    this.params = parseObject(write(edit(EMPTY, { name: raw(params, 'name') })))
    this.ttl = typeof ttl === 'number' && ttl > 0 ? Math.min(ttl, TTL.most) : TTL.usual
    this.reservation = reservation
    this.#renew()
  }

  update(status: TaskStatus, message = this.statusMessage): void {
    if (this.status !== status) this.lastUpdatedAt = new Date().toISOString()
    this.status = status
    this.statusMessage = message
    this.wake()
  }

  get json(): Json {
    const { id: taskId, status, statusMessage, createdAt, lastUpdatedAt, ttl } = this
    return JSON.stringify({ taskId, status, statusMessage, createdAt, lastUpdatedAt, ttl, pollInterval: POLL_INTERVAL })
  }

  #renew(): void {
    this.changed = new Promise((resolve) => {
      this.wake = () => {
        resolve()
        this.#renew()
      }
    })
  }
}

/** `_meta` of messages that belong to a task. */
function relatedTo(id: string): Json {
  return `{${JSON.stringify(RELATED_TASK)}:{"taskId":${JSON.stringify(id)}}}`
}

/** Whether the task failed. A tool result with `isError` counts as a failure. */
function hasFailed(outcome: TranslatedOutcome): boolean {
  return outcome.kind === 'error' || value(outcome.result, 'isError') === true
}
