/** Which answers of a legacy server are revised in a session of the server itself, whose messages pass unchanged otherwise. */
import { concernsTasks } from '../protocol/owned-tasks.js'
import type { Revise } from '../protocol/upstream.js'
import type { Request } from '../rpc/message.js'
import type { TaskOwners } from './task-owners.js'

export class Revision {
  readonly #tasks: TaskOwners

  constructor(tasks: TaskOwners) {
    this.#tasks = tasks
  }

  /**
   * Revises the answer to a request of this principal; without a request, the answers that a stream repeats. Undefined if they
   * pass unchanged.
   */
  of(principal: string, request: Pick<Request, 'method' | 'params'> | undefined): Revise | undefined {
    const tasks = this.#tasks
    if (!tasks.tellsApart(principal) || (request && !concernsTasks(request))) return undefined
    return (result) => tasks.answered(principal, result)
  }
}
