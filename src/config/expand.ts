/** Replaces references in a configuration by environment variables and the content of files. */
import type { Issue } from './error.js'
import { isObject } from './value.js'

/** The sources of references in a configuration. */
export interface ConfigSources {
  env: Readonly<Record<string, string | undefined>>
  /** The text of a file. Throws if it cannot be read. */
  read(path: string): string
  /** Placeholder for a missing variable or file, if that is not an error. Addresses are replaced completely. */
  missing?: ((what: string) => string) | undefined
}

/** A reference, or the start of an escaped one. */
const REFERENCE = /\$(\$\{)|\$\{(?:(file):([^}]+)|(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?)\}/g
/** References that only editors understand. */
const EDITORS = /(?<!\$)\$\{((?:input|command|config|workspaceFolder\w*)(?::[^}]*)?|userHome)\}/g

/** Whether a value contains a reference. */
export function refersElsewhere(value: unknown): boolean {
  return typeof value === 'string' && [...value.matchAll(REFERENCE)].some(([, plain]) => plain === undefined)
}

/** Escapes a text, so that `expand` returns it. */
export function escaped(text: string): string {
  return text.replaceAll('${', () => '$${')
}

/** Paths of addresses. */
const ADDRESS = /\.url$|^redis\.(?:sentinels|cluster)\.\d+$|^replicas\.address$/

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:path}` in these keys of entries of servers, and in secrets.
 * `$${NAME}` becomes `${NAME}`. The issues name what is missing.
 */
export function expand(
  input: Readonly<Record<string, unknown>>,
  { env, read, missing }: ConfigSources,
  keys: ReadonlySet<string>,
): { value: Record<string, unknown>; issues: Issue[] } {
  const issues: Issue[] = []
  const content = (file: string, path: string): string => {
    try {
      // Editors and tools end a file with a line break, and some begin it with a byte order mark. Neither is part of the secret.
      return read(file).replace(/^\uFEFF|\r?\n$/g, '')
    } catch (error) {
      if (missing) return missing(file)
      issues.push({ path, message: `cannot read ${file}: ${error instanceof Error ? error.message : error}` })
      return ''
    }
  }
  const text = (value: unknown, path: string): unknown => {
    if (typeof value !== 'string') return value
    const known = value.replace(EDITORS, (reference, what: string) => {
      issues.push({ path, message: unknown(reference, what) })
      return ''
    })
    if (missing && ADDRESS.test(path) && refersElsewhere(value))
      return path.startsWith('redis') ? 'redis://offline.invalid' : 'http://offline.invalid/'
    return known.replace(
      REFERENCE,
      (_all, plain?: string, isFile?: string, file?: string, name = '', fallback?: string) => {
        if (plain !== undefined) return plain
        if (isFile !== undefined && file !== undefined) return content(file, path)
        const found = env[name] ?? fallback ?? missing?.(name)
        if (found === undefined) issues.push({ path, message: `the environment variable ${name} is not set` })
        return found ?? ''
      },
    )
  }
  const deep = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => deep(item, `${path}.${index}`))
    if (isObject(value)) return mapped(value, (item, key) => deep(item, `${path}.${key}`))
    return text(value, path)
  }
  const server = (entry: unknown, path: string): unknown =>
    isObject(entry)
      ? mapped(entry, (value, key) => (keys.has(key) ? deep(value, `${path}.${key}`) : value))
      : deep(entry, path)
  const value = { ...input }
  for (const [option, where] of Object.entries(EXPANDED)) {
    const given = input[option]
    if (option === 'mcpServers' && isObject(given))
      value[option] = mapped(given, (entry, name) => server(entry, `${option}.${name}`))
    else if (where === 'inside') {
      if (given !== undefined) value[option] = deep(given, option)
    } else if (isObject(given))
      value[option] = mapped(given, (one, key) => (Object.hasOwn(where, key) ? deep(one, `${option}.${key}`) : one))
  }
  return { value, issues }
}

/** The options in which references are replaced: inside them, or in their members, which are texts or have texts inside. */
const EXPANDED: Readonly<Record<string, 'inside' | Readonly<Record<string, 'inside' | 'text'>>>> = {
  mcpServers: 'inside',
  publish: 'inside',
  stateKeys: 'inside',
  redis: 'inside',
  replicas: 'inside',
  auth: { tokens: 'inside', issuers: 'inside', forwarded: 'inside', browser: 'inside' },
  inspect: { token: 'text', tryToken: 'text' },
}

/** Whether a path may have a reference for its value. A reference in place of an object or list is a mistake, whatever its value. */
export function isExpanded(path: string): boolean {
  const [option = '', member, inner] = path.split('.')
  const where = Object.hasOwn(EXPANDED, option) ? EXPANDED[option] : undefined
  if (where === undefined || member === undefined) return false
  if (where === 'inside') return true
  return Object.hasOwn(where, member) && (where[member] === 'text' || inner !== undefined)
}

/** Advice about a reference that only editors understand. */
function unknown(reference: string, what: string): string {
  const [kind, name = 'value'] = what.split(':')
  if (kind !== 'input') return `${reference} is known to editors only: write its value`
  const variable = name.replace(/\W+/g, '_').toUpperCase()
  return `${reference} is an input of an editor: write \${${variable}} instead, and set the environment variable ${variable}`
}

function mapped(
  record: Record<string, unknown>,
  change: (value: unknown, key: string) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]))
}
