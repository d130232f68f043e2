/** Replaces references in a configuration by environment variables and the content of files. */
import type { Issue } from './error.js'
import { headersIn } from './headers-file.js'
import { typeAt } from './reference.js'
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
  return referenceIn(value) !== undefined
}

/** The first reference in a value, without its default. */
export function referenceIn(value: unknown): string | undefined {
  const found = typeof value === 'string' ? [...value.matchAll(REFERENCE)] : []
  const [text, , , , , fallback] = found.find(([, plain]) => plain === undefined) ?? []
  return fallback === undefined ? text : text?.replace(`:-${fallback}`, '')
}

/** Escapes a text, so that `expand` returns it. */
export function escaped(text: string): string {
  return text.replaceAll('${', () => '$${')
}

/** Paths of addresses. */
const ADDRESS =
  /\.(?:url|issuer|authorizationServer|successUrl)$|\.url\.\d+$|\.oauth\.endpoints\.\w+$|^redis\.(?:sentinels|cluster)\.\d+$|^replicas\.address$|^(?:publicUrl|listen|admin)$|^allowedOrigins\.\d+$/
/** What stands before a host in an address, and what may follow. */
const BEFORE_HOST = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#]*@)?$/i
const AFTER_HOST = /^(?:$|[:/?#])/
/** Paths of hosts without the rest of an address. */
const HOSTS = /^allowedHosts\.\d+$/
const IPV6 = /^[\da-f]*:[\da-f]*:[\da-f:.]*$/i
/** What surrounds a value by mistake. Lines of a longer text may be indented. */
const SURROUNDED: readonly (readonly [pattern: RegExp, by: string])[] = [
  [/^(["']).*\1$/s, 'quotes'],
  [/^(?:\s.*|.*\s)$/, 'spaces or line breaks'],
]

const NOT_IN_NAMES = 'has a reference in a name, where none is replaced: write the name itself'

/** A configuration with its references replaced. */
export interface Expanded {
  value: Record<string, unknown>
  /** What is missing. */
  issues: Issue[]
  /** Values that are probably mistakes. */
  warnings: Issue[]
}

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:path}` in all texts; in entries of servers under these keys
 * only, because others are not of the bridge. `$${NAME}` becomes `${NAME}`.
 */
export function expand(
  input: Readonly<Record<string, unknown>>,
  { env, read, missing }: ConfigSources,
  keys: ReadonlySet<string>,
): Expanded {
  const issues: Issue[] = []
  const warnings: Issue[] = []
  const warnIfSurrounded = (value: string, what: string, path: string): void => {
    const by = SURROUNDED.find(([pattern]) => pattern.test(value))?.[1]
    if (by === undefined) return
    const message = `${what} has ${by} around its value: write it without them, also in a file for docker --env-file`
    warnings.push({ path, message })
  }
  const content = (file: string, path: string): string => {
    try {
      // Editors and tools end a file with a line break, and some begin it with a byte order mark. Neither is part of the secret.
      const found = read(file).replace(/^\uFEFF|\r?\n$/g, '')
      warnIfSurrounded(found, `the file ${file}`, path)
      return found
    } catch (error) {
      if (missing) return missing(file)
      issues.push({ path, message: `cannot read ${file}: ${error instanceof Error ? error.message : error}` })
      return ''
    }
  }
  const variable = (name: string, fallback: string | undefined, path: string): string => {
    const found = env[name] ?? fallback ?? missing?.(name)
    if (found === undefined) issues.push({ path, message: `the environment variable ${name} is not set` })
    if (env[name] !== undefined) warnIfSurrounded(env[name], `the environment variable ${name}`, path)
    return found ?? ''
  }
  const text = (value: unknown, path: string): unknown => {
    if (typeof value !== 'string') return value
    const known = value.replace(EDITORS, (reference, what: string) => {
      issues.push({ path, message: unknown(reference, what) })
      return ''
    })
    if (missing && ADDRESS.test(path) && refersElsewhere(value))
      return path.startsWith('redis') ? 'redis://offline.invalid' : 'http://offline.invalid/'
    let before = 0
    let written = ''
    for (const found of known.matchAll(REFERENCE)) {
      const [all, plain, isFile, file, name = '', fallback] = found
      written += known.slice(before, found.index)
      before = found.index + all.length
      if (plain !== undefined) written += plain
      else {
        const value = isFile === undefined ? variable(name, fallback, path) : content(String(file), path)
        written += inPlace(value, written, known.slice(before), path)
      }
    }
    return written + known.slice(before)
  }
  const deep = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => deep(item, `${path}.${index}`))
    if (isObject(value))
      return mapped(value, (item, key) => {
        if (refersElsewhere(key)) issues.push({ path: `${path}.${key}`, message: NOT_IN_NAMES })
        return deep(item, `${path}.${key}`)
      })
    return text(value, path)
  }
  const server = (entry: unknown, path: string): unknown =>
    isObject(entry)
      ? withFile(
          mapped(entry, (value, key) => (keys.has(key) ? deep(value, `${path}.${key}`) : value)),
          path,
        )
      : deep(entry, path)
  /** The entry of a server with the headers of its file. */
  const withFile = (entry: Record<string, unknown>, path: string): Record<string, unknown> => {
    const { headersFile: file, headers: own = {} } = entry
    if (typeof file !== 'string' || file === '' || missing || !isObject(own)) return entry
    const place = `${path}.headersFile`
    try {
      const { headers, wrong } = headersIn(read(file))
      for (const line of wrong)
        issues.push({ path: place, message: `is not like "Name: value" in line ${line} of the file ${file}` })
      const names = new Set(Object.keys(own).map((name) => name.toLowerCase()))
      const further = Object.entries(headers).filter(([name]) => !names.has(name.toLowerCase()))
      return { ...entry, headers: { ...mapped(Object.fromEntries(further), (value) => text(value, place)), ...own } }
    } catch (error) {
      issues.push({ path: place, message: `cannot read ${file}: ${error instanceof Error ? error.message : error}` })
      return entry
    }
  }
  const value = mapped(input, (given, option) =>
    option === 'mcpServers' && isObject(given)
      ? mapped(given, (entry, name) => server(entry, `${option}.${name}`))
      : deep(given, option),
  )
  return { value, issues, warnings }
}

/** A value as it stands for a reference: an IPv6 address in brackets, where it is the host of an address. */
function inPlace(value: string, before: string, after: string, path: string): string {
  const isHost = (HOSTS.test(path) ? before === '' : BEFORE_HOST.test(before)) && AFTER_HOST.test(after)
  return isHost && IPV6.test(value) ? `[${value}]` : value
}

/** Whether a path may have a reference for its value. A reference in place of a number, an object or a list is a mistake. */
export function isExpanded(path: string): boolean {
  const type = typeAt(path.split('.'))
  return type !== undefined && /a string|"/.test(type)
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
