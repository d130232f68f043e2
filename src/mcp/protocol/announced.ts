/**
 * Which capabilities and extensions of a server announce methods that the bridge does not know. An answer offers only
 * what works: whoever refuses such methods, because it cannot tell what they use, leaves out what announces them.
 */
import { edit, isEmpty, keys, objectIn, type Payload } from '../../base/rpc/splice.js'
import { EVENTS_EXTENSION, TASKS_EXTENSION } from './meta.js'

/** Extensions whose methods the bridge knows. Their messages name a tool, a task, a URI or a type of events. */
export const KNOWN_EXTENSIONS: ReadonlySet<string> = new Set([
  TASKS_EXTENSION,
  EVENTS_EXTENSION,
  'io.modelcontextprotocol/ui',
  'io.modelcontextprotocol/skills',
])
/** Capabilities whose methods the bridge knows. The `tasks` of the legacy era are an extension since. */
const KNOWN_CAPABILITIES: ReadonlySet<string> = new Set([
  ...['tools', 'prompts', 'resources', 'logging', 'completions'],
  ...['extensions', 'tasks', 'events'],
])

/** Most capabilities of a server that are looked at; others do not pass into another era. */
const MAX_NAMES = 256

/** The names of unknown extensions. */
export function foreignExtensions(extensions: Payload): string[] {
  return keys(extensions).filter((name) => !KNOWN_EXTENSIONS.has(name))
}

/** The unknown capabilities of a server. Like all capabilities, they are objects. */
export function foreignIn(capabilities: Payload): Payload {
  const left = keys(capabilities).filter(
    (name, at) => at >= MAX_NAMES || KNOWN_CAPABILITIES.has(name) || objectIn(capabilities, name) === undefined,
  )
  return edit(capabilities, none(left))
}

/** Whether anything in these capabilities is unknown. */
export function hasForeign(capabilities: Payload): boolean {
  const extensions = objectIn(capabilities, 'extensions')
  if (extensions && foreignExtensions(extensions).length > 0) return true
  const foreign = foreignIn(capabilities)
  const experimental = objectIn(foreign, 'experimental')
  return !isEmpty(experimental && isEmpty(experimental) ? edit(foreign, { experimental: undefined }) : foreign)
}

/** An answer to `server/discover` without what is unknown; the same object if all is known. */
export function withoutForeign(discovered: Payload): Payload {
  const capabilities = objectIn(discovered, 'capabilities')
  if (!capabilities) return discovered
  const left = keys(capabilities).filter((name) => !KNOWN_CAPABILITIES.has(name))
  const extensions = objectIn(capabilities, 'extensions')
  const known = extensions && edit(extensions, none(foreignExtensions(extensions)))
  const edits = {
    ...none(left),
    ...(known !== extensions && { extensions: known && !isEmpty(known) ? known : undefined }),
  }
  const offered = edit(capabilities, edits)
  return offered === capabilities ? discovered : edit(discovered, { capabilities: offered })
}

/** An answer to `server/discover` without what announces events; the same object if nothing does. */
export function withoutEvents(discovered: Payload): Payload {
  const capabilities = objectIn(discovered, 'capabilities')
  if (!capabilities) return discovered
  const extensions = objectIn(capabilities, 'extensions')
  const others = extensions && edit(extensions, { [EVENTS_EXTENSION]: undefined })
  const offered = edit(capabilities, {
    events: undefined,
    ...(others !== extensions && { extensions: others && !isEmpty(others) ? others : undefined }),
  })
  return offered === capabilities ? discovered : edit(discovered, { capabilities: offered })
}

function none(names: readonly string[]): Record<string, undefined> {
  return Object.fromEntries(names.map((name) => [name, undefined]))
}
