/**
 * Keeps what is cut off results for some minutes, for the caller that got the result. Its URI is sealed: nobody can guess it,
 * and whoever has that of another principal learns nothing.
 */
import { digest } from '../../../base/crypto/digest.js'
import { Sealer, type SealKey } from '../../../base/crypto/seal.js'
import { parseObject, value } from '../../../base/rpc/splice.js'
import type { Call } from '../../../mcp/protocol/call.js'
import { KEPT_RESULT } from '../../../mcp/protocol/meta.js'
import type { Long } from './long.js'
import type { KeptEntry } from './room.js'

/** Keeps parts of results, in this process or for all replicas. */
export interface PartStore {
  /** Resolves to the number of results that were dropped for it; undefined if there is no room for it. May reject. */
  keep(entry: KeptEntry, principal: string, parts: readonly string[]): Promise<number | undefined>
  /** The part with this number, from 0; undefined if it is not kept. May reject with a Fault. */
  part(entry: Pick<KeptEntry, 'id'>, number: number): Promise<string | undefined>
}

/** Minutes that a result is kept. */
export const KEPT_MINUTES = 10

/** Characters of digests, of six bits each. */
const ID_LENGTH = 22

/** A part that a URI names. */
export interface NamedPart {
  id: string
  owner: string
  /** From 1. */
  number: number
  /** The URI without the number, as the caller wrote it. */
  base: string
}

/** A part of a result that is kept. */
export interface KeptPart extends Pick<Long, 'kind' | 'mimeType'> {
  text: string
  number: number
  of: number
}

export class KeptResults {
  readonly #sealer: Sealer
  readonly #store: PartStore
  readonly #now: () => number

  /** `now` returns milliseconds since 1970, which replicas compare. */
  constructor(keys: readonly SealKey[], store: PartStore, now: () => number = Date.now) {
    this.#sealer = new Sealer(keys, 'result')
    this.#store = store
    this.#now = now
  }

  /**
   * Keeps something of a server for the caller. Resolves to its URI without a number, its bytes, and how many other results
   * were dropped for it; undefined if it cannot be kept.
   */
  async keep(
    call: Call,
    server: string,
    { kind, mimeType, parts }: Long,
  ): Promise<{ uri: string; bytes: number; dropped: number } | undefined> {
    const owner = ownerOf(call)
    const head = JSON.stringify({ kind, mimeType, of: parts.length })
    const records = parts.map((part) => `${head}\n${JSON.stringify(part)}`)
    // Of the content, so that a task whose result is read again and again has it once.
    const id = digest(JSON.stringify([owner, ...records.map(digest)])).slice(0, ID_LENGTH)
    const bytes = records.reduce((sum, record) => sum + Buffer.byteLength(record), 0)
    const entry = { id, owner, server, bytes, until: this.#now() + KEPT_MINUTES * 60_000 }
    const dropped = await this.#store.keep(entry, call.principal, records).catch(() => undefined)
    return dropped === undefined ? undefined : { uri: KEPT_RESULT + this.#sealer.seal({ id, owner }), bytes, dropped }
  }

  /** The part that a URI of this bridge names, also with the prefix of a group; undefined for other URIs. */
  named(uri: string): NamedPart | undefined {
    const at = uri.indexOf(KEPT_RESULT)
    if (at < 0 || (at > 0 && uri[at - 1] !== '+')) return undefined
    const [sealed = '', number = '1', ...more] = uri.slice(at + KEPT_RESULT.length).split('/')
    const { id, owner } = this.#sealer.open(sealed) ?? {}
    if (typeof id !== 'string' || typeof owner !== 'string' || more.length > 0) return undefined
    return { id, owner, number: Number(number), base: uri.slice(0, at) + KEPT_RESULT + sealed }
  }

  /** The part. Undefined if it is not kept any more; 'foreign' if it is not the caller's. Rejects with a Fault. */
  async read(call: Call, { id, owner, number }: NamedPart): Promise<KeptPart | 'foreign' | undefined> {
    if (owner !== ownerOf(call)) return 'foreign'
    const record = Number.isSafeInteger(number) && number > 0 ? await this.#store.part({ id }, number - 1) : undefined
    if (record === undefined) return undefined
    const end = record.indexOf('\n')
    const head = parseObject(record.slice(0, end))
    return {
      kind: value(head, 'kind') as Long['kind'],
      mimeType: value(head, 'mimeType') as string,
      of: value(head, 'of') as number,
      text: JSON.parse(record.slice(end + 1)) as string,
      number,
    }
  }
}

/** Whose results they are. Of callers with one principal, each knows only its own URIs. */
function ownerOf({ principal }: Call): string {
  return digest(principal).slice(0, ID_LENGTH)
}
