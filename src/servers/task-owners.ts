/**
 * Remembers which caller has made which task at a server, in every lane: a task of somebody else is unknown to a caller, like
 * one that never was. What is not remembered belongs to nobody.
 */
import { digest } from '../base/crypto/digest.js'
import { Fault } from '../base/fault/fault.js'
import { Bound } from '../base/limits/bound.js'
import { Occupancy, type Occupant } from '../base/limits/occupancy.js'
import { duplicateKey, edit, has, objectIn, type Payload, stringUnder } from '../base/rpc/splice.js'
import type { SharedStore } from '../mcp/ports/replicas.js'
import { tellsApart } from '../mcp/protocol/account.js'
import { LISTEN } from '../mcp/protocol/methods.js'
import { createdTask, listedTasks, type OwnedTasks, withTasksOf } from '../mcp/protocol/owned-tasks.js'
import { filterIn } from '../mcp/protocol/subscriptions.js'
import type { ServerOptions } from './options.js'

/** Most tasks of a server whose owners are remembered; milliseconds for which replicas remember one after its last use. */
const MAX_OWNED_TASKS = 10_000
const TASK_KEPT = 24 * 3_600_000
/** Milliseconds after which a task in use is written to the shared store again. */
const TASK_RENEWED = TASK_KEPT / 4

interface OwnedTask extends Occupant {
  idleSince: number
  /** When it was last written to the shared store, by `performance.now()`. */
  shared: number
}

export class TaskOwners implements OwnedTasks {
  readonly #options: Pick<ServerOptions, 'name' | 'passthrough' | 'replicas'>
  /** By digests of principal and id: two servers' programs may count their tasks alike. */
  readonly #tasks = new Map<string, OwnedTask>()
  readonly #occupancy: Occupancy

  constructor(options: Pick<ServerOptions, 'name' | 'passthrough' | 'replicas' | 'share'>) {
    this.#options = options
    this.#occupancy = new Occupancy(new Bound({ max: MAX_OWNED_TASKS, share: options.share ?? 1 }), 'tasks')
  }

  /** Applies the share of a principal, which may have changed. */
  change(share = 1): void {
    this.#occupancy.bound.share = share
  }

  /** Where callers do not sign in, all of them are one. */
  tellsApart(principal: string): boolean {
    return tellsApart(principal, this.#options.passthrough)
  }

  async asked(principal: string, method: string, params: Payload): Promise<Payload> {
    if (method === LISTEN) return this.#listening(principal, params)
    if (!has(params, 'taskId')) return params
    const taskId = stringUnder(params, 'taskId')
    // A server may read the other one of two ids.
    const isOne = taskId !== undefined && duplicateKey(params, 'taskId') === undefined
    if (isOne && (await this.#isOf(principal, taskId))) return params
    throw new Fault('invalidParams', 'Unknown or expired taskId')
  }

  async answered(principal: string, result: Payload): Promise<Payload> {
    const created = createdTask(result)
    if (created !== undefined) await this.keep(principal, created)
    const listed = listedTasks(result)
    return listed === undefined ? result : withTasksOf(result, await this.#ownOf(principal, listed))
  }

  async #listening(principal: string, params: Payload): Promise<Payload> {
    const filter = objectIn(params, 'notifications')
    if (!filter || !has(filter, 'taskIds')) return params
    const ids = filterIn(params).tasks
    const own = await this.#ownOf(principal, ids)
    const taskIds = JSON.stringify(ids.filter((id) => own.has(id)))
    return edit(params, { notifications: edit(filter, { taskIds }) })
  }

  async #ownOf(principal: string, ids: readonly string[]): Promise<Set<string>> {
    const found = await Promise.all(ids.map(async (id) => ((await this.#isOf(principal, id)) ? id : undefined)))
    return new Set(found.filter((id) => id !== undefined))
  }

  /** Rejects with a Fault if only the shared store could know, and is unreachable. */
  async #isOf(principal: string, taskId: string): Promise<boolean> {
    const key = keyOf(principal, taskId)
    const task = this.#tasks.get(key)
    if (task) {
      task.idleSince = performance.now()
      if (task.idleSince - task.shared > TASK_RENEWED) this.#share(key, task).catch(() => {})
      return true
    }
    const { name } = this.#options
    const record = await this.#records?.recall('task', `${name} ${key}`)
    if (record === undefined) return false
    this.#enter(principal, key)
    return true
  }

  /** Resolves when all replicas know the owner of a task, or when the shared store has failed. */
  async keep(principal: string, taskId: string): Promise<void> {
    const key = keyOf(principal, taskId)
    await this.#share(key, this.#tasks.get(key) ?? this.#enter(principal, key))
  }

  #enter(principal: string, key: string): OwnedTask {
    const task: OwnedTask = {
      principal,
      idleSince: performance.now(),
      shared: performance.now(),
      end: () => this.#tasks.delete(key),
    }
    this.#occupancy.enter(task)
    this.#tasks.set(key, task)
    return task
  }

  async #share(key: string, task: OwnedTask): Promise<void> {
    task.shared = performance.now()
    await this.#records?.remember('task', `${this.#options.name} ${key}`, '1', TASK_KEPT)
  }

  get #records(): SharedStore | undefined {
    return this.#options.replicas?.records
  }
}

function keyOf(principal: string, taskId: string): string {
  return digest(JSON.stringify([principal, taskId]))
}
