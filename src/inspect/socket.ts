/**
 * The socket on which a bridge on stdio serves its inspector: only its user can open it, and `mcp-bridge tail` finds it.
 * Windows has named pipes instead. These are in no folder, so a file in the folder holds the name of the pipe.
 */
import { randomBytes } from 'node:crypto'
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

/** The name of the socket of a process, or of the file that names its pipe. */
export function socketName(pid: number): string {
  return `${pid}.sock`
}

/**
 * A new name for the pipe of a process. Every user of the machine may create pipes of any name, so the name cannot be
 * guessed. Windows lets the creator of a pipe, administrators and the system write to it, and so send requests; Node.js
 * offers no narrower choice.
 */
export function pipeName(pid: number): string {
  return `\\\\.\\pipe\\mcp-bridge-${pid}-${randomBytes(16).toString('hex')}`
}
