/**
 * The file of a trust store. An invalid file is not used, changed or replaced: nothing in it is trusted until a person
 * has repaired it.
 */

import { isAbsolute, join } from 'node:path'
import * as z from 'zod'
import { homeFolder } from '../../../base/net/home-folder.js'
import { readPrivateFile, writePrivateFile } from '../../../base/net/private-file.js'
import { readStrictly, StrictJsonError } from '../../../base/rpc/strict-json.js'
import { printable } from '../../../base/texts/printable.js'
import { publicJwk } from './keys.js'
import { isPin, MAX_PINS } from './pin.js'

const moment = z.int().nonnegative()
const line = (max: number) => z.string().min(1).max(max)

/** A stored list of tools: names with digests. Pairs, because a tool may have any name. */
const keptList = z.strictObject({ digest: line(64), tools: z.array(z.tuple([z.string(), line(64)])).max(2_000) })

/** The tools of a server when a person approved them, or when they were first seen. */
const looked = {
  endpoint: line(16_384),
  /** The key or the pins of the server at that time. */
  bound: line(1_024),
  list: keptList,
  since: moment,
  /** Why it is no longer valid. */
  withdrawn: line(1_024).optional(),
}

const approval = z.strictObject({
  ...looked,
  name: line(128),
  /** Globs of tools; `*` is the whole server. */
  tools: z.array(line(128)).min(1).max(64),
  until: moment,
})

/** A server that is trusted for its key: its tools when first seen. */
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
        pins: z.array(z.string().refine(isPin, 'is not a pin')).min(1).max(MAX_PINS),
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

/** The content of the file. */
export type StoreFile = z.infer<typeof storeSchema>
export type Approval = z.infer<typeof approval>
export type KeptList = z.infer<typeof keptList>
export type SeenTools = z.infer<typeof seen>

/** The store cannot be changed. The message says why. */
export class TrustStoreError extends Error {
  override name = 'TrustStoreError'
}

/** A file as read. */
export interface ReadStoreFile {
  file: StoreFile
  refusal: string | undefined
  /** Changes whenever the file does. */
  stamp: string
}

const MAX_STORE_BYTES = 8 * 1024 * 1024
const MAX_STORE_DEPTH = 8
const NOTHING: StoreFile = { version: 1, keys: [], pins: [], approvals: [], serials: [], seen: [] }

/** The default path of the store; undefined if the user has no home folder. */
export function defaultStorePath(
  env: Readonly<Record<string, string | undefined>>,
  home = homeFolder(),
): string | undefined {
  const configured = env['XDG_CONFIG_HOME']
  if (configured !== undefined && isAbsolute(configured)) return join(configured, 'mcp-bridge', 'trust.json')
  return home === undefined ? undefined : join(home, '.config', 'mcp-bridge', 'trust.json')
}

/** Reads the file, or says why it is not used. `uid` is the user that must own it, unless root does. Never throws. */
export function readStoreFile(path: string, uid: number): ReadStoreFile {
  const found = readPrivateFile(path, { uid, maxBytes: MAX_STORE_BYTES })
  const { stamp } = found
  const refused = (why: string): ReadStoreFile => ({
    file: NOTHING,
    refusal: `The trust store ${path} is not used: ${why}`,
    stamp,
  })
  if (found.kind === 'absent') return { file: NOTHING, refusal: undefined, stamp }
  if (found.kind === 'refused') return refused(found.why)
  try {
    const parsed = storeSchema.safeParse(
      readStrictly(found.bytes, { maxBytes: MAX_STORE_BYTES, maxDepth: MAX_STORE_DEPTH }),
    )
    if (!parsed.success) return refused(`its content is invalid (${whyNot(parsed.error)})`)
    return { file: parsed.data, refusal: undefined, stamp }
  } catch (error) {
    if (error instanceof StrictJsonError) return refused(`it is damaged (${printable(error.message, 200)})`)
    return refused(`it cannot be read (${String(error)})`)
  }
}

/** Replaces the file atomically: readers see either the old or the new content. Throws a TrustStoreError. */
export function writeStoreFile(path: string, file: StoreFile, stillMine: () => void): void {
  const checked = storeSchema.safeParse(file)
  if (!checked.success)
    throw new TrustStoreError(`The change would make the trust store invalid: ${whyNot(checked.error)}`)
  const text = Buffer.from(`${JSON.stringify(file, null, 2)}\n`)
  if (text.length > MAX_STORE_BYTES)
    throw new TrustStoreError(`The trust store would be larger than ${MAX_STORE_BYTES} bytes`)
  writePrivateFile(path, text, stillMine)
}

function whyNot({ issues: [first] }: z.ZodError): string {
  return first ? `${printable(first.path.join('.'), 100)}: ${first.message}` : 'it is not a trust store'
}
