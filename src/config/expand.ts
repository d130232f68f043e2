/** Puts into a configuration what stands elsewhere: in the environment, and in files. */
import { ConfigError, type Issue } from './error.js'

/** Where things stand that a configuration refers to. */
export interface ConfigSources {
  env: Readonly<Record<string, string | undefined>>
  /** The text of a file. Throws where it cannot be read. */
  read(path: string): string
  /** What to put in the place of something that is not there, where that is no mistake: addresses are made up whole. */
  missing?: ((what: string) => string) | undefined
}

const REFERENCE = /\$\{(?:(file):([^}]+)|(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}/g
/** What means something only in an editor. */
const EDITORS = /\$\{((input|command|config|workspaceFolder\w*)(?::[^}]*)?|userHome)\}/g

/** Whether a value stands elsewhere, wholly or in part. */
export function refersElsewhere(value: unknown): boolean {
  return typeof value === 'string' && value.search(REFERENCE) >= 0
}

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:path}` in what is sent to or started for a server, and
 * in secrets. Of entries of servers, only these keys mean something. Throws a ConfigError that names what is missing.
 */
export function expand(input: unknown, { env, read, missing }: ConfigSources, keys: ReadonlySet<string>): unknown {
  if (!isObject(input)) return input
  const issues: Issue[] = []
  const content = (file: string, path: string): string => {
    try {
      // Editors and tools end a file with a line break, which no secret has.
      return read(file).replace(/\r?\n$/, '')
    } catch (error) {
      if (missing) return missing(file)
      issues.push({ path, message: `${file} cannot be read: ${error instanceof Error ? error.message : error}` })
      return ''
    }
  }
  const text = (value: unknown, path: string): unknown => {
    if (typeof value !== 'string') return value
    for (const [reference, what] of value.matchAll(EDITORS))
      issues.push({ path, message: unknown(reference, String(what)) })
    if (missing && path.endsWith('.url') && refersElsewhere(value))
      return path.startsWith('redis') ? 'redis://offline.invalid' : 'http://offline.invalid/'
    return value.replace(REFERENCE, (_all, isFile?: string, file?: string, name = '', fallback?: string) => {
      if (isFile !== undefined && file !== undefined) return content(file, path)
      const found = env[name] ?? fallback ?? missing?.(name)
      if (found === undefined) issues.push({ path, message: `the environment has no variable ${name}` })
      return found ?? ''
    })
  }
  const deep = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => text(item, `${path}.${index}`))
    if (isObject(value)) return mapped(value, (item, key) => deep(item, `${path}.${key}`))
    return text(value, path)
  }
  const server = (entry: unknown, path: string): unknown =>
    isObject(entry)
      ? mapped(entry, (value, key) => (keys.has(key) ? deep(value, `${path}.${key}`) : value))
      : deep(entry, path)
  const { mcpServers, auth, stateKeys, redis, publish } = input
  const expanded = {
    ...input,
    ...(isObject(mcpServers) && {
      mcpServers: mapped(mcpServers, (entry, name) => server(entry, `mcpServers.${name}`)),
    }),
    ...(publish !== undefined && { publish: deep(publish, 'publish') }),
    ...(stateKeys !== undefined && { stateKeys: deep(stateKeys, 'stateKeys') }),
    ...(redis !== undefined && { redis: deep(redis, 'redis') }),
    ...(isObject(auth) && { auth: { ...auth, tokens: deep(auth['tokens'], 'auth.tokens') } }),
  }
  if (issues.length > 0) throw new ConfigError(issues)
  return expanded
}

/** What to do about something that only an editor knows. */
function unknown(reference: string, what: string): string {
  const [kind, name = 'value'] = what.split(':')
  if (kind !== 'input') return `${reference} means something only in an editor: write what it stands for`
  const variable = name.replace(/\W+/g, '_').toUpperCase()
  return `${reference} is what an editor asks a person for: give it as a variable, as in \${${variable}}, and set ${variable}`
}

function mapped(
  record: Record<string, unknown>,
  change: (value: unknown, key: string) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
