/** Jobs in this era: tasks of 2025-11-25 where the client asks for that, and otherwise done while it waits. */
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  type CallToolRequest,
  type CallToolResult,
  type CreateTaskResult,
  ErrorCode,
  McpError,
  type Tool,
} from '@modelcontextprotocol/sdk/types.js'
import type { Answer } from '../shared/client.js'
import { type Job, POLL_INTERVAL, TTL, type Work } from '../shared/jobs.js'
import { clientOf, type Extra } from './call.js'
import type { Tasks } from './task-store.js'

export interface JobCall {
  server: Server
  tasks: Tasks
  params: CallToolRequest['params']
  extra: Extra
}

/** The entry in the list of tools. */
export function listed({ definition, task }: Job): Tool {
  return { ...definition, execution: { taskSupport: task } }
}

/** Does the job as a task or at once, as its definition and the client will have it. */
export async function callJob(job: Job, call: JobCall): Promise<CallToolResult | CreateTaskResult> {
  const { server, params, extra } = call
  if (!params.task && job.task === 'required') {
    throw new McpError(ErrorCode.MethodNotFound, `${params.name} can only be called as a task`)
  }
  const client = clientOf(server, extra)
  const answer = await job.first?.(client)
  if (params.task) return start(job, call, answer)
  const ask: Work['ask'] = (key, question) => client.elicit(key, question, 'call')
  return job.work({ arguments: params.arguments ?? {}, signal: extra.signal, answer, ask })
}

/** Starts a task, and answers with it before it is done. */
async function start(
  job: Job,
  { server, tasks, params, extra }: JobCall,
  answer: Answer | undefined,
): Promise<CreateTaskResult> {
  const store = extra.taskStore
  if (!store) throw new McpError(ErrorCode.InternalError, 'The server has no task store')
  // A copy, because the store goes on to write into what it has given out, and a task begins as `working`.
  const task = { ...(await store.createTask({ ttl: params.task?.ttl ?? TTL, pollInterval: POLL_INTERVAL })) }
  const { taskId } = task
  let asked = 0

  /** Puts a question where the client finds it when it fetches the result. */
  const ask: Work['ask'] = async (_key, question) => {
    if (asked++ === 0) await store.updateTaskStatus(taskId, 'input_required')
    try {
      return await server.elicitInput(question, { relatedTask: { taskId } })
    } finally {
      if (--asked === 0) await store.updateTaskStatus(taskId, 'working')
    }
  }

  const run = async (): Promise<void> => {
    try {
      const given = params.arguments ?? {}
      const result = await job.work({ arguments: given, signal: tasks.signalOf(taskId), answer, ask })
      await store.storeTaskResult(taskId, 'completed', result)
    } catch (error) {
      tasks.keepError(taskId, error)
      await store.updateTaskStatus(taskId, 'failed', error instanceof Error ? error.message : undefined)
    }
  }

  // Whatever is left to fail then is that the task was cancelled, or its session closed, in the meantime.
  run().catch(() => {})
  return { task }
}
