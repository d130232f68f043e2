/** What `wrap` and `unwrap` print. */
import { printable } from '../../base/texts/printable.js'
import type { ClientEntry } from './entry.js'
import type { Launcher } from './launcher.js'
import type { WrapPlan } from './plan.js'

/** Flags of proxies whose values may be secret. */
const SECRET = /^(?:-H|--headers?|--oauth2Bearer|--static-oauth-client-info)$/

/** Those whose values begin with a name. */
const TWO = /^(?:-H|--headers)$/

/** Most characters of a foreign line. */
const LINE = 2_000

/** Lists the changed servers of a file; with `detail`, also what their entries start. */
export function planInWords({ changed, left }: WrapPlan, path: string, detail: boolean): string[] {
  const count = changed.length === 1 ? '1 server' : `${changed.length} servers`
  return [
    `${changed.length === 0 ? 'Nothing to change' : `${detail ? 'Would change' : 'Changed'} ${count}`} in ${path}`,
    ...changed.flatMap(({ name, before, after }) => [
      `  ${printable(name, LINE)}`,
      ...(detail ? [`  - ${inWords(before)}`, `  + ${inWords(after)}`] : []),
    ]),
    ...left.map(({ name, why }) => `  ${printable(name, LINE)} stays as it is: ${why}`),
  ]
}

/** Describes how entries start the bridge. */
export function launcherInWords({ command, args }: Launcher): string {
  return `Entries start the bridge with: ${[command, ...args].map(quoted).join(' ')}`
}

/** The command of an entry, or its address. Leaves out values of variables and headers, and queries: they may be secret. */
function inWords({ command, args, env, headers, ...rest }: ClientEntry): string {
  const isProgram = command !== undefined
  const address = withoutQuery(String(rest['url'] ?? rest['serverUrl'] ?? rest['httpUrl']))
  const names = Object.keys((isProgram ? env : headers) ?? {}).join(', ')
  const beside = names === '' ? '' : ` (${isProgram ? 'variables' : 'headers'}: ${names})`
  const all = [command, ...(Array.isArray(args) ? (args as unknown[]) : [])]
  const words = all.map((word, i) => quoted(shown(String(word), [String(all[i - 1]), String(all[i - 2])]))).join(' ')
  return printable(`${isProgram ? words : address}${beside}`, LINE)
}

/** A word of a command line, without possible secrets. */
function shown(word: string, [before = '', earlier = '']: readonly string[]): string {
  if (SECRET.test(before) || TWO.test(earlier)) return '…'
  return /^https?:\/\//.test(word) ? withoutQuery(word) : word
}

function withoutQuery(address: string): string {
  return address.replace(/[?#].*$/s, '')
}

function quoted(word: unknown): string {
  return /^[^\s"]+$/.test(String(word)) ? String(word) : JSON.stringify(word)
}
