/**
 * The legacy half of a server: answers calls, delivers notifications and serves legacy clients, all through sessions,
 * and sets how many tasks there may be, and for how long.
 */

import type { Gauge } from '../../ports/events.js'
import type { ChangeNotice } from '../../ports/replicas.js'
import type { Call, Handler, Notice, Sender } from '../../protocol/call.js'
import { unlessEmpty } from '../../protocol/meta.js'
import { LISTEN } from '../../protocol/methods.js'
import type { LegacyRoute } from '../../protocol/upstream.js'
import { edit, objectIn, value } from '../../rpc/splice.js'
import type { Verdict } from '../era/verdict.js'
import type { Access, Half } from '../half.js'
import type { ServerOptions } from '../options.js'
import { ClientRoutes } from './client-routes.js'
import { legacyHandler } from './handler.js'
import { ParkedCalls } from './parked.js'
import { LegacySessions } from './sessions.js'
import { LegacyTasks } from './tasks.js'

/** Requested lifetime of a task in milliseconds, and the maximum number of tasks remembered at once. */
const TASK_TTL = 3_600_000
const MAX_SERVER_TASKS = 1_000

export class LegacyHalf implements Half {
  readonly handle: Handler
  readonly #options: ServerOptions
  readonly #sessions: LegacySessions
  readonly #routes: ClientRoutes
  readonly #parked: ParkedCalls
  readonly #tasks: LegacyTasks

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    const { name: server, observe, share, memory, parked, replicas } = options
    const replica = replicas?.id
    const { keys } = parked
    this.#sessions = new LegacySessions(options, access)
    this.#routes = new ClientRoutes(options, access, this.#sessions)
    this.#parked = new ParkedCalls({ server, observe, replica, share, memory, ...parked })
    this.#tasks = new LegacyTasks({ server, ttl: TASK_TTL, max: MAX_SERVER_TASKS, share, memory, keys, replica })
    this.handle = legacyHandler(options, this.#sessions, this.#parked, this.#tasks)
  }

  /** Number of calls that wait for their clients' answers. */
  get parked(): number {
    return this.#parked.size
  }

  get gauges(): Gauge[] {
    const { name: server, parked } = this.#options
    return [
      { bound: 'parked', server, used: this.#parked.size, limit: parked.max },
      { bound: 'tasks', server, used: this.#tasks.size, limit: MAX_SERVER_TASKS },
    ]
  }

  async notify(notice: Notice): Promise<void> {
    const meta = unlessEmpty(notice.meta)
    const params = meta === undefined ? notice.params : edit(notice.params, { _meta: meta })
    const session = await this.#sessions.use(notice)
    await session.notify(notice.method, params).finally(() => session.unuse())
  }

  /** How a legacy client is served; for servers of both eras, because a modern server may also support sessions. */
  routeOf(sender: Sender): Promise<LegacyRoute> {
    return this.#routes.routeOf(sender)
  }

  /** Checks that the server accepts `initialize`. Rejects with a Fault. */
  prove(verdict: Verdict): Promise<void> {
    return this.#sessions.prove(verdict)
  }

  /** Determines the transport of the server by opening a session. Rejects with a ChannelError or a Fault. */
  resolveTransport(verdict: Verdict, sender: Sender | undefined): Promise<void> {
    return this.#sessions.resolveTransport(verdict, sender)
  }

  /** Throws OwnedByReplica if another replica owns the parked call or the tasks that this call names. */
  checkOwner(call: Call): void {
    this.#parked.checkOwner(call)
    if (call.method.startsWith('tasks/')) this.#tasks.checkOwner([value(call.params, 'taskId')], call)
    if (call.method !== LISTEN) return
    const filter = objectIn(call.params, 'notifications')
    const taskIds = filter && value(filter, 'taskIds')
    if (Array.isArray(taskIds)) this.#tasks.checkOwner(taskIds, call)
  }

  onReplicaChange(notice: ChangeNotice): void {
    this.#sessions.onReplicaChange(notice)
  }

  /** Changes that other replicas reported may have been lost. */
  missed(): void {
    this.#sessions.missed()
  }

  async close(hurry: boolean): Promise<void> {
    this.#parked.close()
    this.#tasks.close()
    await Promise.all([this.#sessions.close(hurry), this.#routes.close(hurry)])
  }
}
