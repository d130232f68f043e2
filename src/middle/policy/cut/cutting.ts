/**
 * Cuts results of tools that are too long for a model. What is cut off is kept for some minutes, and the result says how to
 * read it. A result that is short enough passes byte for byte, and so does one that cannot be kept.
 */
import type { Memory } from '../../../base/limits/memory.js'
import { edit, has, objectIn, type Payload, sizeOf } from '../../../base/rpc/splice.js'
import type { Observe } from '../../../mcp/ports/events.js'
import type { Call, Final, Handler, Policy, ServerNotification } from '../../../mcp/protocol/call.js'
import { CALL_TOOL, LISTEN } from '../../../mcp/protocol/methods.js'
import { ChosenList } from '../choice/listed.js'
import { toolsIn } from '../choice/seen.js'
import { toolOf } from '../refusal.js'
import type { KeptResults } from './kept-results.js'
import { hasLongStructure, longIn } from './long.js'
import { hasLinks, pointersTo } from './pointers.js'

export interface CuttingOptions {
  server: string
  /** Most bytes of a tool's result, or of a task's; undefined for no limit. */
  limitOf(tool: string | undefined): number | undefined
  kept: KeptResults
  memory: Memory
  observe?: Observe | undefined
}

const LIST = 'tools/list'
/** Methods whose results have the result of an ended task. */
const OF_TASKS: ReadonlySet<string> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])
const TASK_RESULT = 'tasks/result'
const TASK_CHANGED = 'notifications/tasks'

/** The policy of one server. It has to be the last one: it knows a tool by the server's own name. */
export function cutting({ server, limitOf, kept, memory, observe }: CuttingOptions): Policy {
  /** By the server's names: whether the tool has an `outputSchema`, which clients validate structured content with. */
  const declaring = new ChosenList<boolean>({
    server,
    method: LIST,
    see: toolsIn(
      (tool) => has(tool, 'outputSchema'),
      (one, other) => one || other,
    ),
    memory,
  })

  /**
   * Whether structured content may be replaced. Of a tool that is not known, it is left whole. To be asked before the call: where a
   * session has one stream, the server is not heard while its answer waits.
   */
  async function mayReplace(call: Call, tool: string | undefined, next: Handler): Promise<boolean> {
    if (tool === undefined) return false
    const declares = await declaring.find(call, tool, next).catch(() => undefined)
    return declares === false
  }

  async function cutResult(call: Call, result: Payload, limit: number | undefined, replaces = false): Promise<Payload> {
    if (limit === undefined || sizeOf(result) * 3 <= limit) return result
    const found = longIn(result, limit, replaces && hasLongStructure(result, limit))
    if (!found) return result
    const places: { uri: string; bytes: number; dropped: number }[] = []
    for (const long of found.long) {
      const place = await kept.keep(call, server, long)
      // Nothing is lost: the result passes as it is.
      if (!place) {
        call.log.note({ cut: 'no room' })
        observe?.({ kind: 'cut', server, what: 'whole' })
        return result
      }
      places.push(place)
    }
    const pushedOut = places.reduce((sum, one) => sum + one.dropped, 0)
    call.log.note({ cut: found.long.length, ...(pushedOut > 0 && { pushedOut }) })
    const bytes = places.reduce((sum, one) => sum + one.bytes, 0)
    observe?.({ kind: 'cut', server, what: 'cut', bytes })
    return found.shortened(found.long.map((long, i) => pointersTo(long, places[i]?.uri as string, hasLinks(call))))
  }

  /** The state of a task, with its result cut. */
  async function cutTask(call: Call, task: Payload): Promise<Payload> {
    const result = objectIn(task, 'result')
    const shorter = result && (await cutResult(call, result, limitOf(undefined)))
    return shorter === result ? task : edit(task, { result: shorter })
  }

  async function cutFinal(call: Call, next: Handler): Promise<Final> {
    const tool = call.method === CALL_TOOL ? toolOf(call) : undefined
    const limit = limitOf(tool)
    if (limit === undefined) return next(call)
    const replaces = await mayReplace(call, tool, next)
    const last = await next(call)
    if (last.kind !== 'result' || last.type !== undefined) return last
    const { result } = last
    const shorter = OF_TASKS.has(call.method)
      ? await cutTask(call, result)
      : await cutResult(call, result, limit, replaces)
    return shorter === result ? last : { ...last, result: shorter }
  }

  function hearing(call: Call): Call {
    const notify = (notification: ServerNotification) => {
      if (notification.method !== TASK_CHANGED || !has(notification.params, 'result')) return call.notify(notification)
      return cutTask(call, notification.params).then((params) =>
        call.notify(
          params === notification.params ? notification : { kind: 'notification', method: notification.method, params },
        ),
      )
    }
    return { ...call, notify }
  }

  return (next) => (call) => {
    if (call.method === LISTEN) return next(hearing(call))
    if (call.method === LIST) return declaring.remember(call, next)
    const isCut = call.method === CALL_TOOL || call.method === TASK_RESULT || OF_TASKS.has(call.method)
    return isCut ? cutFinal(call, next) : next(call)
  }
}
