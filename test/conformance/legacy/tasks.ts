/** Tools that take their time: as tasks of 2025-11-25 where the client asks for that, and otherwise while it waits. */
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CallToolResult,
  type CreateTaskResult,
  type ElicitRequestFormParams,
  type ElicitResult,
  ErrorCode,
  McpError,
} from '@modelcontextprotocol/sdk/types.js'
import { text, textResult } from './content.js'
import { form } from './schemas.js'
import { NO_ARGUMENTS, strings, type Tool, type ToolCall, type ToolDefinition } from './tool.js'

const POLL_INTERVAL = 100
const TTL = 300_000

/** What a job has, whether it runs as a task or not. */
interface Job {
  arguments: Record<string, unknown>
  signal: AbortSignal
  ask(question: ElicitRequestFormParams): Promise<ElicitResult>
}

export const taskTools: readonly Tool[] = [
  {
    definition: { name: 'greet', description: 'Greets at once', inputSchema: strings({ name: 'Whom' }) },
    call: ({ arguments: { name } }) => textResult(`Hello, ${String(name)}!`),
  },
  job(
    {
      name: 'slow_compute',
      description: 'Takes as long as it is told to',
      inputSchema: {
        type: 'object',
        properties: { seconds: { type: 'number' }, label: { type: 'string' } },
        required: ['seconds'],
      },
      execution: { taskSupport: 'optional' },
    },
    async ({ arguments: { seconds, label }, signal }) => {
      await sleep(Number(seconds) * 1000, undefined, { signal, ref: false })
      return textResult(`Computed ${String(label ?? 'it')} in ${String(seconds)} s`)
    },
  ),
  job(
    {
      name: 'failing_job',
      description: 'Fails after a second, as tools fail',
      inputSchema: NO_ARGUMENTS,
      execution: { taskSupport: 'required' },
    },
    async ({ signal }) => {
      await sleep(1_000, undefined, { signal, ref: false })
      return { isError: true, content: [text('This job fails')] }
    },
  ),
  job(
    {
      name: 'protocol_error_job',
      description: 'Fails as servers fail',
      inputSchema: NO_ARGUMENTS,
      execution: { taskSupport: 'optional' },
    },
    () => {
      throw new McpError(ErrorCode.InternalError, 'This job breaks')
    },
  ),
  job(
    {
      name: 'confirm_delete',
      description: 'Asks before it pretends to delete',
      inputSchema: strings({ filename: 'What to delete' }),
      execution: { taskSupport: 'optional' },
    },
    async ({ arguments: { filename }, ask }) => {
      const requestedSchema = form({ confirm: 'boolean' })
      const { action } = await ask({ message: `Delete ${String(filename)}?`, requestedSchema })
      return textResult(`${action === 'accept' ? 'Deleted' : 'Kept'} ${String(filename)}`)
    },
  ),
  job(
    {
      name: 'multi_input',
      description: 'Asks two things at once',
      inputSchema: NO_ARGUMENTS,
      execution: { taskSupport: 'optional' },
    },
    async ({ ask }) => {
      const [name, confirm] = await Promise.all([
        ask({ message: 'What is your name?', requestedSchema: form({ name: 'string' }) }),
        ask({ message: 'Are you sure?', requestedSchema: form({ confirm: 'boolean' }) }),
      ])
      return textResult(`Answered with ${name.action} and ${confirm.action}`)
    },
  ),
  {
    definition: {
      name: 'test_tool_with_task',
      description: 'Asks first, and is a task from then on',
      inputSchema: NO_ARGUMENTS,
      execution: { taskSupport: 'required' },
    },
    async call(call) {
      if (!call.task) throw taskRequired('test_tool_with_task')
      const question = { message: 'What is your name?', requestedSchema: form({ name: 'string' }) }
      const { content } = await call.server.elicitInput(question)
      return start(call, async () => textResult(`Done for ${String(content?.['name'])}`))
    },
  },
]

/** A tool that does its job as a task or at once, as its definition and the client will have it. */
function job(definition: ToolDefinition, work: (job: Job) => CallToolResult | Promise<CallToolResult>): Tool {
  return {
    definition,
    async call(call) {
      if (call.task) return start(call, work)
      if (definition.execution?.taskSupport === 'required') throw taskRequired(definition.name)
      const { server, extra } = call
      return work({
        arguments: call.arguments,
        signal: extra.signal,
        ask: (question) => server.elicitInput(question, { relatedRequestId: extra.requestId }),
      })
    },
  }
}

/** Starts a task, and answers with it before it is done. */
async function start(
  { server, tasks, task: wish, arguments: given, extra }: ToolCall,
  work: (job: Job) => CallToolResult | Promise<CallToolResult>,
): Promise<CreateTaskResult> {
  const store = extra.taskStore
  if (!store) throw new McpError(ErrorCode.InternalError, 'The server has no task store')
  // A copy, because the store goes on to write into what it has given out, and a task begins as `working`.
  const task = { ...(await store.createTask({ ttl: wish?.ttl ?? TTL, pollInterval: POLL_INTERVAL })) }
  const { taskId } = task
  let asked = 0

  /** Puts a question where the client finds it when it fetches the result. */
  const ask = async (question: ElicitRequestFormParams): Promise<ElicitResult> => {
    if (asked++ === 0) await store.updateTaskStatus(taskId, 'input_required')
    try {
      return await server.elicitInput(question, { relatedTask: { taskId } })
    } finally {
      if (--asked === 0) await store.updateTaskStatus(taskId, 'working')
    }
  }

  const run = async (): Promise<void> => {
    try {
      const result = await work({ arguments: given, signal: tasks.signalOf(taskId), ask })
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

function taskRequired(name: string): McpError {
  return new McpError(ErrorCode.MethodNotFound, `${name} can only be called as a task`)
}
