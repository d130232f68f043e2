/** Texts as single arguments of a shell, in commands that people paste. */

export type Shell = 'sh' | 'powershell'

/** The single quotes of each shell. PowerShell treats typographic ones like plain ones. */
const SINGLE_QUOTES: Readonly<Record<Shell, RegExp>> = { sh: /'/g, powershell: /['\u2018-\u201b]/g }
/** Texts that need no quotes. In PowerShell, `@` has a meaning. */
const BARE: Readonly<Record<Shell, RegExp>> = { sh: /^[\w./:@-]+$/, powershell: /^[\w./:-]+$/ }

/** The shell that people usually have on a platform. */
export function usualShell(platform: string | undefined): Shell {
  return platform === 'win32' ? 'powershell' : 'sh'
}

/** The usual one on this machine. A page in a browser has no platform. */
const HERE = usualShell((globalThis as { process?: { platform?: string } }).process?.platform)

/** The text as one argument, in quotes only if it needs them. */
export function quoted(text: string, shell = HERE): string {
  return BARE[shell].test(text) ? text : inQuotes(text, shell)
}

/** A command of this program, which people can paste. */
export function ownCommand(...words: readonly string[]): string {
  return ['mcp-bridge', ...words.map((word) => quoted(word))].join(' ')
}

/** The text in single quotes, in which shells replace nothing. */
export function inQuotes(text: string, shell: Shell): string {
  return `'${text.replaceAll(SINGLE_QUOTES[shell], (quote) => (shell === 'sh' ? `'\\''` : quote + quote))}'`
}
