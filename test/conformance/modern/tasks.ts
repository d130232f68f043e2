/** Jobs in this era: tasks of the extension where the client knows it, and otherwise done while it waits. */
import { randomUUID } from 'node:crypto'
import {
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Answer } from '../shared/client.js'
import { type Job, POLL_INTERVAL, TTL, type Work } from '../shared/jobs.js'
import type { ToolResult } from '../shared/tool.js'
import { withClient } from './asking.js'
import { capabilitiesOf } from './call.js'

export const TASKS = 'io.modelcontextprotocol/tasks'

/** A task as it goes out, and what is not to be seen of it. */
interface Task {
  shown: Shown
  stop: AbortController
  asked: Map<string, { request: InputRequest; answer(answer: Answer): void }>
}

type Shown = {
  taskId: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  createdAt: string
  lastUpdatedAt: string
  ttlMs: number
  pollIntervalMs: number
  result?: ToolResult
  error?: { code: number; message: string }
}

/** Does the job as a task or at once, as its definition and the client will have it. */
export async function callJob(
  job: Job,
  given: Record<string, unknown>,
  tasks: Tasks,
  ctx: ServerContext,
): Promise<ToolResult | InputRequiredResult> {
  if (!knowsTasks(ctx)) {
    if (job.task === 'required') throw tasksRequired()
    const { signal } = ctx.mcpReq
    return withClient(ctx, ({ elicit: ask }) => job.work({ arguments: given, signal, answer: undefined, ask }))
  }
  return withClient(ctx, async (client) => {
    const answer = await job.first?.(client)
    // The SDK takes nothing for the result of a tool that has no content.
    return { resultType: 'task', ...tasks.start(job, given, answer), content: [] }
  })
}

export function knowsTasks(ctx: ServerContext): boolean {
  return capabilitiesOf(ctx).extensions?.[TASKS] !== undefined
}

export function tasksRequired(): Error {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } })
}

/** The tasks of a server. Each is known by its id alone, whoever asks. */
export class Tasks {
  readonly #tasks = new Map<string, Task>()

  /** Starts a job, and gives the task before it is done. */
  start(job: Job, given: Record<string, unknown>, answer: Answer | undefined): Shown {
    const now = new Date().toISOString()
    const shown: Shown = {
      taskId: randomUUID(),
      status: 'working',
      createdAt: now,
      lastUpdatedAt: now,
      ttlMs: TTL,
      pollIntervalMs: POLL_INTERVAL,
    }
    const task: Task = { shown, stop: new AbortController(), asked: new Map() }
    this.#tasks.set(shown.taskId, task)
    setTimeout(() => this.#tasks.delete(shown.taskId), TTL).unref()
    // A copy, because a task goes out as `working`.
    const begun = { ...shown }
    run(job, task, { arguments: given, signal: task.stop.signal, answer, ask: asking(task) })
    return begun
  }

  /** What there is to see of a task; undefined where there is none. */
  get(taskId: string): (Shown & { inputRequests?: Record<string, InputRequest> }) | undefined {
    const task = this.#tasks.get(taskId)
    if (task?.shown.status !== 'input_required') return task?.shown
    const inputRequests = Object.fromEntries([...task.asked].map(([key, { request }]) => [key, request]))
    return { ...task.shown, inputRequests }
  }

  /** Answers what is asked, and passes over what is not. */
  update(taskId: string, answers: Record<string, unknown>): void {
    const task = this.#tasks.get(taskId)
    for (const [key, answer] of Object.entries(answers)) task?.asked.get(key)?.answer(answer as Answer)
  }

  cancel(taskId: string): void {
    const task = this.#tasks.get(taskId)
    if (!task || !isOpen(task)) return
    settle(task, { status: 'cancelled' })
    task.stop.abort()
  }
}

function run(job: Job, task: Task, work: Work): void {
  const done = async () => settle(task, { status: 'completed', result: await job.work(work) })
  done().catch((error: unknown) => {
    const message = error instanceof Error ? error.message : String(error)
    settle(task, { status: 'failed', error: { code: ProtocolErrorCode.InternalError, message } })
  })
}

/** Puts questions where the client finds them when it looks at the task. */
function asking(task: Task): Work['ask'] {
  return (key, question) =>
    new Promise((resolve) => {
      const answer = (given: Answer) => {
        task.asked.delete(key)
        if (task.asked.size === 0) settle(task, { status: 'working' })
        resolve(given)
      }
      task.asked.set(key, { request: inputRequired.elicit(question), answer })
      settle(task, { status: 'input_required' })
    })
}

/** Nothing becomes of a task that has ended. */
function settle(task: Task, change: Partial<Shown>): void {
  if (isOpen(task)) task.shown = { ...task.shown, ...change, lastUpdatedAt: new Date().toISOString() }
}

function isOpen({ shown: { status } }: Task): boolean {
  return status === 'working' || status === 'input_required'
}
