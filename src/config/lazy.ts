/** Which programs are started when something of them is used, and not before. */
import { isOnThisMachine, parseListen } from './addresses.js'
import { groupsOf } from './groups.js'
import type { Settings } from './schema/schema.js'
import { isStdio } from './schema/server.js'

/** Programs of a group up to which all of them are started, by default. */
const STARTED_TOGETHER = 5

/** The names of these servers. They are not started for a list, if what they list is known. */
export function lazyServers(settings: Settings): ReadonlySet<string> {
  const { mcpServers, listen } = settings
  const isLocal = isOnThisMachine(parseListen(listen))
  const lazy = new Set<string>()
  for (const { members } of groupsOf(settings).values()) {
    const programs = members.flatMap(({ server }) => {
      const own = mcpServers[server]
      return own && isStdio(own) ? [{ server, start: own.start }] : []
    })
    const usual = isLocal && programs.length > STARTED_TOGETHER ? 'lazy' : 'eager'
    for (const { server, start = usual } of programs) if (start === 'lazy') lazy.add(server)
  }
  return lazy
}
