/** The folder for what the bridge keeps of its own: sockets, and what servers listed last. */
import { isAbsolute, join } from 'node:path'

/** Undefined if there is no home folder. */
export function stateFolder(
  env: Readonly<Record<string, string | undefined>>,
  home: string | undefined,
): string | undefined {
  const configured = env['XDG_STATE_HOME']
  if (configured !== undefined && isAbsolute(configured)) return join(configured, 'mcp-bridge')
  return home === undefined ? undefined : join(home, '.local', 'state', 'mcp-bridge')
}
