/**
 * Files that only the owner of this process may change: read with their owner and mode checked, and replaced as a whole.
 * A file that is not as it has to be is neither used nor changed.
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

export interface PrivateFileRules {
  /** Who may own the file, beside root; below zero on systems without owners and modes. */
  uid: number
  maxBytes: number
  /** Nobody else may even read it, and it has one name only. */
  secret?: boolean
}

/** A file as it was found. The stamp changes whenever the file does. */
export type PrivateFile =
  | { readonly kind: 'absent'; readonly stamp: string }
  | { readonly kind: 'file'; readonly bytes: Uint8Array; readonly stamp: string }
  | { readonly kind: 'refused'; readonly why: string; readonly stamp: string }

const ABSENT = 'absent'
const WRITABLE_BY_OTHERS = 0o022
const OPEN_TO_OTHERS = 0o077
const STICKY = 0o1000

/** Reads the file, or says why it may not be used. Never throws. */
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
    fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const wrong = wrongWith(fstatSync(fd), rules) ?? wrongWithFolder(statSync(dirname(path)), rules)
    if (wrong !== undefined) return { kind: 'refused', why: wrong, stamp }
    return { kind: 'file', bytes: readFileSync(fd), stamp }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    // Something in the place of a folder has no files in it.
    if (code === 'ENOTDIR') return { kind: 'absent', stamp }
    const why = code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${code || String(error)})`
    return { kind: 'refused', why, stamp }
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/**
 * Puts another file in the place of this one: whoever looks sees the whole of either. `stillMine` throws where the lock on
 * the file has been lost. Throws what the system says where nothing was changed.
 */
export function writePrivateFile(path: string, bytes: Uint8Array, stillMine: () => void): void {
  const folder = dirname(path)
  const prefix = `.${basename(path)}.`
  // Whoever left one behind was killed in the middle: only the owner of the lock makes any.
  for (const name of readdirSync(folder))
    if (name.startsWith(prefix) && name.endsWith('.new')) rmSync(join(folder, name), { force: true })
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

/** Takes the file away, if it is there. Throws what the system says. */
export function removePrivateFile(path: string): void {
  rmSync(path, { force: true })
  syncFolder(dirname(path))
}

/** Changes whenever the file does. Never throws: whoever then reads is told what is the matter. */
export function stampOf(path: string): string {
  try {
    const folder = statSync(dirname(path), { throwIfNoEntry: false })
    const around = [folder?.uid, folder?.mode].join(' ')
    const file = lstatSync(path, { throwIfNoEntry: false })
    // Modes and owners are part of when something last changed; the folder's own change with each file in it.
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
    // Not every system can do that with a folder; what is written is whole in any case.
  }
}

function wrongWith(stats: Stats, { uid, maxBytes, secret = false }: PrivateFileRules): string | undefined {
  if (!stats.isFile()) return 'it is no file'
  if (stats.size > maxBytes) return `it is larger than ${maxBytes} bytes`
  if (uid < 0) return undefined
  if (stats.uid !== uid && stats.uid !== 0) return 'it belongs to somebody else'
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'others may write it (chmod 600 it)'
  if (secret && (stats.mode & OPEN_TO_OTHERS) !== 0) return 'others may read it (chmod 600 it)'
  if (secret && stats.nlink > 1) return 'it has another name as well (a hard link)'
  return undefined
}

/** Who may write a folder may put another file in the place of one that they may not. */
function wrongWithFolder({ uid: owner, mode }: Stats, { uid }: PrivateFileRules): string | undefined {
  if (uid < 0) return undefined
  if (owner !== uid && owner !== 0) return 'its folder belongs to somebody else'
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) return 'others may write its folder (chmod 700 it)'
  return undefined
}
