/** What is no mistake by the letter, and hardly meant: for `mcp-bridge check`. */
import type { Issue } from './error.js'

/** As in `<YOUR_TOKEN>`, `YOUR_API_KEY` and `sk-xxxx`: something that a person was to fill in. */
const PLACEHOLDER = /<[A-Za-z][^<>]{0,60}>|\b(?:YOUR|INSERT|REPLACE|CHANGE)[_-][A-Z0-9_-]+\b|x{4,}/i
/** A folder of a person, as shells write it. */
const TILDE = /^~(?:[\\/]|$)|[=:]~[\\/]/
/** A word, a space, and more that is no path with a space in it. */
const WORDS = /^[^\s\\/]+\s+\S|^\S+\s+-/

/** What is suspicious about servers, entry by entry, before anything is put in. */
export function suspicious(servers: Readonly<Record<string, unknown>>): Issue[] {
  return Object.entries(servers).flatMap(([name, entry]) => {
    if (!isRecord(entry) || entry['disabled'] === true) return []
    const { command, args, env, headers, url, cwd } = entry
    const path = `mcpServers.${name}`
    const issues = texts({ command, args, env, headers, url, cwd }, path).flatMap(([at, text]) => [
      ...(PLACEHOLDER.test(text)
        ? [{ path: at, message: 'looks like a placeholder that is still to be filled in' }]
        : []),
      ...(TILDE.test(text)
        ? [{ path: at, message: `has a "~" in it, which no shell replaces here: write \${HOME}` }]
        : []),
    ])
    if (typeof command === 'string' && WORDS.test(command))
      issues.push({
        path: `${path}.command`,
        message: 'has a space in it: the program is "command", its arguments are "args"',
      })
    return issues
  })
}

function texts(value: unknown, path: string): [path: string, text: string][] {
  if (typeof value === 'string') return [[path, value]]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => texts(item, `${path}.${key}`))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
