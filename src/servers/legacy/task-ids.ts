/**
 * Seals and opens the ids that clients get for tasks of a legacy server. An id is valid for its principal and server
 * only.
 */

import { Sealer } from '../../base/crypto/seal.js'
import { OwnedByReplica } from '../../mcp/ports/replicas.js'
import type { Call } from '../../mcp/protocol/call.js'
import type { SealingOptions } from './retry-state.js'

export class TaskIds {
  readonly #options: SealingOptions
  readonly #sealer: Sealer

  constructor(options: SealingOptions) {
    this.#options = options
    this.#sealer = new Sealer(options.parked.keys ?? [], 'task')
  }

  /** Returns the id of a task as its client gets it. */
  seal(id: string, principal: string): string {
    const { name: up, replicas } = this.#options
    return this.#sealer.seal({ x: id, ...(replicas && { o: replicas.id }), up, p: this.#sealer.hash(principal) })
  }

  /**
   * Returns the sealed id and the replica that owns the task; undefined if the id is invalid for this server and
   * principal. Calls `foreign` if it is the id of another principal.
   */
  open(taskId: unknown, principal: string, foreign?: Call['foreign']): { id: string; owner: unknown } | undefined {
    const fields = typeof taskId === 'string' ? this.#sealer.open(taskId) : undefined
    if (!fields) return undefined
    if (!this.#sealer.standsFor(fields['p'], principal)) return void foreign?.('foreignTask')
    if (fields['up'] !== this.#options.name) return undefined
    return { id: String(fields['x']), owner: fields['o'] }
  }

  /** Throws OwnedByReplica if one other replica owns all of these tasks, and all ids are valid for the principal. */
  checkOwner(taskIds: readonly unknown[], principal: string): void {
    const replica = this.#options.replicas?.id
    if (replica === undefined) return
    const owners = new Set(taskIds.map((taskId) => this.open(taskId, principal)?.owner))
    const [owner, another] = owners
    if (typeof owner === 'string' && another === undefined && owner !== replica) throw new OwnedByReplica(owner, 'call')
  }
}
