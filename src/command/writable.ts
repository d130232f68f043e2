/** Checks who may write to configuration files, which decide which programs start and who gets credentials. */
import { accessSync, constants, realpathSync, type Stats, statSync } from 'node:fs'
import { platform } from 'node:os'
import { dirname, resolve } from 'node:path'
import { ConfigError } from '../config/settings.js'

/** Bits of the mode of a file. */
const WRITABLE = { group: 0o020, others: 0o002 }
/** The sticky bit: only the owner of a file in the folder can replace it. */
const STICKY = 0o1000

/**
 * Throws a ConfigError if every user of the machine may write to a file, or replace it through its folder. Pipes and
 * devices are not checked.
 */
export function checkWritable(path: string): void {
  const [open] = writable(path, WRITABLE.others)
  if (open === undefined) return
  const message = `every user of this machine may write to ${open}, and could so start any program. Run: chmod o-w ${open}`
  throw new ConfigError([{ path: '', message }])
}

/** The files and folders that are writable for their group. */
export function writableByGroup(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap((path) => writable(path, WRITABLE.group)))]
}

/** The file or folder with a bit in its mode. A link has two folders: its own, and that of its target. */
function writable(path: string, bit: number): string[] {
  // Modes have no meaning on Windows.
  if (platform() === 'win32') return []
  const file = statSync(path, { throwIfNoEntry: false })
  if (!file?.isFile()) return []
  const folders = [...new Set([dirname(resolve(path)), dirname(realpathSync(path))])]
  const isOpen = (folder: string) => has(bit, statSync(folder)) && !has(STICKY, statSync(folder)) && !isReadOnly(folder)
  const replaceable = folders.filter(isOpen)
  return [...(has(bit, file) ? [path] : []), ...replaceable]
}

/** Kubernetes mounts configuration volumes this way, with a world-writable mode. */
function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS'
  }
}

function has(bit: number, { mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & bit) !== 0
}
