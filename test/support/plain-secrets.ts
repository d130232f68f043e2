/** Secrets in plain text on a command line or among variables, by the names that the bridge hides in its log. */

import { isSecret } from '../../src/base/credentials/names.js'
import { refersElsewhere } from '../../src/config/expand.js'

/** A value after a name: `--token=x`, `TOKEN=x`, `Authorization: x`, `--token x`. */
const NAMED = /(?<!\S)-{0,2}([A-Za-z][\w.-]*)(?:=|: ?|\s+)(?=(\S+))/g
/** A password in an address. */
const PASSWORD = /:\/\/[^\s/@]*:(?!\$\{)[^\s/@]+@/

/** Names of options whose value is a file with the secret: `--token-file`. */
const OF_FILES = /file$/i

/** The names of those. */
export function plainSecrets(args: readonly string[], env: Readonly<Record<string, string>> = {}): string[] {
  const isPlain = (name: string, value: string) =>
    isSecret(name) && !OF_FILES.test(name) && value !== '' && !refersElsewhere(value)
  const line = args.join(' ')
  const told = [...line.matchAll(NAMED)].filter(([, name = '', value = '']) => isPlain(name, value))
  return [
    ...told.map(([, name = '']) => name),
    ...(PASSWORD.exec(line) ?? []),
    ...Object.entries(env).flatMap(([name, value]) => (isPlain(name, value) || PASSWORD.test(value) ? [name] : [])),
  ]
}
