/**
 * Waits for a task of a modern server (io.modelcontextprotocol/tasks) on behalf of a client that knows nothing of tasks: for
 * it, the call simply takes its time.
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

/** What happens to a task on its way: the server asks something, or says how far it is; then it has a reply. */
export type TaskStep =
  | { kind: 'asks'; input: Payload }
  | { kind: 'says'; message: Json }
  | { kind: 'ends'; reply: Reply }

/** Milliseconds between two looks at a task. */
const LOOK = { least: 500, most: 30_000, usual: 1_000 }
const TASKS_ONLY = /^\{"extensions":\{"io\.modelcontextprotocol\/tasks":\{\}\}\}$/

/** Whether a server refuses a call for nothing but that tasks are not known. */
export function wantsTasks(reply: Reply): boolean {
  if (reply.kind !== 'error' || reply.error.code !== -32021 || !reply.error.data?.startsWith('{')) return false
  const required = raw(parseObject(reply.error.data), 'requiredCapabilities')
  return required !== undefined && TASKS_ONLY.test(required.replace(/\s/g, ''))
}

/** Follows a task to its end. What is given back after a question are the answers. */
export async function* drive(
  handle: Handler,
  call: Call,
  created: Payload,
): AsyncGenerator<TaskStep, void, Answers | undefined> {
  const taskId = raw(created, 'taskId')
  if (!taskId?.startsWith('"')) throw new Fault('upstreamProtocol', 'The server made a task without an id')
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
  let said: Json | undefined
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
      if (status === undefined) throw new Fault('upstreamProtocol', 'The server does not say how the task stands')
      if (isTerminal(status)) {
        ended = true
        yield { kind: 'ends', reply: outcomeOf(task, status) }
        return
      }
      const message = raw(task, 'statusMessage')
      if (message !== undefined && message !== said) yield { kind: 'says', message }
      said = message
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
      // Nobody waits any more, and the server does not know.
      const { signal } = new AbortController()
      lastOf(handle({ ...about('tasks/cancel'), signal, abort: () => {} })).catch(() => {})
    }
  }
}

/** Questions of a task that the client has not been asked yet. */
function unanswered(task: Payload, answered: ReadonlySet<string>): Payload | undefined {
  const requests = objectIn(task, 'inputRequests')
  if (!requests) return undefined
  const known = requests.members.filter(({ key }) => answered.has(key))
  const left = edit(requests, Object.fromEntries(known.map(({ key }) => [key, undefined])))
  if (known.length === requests.members.length) return undefined
  return edit(EMPTY, { inputRequests: write(left) })
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
        message: typeof message === 'string' ? message : 'The task has failed',
        data: raw(error, 'data'),
      },
    }
  }
  return { kind: 'error', error: { code: -32603, message: `The task is ${status}` } }
}

function intervalOf(task: Payload): number {
  const interval = has(task, 'pollIntervalMs') ? value(task, 'pollIntervalMs') : LOOK.usual
  return Math.min(Math.max(typeof interval === 'number' ? interval : LOOK.usual, LOOK.least), LOOK.most)
}

async function lastOf(replies: AsyncIterable<Reply>): Promise<Exclude<Reply, { kind: 'notification' }>> {
  for await (const reply of replies) if (reply.kind !== 'notification') return reply
  throw new Fault('internalUnknown', 'The call ended without an answer')
}
