/** Formats of entries other than `mcpServers`, in both directions. No side effects. */

import type { FileChange } from '../../config/formats/edit.js'
import { plainOfZed } from '../../config/formats/programs.js'
import { isObject } from '../../config/value.js'
import type { ClientEntry } from './entry.js'
import { Unfit } from './unfit.js'

export interface Dialect {
  /** References other than `${…}` that the client replaces in texts. */
  reference?: RegExp
  /** An entry of the file in the format of `mcpServers`. */
  read(own: ClientEntry): ClientEntry
  /** The reverse. */
  entry(entry: ClientEntry): ClientEntry
  /** Translates changes of a `mcpServers` entry into changes of the entry in the file, or of the object under `within`. */
  changes(
    changes: readonly FileChange[],
    own: ClientEntry,
  ): { within: readonly string[]; changes: readonly FileChange[] }
}

type Members = readonly (readonly [key: string, value: unknown])[]

export const MCP_SERVERS: Dialect = {
  read: (own) => own,
  entry: (entry) => entry,
  changes: (changes) => ({ within: [], changes }),
}

/** References are `$NAME`. */
export const GEMINI: Dialect = { ...MCP_SERVERS, reference: /\$[A-Za-z_]/ }

/** `command` is a list with the arguments, `type` is local or remote. */
export const OPENCODE: Dialect = {
  reference: /\{(?:env|file):/,
  read({ command, environment, type, ...rest }) {
    const [first, ...args] = Array.isArray(command) ? (command as unknown[]) : [command]
    return {
      ...rest,
      ...(type !== undefined && { type: type === 'local' ? 'stdio' : type === 'remote' ? 'http' : type }),
      ...(command !== undefined && { command: first }),
      ...(Array.isArray(command) && { args }),
      ...(environment !== undefined && { env: environment }),
    }
  },
  entry: ({ type: _, ...entry }) => ({
    type: 'command' in entry ? 'local' : 'remote',
    ...Object.fromEntries(inOpencode(Object.entries(entry))),
  }),
  changes(changes) {
    const args = changes.find(({ key }) => key === 'args')
    const others = changes.filter((change) => change !== args)
    return { within: [], changes: others.map((change) => withArguments(change, args)) }
  },
}

/** A change of opencode's entry, where the arguments are part of the command. */
function withArguments(change: FileChange, args: FileChange | undefined): FileChange {
  if ('before' in change) return change
  const { key, by } = change
  if (key !== 'command' || !args) return { key: key === 'env' ? 'environment' : key, by: inOpencode(by) }
  if ('by' in args) return { key, by: inOpencode([...by, ...args.by]) }
  const command = by.find(([one]) => one === 'command')?.[1]
  // The list already has the program of the server.
  return { key, before: [String(command), ...args.before.slice(0, -1)] }
}

function inOpencode(members: Members): Members {
  const args = members.find(([key]) => key === 'args')?.[1]
  const rest = members.filter(([key]) => key !== 'args')
  return rest.map(([key, value]) => {
    if (key === 'command') return [key, [value, ...(Array.isArray(args) ? (args as unknown[]) : [])]]
    if (key === 'type') return [key, value === 'stdio' ? 'local' : 'remote']
    return [key === 'env' ? 'environment' : key, value]
  })
}

/** `command` may be an object with the path, the arguments and the variables. */
export const ZED: Dialect = {
  read: plainOfZed,
  entry: (entry) => ({ source: 'custom', ...entry }),
  changes(changes, { command }) {
    if (!isObject(command)) return { within: [], changes }
    const renamed = changes.map((change): FileChange => {
      const key = change.key === 'command' ? 'path' : change.key
      return 'before' in change ? { ...change, key } : { key, by: change.by.map(inCommand) }
    })
    // An address would be in the wrong object.
    return { within: ['command'], changes: renamed }
  },
}

function inCommand([key, value]: readonly [string, unknown]): readonly [string, unknown] {
  if (key === 'url' || key === 'headers') throw new Unfit('its "command" is an object, which can have no address')
  return [key === 'command' ? 'path' : key, value]
}
