/**
 * Records in files, one for each account at each server, with mode 0600 in a folder with mode 0700. A file that is
 * damaged, or that other users can access, is neither used nor changed. If the folder is not writable, records are kept
 * in memory.
 */
import { mkdirSync, readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { Fault } from '../../../base/fault/fault.js'
import { type LockOptions, LockRefused, locked, type StillMine } from '../../../base/net/lock.js'
import {
  type PrivateFileRules,
  readPrivateFile,
  removePrivateFile,
  stampOf,
  writePrivateFile,
} from '../../../base/net/private-file.js'
import { readStrictly, StrictJsonError } from '../../../base/rpc/strict-json.js'
import { printable } from '../../../base/texts/printable.js'
import { emptyRecord, isEmpty } from './empty.js'
import { MemoryStore } from './memory.js'
import { type Holder, recordSchema, type TokenRecord } from './record.js'
import type { ListedRecord, TokenStore } from './store.js'

/** Where the files are. */
export interface FileStoreOptions {
  folder: string
  /** The user that must own the files, unless root does; by default that of this process. */
  uid?: number
  lock?: LockOptions
  /** Called once with the reason why records are not written. */
  onDegraded?: ((why: string) => void) | undefined
}

/** Milliseconds until the process that changes a file counts as killed. A change takes much less. */
const LOCK_PATIENCE = 500
const MAX_RECORD_BYTES = 256 * 1024
const MAX_RECORD_DEPTH = 8
const SUFFIX = '.json'
/** Most files that `list` reads. */
const MAX_FILES = 1_000

/** The default folder for tokens. */
export function defaultTokenFolder(env: Readonly<Record<string, string | undefined>>, home?: string): string {
  const configured = env['XDG_CONFIG_HOME']
  const folder = configured !== undefined && isAbsolute(configured) ? configured : join(home ?? homedir(), '.config')
  return join(folder, 'mcp-bridge', 'tokens')
}

/** The store. */
export class FileStore implements TokenStore {
  readonly #folder: string
  readonly #rules: PrivateFileRules
  readonly #lock: LockOptions
  readonly #onDegraded: (why: string) => void
  /** Records that could not be written. */
  readonly #unwritten = new MemoryStore()
  #degraded = false

  constructor({ folder, uid = process.geteuid?.() ?? -1, lock = {}, onDegraded = () => {} }: FileStoreOptions) {
    this.#folder = folder
    this.#rules = { uid, maxBytes: MAX_RECORD_BYTES, secret: true }
    this.#lock = { patience: LOCK_PATIENCE, ...lock }
    this.#onDegraded = onDegraded
  }

  stamp(key: string): string {
    return this.#unwritten.has(key) ? this.#unwritten.stamp(key) : stampOf(this.#pathOf(key))
  }

  async read(key: string): Promise<TokenRecord | undefined> {
    return this.#unwritten.has(key) ? this.#unwritten.read(key) : this.#load(key)
  }

  async change<T>(key: string, holder: Holder, edit: (record: TokenRecord) => T): Promise<T> {
    if (this.#unwritten.has(key)) return this.#unwritten.change(key, holder, edit)
    const path = this.#pathOf(key)
    let draft: TokenRecord | undefined
    let done: { result: T } | undefined
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      return await this.#locked(key, (stillMine) => {
        const record = this.#load(key)
        draft = structuredClone(record) ?? emptyRecord(holder)
        done = { result: edit(draft) }
        if (JSON.stringify(draft) !== JSON.stringify(record ?? emptyRecord(holder))) this.#write(path, draft, stillMine)
        return done.result
      })
    } catch (error) {
      if (!isOfSystem(error)) throw error
      this.#degrade(error)
      if (!done || !draft) {
        draft = this.#load(key) ?? emptyRecord(holder)
        done = { result: edit(draft) }
      }
      this.#unwritten.put(key, draft)
      return done.result
    }
  }

  async remove(key: string): Promise<void> {
    await this.#unwritten.remove(key)
    const path = this.#pathOf(key)
    if (readPrivateFile(path, this.#rules).kind === 'absent') return
    await this.#locked(key, (stillMine) => {
      this.#load(key)
      stillMine()
      removePrivateFile(path)
    })
  }

  async list(): Promise<readonly ListedRecord[]> {
    const keys = this.#names().flatMap((name) =>
      name.endsWith(SUFFIX) && !name.startsWith('.') ? [name.slice(0, -SUFFIX.length)] : [],
    )
    const unwritten = await this.#unwritten.list()
    const known = new Set(unwritten.map(({ key }) => key))
    const listed = keys
      .filter((key) => !known.has(key))
      .slice(0, MAX_FILES)
      .map((key): ListedRecord => {
        try {
          const record = this.#load(key)
          return record ? { key, record } : { key }
        } catch (error) {
          return { key, refusal: error instanceof Error ? error.message : String(error) }
        }
      })
    return [...unwritten, ...listed.filter(({ record, refusal }) => record !== undefined || refusal !== undefined)]
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#folder)
    } catch {
      return []
    }
  }

  #pathOf(key: string): string {
    return join(this.#folder, key + SUFFIX)
  }

  /** Rejects with a Fault, and changes nothing, if the file or its lock file must not be used. */
  async #locked<T>(key: string, change: (stillMine: StillMine) => T): Promise<T> {
    this.#load(key)
    try {
      return await locked(`${this.#pathOf(key)}.lock`, change, { uid: this.#rules.uid, ...this.#lock })
    } catch (error) {
      throw error instanceof LockRefused ? this.#refused(key, error.message) : error
    }
  }

  #refused(key: string, why: string): Fault {
    return new Fault('storeRefused', `The token file ${this.#pathOf(key)} is not used: ${why}`)
  }

  /** Throws a Fault if there is a file that must not be used. */
  #load(key: string): TokenRecord | undefined {
    const path = this.#pathOf(key)
    const refused = (why: string) => this.#refused(key, why)
    const found = readPrivateFile(path, this.#rules)
    if (found.kind === 'absent') return undefined
    if (found.kind === 'refused') throw refused(found.why)
    try {
      const parsed = recordSchema.safeParse(
        readStrictly(found.bytes, { maxBytes: MAX_RECORD_BYTES, maxDepth: MAX_RECORD_DEPTH }),
      )
      if (parsed.success) return parsed.data
      const [issue] = parsed.error.issues
      throw refused(
        `its content is invalid (${printable(issue?.path.join('.') ?? '', 100)}: ${issue?.message}). Move it away to sign in again`,
      )
    } catch (error) {
      if (error instanceof StrictJsonError) throw refused(`it is damaged. Move it away to sign in again`)
      throw error
    }
  }

  #write(path: string, record: TokenRecord, stillMine: () => void): void {
    if (isEmpty(record)) {
      stillMine()
      return removePrivateFile(path)
    }
    const checked = recordSchema.parse(record)
    writePrivateFile(path, Buffer.from(`${JSON.stringify(checked, null, 2)}\n`), stillMine)
  }

  #degrade(error: Error & { code: unknown }): void {
    if (this.#degraded) return
    this.#degraded = true
    this.#onDegraded(`Tokens cannot be written to ${this.#folder} (${String(error.code)}). They are kept in memory`)
  }
}

function isOfSystem(error: unknown): error is Error & { code: unknown } {
  return error instanceof Error && 'code' in error && !(error instanceof Fault)
}
