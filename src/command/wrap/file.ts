/** Reads files of clients, and replaces them atomically: a client reads either the old or the new text. */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ConfigError } from '../../config/error.js'
import { utf8Text } from '../../config/formats/utf8.js'

/** A client's file as read. */
export interface ClientFile {
  /** Its path, after symbolic links. */
  path: string
  /** Its text without byte order mark. */
  text: string
  /** The byte order mark, or nothing. */
  mark: string
  bytes: Buffer
  stats: Stats
}

/** Most bytes of a file. That of Claude Code also contains its history. */
const MOST_BYTES = 64 * 2 ** 20
const BACKUP = '.mcp-bridge-backup'

/** Reads a file. Throws a ConfigError if that is not possible. */
export function readClientFile(path: string): ClientFile {
  return attempt(`cannot read ${path}`, () => {
    const real = realpathSync(path)
    const stats = statSync(real)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`)
    const bytes = readFileSync(real)
    const [, mark = '', text = ''] = /^(\uFEFF?)(.*)$/s.exec(utf8Text(bytes)) ?? []
    return { path: real, text, mark, bytes, stats }
  })
}

/**
 * Replaces the text of a file that has not changed since it was read. Keeps owner and mode. Throws a ConfigError;
 * then nothing is changed.
 */
export function writeClientFile({ path, mark, bytes, stats }: ClientFile, text: string): void {
  attempt(`cannot write ${path}`, () => {
    replace(path, mark + text, stats, () => {
      if (!readFileSync(path).equals(bytes)) throw new Error('it has changed at the same time, try again')
    })
  })
}

/** The text of a file's backup; undefined without a readable one. */
export function readBackup({ path }: ClientFile): string | undefined {
  try {
    return readClientFile(path + BACKUP).text
  } catch {
    return undefined
  }
}

/** Writes the backup of a file: its text without the bridge. Returns the path. Throws a ConfigError. */
export function writeBackup({ path, mark, stats }: ClientFile, text: string): string {
  const backup = path + BACKUP
  attempt(`cannot write the backup ${backup}`, () => replace(backup, mark + text, stats, () => {}))
  return backup
}

/** The text of a file next to a client's file; undefined without one. Throws a ConfigError. */
export function readBeside(path: string): string | undefined {
  return existsSync(path) ? readClientFile(path).text : undefined
}

/** Writes a file next to a client's file, with the same owner, private: it has content of that file. Throws a ConfigError. */
export function writeBeside(path: string, text: string, { stats }: ClientFile): void {
  const { uid, gid, mode } = stats
  attempt(`cannot write ${path}`, () => replace(path, text, { uid, gid, mode: mode & 0o600 }, () => {}))
}

export function removeBackup({ path }: ClientFile): void {
  rmSync(path + BACKUP, { force: true })
}

function replace(
  path: string,
  text: string,
  { mode, uid, gid }: Pick<Stats, 'mode' | 'uid' | 'gid'>,
  check: () => void,
): void {
  const aside = join(dirname(path), `.${basename(path)}.${crypto.randomUUID()}.new`)
  try {
    const fd = openSync(aside, 'wx', 0o600)
    try {
      const own = statSync(aside)
      if (own.uid !== uid || own.gid !== gid) fchownSync(fd, uid, gid)
      fchmodSync(fd, mode & 0o7777)
      writeFileSync(fd, text)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    check()
    renameSync(aside, path)
  } finally {
    rmSync(aside, { force: true })
  }
}

function attempt<T>(what: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new ConfigError([{ path: '', message: `${what}: ${why}. Nothing was changed.` }])
  }
}
