/** Reads the configurations that most people have without the schema, which takes a fifth of a start to make. */
import {
  ADDRESS_OPTIONS,
  defaultSettings,
  defaultsOfAddress,
  defaultsOfProgram,
  OPTIONS,
  PROGRAM_OPTIONS,
} from './defaults.js'
import type { Settings } from './schema/schema.js'
import { isObject } from './value.js'

type Json = Record<string, unknown>
type Checks = Readonly<Record<string, (value: unknown) => unknown>>

/** Of each value that the schema takes as it is; undefined for others. */
const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
const texts = (value: unknown) => (Array.isArray(value) && [...value].every(isText) ? [...value] : undefined)
const textsByName = (value: unknown) =>
  isPlain(value) && Object.values(value).every(isText) ? { ...value } : undefined
const oneOf =
  (...all: readonly unknown[]) =>
  (value: unknown) =>
    all.includes(value) ? value : undefined
const isText = (value: unknown) => typeof value === 'string'

/** Not those whose host might be a number in some form, such as 08 or 1.2.3, or has letters in code (`xn--`). */
const PLAIN_ADDRESS =
  /^https?:\/\/(?:127\.0\.0\.1|(?!-|[^/:]*xn--)(?:[a-z\d-]+\.)*[a-z][a-z\d-]*)(?::\d{1,4})?(?:\/[\w./~-]*)?$/

const PROGRAM: Checks = { command: (value) => text(value) || undefined, args: texts, env: textsByName, cwd: text }
const ADDRESS: Checks = {
  url: (value) => (PLAIN_ADDRESS.test(text(value) ?? '') ? value : undefined),
  headers: textsByName,
}
const LOG: Checks = {
  level: oneOf('trace', 'debug', 'info', 'warn', 'error', 'silent'),
  format: oneOf('auto', 'pretty', 'json'),
  calls: oneOf('all', 'failed', 'none'),
}
const BRIDGE: Checks = {
  listen: text,
  log: (value) => completed(value, LOG, defaultSettings().log, Object.keys(LOG)),
  mcpServers: servers,
  groups: oneOf(false),
}

/** The settings of a configuration that has nothing but usual options with valid values; undefined for others. */
export function usualSettings(value: Json): Settings | undefined {
  return completed(value, BRIDGE, defaultSettings(), OPTIONS) as Settings | undefined
}

function servers(value: unknown): Json | undefined {
  if (!isPlain(value)) return undefined
  const entries = Object.entries(value).map(
    ([name, entry]) => [name, /^[\w.-]{1,64}$/.test(name) && server(entry)] as const,
  )
  return entries.every(([, entry]) => entry) ? Object.fromEntries(entries) : undefined
}

function server(entry: unknown): Json | undefined {
  if (!isPlain(entry)) return undefined
  if ('command' in entry) return completed(entry, PROGRAM, defaultsOfProgram(), PROGRAM_OPTIONS)
  if ('url' in entry) return completed(entry, ADDRESS, defaultsOfAddress(), ADDRESS_OPTIONS)
  return undefined
}

/** An object with its defaults, in this order, if it has nothing but values that the checks take. */
function completed(value: unknown, checks: Checks, defaults: object, order: readonly string[]): Json | undefined {
  if (!isPlain(value)) return undefined
  const all: Json = { ...defaults }
  for (const [key, given] of Object.entries(value)) {
    const taken = Object.hasOwn(checks, key) ? checks[key]?.(given) : undefined
    if (taken === undefined) return undefined
    all[key] = taken
  }
  return Object.fromEntries(order.flatMap((key) => (key in all ? [[key, all[key]]] : [])))
}

/** Whether it is an object of a file, where no name has a meaning to JavaScript. */
function isPlain(value: unknown): value is Json {
  if (!isObject(value) || Object.hasOwn(value, '__proto__')) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
