/**
 * Keeps lists of servers in files that only the user of this process can read, one for each record. Old files, and those that
 * exceed a bound, are removed. What cannot be read or written is said once, and the bridge goes on without it.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_KEPT_LISTS } from '../base/limits/constants.js'
import type { Log } from '../base/log/events.js'
import { locked } from '../base/net/lock.js'
import { type PrivateFileRules, readPrivateFile, writePrivateFile } from '../base/net/private-file.js'
import type { ListStore } from '../mcp/ports/list-store.js'

export interface ListFilesOptions {
  folder: string
  log: Pick<Log, 'warn'>
  /** The user that must own the files, unless root does; by default that of this process. */
  uid?: number
}

export const NOT_KEPT = 'lists of servers are not kept, or not used'
const SUFFIX = '.lists'
const MAX_LIST_FILE_BYTES = 8 * 1024 * 1024
/** Most files, and their bytes. */
const MAX_LIST_FILES = 500
const MAX_LIST_FILES_BYTES = 64 * 1024 * 1024
/** Milliseconds until the process that writes a file counts as killed. */
const LOCK_PATIENCE = 500
/** Milliseconds after which times and sizes of all files are read again: other bridges of the same user write them, too. */
const LOOK_AGAIN = 3_600_000

/** A file, as it was when it was last looked at. */
interface KnownFile {
  at: number
  bytes: number
}

export class ListFiles implements ListStore {
  readonly #folder: string
  readonly #log: Pick<Log, 'warn'>
  readonly #rules: PrivateFileRules
  #hasSaid = false
  #isUnwritable = false
  /** By name. */
  #known = new Map<string, KnownFile>()
  #looked = performance.now()

  constructor({ folder, log, uid = process.geteuid?.() ?? -1 }: ListFilesOptions) {
    this.#folder = folder
    this.#log = log
    this.#rules = { uid, maxBytes: MAX_LIST_FILE_BYTES, secret: true }
  }

  read(key: string): Promise<string | undefined> {
    const path = this.#pathOf(key)
    const found = readPrivateFile(path, this.#rules)
    if (found.kind === 'refused') this.#say(path, found.why)
    const isUsable = found.kind === 'file' && Date.now() - modifiedAt(path) <= MAX_KEPT_LISTS
    if (isUsable) return Promise.resolve(Buffer.from(found.bytes).toString('utf8'))
    this.#known.delete(key + SUFFIX)
    return Promise.resolve(undefined)
  }

  unusable(key: string, why: string): void {
    this.#say(this.#pathOf(key), why)
  }

  async write(key: string, text: string): Promise<void> {
    const path = this.#pathOf(key)
    const bytes = Buffer.from(text)
    if (this.#isUnwritable || bytes.length > MAX_LIST_FILE_BYTES) return
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      // A file that others may write is not trusted, and not changed.
      if (readPrivateFile(path, this.#rules).kind === 'refused') return
      const lock = { uid: this.#rules.uid, patience: LOCK_PATIENCE }
      await locked(`${path}.lock`, (stillMine) => writePrivateFile(path, bytes, stillMine), lock)
      this.#known.set(key + SUFFIX, { at: Date.now(), bytes: bytes.length })
      this.#removeOld()
    } catch (error) {
      this.#isUnwritable = true
      this.#say(this.#folder, error instanceof Error ? error.message : String(error))
    }
  }

  #pathOf(key: string): string {
    return join(this.#folder, key + SUFFIX)
  }

  #removeOld(): void {
    const files = this.#files().sort(([, one], [, other]) => other.at - one.at)
    let bytes = 0
    for (const [i, [name, file]] of files.entries()) {
      bytes += file.bytes
      if (i < MAX_LIST_FILES && bytes <= MAX_LIST_FILES_BYTES && Date.now() - file.at <= MAX_KEPT_LISTS) continue
      this.#known.delete(name)
      rmSync(join(this.#folder, name), { force: true })
    }
  }

  /** All files. Looks only at those that it does not know. */
  #files(): [name: string, file: KnownFile][] {
    const now = performance.now()
    if (now - this.#looked >= LOOK_AGAIN) {
      this.#known.clear()
      this.#looked = now
    }
    const files = readdirSync(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .flatMap((name): [string, KnownFile][] => {
        const file = this.#known.get(name) ?? fileAt(join(this.#folder, name))
        return file ? [[name, file]] : []
      })
    this.#known = new Map(files)
    return files
  }

  #say(path: string, why: string): void {
    if (this.#hasSaid) return
    this.#hasSaid = true
    this.#log.warn({ event: 'lists_not_kept', path, why }, NOT_KEPT)
  }
}

function fileAt(path: string): KnownFile | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  return stats?.isFile() ? { at: stats.mtimeMs, bytes: stats.size } : undefined
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
