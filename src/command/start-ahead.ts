/** Starts the program of the only server while the bridge is still loading. */
import { programStart } from '../app/program-start.js'
import { isStdio, type Settings } from '../config/settings.js'
import { beginAhead } from '../servers/transport/stdio/begin.js'

/** For a configuration whose program is started anyway, whatever the rest of the start finds. */
export function startAhead(
  { mcpServers, groups, discover, redis, inspect, audit }: Settings,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const [server, ...others] = Object.values(mcpServers)
  if (groups || discover.length > 0 || redis || inspect || audit) return
  if (server && others.length === 0 && isStdio(server)) beginAhead(programStart(server, env))
}
