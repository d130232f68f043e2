/** Whether a word on the command line is a program of this machine. */
import { statSync } from 'node:fs'
import { platform } from 'node:os'
import { delimiter, join, resolve } from 'node:path'

const WINDOWS = platform() === 'win32'

/** A word with a slash is a path, from the folder `cwd`. Any other word is looked for on the PATH of `env`. */
export function isProgram(
  word: string,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string | undefined,
): boolean {
  const endings = WINDOWS ? ['', ...(env['PATHEXT'] ?? '.EXE;.CMD;.BAT').split(';')] : ['']
  const isFile = (path: string) =>
    endings.some((ending) => statSync(path + ending, { throwIfNoEntry: false })?.isFile() === true)
  if (/[\\/]/.test(word)) return isFile(resolve(cwd ?? '.', word))
  const path = env['PATH'] ?? env['Path'] ?? ''
  return path.split(delimiter).some((folder) => folder !== '' && isFile(join(folder, word)))
}
