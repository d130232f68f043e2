/** The groups that settings describe: their servers, prefixes and paths, with the one that several servers make by themselves. */
import type { Issue } from './error.js'
import { type GroupEntry, groupEntry } from './schema/groups.js'
import type { Settings } from './schema.js'
import { isObject } from './value.js'

/** A group of servers, complete. */
export interface GroupSettings extends Pick<GroupEntry, 'title' | 'instructions' | 'wait' | 'search'> {
  name: string
  /** Nobody has configured it: it has all servers, at the path of `listen`. */
  isImplied: boolean
  members: readonly GroupMember[]
  /** Tools and prompts have the names that their servers give them. */
  bareNames: boolean
  /** Resources have the URIs that their servers give them. */
  bareUris: boolean
  /** Names of the servers without which its lists are an error. */
  required: readonly string[]
}

export interface GroupMember {
  server: string
  prefix: string
}

/** The name of the group that nobody has configured. */
export const ALL = 'all'
/** Most characters of a prefix that is made of the name of a server. */
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
  // Each server would get the credentials that callers have for others.
  if (servers.length < 2 || settings.auth?.passthrough) return new Map()
  return new Map([[ALL, groupOf(ALL, groupEntry.parse({}, { jitless: true }), servers, true)]])
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
    wait: entry.wait,
    search: entry.search,
    required: entry.required === true ? members.map(({ server }) => server) : entry.required,
  }
}

/** The prefix that a name of a server makes: letters, digits and "-" only, a letter first. */
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

/** What is wrong with groups: unknown servers, and prefixes that cannot be told apart. */
export function groupIssues(settings: Settings): Issue[] {
  const { groups, mcpServers, discover, auth } = settings
  const issues: Issue[] = []
  const at = (name: string, { isImplied }: GroupSettings) => (isImplied ? 'groups' : `groups.${name}`)
  for (const [name, entry] of Object.entries(groups || {})) {
    // Which servers will be found is not known yet.
    if (discover.length > 0) break
    const named = [
      ...(entry.servers ?? []),
      ...Object.keys(entry.prefixes),
      ...(entry.required === true ? [] : entry.required),
    ]
    for (const server of new Set(named))
      if (!(server in mcpServers))
        issues.push({ path: `groups.${name}`, message: `names "${server}", which is no server` })
  }
  for (const [name, group] of groupsOf(settings)) {
    const taken = new Map<string, string>()
    for (const { server, prefix } of group.members) {
      // The scheme of a URI has no case.
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

/** Groups of a file, before they are checked, without servers that are left out. A group without a server is left out too. */
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
