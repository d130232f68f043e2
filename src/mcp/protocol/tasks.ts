/** Translates tasks of 2025-11-25 into the extension that replaced them (io.modelcontextprotocol/tasks). */
import { memoize } from '../../base/rpc/memoize.js'
import {
  EMPTY,
  edit,
  type Json,
  objectIn,
  type Payload,
  parseObject,
  raw,
  value,
  write,
} from '../../base/rpc/splice.js'
import { TASKS_EXTENSION } from './meta.js'

export type TaskStatus = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'

const STATUSES: readonly unknown[] = ['working', 'input_required', 'completed', 'failed', 'cancelled']
const TERMINAL: ReadonlySet<TaskStatus> = new Set(['completed', 'failed', 'cancelled'])

/** Whether a client declares the tasks extension. */
export const knowsTasks = memoize((capabilities): boolean => {
  const extensions = objectIn(parseObject(capabilities), 'extensions')
  return extensions !== undefined && objectIn(extensions, TASKS_EXTENSION) !== undefined
})

/** The capabilities with the tasks extension added. */
export function withTasks(capabilities: Json): Json {
  const declared = parseObject(capabilities)
  const extensions = objectIn(declared, 'extensions') ?? EMPTY
  return write(edit(declared, { extensions: write(edit(extensions, { [TASKS_EXTENSION]: '{}' })) }))
}

/** Whether a legacy server can run tool calls as tasks. */
export function offersTasks(capabilities: Payload): boolean {
  let at: Payload | undefined = capabilities
  for (const key of ['tasks', 'requests', 'tools', 'call']) at = at && objectIn(at, key)
  return at !== undefined
}

export function statusOf(task: Payload): TaskStatus | undefined {
  const status = value(task, 'status')
  return STATUSES.includes(status) ? (status as TaskStatus) : undefined
}

export function isTerminal(status: TaskStatus): boolean {
  return TERMINAL.has(status)
}

/** A legacy task in the form of the extension, under another id and with `more` members. */
export function liftTask(task: Payload, taskId: string, more: Readonly<Record<string, Json>> = {}): Payload {
  const created = raw(task, 'createdAt') ?? JSON.stringify(new Date().toISOString())
  return edit(EMPTY, {
    taskId: JSON.stringify(taskId),
    status: JSON.stringify(statusOf(task) ?? 'working'),
    statusMessage: typeof value(task, 'statusMessage') === 'string' ? raw(task, 'statusMessage') : undefined,
    createdAt: created,
    lastUpdatedAt: raw(task, 'lastUpdatedAt') ?? created,
    ttlMs: integerIn(task, 'ttl') ?? 'null',
    pollIntervalMs: integerIn(task, 'pollInterval'),
    ...more,
  })
}

function integerIn(task: Payload, key: string): Json | undefined {
  const number = value(task, key)
  return typeof number === 'number' && Number.isFinite(number) ? String(Math.round(number)) : undefined
}
