/**
 * Knows the tools that a server has listed to each caller, for policies that decide by their names. A server may accept
 * other spellings of a name, which no pattern of the configuration matches. So a name that it does not list is unknown.
 */

import type { Memory } from '../../base/limits/memory.js'
import { arrayIn, objectIn, type Payload, payloadAt, raw } from '../../base/rpc/splice.js'
import type { Call, Handler, Policy } from '../../mcp/protocol/call.js'
import { ChosenList, type SeenPage } from './choice/listed.js'
import { isUnambiguous, stringIn } from './unambiguous.js'
import { unknownItem } from './unknown.js'

const LIST = 'tools/list'

/** What a server says about a tool that it lists. */
export interface ListedTool {
  /** It says that calls of the tool change nothing (`readOnlyHint`). */
  isReadOnly: boolean
}

export interface ToolNamesOptions {
  /** The server's name. */
  server: string
  memory: Memory
  /** Milliseconds of a monotonic clock. */
  now?: () => number
}

/** The tools of one server. */
export class ToolNames {
  readonly #list: ChosenList<ListedTool>

  constructor(options: ToolNamesOptions) {
    this.#list = new ChosenList({ ...options, method: LIST, see: memoized(seen) })
  }

  /** Remembers the lists that pass. */
  readonly policy: Policy = (next) => {
    const learn = async (call: Call) => {
      const last = await next(call)
      if (last.kind === 'result') this.#list.learn(call, last.result)
      return last
    }
    return (call) => (call.method === LIST ? learn(call) : next(call))
  }

  /** The tool with this name. Reads the list if the name is unknown. Rejects with the Fault of an unknown tool. */
  async find(call: Call, name: string, next: Handler): Promise<ListedTool> {
    return (await this.#list.find(call, name, next)) ?? unknownItem(call, 'tool', name)
  }
}

/** The tools on a page. */
function seen(page: Payload): SeenPage<ListedTool> {
  const items = new Map<string, ListedTool>()
  const array = arrayIn(page, 'tools')
  for (const span of array?.elements ?? []) {
    const tool = array && payloadAt(array.source, span)
    const name = tool && stringIn(tool, 'name')
    if (!tool || name === undefined) continue
    // Of two tools with one name, only the server knows which one is called.
    items.set(name, { isReadOnly: isReadOnly(tool) && items.get(name)?.isReadOnly !== false })
  }
  return { result: page, items }
}

/** Whether every program reads that a tool is read-only. */
export function isReadOnly(tool: Payload): boolean {
  const annotations = isUnambiguous(tool, 'annotations') ? objectIn(tool, 'annotations') : undefined
  if (!annotations || !isUnambiguous(annotations, 'readOnlyHint')) return false
  return raw(annotations, 'readOnlyHint') === 'true'
}

/** Each page is read once, however often it is sent. */
function memoized<T extends object>(read: (page: Payload) => T): (page: Payload) => T {
  const known = new WeakMap<Payload, T>()
  return (page) => {
    const before = known.get(page)
    if (before) return before
    const value = read(page)
    known.set(page, value)
    return value
  }
}
