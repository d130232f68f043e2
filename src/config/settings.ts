/** The configuration: file, environment and flags, checked and completed. */
import { didYouMean, nearest } from '../nearest.js'
import { parseListen } from './addresses.js'
import { collisions, inconsistencies } from './consistency.js'
import { ConfigError, type Issue } from './error.js'
import { type ConfigSources, expand, refersElsewhere } from './expand.js'
import { knownKeys, SERVER_KEYS, type ServerSettings } from './schema/server.js'
import { fileSchema, type Settings } from './schema.js'
import { isObject, valueUnder } from './value.js'
import { flatten } from './zod-issues.js'

export * from './addresses.js'
export { type Callers, hasSeveral, secretOf, shareOf, signInOf } from './derived.js'
export * from './error.js'
export type { ConfigSources } from './expand.js'
export { isStdio, SERVER_KEYS, type ServerSettings, transportOf } from './schema/server.js'
export { OPTIONS, type Settings } from './schema.js'

/** Checks a configuration and fills in the defaults. Throws a ConfigError that names every place. */
export function parseSettings(input: unknown, sources: ConfigSources): Settings {
  checkEntries(input)
  const expanded = expand(withoutDisabled(input), sources, SERVER_KEYS)
  // Code that Zod would compile for each object of the schema takes longer than checking one configuration without it.
  const parsed = fileSchema.safeParse(expanded, { jitless: true })
  if (!parsed.success) throw new ConfigError(parsed.error.issues.flatMap((issue) => flatten(issue, [], expanded)))
  const settings = parsed.data
  const issues = inconsistencies(settings, parseListen(settings.listen))
  if (issues.length > 0) throw new ConfigError(issues)
  return settings
}

/**
 * Checks a configuration for another machine: its variables and files are assumed to exist and to be valid. Throws a
 * ConfigError.
 */
export function checkOffline(input: unknown, sources: ConfigSources): void {
  // As long as the longest secret has to be.
  const missing = (what: string) => what.replace(/\W/g, '-').padEnd(32, '-')
  try {
    parseSettings(input, { ...sources, missing })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const isPutIn = (path: string) => PUT_IN.test(path) && refersElsewhere(valueUnder(input, path))
    const issues = error.issues.filter(({ path }) => !isPutIn(path))
    if (issues.length > 0) throw new ConfigError(issues)
  }
}

/** Where references are replaced. */
const PUT_IN = /^(?:(?:mcpServers|auth\.tokens|stateKeys|redis|publish)\.|inspect\.token$)/

/** A server that has been found, as if it were configured, with references resolved by `sources`. Throws a ConfigError. */
export function foundServer(name: string, entry: unknown, sources: ConfigSources): ServerSettings {
  return parseSettings({ mcpServers: { [name]: entry } }, sources).mcpServers[name] as ServerSettings
}

/** A configuration together with found servers. A server whose paths collide with others is left out. */
export function withServers(settings: Settings, found: Readonly<Record<string, ServerSettings>>): Settings {
  const listen = parseListen(settings.listen)
  let all = settings
  for (const [name, server] of Object.entries(found)) {
    const more = { ...all, mcpServers: { ...all.mcpServers, [name]: server } }
    if (collisions(more, listen).length === 0) all = more
  }
  return all
}

/** Keys of entries that the bridge ignores: they are misspelt, or for another program. */
export function unknownKeys({ mcpServers }: { mcpServers: Readonly<Record<string, object>> }): Issue[] {
  return Object.entries(mcpServers).flatMap(([name, entry]) => {
    const known = knownKeys(entry)
    const unknown = Object.keys(entry).filter((key) => !known.includes(key))
    return unknown.map((key) => ({
      path: `mcpServers.${name}.${key}`,
      message: `is not known to mcp-bridge, and ignored${didYouMean(key, known)}`,
    }))
  })
}

/** An entry is of one of two kinds, and shows which. A union of both could not say so clearly. */
function checkEntries(input: unknown): void {
  if (!isObject(input))
    throw new ConfigError([{ path: '', message: 'has to be a JSON object with the key "mcpServers"' }])
  const { mcpServers, discover } = input
  const isFinding = Array.isArray(discover) && discover.length > 0
  if (mcpServers === undefined && isFinding) return
  if (!isObject(mcpServers))
    throw new ConfigError([{ path: 'mcpServers', message: 'has to be an object of servers by name' }])
  const issues: Issue[] = []
  for (const [name, entry] of Object.entries(mcpServers)) {
    const path = `mcpServers.${name}`
    if (!isObject(entry)) issues.push({ path, message: 'has to be an object' })
    else if (entry['disabled'] === true) continue
    else if ('command' in entry === 'url' in entry) issues.push({ path, message: neitherOrBoth(entry) })
  }
  if (Object.keys(mcpServers).length === 0 && !isFinding)
    issues.push({ path: 'mcpServers', message: 'names no server' })
  if (issues.length > 0) throw new ConfigError(issues)
}

function neitherOrBoth(entry: Record<string, unknown>): string {
  const meant = 'url' in entry ? undefined : Object.keys(entry).find((key) => nearest(key, ['command']) !== undefined)
  const hint = meant === undefined ? '' : `. It has "${meant}": did you mean "command"?`
  return `has to have either "command" (a program) or "url" (an address)${hint}`
}

/** Disabled servers are not checked. */
function withoutDisabled(input: unknown): unknown {
  if (!isObject(input) || !isObject(input['mcpServers'])) return input
  const enabled = Object.entries(input['mcpServers']).filter(
    ([, entry]) => !isObject(entry) || entry['disabled'] !== true,
  )
  return { ...input, mcpServers: Object.fromEntries(enabled) }
}
