/** Where a bridge on stdio serves its inspector: a socket that only its user can open, and that `mcp-bridge tail` finds. */
import { isAbsolute, join } from 'node:path'

/** The folder of the sockets. Undefined if there is no home folder. */
export function socketFolder(
  env: Readonly<Record<string, string | undefined>>,
  home: string | undefined,
): string | undefined {
  const configured = env['XDG_STATE_HOME']
  if (configured !== undefined && isAbsolute(configured)) return join(configured, 'mcp-bridge')
  return home === undefined ? undefined : join(home, '.local', 'state', 'mcp-bridge')
}

/** The name of the socket of a process. */
export function socketName(pid: number): string {
  return `${pid}.sock`
}
