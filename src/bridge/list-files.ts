/**
 * Keeps lists of servers in files that only the user of this process can read, one for each record. Old files, and those that
 * exceed a bound, are removed. What cannot be read or written is said once, and the bridge goes on without it.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MAX_KEPT_LISTS } from '../limits/constants.js'
import type { Log } from '../log/events.js'
import { locked } from '../net/lock.js'
import { type PrivateFileRules, readPrivateFile, writePrivateFile } from '../net/private-file.js'
import type { ListStore } from '../ports/list-store.js'

export interface ListFilesOptions {
  folder: string
  log: Pick<Log, 'warn'>
  /** The user that must own the files, unless root does; by default that of this process. */
  uid?: number
}

const SUFFIX = '.lists'
const MAX_LIST_FILE_BYTES = 8 * 1024 * 1024
/** Most files, and their bytes. */
const MAX_LIST_FILES = 500
const MAX_LIST_FILES_BYTES = 64 * 1024 * 1024
/** Milliseconds until the process that writes a file counts as killed. */
const LOCK_PATIENCE = 500

export class ListFiles implements ListStore {
  readonly #folder: string
  readonly #log: Pick<Log, 'warn'>
  readonly #rules: PrivateFileRules
  #hasSaid = false
  #isUnwritable = false

  constructor({ folder, log, uid = process.geteuid?.() ?? -1 }: ListFilesOptions) {
    this.#folder = folder
    this.#log = log
    this.#rules = { uid, maxBytes: MAX_LIST_FILE_BYTES, secret: true }
  }

  read(key: string): Promise<string | undefined> {
    const path = this.#pathOf(key)
    const found = readPrivateFile(path, this.#rules)
    if (found.kind === 'refused') this.#say(path, found.why)
    if (found.kind !== 'file' || Date.now() - modifiedAt(path) > MAX_KEPT_LISTS) return Promise.resolve(undefined)
    return Promise.resolve(Buffer.from(found.bytes).toString('utf8'))
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
    const files = readdirSync(this.#folder)
      .filter((name) => name.endsWith(SUFFIX))
      .flatMap((name) => {
        const path = join(this.#folder, name)
        const stats = statSync(path, { throwIfNoEntry: false })
        return stats?.isFile() ? { path, at: stats.mtimeMs, bytes: stats.size } : []
      })
      .sort((one, other) => other.at - one.at)
    let bytes = 0
    for (const [i, file] of files.entries()) {
      bytes += file.bytes
      if (i >= MAX_LIST_FILES || bytes > MAX_LIST_FILES_BYTES || Date.now() - file.at > MAX_KEPT_LISTS)
        rmSync(file.path, { force: true })
    }
  }

  #say(path: string, why: string): void {
    if (this.#hasSaid) return
    this.#hasSaid = true
    this.#log.warn({ event: 'lists_not_kept', path, why }, 'lists of servers are not kept, or not used')
  }
}

function modifiedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
