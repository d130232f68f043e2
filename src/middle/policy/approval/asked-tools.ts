/** Decides which tools a person has to approve: by their names, or by what the server says of them. */

import { objectIn, type Payload, raw, value } from '../../../base/rpc/splice.js'
import type { SeenPage } from '../choice/listed.js'
import { renamed, type ToolRules, toolsIn } from '../choice/seen.js'
import { globs, MAX_MATCHED_NAME } from '../globs.js'
import { isReadOnly } from '../tool-names.js'
import { isUnambiguous } from '../unambiguous.js'
import { secretNames } from './secrets.js'

/** Which tools a person approves. */
export interface AskedRules extends Partial<Pick<ToolRules, 'override'>> {
  /** Globs of names, or all tools that may destroy something, by their annotations. */
  readonly approve: 'destructive' | readonly string[]
}

/** What is known of a listed tool. */
export interface AskedTool {
  isDestructive: boolean
  /** Names of members of its arguments that are secret. */
  secrets: ReadonlySet<string>
}

/** Returns a function that tells whether a person has to approve a tool, by its name at the server. Tools that are not listed have none. */
export function askedTools(
  server: string,
  { approve, override = {} }: AskedRules,
): (name: string, tool: AskedTool | undefined) => boolean {
  if (approve === 'destructive') return (_name, tool) => tool?.isDestructive ?? true
  const isNamed = globs(approve)
  const shown = renamed(override)
  const names = (name: string) => [name, shown.get(name) ?? name]
  return (name, tool) =>
    // A server may accept other spellings of a name that it lists.
    tool === undefined ||
    name.length > MAX_MATCHED_NAME ||
    names(name).some((one) => isNamed(one) || isNamed(`${server}__${one}`))
}

/** Returns a function that reads what approval depends on from a page of tools. */
export function askedOn({ override = {} }: AskedRules): (page: Payload) => SeenPage<AskedTool> {
  return toolsIn(
    (tool, name) => askedTool(tool, override[name]?.annotations),
    (one, other) => ({
      isDestructive: one.isDestructive || other.isDestructive,
      secrets: new Set([...one.secrets, ...other.secrets]),
    }),
  )
}

/** The names of the tools on a page that a person has to approve, for `probe`. */
export function askedNames(server: string, rules: AskedRules): (page: Payload) => string[] {
  const [asks, see] = [askedTools(server, rules), askedOn(rules)]
  return (page) => [...see(page).items].flatMap(([name, tool]) => (asks(name, tool) ? name : []))
}

function askedTool(tool: Payload, given: Readonly<Record<string, unknown>> = {}): AskedTool {
  const mayDestroy = given['destructiveHint'] ?? saysOfDestruction(tool) !== 'false'
  const { readOnlyHint = isReadOnly(tool) } = given
  return {
    isDestructive: readOnlyHint !== true && mayDestroy !== false,
    secrets: secretNames(value(tool, 'inputSchema')),
  }
}

function saysOfDestruction(tool: Payload): string | undefined {
  const annotations = isUnambiguous(tool, 'annotations') ? objectIn(tool, 'annotations') : undefined
  const isOne = annotations && isUnambiguous(annotations, 'destructiveHint')
  return isOne ? raw(annotations, 'destructiveHint') : undefined
}
