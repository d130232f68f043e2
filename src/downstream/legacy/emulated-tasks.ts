/**
 * Tasks of 2025-11-25 for a client that wants its calls to be tasks (basic/utilities/tasks), in front of servers of which
 * nobody need know whether they have any: the bridge makes the call, and the session keeps what comes of it.
 */
import { Fault } from '../../protocol/fault.js'
import { MAX_NAME } from '../../protocol/lengths.js'
import type { Loan } from '../../protocol/memory.js'
import { RELATED_TASK } from '../../protocol/meta.js'
import type { TaskStatus } from '../../protocol/tasks.js'
import { own } from '../../rpc/own.js'
import type { Wire } from '../../rpc/source.js'
import { EMPTY, edit, type Json, type Payload, parseObject, raw, sizeOf, value, write } from '../../rpc/splice.js'
import type { CallStep, Outcome } from './translated-call.js'

/** Makes the call that a task is of. What it asks says that it is `about` the task. */
export type Run = (about: Json, controller: AbortController) => AsyncGenerator<CallStep, Outcome>

interface Task {
  id: string
  /** What of the call decides how its result is told. */
  about: Payload
  status: TaskStatus
  statusMessage: string | undefined
  createdAt: string
  lastUpdatedAt: string
  ttl: number
  controller: AbortController
  outcome: Outcome | undefined
  failure: Fault | undefined
  /** Takes questions to the client, while somebody waits for the result. */
  ask: ((text: Wire) => void) | undefined
  /** Wakes up whoever waits for a change. */
  wake: () => void
  changed: Promise<void>
  timer: NodeJS.Timeout | undefined
  /** Of what came of it. */
  loan: Loan
}

const MAX_TASKS = 100
/** Milliseconds. */
const TTL = { usual: 3_600_000, most: 3_600_000 }
const POLL_INTERVAL = 1_000

export class EmulatedTasks {
  readonly #tasks = new Map<string, Task>()
  readonly #borrow: () => Loan

  /** What comes of tasks is lent by what `borrow` gives. */
  constructor(borrow: () => Loan) {
    this.#borrow = borrow
  }

  /** Begins a task of a call of a tool. Gives the CreateTaskResult. Throws a Fault where there are too many. */
  start(params: Payload, ttl: unknown, run: Run): Json {
    if (this.#tasks.size >= MAX_TASKS) throw new Fault('overloaded', `A session may have ${MAX_TASKS} tasks`)
    const now = new Date().toISOString()
    const task: Task = {
      id: crypto.randomUUID(),
      about: parseObject(write(edit(EMPTY, { name: raw(params, 'name') }))),
      status: 'working',
      statusMessage: undefined,
      createdAt: now,
      lastUpdatedAt: now,
      ttl: typeof ttl === 'number' && ttl > 0 ? Math.min(ttl, TTL.most) : TTL.usual,
      controller: new AbortController(),
      outcome: undefined,
      failure: undefined,
      ask: undefined,
      wake: () => {},
      changed: Promise.resolve(),
      timer: undefined,
      loan: this.#borrow(),
    }
    // As it came in, and as it goes on.
    task.loan.demand(2 * sizeOf(params))
    renew(task)
    task.timer = setTimeout(() => this.#forget(task), task.ttl).unref()
    this.#tasks.set(task.id, task)
    this.#follow(task, run(relatedTo(task.id), task.controller)).catch(() => {})
    return `{"task":${told(task)}}`
  }

  get(id: unknown): Json {
    return told(this.#find(id))
  }

  /** Params of the call that a task is of, as far as they decide how its result is told. */
  paramsOf(id: unknown): Payload {
    return this.#find(id).about
  }

  list(): Json {
    return `{"tasks":[${[...this.#tasks.values()].map(told).join(',')}]}`
  }

  cancel(id: unknown): Json {
    const task = this.#find(id)
    if (task.outcome || task.failure || task.status === 'cancelled')
      throw new Fault('invalidParams', `The task is ${task.status} already`)
    task.controller.abort('The task was cancelled')
    update(task, 'cancelled')
    return told(task)
  }

  /** Waits for the result. What is asked meanwhile is put to whoever waits. Throws a Fault for a task that has none. */
  async *result(id: unknown, signal: AbortSignal): AsyncGenerator<Wire, Outcome> {
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
        if (question !== undefined) yield question
        else if (task.outcome) return task.outcome
        else if (task.failure) throw task.failure
        else if (task.status === 'cancelled') throw new Fault('upstreamRefused', 'The task was cancelled')
        else await task.changed
      }
      throw new Fault('requestTimeout', 'The client has gone')
    } finally {
      signal.removeEventListener('abort', wake)
      task.ask = undefined
    }
  }

  close(): void {
    for (const task of [...this.#tasks.values()]) this.#forget(task)
  }

  async #follow(task: Task, steps: AsyncGenerator<CallStep, Outcome>): Promise<void> {
    try {
      let next = await steps.next()
      for (; !next.done; next = await steps.next()) {
        const step = next.value
        if (step.kind === 'question') await this.#ask(task, step.text)
        else if (step.reply.method === 'notifications/progress') {
          const message = value(step.reply.params, 'message')
          if (typeof message === 'string') task.statusMessage = own(message.slice(0, MAX_NAME))
        }
        if (task.status !== 'cancelled') update(task, step.kind === 'question' ? 'input_required' : 'working')
      }
      // The client may come for it at any time until then, or never.
      const bytes = next.value.kind === 'result' ? sizeOf(next.value.result) : (next.value.error.data?.length ?? 0)
      if (task.loan.hold(bytes))
        throw new Fault('answerLost', 'There is no memory for the result of the task (limits.memory)')
      task.outcome = next.value
      if (task.status !== 'cancelled') update(task, hasFailed(next.value) ? 'failed' : 'completed')
    } catch (error) {
      task.failure = Fault.from(error)
      if (task.status !== 'cancelled') update(task, 'failed', task.failure.message)
    }
  }

  /** Puts a question to whoever waits for the result, as soon as somebody does. */
  async #ask(task: Task, text: Wire): Promise<void> {
    update(task, 'input_required')
    while (!task.ask && !task.controller.signal.aborted) await task.changed
    task.ask?.(text)
  }

  #find(id: unknown): Task {
    const task = typeof id === 'string' ? this.#tasks.get(id) : undefined
    if (!task) throw new Fault('invalidParams', 'There is no such task')
    return task
  }

  #forget(task: Task): void {
    clearTimeout(task.timer)
    this.#tasks.delete(task.id)
    task.loan.end()
    task.controller.abort('The task is not kept any longer')
    task.wake()
  }
}

/** What messages of a task say that they belong to. */
function relatedTo(id: string): Json {
  return `{${JSON.stringify(RELATED_TASK)}:{"taskId":${JSON.stringify(id)}}}`
}

/** A tool that says of itself that it has failed makes its task a failed one. */
function hasFailed(outcome: Outcome): boolean {
  return outcome.kind === 'error' || value(outcome.result, 'isError') === true
}

function update(task: Task, status: TaskStatus, message?: string): void {
  if (task.status !== status) task.lastUpdatedAt = new Date().toISOString()
  task.status = status
  task.statusMessage = message ?? task.statusMessage
  task.wake()
}

/** Wakes up all who wait, and lets others wait for the next time. */
function renew(task: Task): void {
  task.changed = new Promise((resolve) => {
    task.wake = () => {
      resolve()
      renew(task)
    }
  })
}

function told({ id, status, statusMessage, createdAt, lastUpdatedAt, ttl }: Task): Json {
  const task = { taskId: id, status, statusMessage, createdAt, lastUpdatedAt, ttl, pollInterval: POLL_INTERVAL }
  return JSON.stringify(task)
}
