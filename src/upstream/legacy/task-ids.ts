/** The sealed ids by which clients know tasks of a legacy server: each leads its owner to one task, and nobody else anywhere. */
import { OwnedByReplica } from '../../ports/replicas.js'
import { newKey, Sealer, type SealKey } from '../../seal.js'

export interface TaskIdsOptions {
  /** The server that the tasks are with. */
  server: string
  /** The first one seals, all of them open; one of our own by default. */
  keys?: readonly SealKey[] | undefined
  /** This replica, where there are others that may have a task. */
  replica?: string | undefined
}

export class TaskIds {
  readonly #options: TaskIdsOptions
  readonly #sealer: Sealer

  constructor(options: TaskIdsOptions) {
    this.#options = options
    this.#sealer = new Sealer(options.keys ?? [newKey()], 'task')
  }

  /** The id of a task for its client. */
  seal(id: string, principal: string): string {
    const { server: up, replica } = this.#options
    const own = replica === undefined ? {} : { o: replica }
    return this.#sealer.seal({ x: id, ...own, up, p: this.#sealer.hash(principal) })
  }

  /** What an id leads to, and the replica that has it; undefined where it is not one of this server's and the principal's. */
  open(taskId: unknown, principal: string): { id: string; owner: unknown } | undefined {
    const fields = typeof taskId === 'string' ? this.#sealer.open(taskId) : undefined
    if (fields?.['up'] !== this.#options.server || !this.#sealer.standsFor(fields['p'], principal)) return undefined
    return { id: String(fields['x']), owner: fields['o'] }
  }

  /** Throws OwnedByReplica where all of these tasks are the principal's, and one other replica has them. */
  checkOwner(taskIds: readonly unknown[], principal: string): void {
    const { replica } = this.#options
    if (replica === undefined) return
    const owners = new Set(taskIds.map((taskId) => this.open(taskId, principal)?.owner))
    const [owner, another] = owners
    if (typeof owner === 'string' && another === undefined && owner !== replica) throw new OwnedByReplica(owner, 'call')
  }
}
