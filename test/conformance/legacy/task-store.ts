/** Tasks that can be stopped, and that can end in an error as calls can. */
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import type { Result, Task } from '@modelcontextprotocol/sdk/types.js'

export class Tasks extends InMemoryTaskStore {
  readonly #running = new Map<string, AbortController>()
  readonly #errors = new Map<string, unknown>()

  /** Aborts when the task is cancelled. */
  signalOf(taskId: string): AbortSignal {
    const controller = new AbortController()
    this.#running.set(taskId, controller)
    return controller.signal
  }

  /** Has the result of the task be this error. */
  keepError(taskId: string, error: unknown): void {
    this.#errors.set(taskId, error)
  }

  override async updateTaskStatus(
    taskId: string,
    status: Task['status'],
    message?: string,
    sessionId?: string,
  ): Promise<void> {
    await super.updateTaskStatus(taskId, status, message, sessionId)
    if (status === 'cancelled') this.#running.get(taskId)?.abort()
  }

  override async getTaskResult(taskId: string, sessionId?: string): Promise<Result> {
    if (this.#errors.has(taskId)) throw this.#errors.get(taskId)
    return super.getTaskResult(taskId, sessionId)
  }
}
