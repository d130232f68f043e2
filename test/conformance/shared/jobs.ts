/** Tools that take their time: as tasks where the client can have them as such, and otherwise while it waits. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answer, Client, Question } from './client.js'
import { text, textResult } from './content.js'
import { part } from './part.js'
import { NAME } from './questions.js'
import { form } from './schemas.js'
import { NO_ARGUMENTS, strings, type ToolDefinition, type ToolResult } from './tool.js'

/** Milliseconds between two looks at a task, and those that it is kept for. */
export const POLL_INTERVAL = 100
export const TTL = 300_000

export interface Job {
  definition: ToolDefinition
  /** Whether it may or has to be a task. */
  task: 'optional' | 'required'
  /** What is asked before there is a task. */
  first?(client: Client): Promise<Answer>
  work(work: Work): ToolResult | Promise<ToolResult>
}

/** What a job has, whether it runs as a task or not. */
export interface Work {
  arguments: Record<string, unknown>
  signal: AbortSignal
  /** What the first question was answered with. */
  answer: Answer | undefined
  ask(key: string, question: Question): Promise<Answer>
}

export const jobs: readonly Job[] = part<Job>([
  {
    definition: {
      name: 'slow_compute',
      description: 'Takes as long as it is told to',
      inputSchema: {
        type: 'object',
        properties: { seconds: { type: 'number' }, label: { type: 'string' } },
        required: ['seconds'],
      },
    },
    task: 'optional',
    async work({ arguments: { seconds, label }, signal }) {
      await sleep(Number(seconds) * 1000, undefined, { signal, ref: false })
      return textResult(`Computed ${String(label ?? 'it')} in ${String(seconds)} s`)
    },
  },
  {
    definition: { name: 'failing_job', description: 'Fails after a second, as tools fail', inputSchema: NO_ARGUMENTS },
    task: 'required',
    async work({ signal }) {
      await sleep(1_000, undefined, { signal, ref: false })
      return { isError: true, content: [text('This job fails')] }
    },
  },
  {
    definition: { name: 'protocol_error_job', description: 'Fails as servers fail', inputSchema: NO_ARGUMENTS },
    task: 'optional',
    work() {
      throw new Error('This job breaks')
    },
  },
  {
    definition: {
      name: 'confirm_delete',
      description: 'Asks before it pretends to delete',
      inputSchema: strings({ filename: 'What to delete' }),
    },
    task: 'optional',
    async work({ arguments: { filename }, ask }) {
      const requestedSchema = form({ confirm: 'boolean' })
      const { action } = await ask('confirm', { message: `Delete ${String(filename)}?`, requestedSchema })
      return textResult(`${action === 'accept' ? 'Deleted' : 'Kept'} ${String(filename)}`)
    },
  },
  {
    definition: { name: 'multi_input', description: 'Asks two things at once', inputSchema: NO_ARGUMENTS },
    task: 'optional',
    async work({ ask }) {
      const [name, confirm] = await Promise.all([
        ask('name', NAME),
        ask('confirm', { message: 'Are you sure?', requestedSchema: form({ confirm: 'boolean' }) }),
      ])
      return textResult(`Answered with ${name.action} and ${confirm.action}`)
    },
  },
  {
    definition: {
      name: 'test_tool_with_task',
      description: 'Asks first, and is a task from then on',
      inputSchema: NO_ARGUMENTS,
    },
    task: 'required',
    first: (client) => client.elicit('user_name', NAME),
    work: ({ answer }) => textResult(`Done for ${String(answer?.content?.['name'])}`),
  },
])
