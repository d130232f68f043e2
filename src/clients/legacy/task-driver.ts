/**
 * Follows a task of a modern server (io.modelcontextprotocol/tasks) for a client without tasks: it polls the task, and
 * the client sees one long call.
 */

import { Fault } from '../../base/fault/fault.js'
import { readError } from '../../base/rpc/message.js'
import {
  EMPTY,
  edit,
  has,
  type Json,
  keys,
  NO_ORIGIN,
  objectIn,
  type Payload,
  parseObject,
  raw,
  value,
  write,
} from '../../base/rpc/splice.js'
import { HangUp } from '../../base/time/hang-up.js'
import { pause } from '../../base/time/pause.js'
import { type Answers, type Call, type Final, type Handler, ignoreNotifications } from '../../mcp/protocol/call.js'
import { isTerminal, statusOf } from '../../mcp/protocol/tasks.js'

/** The client of a task. */
export interface TaskClient {
  /** Asks the client for the input that the server requests. */
  ask(input: Payload): Promise<Answers>
  /** Takes a new status message. Applies backpressure like a `Notify`. */
  say(message: Json): Promise<void> | undefined
}

/** Milliseconds between two polls of a task. */
const POLL = { least: 500, most: 30_000, usual: 1_000 }
const TASKS_ONLY = /^\{"extensions":\{"io\.modelcontextprotocol\/tasks":\{\}\}\}$/

/** Whether a server refused a call only because the client did not declare tasks. */
export function wantsTasks(reply: Final): boolean {
  if (reply.kind !== 'error' || reply.error.code !== -32021 || !reply.error.data?.startsWith('{')) return false
  const required = raw(parseObject(reply.error.data), 'requiredCapabilities')
  return required !== undefined && TASKS_ONLY.test(required.replace(/\s/g, ''))
}

/** Follows a task to its end, and resolves to its answer. If it stops earlier, it cancels the task. */
export async function drive(handle: Handler, call: Call, created: Payload, client: TaskClient): Promise<Final> {
  const taskId = raw(created, 'taskId')
  if (!taskId?.startsWith('"')) throw new Fault('upstreamProtocol', 'The server created a task without a taskId')
  const about = (method: string, more: Record<string, Json | undefined> = {}): Call => {
    return {
      ...call,
      method,
      params: edit(NO_ORIGIN, { taskId, ...more }),
      meta: EMPTY,
      progress: false,
      answers: undefined,
      continues: true,
      notify: ignoreNotifications,
    }
  }
  const answered = new Set<string>()
  let lastMessage: Json | undefined
  let ended = false
  try {
    for (let wait = intervalOf(created); ; ) {
      await pause(wait, call.signal)
      call.signal.throwIfAborted()
      const reply = await handle(about('tasks/get'))
      if (reply.kind !== 'result') {
        ended = true
        return reply
      }
      const task = reply.result
      const status = statusOf(task)
      if (status === undefined)
        throw new Fault('upstreamProtocol', 'The server answered tasks/get without a valid status')
      if (isTerminal(status)) {
        ended = true
        return outcomeOf(task, status)
      }
      const message = raw(task, 'statusMessage')
      if (message !== undefined && message !== lastMessage) await client.say(message)
      lastMessage = message
      const open = status === 'input_required' ? unanswered(task, answered) : undefined
      if (open) {
        const { responses = '{}' } = await client.ask(open)
        for (const key of keys(objectIn(open, 'inputRequests') ?? EMPTY)) answered.add(key)
        await handle(about('tasks/update', { inputResponses: responses }))
      }
      wait = intervalOf(task)
    }
  } finally {
    if (!ended) {
      // The client has left, but the server still runs the task.
      const signal = new HangUp()
      handle({ ...about('tasks/cancel'), signal, abort: () => {} }).catch(() => {})
    }
  }
}

/** The input requests of a task that the client has not answered yet; undefined if there are none. */
function unanswered(task: Payload, answered: ReadonlySet<string>): Payload | undefined {
  const requests = objectIn(task, 'inputRequests')
  if (!requests) return undefined
  const open = keys(requests).filter((key) => !answered.has(key))
  if (open.length === 0) return undefined
  const known = keys(requests).filter((key) => answered.has(key))
  const unanswered = edit(requests, Object.fromEntries(known.map((key) => [key, undefined])))
  return edit(EMPTY, { inputRequests: write(unanswered) })
}

function outcomeOf(task: Payload, status: string): Final {
  const result = objectIn(task, 'result')
  // Copied, because it is not the result of the received message, but only a part of it.
  if (status === 'completed' && result) return { kind: 'result', result: parseObject(write(result)) }
  const error = objectIn(task, 'error')
  if (status === 'failed' && error) return { kind: 'error', error: readError(error, 'The task failed') }
  return { kind: 'error', error: { code: -32603, message: `The task is ${status}` } }
}

function intervalOf(task: Payload): number {
  const interval = has(task, 'pollIntervalMs') ? value(task, 'pollIntervalMs') : POLL.usual
  return Math.min(Math.max(typeof interval === 'number' ? interval : POLL.usual, POLL.least), POLL.most)
}
