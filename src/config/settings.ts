/** The configuration: file, environment and flags, checked and completed. */
import { parseListen } from './addresses.js'
import { collisions } from './collisions.js'
import { ConfigError, type Issue } from './error.js'
import { type ExaminedConfig, examine } from './examine.js'
import { type ConfigSources, isExpanded, refersElsewhere } from './expand.js'
import { groupIssues } from './groups.js'
import { knownKeys, SERVER_KEYS } from './kinds.js'
import { didYouMean, meantBy } from './option-synonyms.js'
import type { Settings } from './schema/schema.js'
import type { ServerSettings } from './schema/server.js'
import { valueUnder } from './value.js'

export * from './addresses.js'
export { OPTIONS } from './defaults.js'
export {
  type Callers,
  directIssuers,
  hasSeveral,
  hasSignInPage,
  isCallable,
  isOnBehalf,
  requestedScopes,
  secretOf,
  shareOf,
  signInOf,
  signsIn,
} from './derived.js'
export * from './error.js'
export { type ExaminedConfig, examine } from './examine.js'
export type { ConfigSources } from './expand.js'
export { forwardedTo } from './forwarding.js'
export { ALL, type GroupSettings, groupPaths, groupsOf, withoutServers } from './groups.js'
export { addressesOf, isStdio, SERVER_KEYS, transportOf } from './kinds.js'
export { lazyServers } from './lazy.js'
export { meantBy } from './option-synonyms.js'
export type { Settings } from './schema/schema.js'
export type { ServerSettings } from './schema/server.js'
export { problemWithPath } from './schema/values.js'
export { NOT_READ_ONLY } from './server-words.js'

/** Checks a configuration and fills in the defaults. Throws a ConfigError that names every place. */
export function parseSettings(input: unknown, sources: ConfigSources): Settings {
  const { settings, issues } = examine(input, sources)
  if (issues.length > 0) throw new ConfigError(issues)
  return settings
}

/** Checks a configuration for another machine: its variables and files are assumed to exist and to be valid. */
export function examineOffline(input: unknown, sources: ConfigSources): ExaminedConfig {
  // Long enough for any secret.
  const missing = (what: string) => what.replace(/\W/g, '-').padEnd(32, '-')
  const isReplaced = (path: string) => isExpanded(path) && refersElsewhere(valueUnder(input, path))
  const { settings, issues, warnings } = examine(input, { ...sources, missing })
  return { settings, issues: issues.filter(({ path }) => !isReplaced(path)), warnings }
}

/** A discovered server, as if it were configured, with references resolved by `sources`. Throws a ConfigError. */
export function foundServer(name: string, entry: unknown, sources: ConfigSources): ServerSettings {
  return parseSettings({ mcpServers: { [name]: entry } }, sources).mcpServers[name] as ServerSettings
}

/** A configuration merged with discovered servers. A server whose paths or prefixes collide with others is left out. */
export function withServers(settings: Settings, found: Readonly<Record<string, ServerSettings>>): Settings {
  const listen = parseListen(settings.listen)
  let all = settings
  for (const [name, server] of Object.entries(found)) {
    const more = { ...all, mcpServers: { ...all.mcpServers, [name]: server } }
    if (collisions(more, listen).length === 0 && groupIssues(more).length === 0) all = more
  }
  return all
}

/** Ignored keys of entries: misspelt, for servers of the other kind, or for another program. */
export function unknownKeys({ mcpServers }: { mcpServers: Readonly<Record<string, object>> }): Issue[] {
  return Object.entries(mcpServers).flatMap(([name, entry]) => {
    const known = knownKeys(entry)
    const unknown = Object.keys(entry).filter((key) => !known.includes(key))
    return unknown.flatMap((key) => {
      const path = `mcpServers.${name}.${key}`
      const isOfOther = SERVER_KEYS.has(key)
      // A misspelt key for the kind of the server is reported at the entry.
      const isKind = isOfOther ? KINDS.includes(key) : !showsKind(entry) && meantBy(key, KINDS) !== undefined
      if (isKind) return []
      const other = 'command' in entry ? '"url", but this one is a program' : '"command", but this one has an address'
      const message = isOfOther ? `is ignored: it is for servers with ${other}` : unknownKey(key, known)
      return [{ path, message }]
    })
  })
}

const KINDS: readonly string[] = ['command', 'url']

function showsKind(entry: object): boolean {
  return KINDS.some((key) => key in entry)
}

function unknownKey(key: string, known: readonly string[]): string {
  return `is not known to mcp-bridge, and ignored${didYouMean(key, known)}`
}
