/** Whether a command is a program of this machine. */
import { statSync } from 'node:fs'
import { platform } from 'node:os'
import { delimiter, join, resolve } from 'node:path'

const WINDOWS = platform() === 'win32'

/**
 * A command with a slash is a path, from the folder `cwd`. Any other one is looked for on the PATH of `env`. On Windows the
 * ending may be left out, as in `npx` for `npx.cmd`.
 */
export function isProgram(
  command: string,
  env: Readonly<Record<string, string | undefined>>,
  cwd: string | undefined,
): boolean {
  const endings = WINDOWS ? ['', ...(env['PATHEXT'] ?? '.COM;.EXE;.BAT;.CMD').split(';')] : ['']
  const isFile = (path: string) => endings.some((ending) => isFileAt(path + ending))
  if (/[\\/]/.test(command)) return isFile(resolve(cwd ?? '.', command))
  const path = env['PATH'] ?? env['Path'] ?? ''
  return path.split(delimiter).some((folder) => folder !== '' && isFile(join(folder, command)))
}

/** A folder that this user may not read has no programs for this user. */
function isFileAt(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true
  } catch {
    return false
  }
}
