/** What `wrap` and `unwrap` print. */
import { printable } from '../../printable.js'
import type { Entry } from './entry.js'
import type { Launcher } from './launcher.js'
import type { Plan } from './plan.js'

/** Flags of proxies whose values may be secret. */
const SECRET = /^(?:-H|--headers?|--oauth2Bearer|--static-oauth-client-info)$/

/** Those with a name before the value. */
const TWO = /^(?:-H|--headers)$/

/** Characters of a line that somebody else has written. */
const LINE = 2_000

/** What is done to which servers of a file. Only with `detail` it says what the entries start. */
export function planInWords({ changed, left }: Plan, path: string, detail: boolean): string[] {
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

/** How entries start the bridge. */
export function launcherInWords({ command, args }: Launcher): string {
  return `Entries start the bridge with: ${[command, ...args].map(quoted).join(' ')}`
}

/** What an entry starts, or its address. Values of variables and headers, and the query of an address, may be secret. */
function inWords({ command, args, env, headers, ...rest }: Entry): string {
  const isProgram = command !== undefined
  const address = withoutQuery(String(rest['url'] ?? rest['serverUrl'] ?? rest['httpUrl']))
  const names = Object.keys((isProgram ? env : headers) ?? {}).join(', ')
  const beside = names === '' ? '' : ` (${isProgram ? 'variables' : 'headers'}: ${names})`
  const all = [command, ...(Array.isArray(args) ? (args as unknown[]) : [])]
  const words = all.map((word, i) => quoted(shown(String(word), [String(all[i - 1]), String(all[i - 2])]))).join(' ')
  return printable(`${isProgram ? words : address}${beside}`, LINE)
}

/** A word of a command line, without what may be secret. */
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
