/**
 * The file that a trust store is kept in. One that is not as it has to be is not used, not changed and not replaced: nothing
 * is trusted because of it until a person has looked.
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
import { basename, dirname, isAbsolute, join } from 'node:path'
import * as z from 'zod'
import { shown } from '../../protocol/shown.js'
import { readStrictly, StrictJsonError } from '../../rpc/strict-json.js'
import { homeFolder } from '../home.js'
import { publicJwk } from './keys.js'
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

export type StoreFile = z.infer<typeof storeSchema>
export type Approval = z.infer<typeof approval>
export type KeptList = z.infer<typeof keptList>
export type Seen = z.infer<typeof seen>

/** The store cannot be changed. */
export class TrustStoreError extends Error {
  override name = 'TrustStoreError'
}

/** A file as it was found. */
export interface Found {
  file: StoreFile
  refusal: string | undefined
  /** Changes whenever the file does. */
  stamp: string
}

const MAX_BYTES = 8 * 1024 * 1024
const MAX_DEPTH = 8
const NOTHING: StoreFile = { version: 1, keys: [], pins: [], approvals: [], serials: [], seen: [] }
const ABSENT = 'absent'
const WRITABLE_BY_OTHERS = 0o022
const STICKY = 0o1000

/** Where the store is unless something else is configured; undefined where the person has no folder. */
export function defaultStorePath(
  env: Readonly<Record<string, string | undefined>>,
  home = homeFolder(),
): string | undefined {
  const configured = env['XDG_CONFIG_HOME']
  if (configured !== undefined && isAbsolute(configured)) return join(configured, 'mcp-bridge', 'trust.json')
  return home === undefined ? undefined : join(home, '.config', 'mcp-bridge', 'trust.json')
}

/** Reads the file, or says why it is not used. `uid` is who may own it, beside root. Never throws. */
export function readStoreFile(path: string, uid: number): Found {
  const refused = (why: string, stamp: string): Found => ({
    file: NOTHING,
    refusal: `The trust store ${path} is not used: ${why}`,
    stamp,
  })
  let stamp = 'unread'
  let fd: number | undefined
  try {
    stamp = stampOf(path)
    if (stamp.startsWith(ABSENT)) {
      const folder = statSync(dirname(path), { throwIfNoEntry: false })
      const wrong = folder && wrongWithFolder(folder, uid)
      return wrong === undefined ? { file: NOTHING, refusal: undefined, stamp } : refused(wrong, stamp)
    }
    fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const stats = fstatSync(fd)
    const wrong = wrongWith(stats, uid) ?? wrongWithFolder(statSync(dirname(path)), uid)
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

/** Puts another file in the place of this one: whoever looks sees the whole of either. Throws a TrustStoreError. */
export function writeStoreFile(path: string, file: StoreFile, stillMine: () => void): void {
  const checked = storeSchema.safeParse(file)
  if (!checked.success) throw new TrustStoreError(`The trust store cannot be changed to this: ${whyNot(checked.error)}`)
  const text = Buffer.from(`${JSON.stringify(file, null, 2)}\n`)
  if (text.length > MAX_BYTES) throw new TrustStoreError(`The trust store would be larger than ${MAX_BYTES} bytes`)
  const folder = dirname(path)
  const prefix = `.${basename(path)}.`
  // Whoever left one behind was killed in the middle: only the owner of the lock makes any.
  for (const name of readdirSync(folder))
    if (name.startsWith(prefix) && name.endsWith('.new')) rmSync(join(folder, name), { force: true })
  const aside = join(folder, `${prefix}${randomUUID()}.new`)
  try {
    writeFileSync(aside, text, { flag: 'wx', mode: 0o600, flush: true })
    stillMine()
    renameSync(aside, path)
  } finally {
    rmSync(aside, { force: true })
  }
  syncFolder(folder)
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

function wrongWith(stats: Stats, uid: number): string | undefined {
  if (!stats.isFile()) return 'it is no file'
  if (stats.size > MAX_BYTES) return `it is larger than ${MAX_BYTES} bytes`
  // There are systems without owners and modes.
  if (uid < 0) return undefined
  if (stats.uid !== uid && stats.uid !== 0) return 'it belongs to somebody else'
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0) return 'others may write it (chmod 600 it)'
  return undefined
}

/** Who may write a folder may put another file in the place of one that they may not. */
function wrongWithFolder({ uid: owner, mode }: Stats, uid: number): string | undefined {
  if (uid < 0) return undefined
  if (owner !== uid && owner !== 0) return 'its folder belongs to somebody else'
  if ((mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0) return 'others may write its folder (chmod 700 it)'
  return undefined
}

function whyNot({ issues: [first] }: z.ZodError): string {
  return first ? `${shown(first.path.join('.'), 100)}: ${first.message}` : 'it is no store'
}
