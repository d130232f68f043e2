/**
 * The legacy half of a server: answers calls, delivers notifications and serves legacy clients, all through sessions.
 */

import { edit, stringUnder } from '../../base/rpc/splice.js'
import type { Gauge } from '../../mcp/ports/events.js'
import type { Call, Handler, Notice } from '../../mcp/protocol/call.js'
import { unlessEmpty } from '../../mcp/protocol/meta.js'
import { LISTEN, ROOTS_CHANGED } from '../../mcp/protocol/methods.js'
import { filterIn } from '../../mcp/protocol/subscriptions.js'
import type { Access, Half } from '../half.js'
import type { ServerOptions } from '../options.js'
import { ClientRoutes } from './client-routes.js'
import { leavesTraces } from './client-traces.js'
import { LegacyHandler } from './handler.js'
import { ParkedCalls } from './parked.js'
import { LegacySessions } from './sessions.js'
import { LegacyTasks, MAX_SERVER_TASKS } from './tasks.js'

export class LegacyHalf implements Half {
  readonly handle: Handler
  readonly #options: ServerOptions
  readonly sessions: LegacySessions
  /** How legacy clients are served; also by servers of both eras. */
  readonly routes: ClientRoutes
  readonly parked: ParkedCalls
  readonly #tasks: LegacyTasks

  constructor(options: ServerOptions, access: Access) {
    this.#options = options
    this.sessions = new LegacySessions(options, access)
    this.routes = new ClientRoutes(options, access, this.sessions)
    this.parked = new ParkedCalls(options)
    this.#tasks = new LegacyTasks(options)
    const { revision } = access
    const { sessions, parked } = this
    this.handle = new LegacyHandler({ options, revision, sessions, parked, tasks: this.#tasks }).answerFromSession
  }

  get gauges(): Gauge[] {
    const { name: server, parked } = this.#options
    return [
      { bound: 'parked', server, used: this.parked.size, limit: parked.max },
      { bound: 'tasks', server, used: this.#tasks.size, limit: MAX_SERVER_TASKS },
    ]
  }

  /** Applies the bounds of the options, which may have changed. */
  change(): void {
    this.parked.change()
    this.#tasks.change()
  }

  async notify(notice: Notice): Promise<void> {
    // A server whose session is opened later asks for the roots.
    if (notice.method === ROOTS_CHANGED) return this.#rootsChanged(notice)
    const meta = unlessEmpty(notice.meta)
    const params = meta === undefined ? notice.params : edit(notice.params, { _meta: meta })
    const session = await this.sessions.use(notice)
    if (leavesTraces(notice.method)) session.hasTraces = true
    await session.link.peer.notify(notice.method, params).finally(() => session.unuse())
  }

  async #rootsChanged(notice: Notice): Promise<void> {
    const { method, params } = notice
    await Promise.all(this.sessions.hearing(notice).map(({ link }) => link.peer.notify(method, params)))
  }

  /** Throws OwnedByReplica if another replica owns the parked call or the tasks that this call names. */
  checkOwner(call: Call): void {
    this.parked.checkOwner(call)
    if (call.method.startsWith('tasks/')) this.#tasks.checkOwner([stringUnder(call.params, 'taskId')], call)
    if (call.method === LISTEN) this.#tasks.checkOwner(filterIn(call.params).tasks, call)
  }

  async close(hurry: boolean): Promise<void> {
    this.parked.close()
    this.#tasks.close()
    await Promise.all([this.sessions.close(hurry), this.routes.close(hurry)])
  }
}
