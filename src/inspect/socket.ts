/**
 * The socket on which a bridge on stdio serves its inspector: only its user can open it, and `mcp-bridge tail` finds it.
 * Windows has named pipes instead. These are in no folder, so a file in the folder holds the name of the pipe.
 */
import { randomBytes } from 'node:crypto'

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
