/**
 * Knows the tools that a server has listed to each caller, for policies that decide by their names. A server may accept
 * other spellings of a name, which no pattern of the configuration matches. So a name that it does not list is unknown.
 */

import { objectIn, type Payload, raw } from '../../base/rpc/splice.js'
import type { Call, Handler } from '../../mcp/protocol/call.js'
import { ChosenList, type ListedOptions } from './choice/listed.js'
import { toolsIn } from './choice/seen.js'
import { isUnambiguous } from './unambiguous.js'
import { unknownItem } from './unknown.js'

/** What a server says about a tool that it lists. */
export interface ListedTool {
  /** It says that calls of the tool change nothing (`readOnlyHint`). */
  isReadOnly: boolean
}

export class ToolNames extends ChosenList<ListedTool> {
  constructor(options: Pick<ListedOptions<ListedTool>, 'server' | 'memory' | 'now'>) {
    const see = toolsIn<ListedTool>(
      (tool) => ({ isReadOnly: isReadOnly(tool) }),
      (one, other) => ({ isReadOnly: one.isReadOnly && other.isReadOnly }),
    )
    super({ ...options, method: 'tools/list', see })
  }

  /** The tool with this name. Reads the list if the name is unknown. Rejects with the Fault of an unknown tool. */
  override async find(call: Call, name: string, next: Handler): Promise<ListedTool> {
    return (await super.find(call, name, next)) ?? unknownItem(call, 'tool', name)
  }
}

/** Whether every program reads that a tool is read-only. */
export function isReadOnly(tool: Payload): boolean {
  const annotations = isUnambiguous(tool, 'annotations') ? objectIn(tool, 'annotations') : undefined
  if (!annotations || !isUnambiguous(annotations, 'readOnlyHint')) return false
  return raw(annotations, 'readOnlyHint') === 'true'
}
