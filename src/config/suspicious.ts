/** Warnings of `mcp-bridge check`: valid values that are probably mistakes. */
import type { Issue } from './error.js'
import type { Settings } from './schema/schema.js'
import { isObject } from './value.js'

/** As in `<YOUR_TOKEN>`, `YOUR_API_KEY` and `sk-xxxx`. */
const PLACEHOLDER = /<[A-Za-z][^<>]{0,60}>|\b(?:YOUR|INSERT|REPLACE|CHANGE)[_-][A-Z0-9_-]+\b|x{4,}/i
/** The home folder, as shells write it. */
const TILDE = /^~(?:[\\/]|$)|[=:]~[\\/]/
/** A Windows path whose backslashes are not doubled: JSON reads "C:\\new" with one backslash as "C:", a line break and "ew". */
const SINGLE_BACKSLASH = /(?:^|=)[A-Za-z]:(?:\\[^\b\f\n\r\t]*)?[\b\f\n\r\t]/
/** A word, a space and more, which is not a path with a space in it. */
const WORDS = /^[^\s\\/]+\s+\S|^\S+\s+-/

/** Warnings about entries of servers, before references are replaced. */
export function suspicious(servers: Readonly<Record<string, unknown>>): Issue[] {
  return Object.entries(servers).flatMap(([name, entry]) => {
    if (!isObject(entry) || entry['disabled'] === true) return []
    const { command, args, env, headers, url, cwd } = entry
    const path = `mcpServers.${name}`
    const issues = texts({ command, args, env, headers, url, cwd }, path).flatMap(([at, text]) => [
      ...(PLACEHOLDER.test(text) ? [{ path: at, message: 'looks like a placeholder: replace it' }] : []),
      ...(TILDE.test(text) ? [{ path: at, message: `contains "~", which only a shell expands: write \${HOME}` }] : []),
      ...(SINGLE_BACKSLASH.test(text)
        ? [{ path: at, message: 'contains a tab or line break: write each backslash of the path twice' }]
        : []),
    ])
    if (typeof command === 'string' && WORDS.test(command) && !SINGLE_BACKSLASH.test(command))
      issues.push({
        path: `${path}.command`,
        message: 'contains a space: put the program into "command" and its arguments into "args"',
      })
    return issues
  })
}

/** Tokens that are valid for several servers, though they may be meant for one. */
export function sharedAudiences({ auth, mcpServers }: Settings): Issue[] {
  if (Object.keys(mcpServers).length < 2) return []
  return (auth?.issuers ?? []).flatMap(({ audience, claims, header }, i) => {
    // A proxy in front of the bridge is in front of all servers.
    if (header !== undefined) return []
    if (audience === undefined && Object.keys(claims).length === 0) return []
    const [key, what] = audience === undefined ? ['claims', 'these claims and no "aud"'] : ['audience', 'this "aud"']
    const message = `makes a token with ${what} valid for all servers: restrict tools with "scopes" of the servers, or have tokens issued for single endpoints`
    return [{ path: `auth.issuers.${i}.${key}`, message }]
  })
}

function texts(value: unknown, path: string): [path: string, text: string][] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => texts(item, `${path}.${key}`))
}
