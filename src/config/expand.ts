/** Puts into a configuration what stands elsewhere: in the environment, and in files. */
import { ConfigError, type Issue } from './error.js'

/** Where things stand that a configuration refers to. */
export interface Elsewhere {
  env: Readonly<Record<string, string | undefined>>
  /** The text of a file. Throws where it cannot be read. */
  read(path: string): string
}

const REFERENCE = /\$\{(?:(file):([^}]+)|(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}/g

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:path}` in what is sent to or started for a server, and
 * in secrets. Throws a ConfigError that names what is missing.
 */
export function expand(input: unknown, { env, read }: Elsewhere): unknown {
  if (!isObject(input)) return input
  const issues: Issue[] = []
  const content = (file: string, path: string): string => {
    try {
      // Editors and tools end a file with a line break, which no secret has.
      return read(file).replace(/\r?\n$/, '')
    } catch (error) {
      issues.push({ path, message: `${file} cannot be read: ${error instanceof Error ? error.message : error}` })
      return ''
    }
  }
  const text = (value: unknown, path: string): unknown => {
    if (typeof value !== 'string') return value
    return value.replace(REFERENCE, (_all, isFile?: string, file?: string, name = '', fallback?: string) => {
      if (isFile !== undefined && file !== undefined) return content(file, path)
      const found = env[name] ?? fallback
      if (found === undefined) issues.push({ path, message: `the environment has no variable ${name}` })
      return found ?? ''
    })
  }
  const deep = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => text(item, `${path}.${index}`))
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item, `${path}.${key}`)]))
    return text(value, path)
  }
  const { mcpServers, auth, stateKeys, redis, publish } = input
  const expanded = {
    ...input,
    ...(mcpServers !== undefined && { mcpServers: deep(mcpServers, 'mcpServers') }),
    ...(publish !== undefined && { publish: deep(publish, 'publish') }),
    ...(stateKeys !== undefined && { stateKeys: deep(stateKeys, 'stateKeys') }),
    ...(redis !== undefined && { redis: deep(redis, 'redis') }),
    ...(isObject(auth) && { auth: { ...auth, tokens: deep(auth['tokens'], 'auth.tokens') } }),
  }
  if (issues.length > 0) throw new ConfigError(issues)
  return expanded
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
