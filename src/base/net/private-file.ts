/**
 * Files that only the user of this process may change. Owner and mode are checked when reading; writing replaces the
 * whole file. A file that fails the checks is neither used nor changed.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { codeOf } from './failure.js'

/** What a file must satisfy. */
export interface PrivateFileRules {
  /** The user that must own the file, unless root does; below zero on systems without owners and modes. */
  uid: number
  maxBytes: number
  /** No other user may read it, and it has no further hard links. */
  secret?: boolean
}

/** A file as read. `stamp` changes whenever the file does. */
export type PrivateFile =
  | { readonly kind: 'absent'; readonly stamp: string }
  | { readonly kind: 'file'; readonly bytes: Uint8Array; readonly stamp: string }
  | { readonly kind: 'refused'; readonly why: string; readonly stamp: string }

const ABSENT = 'absent'
const WRITABLE_BY_OTHERS = 0o022
const OPEN_TO_OTHERS = 0o077
const STICKY = 0o1000

/** Reads the file, or says why it must not be used. Never throws. */
export function readPrivateFile(path: string, rules: PrivateFileRules): PrivateFile {
  let stamp = 'unread'
  let fd: number | undefined
  try {
    stamp = stampOf(path)
    if (stamp.startsWith(ABSENT)) {
      const folder = statSync(dirname(path), { throwIfNoEntry: false })
      const wrong = folder && wrongWithFolder(folder, rules)
      return wrong === undefined ? { kind: 'absent', stamp } : { kind: 'refused', why: wrong, stamp }
    }
    // Opening a pipe waits, and opening a device may act on it.
    const unusual = wrongWithKind(lstatSync(path))
    if (unusual !== undefined) return { kind: 'refused', why: unusual, stamp }
    fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const wrong = wrongWith(fstatSync(fd), rules) ?? wrongWithFolder(statSync(dirname(path)), rules)
    if (wrong !== undefined) return { kind: 'refused', why: wrong, stamp }
    return { kind: 'file', bytes: readFileSync(fd), stamp }
  } catch (error) {
    const code = codeOf(error)
    // A path through something that is not a folder does not exist; a file can disappear while it is checked.
    if (code === 'ENOTDIR' || code === 'ENOENT') return { kind: 'absent', stamp }
    return { kind: 'refused', why: `it cannot be read (${code || String(error)})`, stamp }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/**
 * Replaces the file atomically: readers see either the old or the new content. `stillMine` throws if the lock on the
 * file was lost. Throws system errors; then nothing was changed.
 */
export function writePrivateFile(path: string, bytes: Uint8Array, stillMine: () => void): void {
  const folder = dirname(path)
  const prefix = `.${basename(path)}.`
  // Remains of a process that was killed while writing: only the owner of the lock creates such files.
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isFile() && entry.name.startsWith(prefix) && entry.name.endsWith('.new'))
      rmSync(join(folder, entry.name), { force: true })
  const aside = join(folder, `${prefix}${randomUUID()}.new`)
  try {
    writeFileSync(aside, bytes, { flag: 'wx', mode: 0o600, flush: true })
    stillMine()
    renameSync(aside, path)
  } finally {
    rmSync(aside, { force: true })
  }
  syncFolder(folder)
}

/** Removes the file, if it exists. Throws system errors. */
export function removePrivateFile(path: string): void {
  rmSync(path, { force: true })
  syncFolder(dirname(path))
}

/** Changes whenever the file does. Never throws: a later read reports the error. */
export function stampOf(path: string): string {
  try {
    const folder = statSync(dirname(path), { throwIfNoEntry: false })
    const around = [folder?.uid, folder?.mode].join(' ')
    const file = lstatSync(path, { throwIfNoEntry: false })
    // `ctime` covers mode and owner. The folder's own times change with each file in it, so they are not included.
    return file ? [around, file.dev, file.ino, file.size, file.mtimeMs, file.ctimeMs].join(' ') : `${ABSENT} ${around}`
  } catch {
    return 'unknown'
  }
}

function syncFolder(folder: string): void {
  try {
    const fd = openSync(folder, constants.O_RDONLY)
    fsyncSync(fd)
    closeSync(fd)
  } catch {
    // Not all systems can sync a folder. The content of the file is complete in any case.
  }
}

function wrongWithKind(stats: Stats): string | undefined {
  if (stats.isSymbolicLink()) return 'it is a symbolic link'
  return stats.isFile() ? undefined : 'it is not a regular file'
}

function wrongWith(stats: Stats, { uid, maxBytes, secret = false }: PrivateFileRules): string | undefined {
  const unusual = wrongWithKind(stats)
  if (unusual !== undefined) return unusual
  if (stats.size > maxBytes) return `it is larger than ${maxBytes} bytes`
  if (uid < 0) return undefined
  if (stats.uid !== uid && stats.uid !== 0) return 'it belongs to another user'
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'others may write it (run chmod 600 on it)'
  if (secret && (stats.mode & OPEN_TO_OTHERS) !== 0) return 'others may read it (run chmod 600 on it)'
  if (secret && stats.nlink > 1) return 'it has another name as well (a hard link)'
  return undefined
}

/** Why other users could add files to a folder; undefined if they cannot. `uid` is as in the rules. */
export function folderProblem(folder: string, uid: number): string | undefined {
  return wrongWithFolder(statSync(folder), { uid })
}

/** A user who may write the folder can replace the file. */
function wrongWithFolder({ uid: owner, mode }: Stats, { uid }: Pick<PrivateFileRules, 'uid'>): string | undefined {
  if (uid < 0) return undefined
  if (owner !== uid && owner !== 0) return 'its folder belongs to another user'
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0)
    return 'others may write its folder (run chmod 700 on it)'
  return undefined
}
