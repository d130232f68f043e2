/** The names that servers get by their address or command, where nobody names them. */
import { posix, win32 } from 'node:path'
import { parseUrl } from '../base/texts/parse-url.js'

/** Programs that start what their first argument names. */
const LAUNCHERS: ReadonlySet<string> = new Set(['npx', 'uvx', 'bunx', 'node', 'python', 'python3', 'deno', 'bun'])

/** The default name of a server at an address: its host. */
export function addressName(address: string): string {
  return parseUrl(address)?.hostname ?? address
}

/** The default name of a program: `server` for `npx -y @scope/server@1.2` and for `/usr/bin/server.exe --flag`. */
export function programName(program: string, args: readonly string[]): string {
  const last = (path: string) => win32.basename(posix.basename(path)).replace(/\.(?:exe|cmd|bat|[cm]?[jt]s|py)$/i, '')
  const started = LAUNCHERS.has(last(program))
    ? args.find((argument) => /^[\w@./\\:][^\s;()]*$/.test(argument))
    : undefined
  return last(started ?? program).replace(/(?<=.)@[^@]*$/, '')
}
