/** Finds out before the start whether a file can be written, as that of the audit log. */
import { accessSync, closeSync, constants, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Why lines cannot be appended to a file, as a code like ENOENT; undefined if they can. Creates no file. */
export function whyNotAppendable(file: string): string | undefined {
  try {
    const there = statSync(file, { throwIfNoEntry: false })
    // A pipe without a reader would not open.
    if (there?.isFile()) closeSync(openSync(file, 'a'))
    else if (there?.isDirectory()) return 'EISDIR'
    else if (!there) accessSync(dirname(file), constants.W_OK | constants.X_OK)
    return !there && !statSync(dirname(file)).isDirectory() ? 'ENOTDIR' : undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}
