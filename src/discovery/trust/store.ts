/**
 * What the people at this machine have said about whom they trust, in a file: keys of publishers, pins of origins, approvals
 * of servers; and what must not be forgotten of manifests and tools. A file that is not as it has to be is not used, not
 * changed and not replaced: nothing is trusted because of it until a person has looked.
 */
import { randomUUID } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import * as z from 'zod'
import { shown } from '../../protocol/shown.js'
import type { ToolList } from '../../protocol/standing.js'
import { readStrictly, StrictJsonError } from '../json.js'
import { type Issue, type Verification, verifyManifest } from './jws.js'
import { type PublisherKey, publicJwk } from './keys.js'
import { type LockOptions, locked } from './lock.js'
import { isPin, MAX_PINS } from './pin.js'

const moment = z.int().nonnegative()
const line = (max: number) => z.string().min(1).max(max)

/** A list of tools as it is kept: names with digests. Pairs, because tools may have any name. */
const keptList = z.strictObject({ digest: line(64), tools: z.array(z.tuple([z.string(), line(64)])).max(2_000) })

/** The tools of a server as they were when somebody looked. */
const looked = {
  endpoint: line(16_384),
  /** The key or the pins that the server had. */
  bound: line(1_024),
  list: keptList,
  since: moment,
  /** Why it does not hold any longer. */
  withdrawn: line(1_024).optional(),
}

const approval = z.strictObject({
  ...looked,
  name: line(128),
  /** Globs of tools; `*` is the whole server. */
  tools: z.array(line(128)).min(1).max(64),
  until: moment,
})

/** Of a server that is trusted for its key: when it was first seen. */
const seen = z.strictObject(looked)

const storeSchema = z.strictObject({
  version: z.literal(1),
  keys: z
    .array(z.strictObject({ publisher: line(128), id: line(64), jwk: publicJwk, added: moment }))
    .max(1_000)
    .default([]),
  pins: z
    .array(
      z.strictObject({
        origin: line(2_048),
        pins: z.array(z.string().refine(isPin, 'is no pin')).min(1).max(MAX_PINS),
        added: moment,
      }),
    )
    .max(1_000)
    .default([]),
  approvals: z.array(approval).max(1_000).default([]),
  serials: z
    .array(z.strictObject({ publisher: line(128), url: line(2_048), serial: moment, digest: line(64) }))
    .default([]),
  seen: z.array(seen).default([]),
})

type StoreFile = z.infer<typeof storeSchema>
export type Approval = z.infer<typeof approval>
export type KeptList = z.infer<typeof keptList>
export type Seen = z.infer<typeof seen>

/** What decisions about trust are made of. */
export interface Trust {
  /** Why nothing in the store counts, where that is so. */
  readonly refusal: string | undefined
  keysOf(publisher: string): readonly PublisherKey[]
  lastOf(publisher: string, url: string): Issue | undefined
  pinsOf(origin: string): readonly string[] | undefined
  approvalOf(endpoint: string): Approval | undefined
  seenOf(endpoint: string): Seen | undefined
}

export interface TrustStoreOptions {
  path: string
  /** Who may own the file, beside root; whoever runs this by default. */
  uid?: number
  now?: () => number
  lock?: LockOptions
}

/** The store cannot be changed. */
export class TrustStoreError extends Error {
  override name = 'TrustStoreError'
}

/** A file as it was found. */
interface Found {
  file: StoreFile
  refusal: string | undefined
  /** Changes whenever the file does. */
  stamp: string
}

const MAX_BYTES = 8 * 1024 * 1024
const MAX_DEPTH = 8
/** Of what notes itself, the oldest goes. */
const MAX_SERIALS = 4_096
const MAX_SEEN = 256
const NOTHING: StoreFile = { version: 1, keys: [], pins: [], approvals: [], serials: [], seen: [] }
const WRITABLE_BY_OTHERS = 0o022
const STICKY = 0o1000

/** Where the store is unless something else is configured. */
export function defaultStorePath(env: Readonly<Record<string, string | undefined>>, home = homedir()): string {
  const configured = env['XDG_CONFIG_HOME']
  const folder = configured !== undefined && isAbsolute(configured) ? configured : join(home, '.config')
  return join(folder, 'mcp-bridge', 'trust.json')
}

/** A list of tools as it is kept. */
export function keptListOf({ digest, tools }: ToolList): KeptList {
  return { digest, tools: [...tools].map(([name, tool]) => [name, tool.digest]) }
}

export class TrustStore implements Trust {
  readonly path: string
  readonly #options: Required<Pick<TrustStoreOptions, 'uid' | 'now'>> & { lock: LockOptions }
  #found: Found | undefined
  /** What has been noted, as long as the file does not say it: it may not be writable. */
  readonly #serials = new Map<string, Issue>()
  readonly #seen = new Map<string, Seen>()
  readonly #withdrawn = new Map<string, string>()
  #degraded: string | undefined

  constructor({ path, uid = userInfo().uid, now = Date.now, lock = {} }: TrustStoreOptions) {
    this.path = path
    this.#options = { uid, now, lock }
  }

  get refusal(): string | undefined {
    return this.#current.refusal
  }

  /** Why something that was to be noted is known to this process only. */
  get degraded(): string | undefined {
    return this.#degraded
  }

  keysOf(publisher: string): readonly PublisherKey[] {
    return this.#current.file.keys.filter((key) => key.publisher === publisher)
  }

  lastOf(publisher: string, url: string): Issue | undefined {
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

  seenOf(endpoint: string): Seen | undefined {
    const kept = this.#current.file.seen.find((one) => one.endpoint === endpoint)
    const noted = this.#seen.get(endpoint)
    return this.#unlessWithdrawn(kept && noted && kept.since > noted.since ? kept : (noted ?? kept))
  }

  #unlessWithdrawn<T extends Seen>(one: T | undefined): T | undefined {
    const withdrawn = one && this.#withdrawn.get(keyOf(one.endpoint, one.since))
    return withdrawn === undefined ? one : { ...(one as T), withdrawn }
  }

  /** Everything that people have said, for people. */
  list(): Pick<StoreFile, 'keys' | 'pins' | 'approvals'> {
    const { keys, pins, approvals } = this.#current.file
    return { keys, pins, approvals: approvals.map(({ endpoint }) => this.approvalOf(endpoint) as Approval) }
  }

  /** Says whether a manifest that was fetched from an address is its publisher's; of one that is, remembers the serial. */
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

  // What people say. All of these reject with a TrustStoreError, or with what the system has to say, where nothing was changed.

  addKey(publisher: string, { id, jwk }: PublisherKey): Promise<void> {
    const added = this.#options.now()
    return this.#change(({ keys }) => {
      if (!keys.some((one) => one.publisher === publisher && one.id === id)) keys.push({ publisher, id, jwk, added })
    })
  }

  /** Says whether there was one. */
  removeKey(publisher: string, id: string): Promise<boolean> {
    return this.#change(({ keys }) => remove(keys, (one) => one.publisher === publisher && one.id === id))
  }

  /** Puts an approval in the place of any other one of the endpoint. Of the whole server, it is a new first look as well. */
  approve(given: Omit<Approval, 'since' | 'list' | 'withdrawn'> & { list: ToolList }): Promise<void> {
    const { endpoint, bound } = given
    const looked = { endpoint, bound, list: keptListOf(given.list), since: this.#options.now() }
    return this.#change(({ approvals, seen }) => {
      remove(approvals, (one) => one.endpoint === endpoint)
      approvals.push({ ...given, ...looked })
      if (!given.tools.includes('*')) return
      remove(seen, (one) => one.endpoint === endpoint)
      seen.push(looked)
    })
  }

  /** Says whether there was one. */
  revoke(endpoint: string): Promise<boolean> {
    return this.#change(({ approvals }) => remove(approvals, (one) => one.endpoint === endpoint))
  }

  /** Puts pins in the place of any others of the origin. */
  pin(origin: string, given: readonly string[]): Promise<void> {
    const added = this.#options.now()
    return this.#change(({ pins }) => {
      remove(pins, (one) => one.origin === origin)
      pins.push({ origin, pins: [...given], added })
    })
  }

  /** Says whether there were any. */
  unpin(origin: string): Promise<boolean> {
    return this.#change(({ pins }) => remove(pins, (one) => one.origin === origin))
  }

  // What notes itself. It holds in this process even where it cannot be written.

  /** A document of a publisher has been trusted: none that is older will be. */
  async noteSerial(publisher: string, url: string, { serial, digest }: Issue): Promise<void> {
    const last = this.lastOf(publisher, url)
    if (last && last.serial >= serial) return
    this.#serials.set(keyOf(publisher, url), { serial, digest })
    await this.#note(({ serials }) => {
      const known = serials.find((one) => one.publisher === publisher && one.url === url)
      if (known && known.serial >= serial) return
      remove(serials, (one) => one === known)
      serials.push({ publisher, url, serial, digest })
      serials.splice(0, serials.length - MAX_SERIALS)
    })
  }

  /** The tools of a server that is trusted for its key have been seen for the first time. */
  async noteTools(endpoint: string, bound: string, list: ToolList): Promise<void> {
    if (this.seenOf(endpoint)?.bound === bound) return
    const noted: Seen = { endpoint, bound, list: keptListOf(list), since: this.#options.now() }
    this.#seen.set(endpoint, noted)
    await this.#note(({ seen }) => {
      if (seen.some((one) => one.endpoint === endpoint && one.bound === bound)) return this.#seen.delete(endpoint)
      remove(seen, (one) => one.endpoint === endpoint)
      seen.push(noted)
      return seen.splice(0, seen.length - MAX_SEEN)
    })
  }

  /** The tools are others than somebody has looked at: that holds no longer, even if they become again what they were. */
  async withdraw({ endpoint, since }: Pick<Seen, 'endpoint' | 'since'>, why: string): Promise<void> {
    const withdrawn = shown(why, 1_000)
    this.#withdrawn.set(keyOf(endpoint, since), withdrawn)
    await this.#note(({ approvals, seen }) => {
      for (const one of [...approvals, ...seen])
        if (one.endpoint === endpoint && one.since === since) one.withdrawn ??= withdrawn
    })
  }

  get #current(): Found {
    if (this.#found?.stamp !== stampOf(this.path)) this.#found = this.#read()
    return this.#found as Found
  }

  async #note(edit: (file: StoreFile) => unknown): Promise<void> {
    try {
      await this.#change(edit)
      this.#degraded = undefined
    } catch (error) {
      this.#degraded = error instanceof Error ? error.message : String(error)
    }
  }

  async #change<T>(edit: (file: StoreFile) => T): Promise<T> {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    const found = this.#read()
    if (found.refusal !== undefined) throw new TrustStoreError(found.refusal)
    return locked(
      `${this.path}.lock`,
      (stillMine) => {
        const { file, refusal } = this.#read()
        if (refusal !== undefined) throw new TrustStoreError(refusal)
        const changed = structuredClone(file)
        const result = edit(changed)
        this.#write(changed, stillMine)
        return result
      },
      this.#options.lock,
    )
  }

  /** Puts another file in the place of this one: whoever looks sees the whole of either. */
  #write(file: StoreFile, stillMine: () => void): void {
    const checked = storeSchema.safeParse(file)
    if (!checked.success)
      throw new TrustStoreError(`The trust store cannot be changed to this: ${whyNot(checked.error)}`)
    const text = Buffer.from(`${JSON.stringify(file, null, 2)}\n`)
    if (text.length > MAX_BYTES) throw new TrustStoreError(`The trust store would be larger than ${MAX_BYTES} bytes`)
    const folder = dirname(this.path)
    const prefix = `.${basename(this.path)}.`
    // Whoever left one behind was killed in the middle: only the owner of the lock makes any.
    for (const name of readdirSync(folder))
      if (name.startsWith(prefix) && name.endsWith('.new')) rmSync(join(folder, name), { force: true })
    const aside = join(folder, `${prefix}${randomUUID()}.new`)
    try {
      writeFileSync(aside, text, { flag: 'wx', mode: 0o600, flush: true })
      stillMine()
      renameSync(aside, this.path)
    } finally {
      rmSync(aside, { force: true })
    }
    syncFolder(folder)
  }

  #read(): Found {
    const refused = (why: string, stamp: string): Found => ({
      file: NOTHING,
      refusal: `The trust store ${this.path} is not used: ${why}`,
      stamp,
    })
    let stamp = 'unread'
    let fd: number | undefined
    try {
      stamp = stampOf(this.path)
      if (stamp === ABSENT) {
        const folder = statSync(dirname(this.path), { throwIfNoEntry: false })
        const wrong = folder && this.#wrongWithFolder(folder)
        return wrong === undefined ? { file: NOTHING, refusal: undefined, stamp } : refused(wrong, stamp)
      }
      fd = openSync(this.path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
      const stats = fstatSync(fd)
      const wrong = this.#wrongWith(stats) ?? this.#wrongWithFolder(statSync(dirname(this.path)))
      if (wrong !== undefined) return refused(wrong, stamp)
      const parsed = storeSchema.safeParse(readStrictly(readFileSync(fd), { maxBytes: MAX_BYTES, maxDepth: MAX_DEPTH }))
      if (!parsed.success) return refused(`it is not one (${whyNot(parsed.error)})`, stamp)
      return { file: parsed.data, refusal: undefined, stamp }
    } catch (error) {
      if (error instanceof StrictJsonError) return refused(`it is damaged (${shown(error.message, 200)})`, stamp)
      const code = error instanceof Error && 'code' in error ? String(error.code) : ''
      if (code === 'ELOOP') return refused('it is a symbolic link', stamp)
      return refused(`it cannot be read (${code || String(error)})`, stamp)
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
  }

  #wrongWith(stats: Stats): string | undefined {
    const { uid } = this.#options
    if (!stats.isFile()) return 'it is no file'
    if (stats.size > MAX_BYTES) return `it is larger than ${MAX_BYTES} bytes`
    // There are systems without owners and modes.
    if (uid < 0) return undefined
    if (stats.uid !== uid && stats.uid !== 0) return 'it belongs to somebody else'
    if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'others may write it (chmod 600 it)'
    return undefined
  }

  /** Who may write a folder may put another file in the place of one that they may not. */
  #wrongWithFolder({ uid: owner, mode }: Stats): string | undefined {
    const { uid } = this.#options
    if (uid < 0) return undefined
    if (owner !== uid && owner !== 0) return 'its folder belongs to somebody else'
    if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) return 'others may write its folder (chmod 700 it)'
    return undefined
  }
}

const ABSENT = 'absent'

/** Never throws: whoever then reads is told what is the matter. */
function stampOf(path: string): string {
  let stats: Stats | undefined
  try {
    stats = lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return 'unknown'
  }
  if (!stats) return ABSENT
  const { dev, ino, size, mtimeMs, ctimeMs, mode, uid } = stats
  return [dev, ino, size, mtimeMs, ctimeMs, mode, uid].join(' ')
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

function remove<T>(list: T[], concerned: (one: T) => boolean): boolean {
  const before = list.length
  for (let at = before - 1; at >= 0; at--) if (concerned(list[at] as T)) list.splice(at, 1)
  return list.length < before
}

function keyOf(...parts: unknown[]): string {
  return JSON.stringify(parts)
}

function whyNot({ issues: [first] }: z.ZodError): string {
  return first ? `${shown(first.path.join('.'), 100)}: ${first.message}` : 'it is no store'
}
