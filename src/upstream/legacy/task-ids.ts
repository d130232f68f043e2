/**
 * Seals and opens the ids that clients get for tasks of a legacy server. An id is valid for its principal and server
 * only.
 */

import { Sealer, type SealKey } from '../../crypto/seal.js'
import { OwnedByReplica } from '../../ports/replicas.js'

export interface TaskIdsOptions {
  /** The server's name. */
  server: string
  /** The first key seals; all keys open. By default a random key of this process. */
  keys?: readonly SealKey[] | undefined
  /** The id of this replica, if there are several. */
  replica?: string | undefined
}

export class TaskIds {
  readonly #options: TaskIdsOptions
  readonly #sealer: Sealer

  constructor(options: TaskIdsOptions) {
    this.#options = options
    this.#sealer = new Sealer(options.keys ?? [], 'task')
  }

  /** Returns the id of a task as its client gets it. */
  seal(id: string, principal: string): string {
    const { server: up, replica } = this.#options
    const own = replica === undefined ? {} : { o: replica }
    return this.#sealer.seal({ x: id, ...own, up, p: this.#sealer.hash(principal) })
  }

  /**
   * Returns the sealed id and the replica that owns the task; undefined if the id is invalid for this server and
   * principal.
   */
  open(taskId: unknown, principal: string): { id: string; owner: unknown } | undefined {
    const fields = typeof taskId === 'string' ? this.#sealer.open(taskId) : undefined
    if (fields?.['up'] !== this.#options.server || !this.#sealer.standsFor(fields['p'], principal)) return undefined
    return { id: String(fields['x']), owner: fields['o'] }
  }

  /** Throws OwnedByReplica if one other replica owns all of these tasks, and all ids are valid for the principal. */
  checkOwner(taskIds: readonly unknown[], principal: string): void {
    const { replica } = this.#options
    if (replica === undefined) return
    const owners = new Set(taskIds.map((taskId) => this.open(taskId, principal)?.owner))
    const [owner, another] = owners
    if (typeof owner === 'string' && another === undefined && owner !== replica) throw new OwnedByReplica(owner, 'call')
  }
}
