/**
 * Which answers of a legacy server are revised where they pass unchanged otherwise: those about tasks, and lists of tools that
 * some clients would refuse.
 */
import { BoundedSet } from '../base/limits/bounded.js'
import { NOBODY, type Reservation, SMALL } from '../base/limits/memory.js'
import type { Request } from '../base/rpc/message.js'
import type { Payload } from '../base/rpc/splice.js'
import { printable } from '../base/texts/printable.js'
import { withCheckedInputs, withSoundOutputs } from '../mcp/protocol/downlevel/tools.js'
import { concernsTasks } from '../mcp/protocol/owned-tasks.js'
import type { Revise } from '../mcp/protocol/upstream.js'
import { rememberingLists } from './lists.js'
import type { ServerOptions } from './options.js'
import type { TaskOwners } from './task-owners.js'

/** Most names of tools of a server that are remembered as logged, and most in one line. */
const MAX_LOGGED_SCHEMAS = 1_000
const MAX_LOGGED_AT_ONCE = 10
const LIST_TOOLS = 'tools/list'

export class Revision {
  readonly #tasks: TaskOwners
  readonly #options: Pick<ServerOptions, 'name' | 'log' | 'observe' | 'memory'>
  readonly #logged = new BoundedSet<string>(MAX_LOGGED_SCHEMAS)
  readonly #lists: readonly [ofItself: Reservation, shared: Reservation]
  /** Sound lists by those received: clients ask for the same ones again and again. */
  readonly #soundList: (method: string, result: Payload) => Payload
  /** A result for clients that share a session. Roots of input schemas are as all of them check them. */
  readonly shared: (method: string, result: Payload) => Payload

  constructor(tasks: TaskOwners, options: Pick<ServerOptions, 'name' | 'log' | 'observe' | 'memory'>) {
    this.#tasks = tasks
    this.#options = options
    const reserve = () => options.memory.reserve(NOBODY, SMALL)
    const [ofItself, shared] = [reserve(), reserve()]
    this.#lists = [ofItself, shared]
    this.#soundList = rememberingLists((_method, result) => this.#sound(result), ofItself)
    this.shared = rememberingLists(
      (method, result) => (method === LIST_TOOLS ? withCheckedInputs(this.#sound(result)) : result),
      shared,
    )
  }

  /**
   * Revises the answer to a request of this principal; without a request, the answers that a stream repeats. Undefined if they
   * pass unchanged.
   */
  of(principal: string, request: Pick<Request, 'method' | 'params'> | undefined): Revise | undefined {
    if (request?.method === LIST_TOOLS) return (result) => this.#soundList(LIST_TOOLS, result)
    const tasks = this.#tasks
    if (!tasks.tellsApart(principal) || (request && !concernsTasks(request))) return undefined
    return (result) => tasks.answered(principal, result)
  }

  close(): void {
    for (const list of this.#lists) list.end()
  }

  #sound(result: Payload): Payload {
    const lost: string[] = []
    const sound = withSoundOutputs(result, (tool) => lost.push(tool))
    if (lost.length > 0) this.#report(lost)
    return sound
  }

  #report(lost: readonly string[]): void {
    const { log, observe, name: server } = this.#options
    observe?.({ kind: 'downlevelled', server, what: 'outputSchema' })
    const fresh = lost.filter((tool) => !this.#logged.has(tool))
    if (fresh.length === 0) return
    for (const tool of fresh) this.#logged.add(tool)
    const tools = fresh.slice(0, MAX_LOGGED_AT_ONCE).map((tool) => printable(tool))
    const message = 'output schemas of tools are left out: validators of clients cannot compile them'
    log.warn({ event: 'output_schemas_omitted', tools, count: fresh.length }, message)
  }
}
