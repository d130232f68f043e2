/** Finds out before the start whether a file can be written, as that of the audit log. */
import { accessSync, closeSync, constants, lstatSync, openSync, readlinkSync, statSync, writeSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Why lines cannot be appended to a file, as a code like ENOENT; undefined if they can. Creates no file. */
export function whyNotAppendable(file: string): string | undefined {
  try {
    const there = statSync(file, { throwIfNoEntry: false })
    if (!there && lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink())
      return whyNotAppendable(resolve(dirname(file), readlinkSync(file)))
    // A pipe without a reader would not open.
    if (there?.isFile() || there?.isCharacterDevice()) writeNothing(file)
    else if (there?.isDirectory()) return 'EISDIR'
    else if (!there) accessSync(dirname(file), constants.W_OK | constants.X_OK)
    return !there && !statSync(dirname(file)).isDirectory() ? 'ENOTDIR' : undefined
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error)
  }
}

/** Opens a file and writes no bytes, which a device that takes nothing refuses. */
function writeNothing(file: string): void {
  const fd = openSync(file, 'a')
  try {
    writeSync(fd, Buffer.alloc(0))
  } finally {
    closeSync(fd)
  }
}
