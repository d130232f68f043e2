/**
 * Follows a task of a modern server (io.modelcontextprotocol/tasks) for a client without tasks: it polls the task, and
 * the client sees one long call.
 */
import type { Answers, Call, Handler, Reply } from '../../protocol/call.js'
import { Fault } from '../../protocol/fault.js'
import { isTerminal, statusOf } from '../../protocol/tasks.js'
import {
  EMPTY,
  edit,
  has,
  type Json,
  objectIn,
  type Payload,
  parseObject,
  raw,
  value,
  write,
} from '../../rpc/splice.js'
import { pause } from '../../time.js'

/** A step of a task: the server requests input, sends a new status message, or the task ends. */
export type TaskStep =
  | { kind: 'asks'; input: Payload }
  | { kind: 'says'; message: Json }
  | { kind: 'ends'; reply: Reply }

/** Milliseconds between two polls of a task. */
const POLL = { least: 500, most: 30_000, usual: 1_000 }
const TASKS_ONLY = /^\{"extensions":\{"io\.modelcontextprotocol\/tasks":\{\}\}\}$/

/** Whether a server refused a call only because the client did not declare tasks. */
export function wantsTasks(reply: Reply): boolean {
  if (reply.kind !== 'error' || reply.error.code !== -32021 || !reply.error.data?.startsWith('{')) return false
  const required = raw(parseObject(reply.error.data), 'requiredCapabilities')
  return required !== undefined && TASKS_ONLY.test(required.replace(/\s/g, ''))
}

/**
 * Follows a task to its end. If it stops earlier, it cancels the task. After an `asks` step, pass the answers to
 * `next`.
 */
export async function* drive(
  handle: Handler,
  call: Call,
  created: Payload,
): AsyncGenerator<TaskStep, void, Answers | undefined> {
  const taskId = raw(created, 'taskId')
  if (!taskId?.startsWith('"')) throw new Fault('upstreamProtocol', 'The server created a task without a taskId')
  const about = (method: string, more: Record<string, Json | undefined> = {}): Call => {
    return {
      ...call,
      method,
      params: edit(EMPTY, { taskId, ...more }),
      meta: EMPTY,
      progress: false,
      answers: undefined,
    }
  }
  const answered = new Set<string>()
  let lastMessage: Json | undefined
  let ended = false
  try {
    for (let wait = intervalOf(created); ; ) {
      await pause(wait, call.signal)
      call.signal.throwIfAborted()
      const reply = await lastOf(handle(about('tasks/get')))
      if (reply.kind !== 'result') {
        ended = true
        yield { kind: 'ends', reply }
        return
      }
      const task = reply.result
      const status = statusOf(task)
      if (status === undefined)
        throw new Fault('upstreamProtocol', 'The server answered tasks/get without a valid status')
      if (isTerminal(status)) {
        ended = true
        yield { kind: 'ends', reply: outcomeOf(task, status) }
        return
      }
      const message = raw(task, 'statusMessage')
      if (message !== undefined && message !== lastMessage) yield { kind: 'says', message }
      lastMessage = message
      const open = status === 'input_required' ? unanswered(task, answered) : undefined
      if (open) {
        const answers = yield { kind: 'asks', input: open }
        for (const { key } of objectIn(open, 'inputRequests')?.members ?? []) answered.add(key)
        await lastOf(handle(about('tasks/update', { inputResponses: answers?.responses ?? '{}' })))
      }
      wait = intervalOf(task)
    }
  } finally {
    if (!ended) {
      // The client has left, but the server still runs the task.
      const { signal } = new AbortController()
      lastOf(handle({ ...about('tasks/cancel'), signal, abort: () => {} })).catch(() => {})
    }
  }
}

/** The input requests of a task that the client has not answered yet; undefined if there are none. */
function unanswered(task: Payload, answered: ReadonlySet<string>): Payload | undefined {
  const requests = objectIn(task, 'inputRequests')
  if (!requests) return undefined
  const known = requests.members.filter(({ key }) => answered.has(key))
  const open = edit(requests, Object.fromEntries(known.map(({ key }) => [key, undefined])))
  if (known.length === requests.members.length) return undefined
  return edit(EMPTY, { inputRequests: write(open) })
}

function outcomeOf(task: Payload, status: string): Reply {
  const result = objectIn(task, 'result')
  if (status === 'completed' && result) return { kind: 'result', result }
  const error = objectIn(task, 'error')
  if (status === 'failed' && error) {
    const [code, message] = [value(error, 'code'), value(error, 'message')]
    return {
      kind: 'error',
      error: {
        code: typeof code === 'number' ? code : -32603,
        message: typeof message === 'string' ? message : 'The task failed',
        data: raw(error, 'data'),
      },
    }
  }
  return { kind: 'error', error: { code: -32603, message: `The task is ${status}` } }
}

function intervalOf(task: Payload): number {
  const interval = has(task, 'pollIntervalMs') ? value(task, 'pollIntervalMs') : POLL.usual
  return Math.min(Math.max(typeof interval === 'number' ? interval : POLL.usual, POLL.least), POLL.most)
}

async function lastOf(replies: AsyncIterable<Reply>): Promise<Exclude<Reply, { kind: 'notification' }>> {
  for await (const reply of replies) if (reply.kind !== 'notification') return reply
  throw new Fault('internalUnknown', 'The call ended without an answer')
}
