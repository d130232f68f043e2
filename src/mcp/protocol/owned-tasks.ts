/** Where requests name tasks, and where answers do: for whoever decides which tasks a caller may see. */
import type { Request } from '../../base/rpc/message.js'
import { edit, has, mapElements, objectIn, type Payload, stringUnder, value } from '../../base/rpc/splice.js'

/** The tasks that belong to callers. */
export interface OwnedTasks {
  /** Whether there may be other callers than this one, whose tasks are not its own. */
  tellsApart(principal: string): boolean
  /**
   * The params for the server: a subscription without tasks of others. Rejects with a Fault if the request names a task that
   * is not the caller's, as if there were no such task.
   */
  asked(principal: string, method: string, params: Payload): Promise<Payload>
  /** Remembers the task that a result creates. Returns the result, a list of tasks without those of others. */
  answered(principal: string, result: Payload): Promise<Payload>
}

/** Whether a request of the legacy era is about tasks, or is to become one. */
export function concernsTasks({ method, params }: Pick<Request, 'method' | 'params'>): boolean {
  return method.startsWith('tasks/') || (typeof params !== 'string' && has(params, 'task'))
}

/** The id of the task that a result creates: of 2025-11-25 in a member of its own, of the extension in the result itself. */
export function createdTask(result: Payload): string | undefined {
  const task = objectIn(result, 'task')
  if (task) return stringUnder(task, 'taskId')
  return stringUnder(result, 'resultType') === 'task' ? stringUnder(result, 'taskId') : undefined
}

/** The ids of the tasks in the result of `tasks/list`; undefined for another result. */
export function listedTasks(result: Payload): string[] | undefined {
  if (!has(result, 'tasks')) return undefined
  const tasks = value(result, 'tasks') as unknown
  if (!Array.isArray(tasks)) return undefined
  return tasks.flatMap((task: unknown) => {
    const { taskId } = (task ?? {}) as { taskId?: unknown }
    return typeof taskId === 'string' ? [taskId] : []
  })
}

/** The result of `tasks/list` with these tasks only. */
export function withTasksOf(result: Payload, own: ReadonlySet<string>): Payload {
  const isOwn = (task: Payload) => own.has(stringUnder(task, 'taskId') ?? '')
  const tasks = mapElements(result, 'tasks', (task) => (isOwn(task) ? task : []))
  return tasks === undefined ? result : edit(result, { tasks })
}
