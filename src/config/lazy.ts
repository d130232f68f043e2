/** Which programs are started when something of them is used, and not before. */
import { isOnThisMachine, parseListen } from './addresses.js'
import { groupsOf } from './groups.js'
import { isStdio } from './kinds.js'
import type { Settings } from './schema/schema.js'

/** Programs of a group up to which all of them are started, by default. */
const STARTED_TOGETHER = 5

/** The names of these servers. They are not started for a list, if what they list is known. */
export function lazyServers(settings: Settings): ReadonlySet<string> {
  const isLocal = isOnThisMachine(parseListen(settings.listen))
  const programs = new Map(
    Object.entries(settings.mcpServers).flatMap(([name, own]) => (isStdio(own) ? [[name, own] as const] : [])),
  )
  const groups = [...groupsOf(settings).values()].map(({ members, start }) => {
    const servers = members.map(({ server }) => server).filter((server) => programs.has(server))
    return { start, servers, usual: isLocal && servers.length > STARTED_TOGETHER ? 'lazy' : 'eager' }
  })
  const lazy = [...programs].filter(([name, own]) => {
    const its = groups.filter(({ servers }) => servers.includes(name))
    const said = own.start ?? its.find(({ start }) => start === 'eager')?.start ?? its.find(({ start }) => start)?.start
    return its.length > 0 && (said ? said === 'lazy' : its.some(({ usual }) => usual === 'lazy'))
  })
  return new Set(lazy.map(([name]) => name))
}
