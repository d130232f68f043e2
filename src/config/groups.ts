/** The groups of settings: servers, prefixes and paths, including the default group of several servers. */
import { amongNames } from '../base/texts/nearest.js'
import { defaultsOfGroup } from './defaults.js'
import type { Issue } from './error.js'
import type { GroupEntry } from './schema/groups.js'
import type { Settings } from './schema/schema.js'
import { isObject } from './value.js'

/** A group of servers, complete. */
export interface GroupSettings
  extends Pick<GroupEntry, 'title' | 'instructions' | 'schemas' | 'wait' | 'search' | 'start'> {
  name: string
  /** The default group: it has all servers, at the path of `listen`. */
  isImplied: boolean
  members: readonly GroupMember[]
  /** Tools and prompts keep the names of their servers. */
  bareNames: boolean
  /** Resources keep the URIs of their servers. */
  bareUris: boolean
  /** Names of the required servers: without one of them, lists are an error. */
  required: readonly string[]
}

interface GroupMember {
  server: string
  prefix: string
}

export const ALL = 'all'
/** Most characters of a prefix derived from a server's name. */
const MAX_PREFIX = 32

/** The groups by name, in the order of the file. */
export function groupsOf(
  settings: Pick<Settings, 'groups' | 'mcpServers' | 'auth'>,
): ReadonlyMap<string, GroupSettings> {
  const servers = Object.keys(settings.mcpServers)
  if (settings.groups === false) return new Map()
  if (settings.groups !== undefined) {
    const entries = Object.entries(settings.groups)
    const groups = entries.map(([name, entry]) => [name, groupOf(name, entry, servers, false)] as const)
    return new Map(groups.filter(([, { members }]) => members.length > 0))
  }
  // Each server would receive the credentials of callers for the others.
  if (servers.length < 2 || settings.auth?.passthrough) return new Map()
  return new Map([[ALL, groupOf(ALL, defaultsOfGroup(), servers, true)]])
}

function groupOf(name: string, entry: GroupEntry, servers: readonly string[], isImplied: boolean): GroupSettings {
  const named = entry.servers?.filter((server) => servers.includes(server)) ?? servers
  const members = [...new Set(named)].map((server) => ({ server, prefix: entry.prefixes[server] ?? prefixOf(server) }))
  const isAlone = entry.prefix === 'auto' && members.length === 1
  return {
    name,
    isImplied,
    members,
    title: entry.title,
    instructions: entry.instructions,
    bareNames: isAlone || entry.prefix === 'never',
    bareUris: isAlone || entry.resources === 'as-is',
    schemas: entry.schemas,
    wait: entry.wait,
    search: entry.search,
    start: entry.start,
    required: entry.required === true ? members.map(({ server }) => server) : entry.required,
  }
}

/** The prefix derived from a server's name: letters, digits and "-" only, a letter first. */
export function prefixOf(server: string): string {
  const legal = server.replace(/[^A-Za-z0-9-]/g, '-')
  return (/^[A-Za-z]/.test(legal) ? legal : `s${legal}`).slice(0, MAX_PREFIX)
}

/** Paths of the endpoint of each group, by name. */
export function groupPaths(
  settings: Pick<Settings, 'groups' | 'mcpServers' | 'auth'>,
  { path }: { path: string },
): ReadonlyMap<string, readonly string[]> {
  const [, folder, last] = /^(.*\/)([^/]*)$/.exec(path) as unknown as [string, string, string]
  const entries = settings.groups || {}
  const pathOf = ({ name, isImplied }: GroupSettings) =>
    isImplied ? path : (entries[name]?.path ?? `${folder}${name}/${last}`)
  return new Map([...groupsOf(settings).values()].map((group) => [group.name, [pathOf(group)]]))
}

/** Issues of groups: unknown servers, and ambiguous prefixes. */
export function groupIssues(settings: Settings): Issue[] {
  const { groups, mcpServers, discover, auth } = settings
  const issues: Issue[] = []
  const at = (name: string, { isImplied }: GroupSettings) => (isImplied ? 'groups' : `groups.${name}`)
  for (const [name, entry] of Object.entries(groups || {})) {
    // Discovered servers are not known yet.
    if (discover.length > 0) break
    const named = [
      ...(entry.servers ?? []),
      ...Object.keys(entry.prefixes),
      ...(entry.required === true ? [] : entry.required),
    ]
    for (const server of new Set(named))
      if (!(server in mcpServers))
        issues.push({
          path: `groups.${name}`,
          message: `names "${server}", but the configuration has no such server: ${amongNames(server, Object.keys(mcpServers))}`,
        })
  }
  for (const [name, group] of groupsOf(settings)) {
    const taken = new Map<string, string>()
    for (const { server, prefix } of group.members) {
      // The scheme of a URI is case-insensitive.
      const other = taken.get(prefix.toLowerCase())
      if (other !== undefined) issues.push({ path: at(name, group), message: samePrefix(other, server, prefix, group) })
      else taken.set(prefix.toLowerCase(), server)
    }
    if (auth?.passthrough && group.members.length > 1) {
      const message =
        'cannot be combined with "auth.passthrough": each server would receive the credentials for the others'
      issues.push({ path: at(name, group), message })
    }
  }
  return issues
}

function samePrefix(one: string, other: string, prefix: string, { isImplied }: GroupSettings): string {
  const remedy = isImplied
    ? `rename one of them, configure a group with "prefixes", or set "groups" to false`
    : `give one of them another one in "prefixes"`
  return `the servers ${one} and ${other} would both have the prefix "${prefix}": ${remedy}`
}

/** Unchecked groups of a file, without servers that are not selected. A group left without servers is dropped. */
export function withoutServers(groups: unknown, isLeftOut: (server: string) => boolean): unknown {
  if (!isObject(groups)) return groups
  const kept = (name: unknown) => typeof name !== 'string' || !isLeftOut(name)
  const entries = Object.entries(groups).map(([name, entry]) => {
    if (!isObject(entry)) return [name, entry] as const
    const { servers, prefixes, required } = entry
    const left = {
      ...entry,
      ...(Array.isArray(servers) && { servers: servers.filter(kept) }),
      ...(Array.isArray(required) && { required: required.filter(kept) }),
      ...(isObject(prefixes) && {
        prefixes: Object.fromEntries(Object.entries(prefixes).filter(([one]) => kept(one))),
      }),
    }
    const wasEmptied = Array.isArray(servers) && servers.length > 0 && servers.filter(kept).length === 0
    return [name, wasEmptied ? undefined : left] as const
  })
  return Object.fromEntries(entries.filter(([, entry]) => entry !== undefined))
}
