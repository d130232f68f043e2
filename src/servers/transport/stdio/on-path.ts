/** Checks whether a command is a program on this machine. */
import { statSync } from 'node:fs'
import { platform } from 'node:os'
import { delimiter, join, resolve } from 'node:path'

const WINDOWS = platform() === 'win32'

/**
 * Whether a command exists. A command with a slash is a path relative to `cwd`; others are searched on the PATH of `env`.
 * On Windows the extension may be missing, as in `npx` for `npx.cmd`.
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

/** Whether there is a file at a path; false if this user may not read its folder. */
function isFileAt(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true
  } catch {
    return false
  }
}
