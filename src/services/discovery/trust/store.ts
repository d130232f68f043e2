/**
 * The trust decisions of people at this machine: keys of publishers, pins of origins, approvals of servers. Also
 * remembers serials of manifests and first seen tools.
 */

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { type LockOptions, LockRefused, locked, type StillMine } from '../../../base/net/lock.js'
import { stampOf } from '../../../base/net/private-file.js'
import { printable } from '../../../base/texts/printable.js'
import type { ToolList } from '../../../mcp/ports/trust-status.js'
import { type DocumentVersion, type Verification, verifyManifest } from './jws.js'
import type { PublisherKey } from './keys.js'
import {
  type Approval,
  type KeptList,
  type ReadStoreFile,
  readStoreFile,
  type SeenTools,
  type StoreFile,
  TrustStoreError,
  writeStoreFile,
} from './store-file.js'

export { type Approval, defaultStorePath, type KeptList, type SeenTools, TrustStoreError } from './store-file.js'

/** What verdicts are based on. */
export interface Trust {
  /** Why nothing in the store counts, if so. */
  readonly refusal: string | undefined
  keysOf(publisher: string): readonly PublisherKey[]
  lastOf(publisher: string, url: string): DocumentVersion | undefined
  pinsOf(origin: string): readonly string[] | undefined
  approvalOf(endpoint: string): Approval | undefined
  seenOf(endpoint: string): SeenTools | undefined
}

/** Where the store is. */
export interface TrustStoreOptions {
  path: string
  /** The user that must own the file, unless root does; by default that of this process. */
  uid?: number
  now?: () => number
  lock?: LockOptions
  /** Is told when an automatic record cannot be written, and without a failure when all are written again. */
  changed?: ((failure: unknown) => void) | undefined
}

/** Most recorded serials and lists of tools; the oldest are dropped. */
const MAX_SERIALS = 4_096
const MAX_SEEN = 256

/** A list of tools in the form that is stored. */
export function keptListOf({ digest, tools }: ToolList): KeptList {
  return { digest, tools: [...tools].map(([name, tool]) => [name, tool.digest]) }
}

/** The store. Reads the file again when it changes. */
export class TrustStore implements Trust {
  readonly path: string
  readonly #options: Required<Pick<TrustStoreOptions, 'uid' | 'now' | 'lock'>> & { changed: (failure: unknown) => void }
  #found: ReadStoreFile | undefined
  /** Records that are not in the file, which may not be writable. */
  readonly #serials = new Map<string, DocumentVersion>()
  readonly #seen = new Map<string, SeenTools>()
  readonly #withdrawn = new Map<string, string>()
  /** Changes for these records that the file does not have yet, by what they are about. */
  readonly #unwritten = new Map<string, (file: StoreFile) => unknown>()
  #isFailing = false

  constructor({
    path,
    uid = process.geteuid?.() ?? -1,
    now = Date.now,
    lock = {},
    changed = () => {},
  }: TrustStoreOptions) {
    this.path = path
    this.#options = { uid, now, lock, changed }
  }

  get refusal(): string | undefined {
    return this.#current.refusal
  }

  keysOf(publisher: string): readonly PublisherKey[] {
    return this.#current.file.keys.filter((key) => key.publisher === publisher)
  }

  lastOf(publisher: string, url: string): DocumentVersion | undefined {
    const kept = this.#current.file.serials.find((one) => one.publisher === publisher && one.url === url)
    const noted = this.#serials.get(keyOf(publisher, url))
    return kept && noted ? (kept.serial >= noted.serial ? kept : noted) : (kept ?? noted)
  }

  pinsOf(origin: string): readonly string[] | undefined {
    return this.#current.file.pins.find((one) => one.origin === origin)?.pins
  }

  approvalOf(endpoint: string): Approval | undefined {
    return this.#unlessWithdrawn(this.#current.file.approvals.find((one) => one.endpoint === endpoint))
  }

  seenOf(endpoint: string): SeenTools | undefined {
    const kept = this.#current.file.seen.find((one) => one.endpoint === endpoint)
    const noted = this.#seen.get(endpoint)
    return this.#unlessWithdrawn(kept && noted && kept.since > noted.since ? kept : (noted ?? kept))
  }

  #unlessWithdrawn<T extends SeenTools>(one: T | undefined): T | undefined {
    const withdrawn = one && this.#withdrawn.get(keyOf(one.endpoint, one.since))
    return withdrawn === undefined ? one : { ...(one as T), withdrawn }
  }

  /** All decisions, for people. */
  list(): Pick<StoreFile, 'keys' | 'pins' | 'approvals'> {
    const { keys, pins, approvals } = this.#current.file
    return { keys, pins, approvals: approvals.map(({ endpoint }) => this.approvalOf(endpoint) as Approval) }
  }

  /** Verifies a fetched manifest. If it is trusted, records its serial. */
  async verify(fetched: { url: string; bytes: Uint8Array; jws: Uint8Array | undefined }): Promise<Verification> {
    const { url, bytes, jws } = fetched
    const verification = await verifyManifest({
      bytes,
      jws,
      keysOf: (publisher) => this.keysOf(publisher),
      lastOf: (publisher) => this.lastOf(publisher, url),
      now: this.#options.now(),
    })
    if (verification.trusted) await this.noteSerial(verification.publisher, url, verification)
    return verification
  }

  // Decisions of people. These reject with a TrustStoreError or a system error; then nothing is changed.

  addKey(publisher: string, { id, jwk }: PublisherKey): Promise<void> {
    const added = this.#options.now()
    return this.#change(({ keys }) => {
      if (!keys.some((one) => one.publisher === publisher && one.id === id)) keys.push({ publisher, id, jwk, added })
    })
  }

  /** Resolves to whether there was one. */
  removeKey(publisher: string, id: string): Promise<boolean> {
    return this.#change(({ keys }) => remove(keys, (one) => one.publisher === publisher && one.id === id))
  }

  /** Replaces the approval of the endpoint. An approval of the whole server also replaces the first seen tools. */
  approve(given: Omit<Approval, 'since' | 'list' | 'withdrawn'> & { list: ToolList }): Promise<void> {
    const { endpoint, bound, name, tools, until } = given
    const looked: SeenTools = { endpoint, bound, list: keptListOf(given.list), since: this.#options.now() }
    return this.#change(({ approvals, seen }) => {
      remove(approvals, (one) => one.endpoint === endpoint)
      approvals.push({ ...looked, name, tools, until })
      if (!tools.includes('*')) return
      remove(seen, (one) => one.endpoint === endpoint)
      seen.push(looked)
    })
  }

  /** Resolves to whether there was one. */
  revoke(endpoint: string): Promise<boolean> {
    return this.#change(({ approvals }) => remove(approvals, (one) => one.endpoint === endpoint))
  }

  /** Replaces the pins of the origin. */
  pin(origin: string, given: readonly string[]): Promise<void> {
    const added = this.#options.now()
    return this.#change(({ pins }) => {
      remove(pins, (one) => one.origin === origin)
      pins.push({ origin, pins: [...given], added })
    })
  }

  /** Resolves to whether there were any. */
  unpin(origin: string): Promise<boolean> {
    return this.#change(({ pins }) => remove(pins, (one) => one.origin === origin))
  }

  // Automatic records. They count in this process even if the file cannot be written.

  /** Records a trusted document of a publisher: older ones are refused from now on. */
  async noteSerial(publisher: string, url: string, { serial, digest }: DocumentVersion): Promise<void> {
    const last = this.lastOf(publisher, url)
    if (last && last.serial >= serial) return
    this.#serials.set(keyOf(publisher, url), { serial, digest })
    await this.#note(keyOf('serial', publisher, url), ({ serials }) => {
      const known = serials.find((one) => one.publisher === publisher && one.url === url)
      if (known && known.serial >= serial) return
      remove(serials, (one) => one === known)
      serials.push({ publisher, url, serial, digest })
      serials.splice(0, serials.length - MAX_SERIALS)
    })
  }

  /** Records the tools of a server that is trusted for its key, when they are first seen. */
  async noteTools(endpoint: string, bound: string, list: ToolList): Promise<void> {
    if (this.seenOf(endpoint)?.bound === bound) return
    const noted: SeenTools = { endpoint, bound, list: keptListOf(list), since: list.at ?? this.#options.now() }
    this.#seen.set(endpoint, noted)
    await this.#note(keyOf('seen', endpoint), ({ seen }) => {
      if (seen.some((one) => one.endpoint === endpoint && one.bound === bound)) return this.#seen.delete(endpoint)
      remove(seen, (one) => one.endpoint === endpoint)
      seen.push(noted)
      return seen.splice(0, seen.length - MAX_SEEN)
    })
  }

  /**
   * Marks an approval or a first look as withdrawn, because the tools have changed. It stays so even if they change
   * back.
   */
  async withdraw({ endpoint, since }: Pick<SeenTools, 'endpoint' | 'since'>, why: string): Promise<void> {
    const withdrawn = printable(why, 1_000)
    this.#withdrawn.set(keyOf(endpoint, since), withdrawn)
    await this.#note(keyOf('withdrawn', endpoint, since), ({ approvals, seen }) => {
      for (const one of [...approvals, ...seen])
        if (one.endpoint === endpoint && one.since === since) one.withdrawn ??= withdrawn
    })
  }

  /** Writes the automatic records that could not be written before. Never rejects. */
  async writeNoted(): Promise<void> {
    let failure: unknown
    for (const [about, edit] of [...this.#unwritten]) {
      try {
        await this.#change(edit)
        if (this.#unwritten.get(about) === edit) this.#unwritten.delete(about)
      } catch (error) {
        failure = error
      }
    }
    const isFailing = failure !== undefined || (this.#isFailing && this.#unwritten.size > 0)
    if (isFailing !== this.#isFailing) this.#options.changed(failure)
    this.#isFailing = isFailing
  }

  get #current(): ReadStoreFile {
    if (this.#found?.stamp !== stampOf(this.path)) this.#found = readStoreFile(this.path, this.#options.uid)
    return this.#found as ReadStoreFile
  }

  #note(about: string, edit: (file: StoreFile) => unknown): Promise<void> {
    this.#unwritten.set(about, edit)
    return this.writeNoted()
  }

  async #change<T>(edit: (file: StoreFile) => T): Promise<T> {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    const found = readStoreFile(this.path, this.#options.uid)
    if (found.refusal !== undefined) throw new TrustStoreError(found.refusal)
    const change = (stillMine: StillMine) => {
      const { file, refusal } = readStoreFile(this.path, this.#options.uid)
      if (refusal !== undefined) throw new TrustStoreError(refusal)
      const changed = structuredClone(file)
      const result = edit(changed)
      writeStoreFile(this.path, changed, stillMine)
      return result
    }
    try {
      return await locked(`${this.path}.lock`, change, { uid: this.#options.uid, ...this.#options.lock })
    } catch (error) {
      if (!(error instanceof LockRefused)) throw error
      throw new TrustStoreError(`The trust store ${this.path} is not changed: ${error.message}`)
    }
  }
}

function remove<T>(list: T[], concerned: (one: T) => boolean): boolean {
  const before = list.length
  for (let at = before - 1; at >= 0; at--) if (concerned(list[at] as T)) list.splice(at, 1)
  return list.length < before
}

function keyOf(...parts: unknown[]): string {
  return JSON.stringify(parts)
}
