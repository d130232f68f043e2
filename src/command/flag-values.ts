/** Reads the values of flags. Each function throws a UsageError. */
import { UsageError } from './usage-error.js'

/** Lines like `Name: value` as an object. */
export function pairs(lines: readonly string[], separator: string, usage: string): Record<string, string> {
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(separator)
      // The rest may be secret.
      if (at <= 0) throw new UsageError(`${usage} as one word, not "${line.slice(0, 20)}"`)
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

/** Lines like `Name=VARIABLE` as headers that refer to the variables. */
export function fromVariables(lines: readonly string[]): Record<string, string> {
  const usage = '--header-env needs Name=VARIABLE'
  const named = Object.entries(pairs(lines, '=', usage))
  for (const [name, variable] of named)
    if (!/^[A-Za-z_]\w*$/.test(variable)) throw new UsageError(`${usage}: ${name} has no name of a variable`)
  return Object.fromEntries(named.map(([name, variable]) => [name, `\${${variable}}`]))
}

/** A reference to a variable or file: other users of the machine can read the arguments of a process. */
export function reference(given: string, usage: string): string {
  const variable = /^env:([A-Za-z_]\w*)$/.exec(given)?.[1]
  if (variable !== undefined) return `\${${variable}}`
  if (/^\$\{[^}]+\}$/.test(given)) return given
  throw new UsageError(`${usage}: other users of the machine can see arguments`)
}

/** A reference to a file. */
export function inFile(file: string): string {
  if (file === '' || file.includes('}')) throw new UsageError('--token-file needs the name of a file, without }')
  return `\${file:${file}}`
}

/** Lines like `name=milliseconds`. */
export function times(lines: readonly string[]): Record<string, number> {
  const given = Object.entries(pairs(lines, '=', '--timeout needs name=milliseconds'))
  return Object.fromEntries(given.map(([name, time]) => [name, numberOf('timeout', time)]))
}

/** A number of up to seven digits. */
export function numberOf(flag: string, given: string): number {
  if (/^\d{1,7}$/.test(given)) return Number(given)
  throw new UsageError(`--${flag} needs a number, not "${given}"`)
}
